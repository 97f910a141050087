"""Curve of a segment, independent of the controller: SciPy's quintic splines through its knots.

Base position, rotation vector of the base relative to its first knot, and joints are polynomials between knots. On a
piece of duration h with the Bernstein form ``x(s) = sum_i b_i B_i(s)``, the coefficients bound values and derivatives::

    min b_i <= x <= max b_i,     |xd| <= 5 max |b_i+1 - b_i| / h,     |xdd| <= 20 max |b_i+2 - 2 b_i+1 + b_i| / h²

Source: Farin, Curves and Surfaces for CAGD, 5th ed. (2002), §5.3 on derivatives and the convex hull.
"""

from functools import cached_property
from math import comb, factorial

import numpy as np
from scipy.interpolate import make_interp_spline

from mcplan.certificate.independent import quaternion_step, rotation_of, rotation_vector

TO_BERNSTEIN = np.array([[comb(i, m) / comb(5, m) if m <= i else 0.0 for m in range(6)] for i in range(6)])
"""Conversion (6, 6) from monomial to Bernstein coefficients of degree five."""

DIFFERENCE_STEP_S = 1e-5
"""s: step of the difference quotient of an angular velocity."""

SUBINTERVALS = 16
"""Number of subintervals of a piece for the bounds of its joint positions."""


