"""Constrained dynamics under hard contacts: contact forces, null space of the motion, impact losses.

    M vd + h = S' tau + J' f,       J vd + Jdot v = 0

    f    = -Lambda (J M^-1 (S' tau - h) + Jdot v),   Lambda = (J M^-1 J')^-1        (3.61, 3.67)
    N_c  = 1 - M^-1 J' Lambda J                                                      (3.62)
    N_c' (M vd + h) = N_c' S' tau                                                    (3.64)
    v+   = N_c v-,    impulse = -Lambda J v-                                         (3.66, 3.69)
    loss = 1/2 (J v-)' Lambda (J v-)                                                 (3.71)

``S' tau`` is the generalized force of the joint torques, ``v-`` and ``v+`` the velocity before and after an impact.
S1 uses the force of the robot on its environment; here ``f`` is that of the environment on the robot, as everywhere in
this library. With dependent rows (two soles on a floor form a closed chain) the force is the minimum-norm one; motion,
projector and loss do not depend on the choice.

Source: S1, sec. 3.7.1-3.7.3.

S1: `docs/sources.md`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mcplan.robot.robot import Robot
from mcplan.textbook.constraint.contact_rows import ContactRows
from mcplan.util.text import summary

EIGENVALUE_TOLERANCE = 1e-10
"""Eigenvalues of ``J M^-1 J'`` below this fraction of the largest one count as zero: the rows are dependent."""


@dataclass(frozen=True)
class Impact:
    """Inelastic impact: constraints become active instantaneously, without rebound.

    Attributes
    ----------
    v : (nv,) velocity after the impact.
    impulse : (k,) impulse of the environment on the robot along the rows, N s or N m s.
    loss : lost kinetic energy, J.
    """

    v: np.ndarray
    impulse: np.ndarray
    loss: float

    __repr__ = summary


class ConstrainedDynamics:
    """A robot at one state under constraints.

    Parameters
    ----------
    robot : Robot
    q, v : (nq,), (nv,) state.
    rows : the constraints (`contact_rows`).

    Attributes
    ----------
    M, h : (nv, nv), (nv,) mass matrix; Coriolis and gravity forces.
    inertia : (k, k) ``Lambda``, effective inertia in the constrained directions, kg or kg m².
    null_space : (nv, nv) ``N_c``: velocities and accelerations that keep the constraints.
    """

    __repr__ = summary

    def __init__(self, robot: Robot, q: ArrayLike, v: ArrayLike, rows: ContactRows):
        self.robot, self.rows = robot, rows
        self.v = np.asarray(v, float)
        self.M, self.h = robot.mass_matrix(q), robot.nonlinear_effects(q, v)
        self._mobility = np.linalg.solve(self.M, rows.J.T)
        self.inertia = np.linalg.pinv(rows.J @ self._mobility, EIGENVALUE_TOLERANCE, hermitian=True)
        self.null_space = np.eye(robot.nv) - self._mobility @ self.inertia @ rows.J

    def contact_force(self, tau: ArrayLike) -> np.ndarray:
        """Return the force of the constraints (k,) under joint torques (n,) or generalized forces (nv,), (3.61)."""
        free_acceleration = np.linalg.solve(self.M, self._generalized(tau) - self.h)
        return -self.inertia @ (self.rows.J @ free_acceleration + self.rows.bias)

    def acceleration(self, tau: ArrayLike) -> np.ndarray:
        """Return ``vd`` (nv,) under joint torques (n,) or generalized forces (nv,); it satisfies (3.60) and (3.64)."""
        force = self._generalized(tau) - self.h + self.rows.J.T @ self.contact_force(tau)
        return np.linalg.solve(self.M, force)

    def residual(self, vd: ArrayLike, tau: ArrayLike) -> np.ndarray:
        """Return ``N_c' (M vd + h - S' tau)`` (nv,), which vanishes for every motion that satisfies the constraints."""
        return self.null_space.T @ (self.M @ np.asarray(vd, float) + self.h - self._generalized(tau))

    def impact(self) -> Impact:
        """Return the impact when the constraints become active at this velocity, (3.66)-(3.71)."""
        row_velocity = self.rows.J @ self.v
        impulse = -self.inertia @ row_velocity
        return Impact(self.null_space @ self.v, impulse, -0.5 * float(impulse @ row_velocity))

    def _generalized(self, tau: ArrayLike) -> np.ndarray:
        """Return a generalized force (nv,), without force on the base if ``tau`` has joint torques only."""
        tau = np.asarray(tau, float)
        return np.concatenate([np.zeros(6), tau]) if tau.shape == (self.robot.n,) else tau
