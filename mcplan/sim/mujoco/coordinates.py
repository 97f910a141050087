"""Conversion between the robot's coordinates and MuJoCo's, with ball joints and mimic joints."""

from typing import Any

import mujoco
import numpy as np

from mcplan.core.rigid_body.tree import MULTIPLIER, OFFSET, V
from mcplan.robot.robot import Robot
from mcplan.sim.mujoco.bodies import Ball, balls_of, joint_names


class Coordinates:
    """The map ``q_all = G q + c`` of a robot's coordinates to those of all of its joints in MuJoCo.

    A mimic joint follows its master by an equality constraint, which is slightly violated within a step. After the step
    the velocities are projected onto ``G``, with the momentum along ``G`` conserved:

        G' M_all (G v - v_all) = 0

    This adds no force to the equation of motion: the constraint force has no component along ``G``.

    Attributes
    ----------
    place, rate : (7+n,), (6+n,) indices of the robot's coordinates in ``qpos`` and ``qvel``, the base first; with a
        fixed base of the joints only. At the indices of a ball joint are MuJoCo's coordinates; ``put``, ``state``,
        ``forces`` and ``moments`` convert them.
    balls : ball joints, each with its rows among those of ``rate``.
    first : index of the first joint among the robot's velocities if ``rate`` excludes the base, else 0.
    """

    def __init__(self, robot: Robot, model: Any):
        base = [] if robot.fixed else [model.joint("base")]
        balls = balls_of(robot, model)
        place, rate = _joint_places(robot, model, balls)
        self.place = np.array([b.qposadr[0] + k for b in base for k in range(7)] + place, int)
        self.rate = np.array([b.dofadr[0] + k for b in base for k in range(6)] + rate, int)
        self.first = 6 if robot.fixed else 0
        joints = len(self.rate) - len(rate)
        self.balls = [(ball, slice(joints + ball.joints.start, joints + ball.joints.stop)) for ball in balls]
        self._model, self._n = model, robot.n
        own = joint_names(robot)
        followers = [i for i, name in own.items() if name not in robot.joint_names]
        rows = [model.joint(f"joint:{own[i]}") for i in followers]
        self._place = np.array([row.qposadr[0] for row in rows], int)
        self._rate = np.array([row.dofadr[0] for row in rows], int)
        masters = robot.tree.topology[followers, V].astype(int) if followers else np.zeros(0, int)
        self._master, self._master_place = masters - self.first, masters + 1 - (7 if robot.fixed else 0)
        self._multiplier = robot.tree.joint[followers, MULTIPLIER] if followers else np.zeros(0)
        self._offset = robot.tree.joint[followers, OFFSET] if followers else np.zeros(0)

    def put(self, data: Any, q: np.ndarray, v: np.ndarray) -> None:
        """Set the state: q (7+n,) and v (6+n,), base angular velocity in body axes; with a fixed base of the joints."""
        data.qpos[self.place], data.qvel[self.rate] = q, v
        for ball, _ in self.balls:
            ball.put(data, q[len(q) - self._n :][ball.joints], v[len(v) - self._n :][ball.joints])
        self._couple(data)

    def _couple(self, data: Any) -> None:
        """Set mimic joints from their masters."""
        data.qpos[self._place] = self._multiplier * data.qpos[self.place[self._master_place]] + self._offset
        data.qvel[self._rate] = self._multiplier * data.qvel[self.rate[self._master]]

    def state(self, data: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return q and v in the convention of ``put``."""
        q, v = data.qpos[self.place], data.qvel[self.rate]
        for ball, _ in self.balls:
            q[len(q) - self._n :][ball.joints], v[len(v) - self._n :][ball.joints] = ball.phi, ball.speed
        return q, v

    def moments(self, force: np.ndarray) -> np.ndarray:
        """Convert generalised forces (6+n,), with a fixed base (n,), to MuJoCo: ball joints have moments."""
        if not self.balls:
            return force
        force = np.array(force)
        for ball, rows in self.balls:
            force[rows] = np.linalg.solve(ball.E.T, force[rows])
        return force

    def forces(self, moments: np.ndarray) -> np.ndarray:
        """Convert generalised forces from MuJoCo: the inverse of ``moments``."""
        for ball, rows in self.balls:
            moments[rows] = ball.E.T @ moments[rows]
        return moments

    def reduced(self, force: np.ndarray) -> np.ndarray:
        """Project a force on all of MuJoCo's coordinates onto those of the robot: ``G' f`` (6+n,)."""
        own = force[self.rate]
        np.add.at(own, self._master, self._multiplier * force[self._rate])
        return self.forces(own)

    def settle(self, data: Any, place: np.ndarray, dt: float) -> None:
        """Correct mimic and ball joints after a step that began at ``place`` (nq,) of MuJoCo."""
        if len(self._rate):
            self._follow(data, place, dt)
        for ball, _ in self.balls:
            ball.settle(data, dt)

    def _follow(self, data: Any, place: np.ndarray, dt: float) -> None:
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
        self._couple(data)


def _joint_places(robot: Robot, model: Any, balls: list[Ball]) -> tuple[list[int], list[int]]:
    """Return the indices of the joint coordinates in ``qpos`` and ``qvel``; the three of a ball share its index."""
    of_balls = {ball.joints.start + k: (ball, k) for ball in balls for k in range(3)}
    place, rate = [], []
    for column, name in enumerate(robot.joint_names):
        if column in of_balls:
            ball, k = of_balls[column]
            place.append(ball.place.start + k)
            rate.append(ball.rate.start + k)
        else:
            joint = model.joint(f"joint:{name}")
            place.append(int(joint.qposadr[0]))
            rate.append(int(joint.dofadr[0]))
    return place, rate
