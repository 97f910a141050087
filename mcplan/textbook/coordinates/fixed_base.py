"""Fixed-base dynamics: a robot held by one frame, like a manipulator, and the holding wrench (S2 section 6).

``M s_rate_rate + C s_rate + G = tau + sum J' f`` for the joints only (lemma 5, eq. 46 and 47). The frame may change
from step to step by a change of base. ::

    import numpy as np
    import mcplan as mc

    robot = mc.load_robot("hrp2")
    held = mc.coordinates.fixed_base(robot, robot.posture("half_sitting"), np.zeros(robot.n), "left_sole")
    assert np.allclose(held.contact_wrench(held.G)[:3], [0.0, 0.0, 9.81 * robot.mass])  # at rest: the weight

S2: `docs/sources.md`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mcplan.robot.robot import Robot
from mcplan.textbook.coordinates.base_change import to_frame
from mcplan.textbook.coordinates.chart import Array, numbers
from mcplan.textbook.coordinates.equations import (
    EquationsOfMotion,
    VelocityChange,
    equations_of_motion,
    reject_massless_root,
)
from mcplan.util.text import summary


@dataclass(frozen=True, eq=False)
class FixedBase:
    """A robot with one frame at rest, at one state.

    Attributes
    ----------
    robot, q : the robot and its configuration (nq,).
    frame : the link or patch at rest.
    change : change from the robot's velocity to the one with the frame as base.
    floating : equations of motion with the frame as a floating base.
    """

    robot: Robot
    q: Array
    frame: str
    change: VelocityChange
    floating: EquationsOfMotion

    __repr__ = summary

    @property
    def M(self) -> Array:
        """Mass matrix of the joints (n, n): S2 eq. 47b."""
        return self.floating.M[6:, 6:]

    @property
    def C(self) -> Array:
        """Coriolis matrix of the joints (n, n): S2 eq. 47c."""
        return self.floating.C[6:, 6:]

    @property
    def G(self) -> Array:
        """Gravity torques (n,): S2 eq. 47d."""
        return self.floating.G[6:]

    @property
    def v(self) -> Array:
        """The robot's velocity (nv,) with the frame at rest."""
        return self.change.inverse.velocity(self.floating.nu)

    def jacobian(self, frame: str) -> Array:
        """Return the Jacobian (6, n) of another link or patch by the joint rates: S2 eq. 47e."""
        return self.change.jacobian(self.robot.frame_jacobian(self.q, frame))[:, 6:]

    def acceleration(self, tau: ArrayLike, wrenches: Mapping[str, ArrayLike] | None = None) -> Array:
        """Return the joints' acceleration (n,): S2 eq. 46.

        Parameters
        ----------
        tau : (n,) joint torques.
        wrenches : force and moment (6,) on other frames, at their origins in world axes.
        """
        force = self._applied(tau, wrenches)[6:]
        bias = self.C @ self.floating.nu[6:] + self.G
        return np.asarray(np.linalg.solve(self.M, force - bias), dtype=np.float64)

    def contact_wrench(self, tau: ArrayLike, wrenches: Mapping[str, ArrayLike] | None = None) -> Array:
        """Return the force and moment (6,) by which the world holds the frame, at its origin in world axes: S2 eq. 48.

        ``f = (J M^-1 J')^-1 J M^-1 (C nu + G - [0; tau] - sum J' f)`` with ``J = [1 0]``. Corollary 1 calls the
        inverted matrix the composite inertia, hence regular; that holds for ``J M J'``, which is not in eq. 48. The
        inverse of ``J M^-1 J'`` is the articulated inertia ``I_C - F H^-1 F'``, also regular.
        """
        eom = self.floating
        drive = eom.C @ eom.nu + eom.G - self._applied(tau, wrenches)
        response = np.linalg.solve(eom.M, np.column_stack([np.eye(len(drive), 6), drive]))[:6]
        return np.asarray(np.linalg.solve(response[:, :6], response[:, 6]), dtype=np.float64)

    def _applied(self, tau: ArrayLike, wrenches: Mapping[str, ArrayLike] | None) -> Array:
        """Return the generalized force (nv,) of torques and wrenches, with the held frame as base."""
        phi = np.concatenate([np.zeros(6), numbers(tau, (self.robot.n,), "tau")])
        for name, wrench in (wrenches or {}).items():
            J = self.change.jacobian(self.robot.frame_jacobian(self.q, name))
            phi += J.T @ numbers(wrench, (6,), f"wrench on {name}")
        return phi


def fixed_base(robot: Robot, q: ArrayLike, joint_rates: ArrayLike, frame: str) -> FixedBase:
    """Return the fixed-base dynamics of a robot with one frame at rest.

    Parameters
    ----------
    q : (nq,) configuration.
    joint_rates : (n,) rad/s or m/s; the base moves so that the frame does not.
    frame : the link or patch at rest.

    Raises
    ------
    InputError : the root link has no mass, and the frame is on another link, so that the root moves freely.
    """
    if robot.frame(frame)[0] != 0:
        reject_massless_root(robot)
    q = numbers(q, (robot.nq,), "q")
    held = np.concatenate([np.zeros(6), numbers(joint_rates, (robot.n,), "joint_rates")])
    v = to_frame(robot, q, np.zeros(robot.nv), frame).inverse.velocity(held)
    change = to_frame(robot, q, v, frame)
    return FixedBase(robot, q.copy(), frame, change, change.equations(equations_of_motion(robot, q, v)))
