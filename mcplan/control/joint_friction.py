"""Friction of the joints, as the robot's file gives it: the torques that make up for it.

A wrist of 3 N m that rubs with 1 N m does not lay its hand flat: the program's forces are not those that arrive.
"""

import numpy as np

from mcplan.model.robot import Robot

AHEAD = 0.05
"""s: a joint at rest is about to move as its acceleration says after such a time; on the way it moves as it does."""

SLOW = 0.05
"""rad/s (m/s): at slower speeds a joint is given less than its whole friction, so that it does not jump to and fro."""


class JointFriction:
    """Gives what friction and damping take of the joints' torques.

        tau = share (d (v + dt vd) + c tanh((v + T vd_last) / e)),   T = 0.05 s, e = 0.05 rad/s

    The damping is that of the end of a tick, so that ``dt d`` counts as inertia: the wrist of a small robot is damped
    within less than a tick. ``vd_last`` is what was last asked of the joint: at rest its friction is made up for where
    it is to move.

    Parameters
    ----------
    robot : with damping d (N m s/rad) and friction c (N m) of its joints.
    share : of them that is made up for, 0 to 1.
    dt : time from one tick to the next (s).
    """

    def __init__(self, robot: Robot, share: float, dt: float):
        self.damping, self.friction = share * robot.joint_damping, share * robot.joint_friction
        self._inertia = dt * self.damping
        self._joints = 6 + np.arange(len(self.damping))
        self._any = bool(self.damping.any() or self.friction.any())

    def __bool__(self) -> bool:
        """Whether there is anything to make up for."""
        return self._any

    def add(self, M: np.ndarray, h: np.ndarray, v: np.ndarray, vd: np.ndarray) -> None:
        """Add to the mass matrix and to the nonlinear effects, at speeds (n,) and accelerations (n,) last asked for."""
        joints = self._joints
        M[joints, joints] += self._inertia
        h[joints] += self.damping * v + self.friction * np.tanh((v + AHEAD * vd) / SLOW)
