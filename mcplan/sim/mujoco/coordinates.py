"""Conversion between the robot's coordinates and MuJoCo's, with ball joints and mimic joints."""

from typing import Any

import mujoco
import numpy as np

from mcplan.core.rigid_body.tree import MULTIPLIER, OFFSET, V
from mcplan.robot.robot import Robot
from mcplan.sim.mujoco.bodies import Ball, balls_of, joint_names


class Coordinates:
    """Conversion between a robot's coordinates and those of MuJoCo, where mimic joints have coordinates too.

    The positions of all joints are ``q_all = G q + c``; ``G``, ``c`` have the multipliers and offsets of mimic joints.

    A mimic joint follows its master by an equality constraint, which is slightly violated within a step. After the step
    the velocities are projected onto ``G``, with the momentum along ``G`` conserved:

        G' M_all (G v - v_all) = 0

    This adds no force to the equation of motion: the constraint force has no component along ``G``.

    Attributes
    ----------
    qpos_index, qvel_index : (7+n,), (6+n,) indices of the robot's coordinates in ``qpos`` and ``qvel``, the base first;
        for a fixed base (n,), only its joints. Ball joints have other coordinates in MuJoCo; ``put``,
        ``state``, ``forces`` and ``moments`` convert them.
    balls : ball joints, each with the slice of its entries in ``qvel_index``.
    first : index of the first of the robot's velocities that MuJoCo has: 6 with a fixed base, else 0.
    """

    def __init__(self, robot: Robot, model: Any):
        base = [] if robot.fixed else [model.joint("base")]
        balls = balls_of(robot, model)
        qpos, qvel = _joint_indices(robot, model, balls)
        self.qpos_index = np.array([b.qposadr[0] + k for b in base for k in range(7)] + qpos, int)
        self.qvel_index = np.array([b.dofadr[0] + k for b in base for k in range(6)] + qvel, int)
        self.first = 6 if robot.fixed else 0
        first_joint = len(self.qvel_index) - len(qvel)
        self.balls = [(ball, slice(first_joint + ball.joints.start, first_joint + ball.joints.stop)) for ball in balls]
        self._model, self._n = model, robot.n
        names = joint_names(robot)
        mimics = [i for i, name in names.items() if name not in robot.joint_names]
        joints_of_mimics = [model.joint(f"joint:{names[i]}") for i in mimics]
        self._mimic_qpos = np.array([joint.qposadr[0] for joint in joints_of_mimics], int)
        self._mimic_qvel = np.array([joint.dofadr[0] for joint in joints_of_mimics], int)
        masters = robot.tree.topology[mimics, V].astype(int) if mimics else np.zeros(0, int)
        self._master_v, self._master_q = (
            masters - self.first,
            masters + 1 - (7 if robot.fixed else 0),
        )
        self._multiplier = robot.tree.joint[mimics, MULTIPLIER] if mimics else np.zeros(0)
        self._offset = robot.tree.joint[mimics, OFFSET] if mimics else np.zeros(0)

    def put(self, data: Any, q: np.ndarray, v: np.ndarray) -> None:
        """Set the state q (7+n,), v (6+n,), the base's angular velocity in body axes; for a fixed base (n,), (n,)."""
        data.qpos[self.qpos_index], data.qvel[self.qvel_index] = q, v
        for ball, _ in self.balls:
            ball.put(data, q[len(q) - self._n :][ball.joints], v[len(v) - self._n :][ball.joints])
        self._couple(data)

    def _couple(self, data: Any) -> None:
        """Set mimic joints from their masters."""
        data.qpos[self._mimic_qpos] = self._multiplier * data.qpos[self.qpos_index[self._master_q]] + self._offset
        data.qvel[self._mimic_qvel] = self._multiplier * data.qvel[self.qvel_index[self._master_v]]

    def state(self, data: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return q and v in the convention of ``put``."""
        q, v = data.qpos[self.qpos_index], data.qvel[self.qvel_index]
        for ball, _ in self.balls:
            q[len(q) - self._n :][ball.joints], v[len(v) - self._n :][ball.joints] = ball.phi, ball.phi_rate
        return q, v

    def moments(self, force: np.ndarray) -> np.ndarray:
        """Convert generalised forces (6+n,), for a fixed base (n,), to MuJoCo's, where ball joints have moments."""
        if not self.balls:
            return force
        force = np.array(force)
        for ball, rows in self.balls:
            force[rows] = np.linalg.solve(ball.E.T, force[rows])
        return force

    def forces(self, moments: np.ndarray) -> np.ndarray:
        """Convert MuJoCo's generalised forces to the robot's, in place: the inverse of ``moments``."""
        for ball, rows in self.balls:
            moments[rows] = ball.E.T @ moments[rows]
        return moments

    def reduced(self, force: np.ndarray) -> np.ndarray:
        """Return the generalised force (6+n,) ``G' f`` of a force ``f`` on all of MuJoCo's velocities."""
        projected = force[self.qvel_index]
        np.add.at(projected, self._master_v, self._multiplier * force[self._mimic_qvel])
        return self.forces(projected)

    def settle(self, data: Any, qpos: np.ndarray, dt: float) -> None:
        """Correct mimic and ball joints after a step from ``qpos`` (nq,) of MuJoCo."""
        if len(self._mimic_qvel):
            self._project(data, qpos, dt)
        for ball, _ in self.balls:
            ball.settle(data, dt)

    def _project(self, data: Any, qpos: np.ndarray, dt: float) -> None:
        M = np.zeros((self._model.nv, self._model.nv))
        mujoco.mj_fullM(self._model, data, M)
        G = np.zeros((self._model.nv, len(self.qvel_index)))
        G[self.qvel_index, np.arange(len(self.qvel_index))] = 1.0
        G[self._mimic_qvel, self._master_v] = self._multiplier
        MG = M @ G
        all_joints = np.concatenate([self.qvel_index, self._mimic_qvel])
        data.qvel[self.qvel_index] = np.linalg.solve(G.T @ MG, MG[all_joints].T @ data.qvel[all_joints])
        data.qvel[self._mimic_qvel] = self._multiplier * data.qvel[self.qvel_index[self._master_v]]
        data.qpos[:] = qpos
        mujoco.mj_integratePos(self._model, data.qpos, data.qvel, dt)
        self._couple(data)


def _joint_indices(robot: Robot, model: Any, balls: list[Ball]) -> tuple[list[int], list[int]]:
    """Return the indices of the joint coordinates in ``qpos`` and ``qvel``.

    The three coordinates of a ball joint get the first three indices of its quaternion and of its angular velocity.
    """
    ball_coordinates = {ball.joints.start + k: (ball, k) for ball in balls for k in range(3)}
    qpos, qvel = [], []
    for column, name in enumerate(robot.joint_names):
        if column in ball_coordinates:
            ball, k = ball_coordinates[column]
            qpos.append(ball.qpos_index.start + k)
            qvel.append(ball.qvel_index.start + k)
        else:
            joint = model.joint(f"joint:{name}")
            qpos.append(int(joint.qposadr[0]))
            qvel.append(int(joint.dofadr[0]))
    return qpos, qvel
