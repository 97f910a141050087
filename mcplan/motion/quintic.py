"""Minimum-jerk trajectories in R^n and SO(3): quintics from any velocity and acceleration to rest."""

from typing import NamedTuple

import numpy as np

from mcplan.core.algebra import minimum_jerk as core
from mcplan.core.algebra.rotation import rotation_log
from mcplan.textbook.coordinates.rotation_vector import ROTATION_VECTOR


class ReferenceSample(NamedTuple):
    """A reference at one time: value, first and second time derivative, each of the shape of the value."""

    value: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray


def minimum_jerk(s: float) -> tuple[float, float, float]:
    """Return the rest-to-rest profile and its derivatives with respect to s, held outside [0, 1].

    sigma(s) = 10 s³ - 15 s⁴ + 6 s⁵, the minimiser of the integral of the squared third derivative with
    sigma = sigma' = sigma'' = 0 at 0 and sigma = 1, sigma' = sigma'' = 0 at 1.  Its largest slope is 15/8.

    Source: Flash & Hogan 1985.
    """
    if s <= 0.0:
        return 0.0, 0.0, 0.0
    if s >= 1.0:
        return 1.0, 0.0, 0.0
    return (
        s * s * s * (10.0 - 15.0 * s + 6.0 * s * s),
        30.0 * (s * (1.0 - s)) ** 2,
        60.0 * s * (1.0 - s) * (1.0 - 2.0 * s),
    )


class Quintic:
    """x(t) of degree five with x, xd, xdd given at ``start`` and ``end`` reached at rest, then held.

    With a = end - start - T xd0 - T²/2 xdd0,  b = -T xd0 - T² xdd0,  c = -T² xdd0 and s = (t - t0) / T:

        x = x0 + T xd0 s + T²/2 xdd0 s² + (10 a - 4 b + c/2) s³ + (-15 a + 7 b - c) s⁴ + (6 a - 3 b + c/2) s⁵

    From rest this is minimum jerk.

    Parameters
    ----------
    start, end : (n,) values at ``start_time`` and at ``start_time + duration``.
    duration : s, positive.
    velocity, acceleration : (n,) at the start; None is zero.
    start_time : s; before it the start is held.

    Attributes
    ----------
    coefficients : (6, n) of the powers of s.
    """

    def __init__(
        self,
        start: np.ndarray,
        end: np.ndarray,
        duration: float,
        velocity: np.ndarray | None = None,
        acceleration: np.ndarray | None = None,
        start_time: float = 0.0,
    ):
        self.start, self.end = np.array(start, float), np.array(end, float)
        self.duration, self.start_time = float(duration), float(start_time)
        zero = np.zeros_like(self.start)
        T = self.duration
        d1 = zero if velocity is None else T * np.asarray(velocity, float)
        d2 = zero if acceleration is None else T * T * np.asarray(acceleration, float)
        a, b, c = self.end - self.start - d1 - d2 / 2, -d1 - d2, -d2
        self.coefficients = np.array([
            self.start, d1, d2 / 2, 10 * a - 4 * b + c / 2, -15 * a + 7 * b - c, 6 * a - 3 * b + c / 2,
        ])  # fmt: skip
        self._rest = ReferenceSample(self.end, zero, zero)
        self._begin = ReferenceSample(self.start, d1 / T, d2 / (T * T))
        self._time, self._sample = float("nan"), self._begin

    def sample(self, t: float) -> ReferenceSample:
        """Return the reference at time t. Do not modify the arrays."""
        if t != self._time:
            self._sample, self._time = self._compute(t), t
        return self._sample

    def _compute(self, t: float) -> ReferenceSample:
        s = (t - self.start_time) / self.duration
        if s >= 1.0:
            return self._rest
        if s <= 0.0:
            return self._begin
        out = np.empty((3, self.coefficients.shape[1]))
        core.quintic(self.coefficients, s, self.duration, out)
        return ReferenceSample(out[0], out[1], out[2])

    @property
    def end_time(self) -> float:
        """Time from which the end is held (s)."""
        return self.start_time + self.duration


def rotation_vector(R: np.ndarray) -> np.ndarray:
    """Return phi, |phi| <= pi, with R = exp(hat(phi))."""
    phi = np.empty(3)
    rotation_log(np.ascontiguousarray(R, dtype=np.float64), np.empty(4), phi)
    return phi


def vector_rates(phi: np.ndarray, velocity: np.ndarray, acceleration: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return phi' and phi'' (3,) of a rotation exp(phi) that turns with a velocity and acceleration (3,), world axes.

    ``w = E phi'`` and ``dw/dt = E phi'' + E' phi'`` with E(phi) of the chart.
    """
    back = ROTATION_VECTOR.E_inverse(phi)
    rate = back @ velocity
    return rate, back @ (acceleration - ROTATION_VECTOR.E_rate(phi, rate) @ rate)


class RotationTrajectory:
    """``R(t) = exp(phi(t)) R(start)`` with phi of degree five; from rest, the rotation by the smallest angle.

    Parameters
    ----------
    start, end : (3,3) rotations.
    duration : s, positive.
    velocity, acceleration : (3,) angular, in the axes in which ``start`` is given (rad/s, rad/s²); None is zero.
    start_time : s.
    """

    def __init__(
        self,
        start: np.ndarray,
        end: np.ndarray,
        duration: float,
        velocity: np.ndarray | None = None,
        acceleration: np.ndarray | None = None,
        start_time: float = 0.0,
    ):
        self.start, self.end = np.array(start, float, order="C"), np.array(end, float, order="C")
        self.phi = Quintic(
            np.zeros(3), rotation_vector(self.end @ self.start.T), duration, velocity, acceleration, start_time
        )
        self._rest = ReferenceSample(self.end, np.zeros(3), np.zeros(3))

    def sample(self, t: float) -> ReferenceSample:
        """Return R (3,3), angular velocity and acceleration (3,) at time t."""
        if t >= self.phi.end_time:
            return self._rest
        out = np.empty((5, 3))
        core.turn(np.array(self.phi.sample(t)), self.start, out[:3], out[3], out[4])
        return ReferenceSample(out[:3], out[3], out[4])

    @property
    def angle(self) -> float:
        """Angle between start and end (rad)."""
        return float(np.linalg.norm(self.phi.end))

    @property
    def end_time(self) -> float:
        """Time from which the end is held (s)."""
        return self.phi.end_time
