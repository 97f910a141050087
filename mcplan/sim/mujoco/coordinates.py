"""Where a robot's coordinates are among MuJoCo's, and what joints that mimic others add to them."""

from typing import Any

import mujoco
import numpy as np

from mcplan.core.rigid_body.tree import MULTIPLIER, OFFSET, V
from mcplan.model.robot import Robot
from mcplan.sim.mujoco.bodies import joint_names


class Coordinates:
    """The map ``q_all = G q + c`` of a robot's coordinates to those of all of its joints in MuJoCo.

    A joint that mimics another one is held to it by an equality constraint, which gives a little within a step. After
    the step its velocities are made those of ``G`` with the momentum along ``G`` kept,

        G' M_all (G v - v_all) = 0

    which adds no force to the equation of motion: that of the constraint has no part along ``G``.

    Attributes
    ----------
    place, rate : (7+n,), (6+n,) indices of the robot's own coordinates in ``qpos`` and ``qvel``; the base's first. Of a
        fixed base those of the joints alone.
    first : where the joints begin among the robot's velocities where ``rate`` leaves the base out, else 0.
    """

    def __init__(self, robot: Robot, model: Any):
        joints = [model.joint(f"joint:{name}") for name in robot.joint_names]
        base = [] if robot.fixed else [model.joint("base")]
        place, rate = [joint.qposadr[0] for joint in joints], [joint.dofadr[0] for joint in joints]
        self.place = np.array([b.qposadr[0] + k for b in base for k in range(7)] + place, int)
        self.rate = np.array([b.dofadr[0] + k for b in base for k in range(6)] + rate, int)
        self.first = 6 if robot.fixed else 0
        self._model = model
        own = joint_names(robot)
        followers = [i for i, name in own.items() if name not in robot.joint_names]
        rows = [model.joint(f"joint:{own[i]}") for i in followers]
        self._place = np.array([row.qposadr[0] for row in rows], int)
        self._rate = np.array([row.dofadr[0] for row in rows], int)
        masters = robot.tree.topology[followers, V].astype(int) if followers else np.zeros(0, int)
        self._master, self._master_place = masters - self.first, masters + 1 - (7 if robot.fixed else 0)
        self._multiplier = robot.tree.joint[followers, MULTIPLIER] if followers else np.zeros(0)
        self._offset = robot.tree.joint[followers, OFFSET] if followers else np.zeros(0)

    def couple(self, data: Any) -> None:
        """Put the followers where their masters say."""
        data.qpos[self._place] = self._multiplier * data.qpos[self.place[self._master_place]] + self._offset
        data.qvel[self._rate] = self._multiplier * data.qvel[self.rate[self._master]]

    def reduced(self, force: np.ndarray) -> np.ndarray:
        """Return the force (6+n,) ``G' f`` on the robot's own coordinates of one on all of MuJoCo's."""
        own = force[self.rate]
        np.add.at(own, self._master, self._multiplier * force[self._rate])
        return own

    def settle(self, data: Any, place: np.ndarray, dt: float) -> None:
        """Let followers follow exactly after a step that began at ``place`` (nq,) of MuJoCo."""
        if not len(self._rate):
            return
        M = np.zeros((self._model.nv, self._model.nv))
        mujoco.mj_fullM(self._model, data, M)
        G = np.zeros((self._model.nv, len(self.rate)))
        G[self.rate, np.arange(len(self.rate))] = 1.0
        G[self._rate, self._master] = self._multiplier
        MG = M @ G
        all_rates = np.concatenate([self.rate, self._rate])
        data.qvel[self.rate] = np.linalg.solve(G.T @ MG, MG[all_rates].T @ data.qvel[all_rates])
        data.qvel[self._rate] = self._multiplier * data.qvel[self.rate[self._master]]
        data.qpos[:] = place
        mujoco.mj_integratePos(self._model, data.qpos, data.qvel, dt)
        self.couple(data)
