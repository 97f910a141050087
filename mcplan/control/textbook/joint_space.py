"""Joint-space control: gravity compensation, impedance control, inverse dynamics.

    gravity        tau = g - kd qd
    impedance      tau = kp (q* - q) + kd (qd* - qd) + g                       (3.74)
    inverse        tau = M qdd + b + g,   qdd = qdd* + kp (q* - q) + kd (qd* - qd)     (3.75, 3.77)

``M``, ``b`` (Coriolis and centrifugal) and ``g`` (gravity) are restricted to the joints: the base does not move.

Source: S1 (docs/sources.md), sec. 3.8.

References for joints and frames are functions of time: constant, or minimum-jerk between poses.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from mcplan.core.rigid_body.tree import GRAVITY
from mcplan.errors import InputError
from mcplan.motion.spline import minimum_jerk
from mcplan.robot.robot import Robot
from mcplan.robot.terms import Terms
from mcplan.util.text import summary


class JointReference(NamedTuple):
    """Position, velocity and acceleration of the joints (n,): rad or m, per s, per s²."""

    position: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray


class FrameReference(NamedTuple):
    """Rotation (3,3) and position (3,) of a frame, velocity and acceleration (6,): linear, angular, world axes."""

    R: np.ndarray
    p: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray


JointPath = Callable[[float], JointReference]
"""Joint reference as a function of time (s)."""

FramePath = Callable[[float], FrameReference]
"""Frame reference as a function of time (s)."""


def joints_at(position: np.ndarray) -> JointPath:
    """Return a constant joint reference."""
    zero = np.zeros(len(position))
    constant = JointReference(np.array(position, float), zero, zero)
    return lambda t: constant


def joints_between(start: np.ndarray, end: np.ndarray, duration: float) -> JointPath:
    """Return the minimum-jerk motion of joints that begins at t = 0."""
    start, step = np.array(start, float), np.asarray(end, float) - start

    def path(t: float) -> JointReference:
        s, ds, dds = minimum_jerk(t / duration)
        return JointReference(start + s * step, ds / duration * step, dds / duration**2 * step)

    return path


def frame_through(poses: Sequence[tuple[np.ndarray, np.ndarray]], duration: float) -> FramePath:
    """Return the motion through poses (R, p), at rest in each of them, ``duration`` (s) from one to the next."""
    last = len(poses) - 1
    rotations = [Rotation.from_matrix(b[0] @ a[0].T).as_rotvec() for a, b in pairwise(poses)]

    def path(t: float) -> FrameReference:
        k = min(int(max(t, 0.0) / duration), last)
        R, p = poses[k]
        if k == last:
            return FrameReference(np.asarray(R), np.asarray(p), np.zeros(6), np.zeros(6))
        s, ds, dds = minimum_jerk(t / duration - k)
        step = np.concatenate([poses[k + 1][1] - p, rotations[k]])
        R_s = Rotation.from_rotvec(s * rotations[k]).as_matrix() @ R
        return FrameReference(R_s, p + s * step[:3], ds / duration * step, dds / duration**2 * step)

    return path


def gravity_torque(terms: Terms, mass: float) -> np.ndarray:
    """Return ``g`` (nv,), the generalized force that compensates gravity on a robot of ``mass`` (kg).

    g = m g_0 J_com' e_z        (S4 of docs/sources.md: gravity torque from the Jacobian of the centre of mass)
    """
    return mass * GRAVITY * terms.com_jacobian[2]


class GravityCompensation:
    """Gravity compensation: the torques bear only the robot's weight, so it can be guided by hand.

    Parameters
    ----------
    robot : Robot
    kd : damping of the joints, N m s/rad: one number, or (n,).
    """

    frames: tuple[str, ...] = ()

    __repr__ = summary

    def __init__(self, robot: Robot, kd: ArrayLike = 0.0):
        self.mass, self.kd = robot.mass, per_joint("kd", kd, robot)

    def torque(self, t: float, terms: Terms, wrenches: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the torques (n,)."""
        return gravity_torque(terms, self.mass)[6:] - self.kd * terms.v[6:]


class ImpedanceControl:
    """Joint impedance control with gravity compensation: at rest the stiffness is exactly ``kp``.

    Parameters
    ----------
    robot : Robot
    reference : reference of the joints: positions (n,), or a function of time.
    kp, kd : N m/rad and N m s/rad (N/m and N s/m): one number, or (n,).
    gravity : False: no gravity compensation, the springs bear the weight (3.72).
    """

    frames: tuple[str, ...] = ()

    __repr__ = summary

    def __init__(
        self,
        robot: Robot,
        reference: ArrayLike | JointPath,
        kp: ArrayLike = 200.0,
        kd: ArrayLike = 30.0,
        gravity: bool = True,
    ):
        self.mass = robot.mass if gravity else 0.0
        self.reference = as_path(reference, robot)
        self.kp, self.kd = per_joint("kp", kp, robot), per_joint("kd", kd, robot)

    def torque(self, t: float, terms: Terms, wrenches: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the torques (n,)."""
        target = self.reference(t)
        spring = self.kp * (target.position - terms.q[7:]) + self.kd * (target.velocity - terms.v[6:])
        return spring + gravity_torque(terms, self.mass)[6:]


class InverseDynamicsControl:
    """Inverse dynamics control: each joint error is a decoupled oscillator with ``omega = sqrt(kp)`` (3.78).

    Parameters
    ----------
    robot : Robot
    reference : reference of the joints: positions (n,), or a function of time.
    kp, kd : 1/s² and 1/s: one number, or (n,); ``kd`` None is critical damping (3.79).
    """

    frames: tuple[str, ...] = ()

    __repr__ = summary

    def __init__(
        self, robot: Robot, reference: ArrayLike | JointPath, kp: ArrayLike = 100.0, kd: ArrayLike | None = None
    ):
        self.reference = as_path(reference, robot)
        self.kp = per_joint("kp", kp, robot)
        self.kd = 2.0 * np.sqrt(self.kp) if kd is None else per_joint("kd", kd, robot)

    def torque(self, t: float, terms: Terms, wrenches: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the torques (n,)."""
        target = self.reference(t)
        feedback = self.kp * (target.position - terms.q[7:]) + self.kd * (target.velocity - terms.v[6:])
        return terms.M[6:, 6:] @ (target.acceleration + feedback) + terms.h[6:]


def as_path(reference: ArrayLike | JointPath, robot: Robot) -> JointPath:
    """Return a reference as a function of time."""
    if callable(reference):
        return reference
    return joints_at(per_joint("reference", reference, robot))


def per_joint(name: str, value: ArrayLike, robot: Robot) -> np.ndarray:
    """Return ``value``, one number or one per joint, as an array (n,)."""
    array = np.asarray(value, float)
    if array.shape not in ((), (robot.n,)) or not np.isfinite(array).all():
        raise InputError(f"{name} has the shape {array.shape}; expected one number or ({robot.n},), all finite")
    return np.array(np.broadcast_to(array, robot.n))