class SegmentCurve:
    """Configurations along a segment.

    Parameters
    ----------
    times : (k,) s, increasing, k >= 6; before the first time the first knot is held.
    q : (k, 7+n) knots.
    start_rates, end_rates : (2, 6+n) v and vd at the start and at the end, as derivatives by the path parameter; None:
        at rest.
    """

    def __init__(
        self,
        times: np.ndarray,
        q: np.ndarray,
        start_rates: np.ndarray | None = None,
        end_rates: np.ndarray | None = None,
    ):
        self.times, self.first_knot = np.asarray(times, float), np.asarray(q[0], float)
        R = rotation_of(np.asarray(q)[:, 3:7].T).transpose(2, 0, 1)
        phi = rotation_vector(R @ R[0].T)
        values = np.concatenate([q[:, :3], phi, q[:, 7:]], axis=1)
        boundary_derivatives = tuple(
            list(
                enumerate(
                    _rotation_vector_rates(phi[k], np.zeros((2, values.shape[1])) if rates is None else rates), start=1
                )
            )
            for k, rates in ((0, start_rates), (-1, end_rates))
        )
        self._spline = make_interp_spline(self.times, values, k=5, bc_type=boundary_derivatives)

    def sample(self, t: np.ndarray) -> np.ndarray:
        """Return the configurations (m, 7+n) at times (m,); outside of the curve its ends are held."""
        x = self._spline(np.clip(t, self.times[0], self.times[-1]))
        base = np.broadcast_to(self.first_knot[3:7, None], (4, len(x)))
        return np.concatenate([x[:, :3], quaternion_step(base, x[:, 3:6].T).T, x[:, 6:]], axis=1)

    def states(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return configurations (m, 7+n) at times (m,), and their derivatives v, vd (m, 6+n) by the path parameter.

        The angular velocity is ``J(phi) phi'``, its derivative a difference quotient accurate to rounding.
        """
        t = np.clip(t, self.times[0], self.times[-1])
        x, v, vd = (self._spline(t, nu) for nu in range(3))
        phi, rate, second = x[:, 3:6], v[:, 3:6], vd[:, 3:6]
        neighbours = [
            angular_velocity(phi + h * rate + 0.5 * h * h * second, rate + h * second)
            for h in (-DIFFERENCE_STEP_S, DIFFERENCE_STEP_S)
        ]
        v[:, 3:6], vd[:, 3:6] = angular_velocity(phi, rate), (neighbours[1] - neighbours[0]) / (2.0 * DIFFERENCE_STEP_S)
        return self.sample(t), v, vd

    @cached_property
    def _bernstein(self) -> np.ndarray:
        """Bernstein coefficients (6, pieces, 6+n) of base position, rotation vector and joints."""
        return self._coefficients(self.times[:-1], np.diff(self.times))

    def _coefficients(self, begin: np.ndarray, h: np.ndarray) -> np.ndarray:
        """Return the coefficients (6, m, 6+n) on intervals within pieces: starts ``begin`` (m,), lengths h (m,), s."""
        powers = np.stack([h[:, None] ** m / factorial(m) * self._spline(begin, m) for m in range(6)])
        return np.einsum("im,mpk->ipk", TO_BERNSTEIN, powers)

    @cached_property
    def joint_range(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper bounds (pieces, n) of the joint positions (rad or m).

        Pieces are subdivided, because the error of the bounds decreases with the square of the interval length.
        """
        h = np.diff(self.times) / SUBINTERVALS
        begin = (self.times[:-1, None] + h[:, None] * np.arange(SUBINTERVALS)).ravel()
        joints = self._coefficients(begin, np.repeat(h, SUBINTERVALS))[:, :, 6:].reshape(6, len(h), SUBINTERVALS, -1)
        return joints.min(axis=(0, 2)), joints.max(axis=(0, 2))

    @cached_property
    def max_speed(self) -> np.ndarray:
        """Bounds (pieces, 6+n) of the absolute rates: base position, its rotation vector, joints (per s)."""
        h = np.diff(self.times)[:, None]
        return np.asarray(5.0 * np.abs(np.diff(self._bernstein, axis=0)).max(axis=0) / h)

    @cached_property
    def max_acceleration(self) -> np.ndarray:
        """Bounds (pieces, 6+n) of the absolute second derivatives (per s²)."""
        h = np.diff(self.times)[:, None]
        return np.asarray(20.0 * np.abs(np.diff(self._bernstein, n=2, axis=0)).max(axis=0) / h**2)


def angular_velocity(phi: np.ndarray, rate: np.ndarray) -> np.ndarray:
    """Return the angular velocity (m, 3) in world axes of rotations exp(phi) whose vectors change at ``rate`` (m, 3).

    ``w = phi' + (1 - cos a) / a² phi x phi' + (a - sin a) / a³ phi x (phi x phi')`` with a = |phi|.

    Source: Barfoot, State Estimation for Robotics (2017), eq. 7.77b (the left Jacobian).
    """
    a = np.maximum(np.linalg.norm(phi, axis=1), 1e-3)[:, None]
    small = a <= 1e-3
    cross_product = np.cross(phi, rate)
    first_coefficient = np.where(small, 0.5, (1.0 - np.cos(a)) / a**2)
    second_coefficient = np.where(small, 1.0 / 6.0, (a - np.sin(a)) / a**3)
    return np.asarray(rate + first_coefficient * cross_product + second_coefficient * np.cross(phi, cross_product))


def _rotation_vector_rates(phi: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """Convert v and vd (2, 6+n) at a base rotation exp(phi): angular velocity and acceleration to phi' and phi''."""
    found = rates.copy()
    J = angular_velocity(np.tile(phi, (3, 1)), np.eye(3)).T
    found[0, 3:6] = rate = np.linalg.solve(J, rates[0, 3:6])
    neighbours = angular_velocity(phi + np.outer([-DIFFERENCE_STEP_S, DIFFERENCE_STEP_S], rate), np.tile(rate, (2, 1)))
    found[1, 3:6] = np.linalg.solve(J, rates[1, 3:6] - (neighbours[1] - neighbours[0]) / (2.0 * DIFFERENCE_STEP_S))
    return found


def minimum_jerk(s: np.ndarray) -> np.ndarray:
    """Return the minimum-jerk profile 10 s³ - 15 s⁴ + 6 s⁵; below 0 it is 0, above 1 it is 1."""
    s = np.clip(s, 0.0, 1.0)
    return np.asarray(s**3 * (10.0 - 15.0 * s + 6.0 * s * s))
