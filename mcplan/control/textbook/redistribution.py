"""Support-consistent inverse dynamics: minimum torques of a motion, and torques that change internal forces only.

    tau = (N_c' S')^+ N_c' (M vd* + h) + (1 - (N_c' S')^+ N_c' S') tau_0        (3.99, 3.100)

Source: S1 (docs/sources.md), sec. 3.10.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from mcplan.control.textbook.joint_space import JointPath, as_path, per_joint
from mcplan.errors import InputError
from mcplan.robot.robot import Robot
from mcplan.robot.terms import Terms
from mcplan.scene.contact import Contact
from mcplan.textbook.constraint.contact_rows import contact_rows
from mcplan.textbook.constraint.dynamics import ConstrainedDynamics
from mcplan.util.text import summary

SINGULAR_VALUE_TOLERANCE = 1e-8
"""Relative tolerance of singular values in the pseudoinverse."""


def support_torque(
    dynamics: ConstrainedDynamics, vd: ArrayLike, tau_0: ArrayLike | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the torques (n,) of an acceleration, and the projector (n, n) onto torques that do not change it.

    Parameters
    ----------
    dynamics : dynamics of the robot under its contacts.
    vd : (nv,) acceleration; only its part consistent with the contacts is realised.
    tau_0 : (n,) torques, of which the part that does not change the motion is added; None: minimum torques.
    """
    Nt = dynamics.null_space.T
    actuation = Nt[:, 6:]
    inverse = np.linalg.pinv(actuation, SINGULAR_VALUE_TOLERANCE)
    projector = np.eye(actuation.shape[1]) - inverse @ actuation
    tau = inverse @ (Nt @ (dynamics.M @ np.asarray(vd, float) + dynamics.h))
    return tau if tau_0 is None else tau + projector @ np.asarray(tau_0, float), projector


class SupportedInverseDynamics:
    """Support-consistent inverse dynamics control: minimum torques, or torques near to ``tau_0`` for the same motion.

    The joints follow ``qdd* = qdd_ref + kp (q* - q) + kd (qd* - qd)``; the base follows from the contacts.

    Parameters
    ----------
    robot : Robot
    contacts : closed contacts; for a robot with a fixed base its contact ``fixed_base``.
    reference : reference of the joints: positions (n,), or a function of time.
    kp, kd : 1/s² and 1/s: one number, or (n,); ``kd`` None is critical damping.
    tau_0 : (n,) desired torques, or a function of time; None: minimum torques.
    """

    frames: tuple[str, ...] = ()

    __repr__ = summary

    def __init__(
        self,
        robot: Robot,
        contacts: Sequence[Contact],
        reference: ArrayLike | JointPath,
        kp: ArrayLike = 100.0,
        kd: ArrayLike | None = None,
        tau_0: ArrayLike | Callable[[float], np.ndarray] | None = None,
    ):
        self.robot, self.contacts, self.reference = robot, tuple(contacts), as_path(reference, robot)
        if not self.contacts:
            raise InputError("contacts: inverse dynamics on a support needs at least one")
        self.kp = per_joint("kp", kp, robot)
        self.kd = 2.0 * np.sqrt(self.kp) if kd is None else per_joint("kd", kd, robot)
        self.tau_0 = tau_0

    def torque(self, t: float, terms: Terms, wrenches: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the torques (n,)."""
        rows = contact_rows(self.robot, terms.q, terms.v, self.contacts)
        dynamics = ConstrainedDynamics(self.robot, terms.q, terms.v, rows)
        target = self.reference(t)
        feedback = self.kp * (target.position - terms.q[7:]) + self.kd * (target.velocity - terms.v[6:])
        joints = target.acceleration + feedback
        # of all accelerations consistent with the contacts, the one nearest to the joint accelerations
        J = rows.J
        vd = -np.linalg.pinv(J, SINGULAR_VALUE_TOLERANCE) @ rows.bias
        N = np.eye(self.robot.nv) - np.linalg.pinv(J, SINGULAR_VALUE_TOLERANCE) @ J
        vd = vd + N @ np.linalg.pinv(N[6:], SINGULAR_VALUE_TOLERANCE) @ (joints - vd[6:])
        desired = self.tau_0(t) if callable(self.tau_0) else self.tau_0
        return support_torque(dynamics, vd, desired)[0]
