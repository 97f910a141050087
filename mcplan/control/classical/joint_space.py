"""Control in the space of the joints: gravity compensation, impedance, inverse dynamics.

    gravity        tau = g - kd qd
    impedance      tau = kp (q* - q) + kd (qd* - qd) + g                       (3.74)
    inverse        tau = M qdd + b + g,   qdd = qdd* + kp (q* - q) + kd (qd* - qd)     (3.75, 3.77)

``M``, ``b`` and ``g`` are the rows and columns of the joints: those of a base that stands still.

Source: S1, sec. 3.8.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from mcplan.control.classical.reference import JointPath, joints_at
from mcplan.core.rigid_body.tree import GRAVITY
from mcplan.errors import InputError
from mcplan.model.robot import Robot
from mcplan.model.terms import Terms
from mcplan.short import short


def gravity_torque(terms: Terms, mass: float) -> np.ndarray:
    """Return ``g`` (nv,): the generalized force that holds a robot of some mass (kg) against gravity.

    g = m g_0 J_com' e_z        (S4, gravity torque from the Jacobian of the centre of mass)
    """
    return mass * GRAVITY * terms.com_jacobian[2]


class GravityCompensation:
    """Holds the robot's weight, and nothing else: it can be led by the hand.

    Parameters
    ----------
    robot : Robot
    kd : damping of the joints, N m s/rad: one number, or (n,).
    """

    frames: tuple[str, ...] = ()

    __repr__ = short

    def __init__(self, robot: Robot, kd: ArrayLike = 0.0):
        self.mass, self.kd = robot.mass, per_joint("kd", kd, robot)

    def torque(self, t: float, terms: Terms, wrenches: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the torques (n,)."""
        return gravity_torque(terms, self.mass)[6:] - self.kd * terms.v[6:]


class ImpedanceControl:
    """Springs and dampers at the joints, with the weight compensated: at rest the stiffness is ``kp`` exactly.

    Parameters
    ----------
    robot : Robot
    reference : where the joints should be: (n,), or a function of time.
    kp, kd : N m/rad and N m s/rad (N/m and N s/m): one number, or (n,).
    gravity : False leaves the weight to the springs (3.72).
    """

    frames: tuple[str, ...] = ()

    __repr__ = short

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
        wanted = self.reference(t)
        spring = self.kp * (wanted.position - terms.q[7:]) + self.kd * (wanted.velocity - terms.v[6:])
        return spring + gravity_torque(terms, self.mass)[6:]


class InverseDynamicsControl:
    """Makes every joint a decoupled oscillator of unit mass about its reference: ``omega = sqrt(kp)`` (3.78).

    Parameters
    ----------
    robot : Robot
    reference : where the joints should be: (n,), or a function of time.
    kp, kd : 1/s² and 1/s: one number, or (n,); ``kd`` None is critical damping (3.79).
    """

    frames: tuple[str, ...] = ()

    __repr__ = short

    def __init__(
        self, robot: Robot, reference: ArrayLike | JointPath, kp: ArrayLike = 100.0, kd: ArrayLike | None = None
    ):
        self.reference = as_path(reference, robot)
        self.kp = per_joint("kp", kp, robot)
        self.kd = 2.0 * np.sqrt(self.kp) if kd is None else per_joint("kd", kd, robot)

    def torque(self, t: float, terms: Terms, wrenches: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the torques (n,)."""
        wanted = self.reference(t)
        back = self.kp * (wanted.position - terms.q[7:]) + self.kd * (wanted.velocity - terms.v[6:])
        return terms.M[6:, 6:] @ (wanted.acceleration + back) + terms.h[6:]


def as_path(reference: ArrayLike | JointPath, robot: Robot) -> JointPath:
    """Return a reference as a function of time."""
    if callable(reference):
        return reference
    return joints_at(per_joint("reference", reference, robot))


def per_joint(name: str, value: ArrayLike, robot: Robot) -> np.ndarray:
    """Return one number, or one per joint, as (n,)."""
    array = np.asarray(value, float)
    if array.shape not in ((), (robot.n,)) or not np.isfinite(array).all():
        raise InputError(f"{name} has the shape {array.shape}; expected one number or ({robot.n},), all finite")
    return np.array(np.broadcast_to(array, robot.n))
