"""Minimum-jerk motion in R^n, from any state of motion to rest."""

from typing import NamedTuple

import numpy as np

from mcplan.core.algebra import minimum_jerk as core


class Sample(NamedTuple):
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
        self._rest = Sample(self.end, zero, zero)
        self._begin = Sample(self.start, d1 / T, d2 / (T * T))

    def sample(self, t: float) -> Sample:
        """Return the reference at time t."""
        s = (t - self.start_time) / self.duration
        if s >= 1.0:
            return self._rest
        if s <= 0.0:
            return self._begin
        out = np.empty((3, self.coefficients.shape[1]))
        core.quintic(self.coefficients, s, self.duration, out)
        return Sample(out[0], out[1], out[2])

    @property
    def end_time(self) -> float:
        """Time from which the end is held (s)."""
        return self.start_time + self.duration
