"""Laws of time: when a motion is at which place of its path.

A path has a parameter of its own, the time s that it would take at its own speed. A law s(t) says when it is where, so
that a reference x(s) becomes x(s(t)) with

    d/dt x = x' sd,   d²/dt² x = x'' sd² + x' sdd

Time of references that waits for the robot: it runs slower while what follows them is behind.
"""


from bisect import bisect_right
from functools import cached_property

import numpy as np


class Law:
    """s(t) of degree five between nodes, twice differentiable, rising from 0 to the end of the path.

    Parameters
    ----------
    times : (k,) s, rising from 0.
    path : (k,) parameter s at these times, rising from 0.
    rate, change : (k,) sd (positive) and sdd (1/s) there.
    kept : part of the reserve of friction, torque, forces and area that it keeps: 1 is all that the pace asks for, 0 is
        what the controller counts on.
    """

    def __init__(self, times: np.ndarray, path: np.ndarray, rate: np.ndarray, change: np.ndarray, kept: float = 1.0):
        self.times, self.path = np.array(times, float), np.array(path, float)
        self.rate, self.change, self.kept = np.array(rate, float), np.array(change, float), float(kept)
        self._starts = self.times.tolist()
        self._time, self._sample = float("nan"), (0.0, 0.0, 0.0)

    @property
    def duration(self) -> float:
        """How long it takes (s)."""
        return self._starts[-1]

    @cached_property
    def _pieces(self) -> list[tuple[float, ...]]:
        """Length of each piece (s), and the coefficients of the powers of its share, see `mcplan.motion.quintic`."""
        T = np.diff(self.times)
        x0, v0, a0 = self.path[:-1], T * self.rate[:-1], T * T * self.change[:-1]
        gap = self.path[1:] - x0 - v0 - 0.5 * a0
        v, a = T * self.rate[1:] - v0 - a0, T * T * self.change[1:] - a0
        rows = [T, x0, v0, 0.5 * a0, 10 * gap - 4 * v + 0.5 * a, -15 * gap + 7 * v - a, 6 * gap - 3 * v + 0.5 * a]
        return [tuple(row) for row in np.stack(rows, axis=1).tolist()]

    def at(self, t: float) -> tuple[float, float, float]:
        """Return s, sd and sdd at a time from its beginning on (s); after its end it goes on at its last rate."""
        if t != self._time:
            self._time, self._sample = t, self._compute(t)
        return self._sample

    def _compute(self, t: float) -> tuple[float, float, float]:
        if t < 0.0:
            return 0.0, 0.0, 0.0
        if t > self.duration:
            return float(self.path[-1] + self.rate[-1] * (t - self.duration)), float(self.rate[-1]), 0.0
        i = min(bisect_right(self._starts, t), len(self._starts) - 1) - 1
        T, x0, x1, x2, x3, x4, x5 = self._pieces[i]
        r = (t - self._starts[i]) / T
        return (
            x0 + r * (x1 + r * (x2 + r * (x3 + r * (x4 + r * x5)))),
            (x1 + r * (2 * x2 + r * (3 * x3 + r * (4 * x4 + r * 5 * x5)))) / T,
            (2 * x2 + r * (6 * x3 + r * (12 * x4 + r * 20 * x5))) / (T * T),
        )

    def slopes(self, velocity: np.ndarray, acceleration: np.ndarray, t: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
        """Return the derivatives by s, at a time from its beginning on (s), of a reference that has these in time."""
        _, rate, change = self.at(t)
        slope = velocity / rate
        return slope, (acceleration - change * slope) / (rate * rate)

    def time_of(self, s: float) -> float:
        """Return when it is at a place of its path (s)."""
        if s <= 0.0:
            return 0.0
        if s >= self.path[-1]:
            return self.duration + float((s - self.path[-1]) / self.rate[-1])
        i = int(np.searchsorted(self.path, s, side="right")) - 1
        low, high = self.times[i], self.times[i + 1]
        while high - low > 1e-9:
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self._compute(middle)[0] < s else (low, middle)
        return float(high)


FREE, FULL = 1.5, 4.0
"""Errors, in what is near enough, up to which time runs as planned, and from which on it runs slowest."""

SLOWEST = 0.3
"""Least rate of the time of references."""

SMOOTHING = 0.03
"""s: time constant with which the rate follows what it is to be, so that neither velocities nor accelerations jump."""

SAME = 1e-6
"""A rate that differs by less from 1 is as planned."""


class Stretch:
    """The rate k at which the time of references runs, and how late they are by it.

    ``k'' = (k* - k) / T² - 2 k' / T``, with k* from 1 down to `SLOWEST` as the error grows.

    Attributes
    ----------
    rate, change : k, and its derivative (1/s).
    late : time that the references have lost (s).
    """

    def __init__(self) -> None:
        self.rate, self.change, self.late = 1.0, 0.0, 0.0

    def advance(self, dt: float, error: float) -> None:
        """Go on by dt (s) with an error relative to what is near enough."""
        behind = min(max((error - FREE) / (FULL - FREE), 0.0), 1.0)
        wanted = 1.0 - (1.0 - SLOWEST) * behind
        # taken implicitly, so that it is stable for any dt and does not overshoot
        share = dt / SMOOTHING
        change = (self.change + share / SMOOTHING * (wanted - self.rate)) / (1.0 + share) ** 2
        rate = min(self.rate + dt * change, 1.0)
        if wanted == 1.0 and 1.0 - rate < SAME:
            rate, change = 1.0, 0.0
        self.late += dt * (1.0 - 0.5 * (rate + self.rate))
        self.rate, self.change = rate, change
