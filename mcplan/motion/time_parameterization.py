"""Time parameterization of paths (TOPP), and trajectories by it.

A path has a parameter s, the time at nominal speed. A time parameterization s(t) turns a reference x(s) into x(s(t))
with

    d/dt x = x' sd,   d²/dt² x = x'' sd² + x' sdd

A `ReferenceClock` slows it down while the robot lags behind.
"""

from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from mcplan.motion.limb_path import LimbPath, PoseSample, PosturePath
from mcplan.motion.spline import PostureSpline, Spline
from mcplan.robot.pose import Pose


class TimeParameterization:
    """Time parameterization s(t): quintic pieces, twice differentiable, increasing from 0 to the end of the path.

    Parameters
    ----------
    times : (k,) s, increasing from 0.
    path : (k,) parameter s at these times, increasing from 0.
    rate, change : (k,) sd (positive) and sdd (1/s) at these times.
    kept : fraction of the reserve of friction, torque, forces and area that the motion keeps. 1: the margins of the
        pace; 0: the limits of the controller.
    """

    def __init__(self, times: np.ndarray, path: np.ndarray, rate: np.ndarray, change: np.ndarray, kept: float = 1.0):
        self.times, self.path = np.array(times, float), np.array(path, float)
        self.rate, self.change, self.kept = np.array(rate, float), np.array(change, float), float(kept)
        self._starts = self.times.tolist()
        self._time, self._sample = float("nan"), (0.0, 0.0, 0.0)

    @property
    def duration(self) -> float:
        """Duration of the motion (s)."""
        return self._starts[-1]

    @cached_property
    def _pieces(self) -> list[tuple[float, ...]]:
        """Length of each piece (s), and its coefficients of the powers of t / length."""
        T = np.diff(self.times)
        x0, v0, a0 = self.path[:-1], T * self.rate[:-1], T * T * self.change[:-1]
        gap = self.path[1:] - x0 - v0 - 0.5 * a0
        v, a = T * self.rate[1:] - v0 - a0, T * T * self.change[1:] - a0
        rows = [T, x0, v0, 0.5 * a0, 10 * gap - 4 * v + 0.5 * a, -15 * gap + 7 * v - a, 6 * gap - 3 * v + 0.5 * a]
        return [tuple(row) for row in np.stack(rows, axis=1).tolist()]

    def at(self, t: float) -> tuple[float, float, float]:
        """Return s, sd and sdd at a time (s) after its beginning; after its end it continues at the last rate."""
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
        """Return the derivatives with respect to s at time t (s) of a reference with these time derivatives."""
        _, rate, change = self.at(t)
        slope = velocity / rate
        return slope, (acceleration - change * slope) / (rate * rate)

    def time_of(self, s: float) -> float:
        """Return the time (s) of a path parameter."""
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


FREE_ERROR = 1.5
"""Error relative to the tolerance up to which the clock runs at its full rate."""

FULL_ERROR = 4.0
"""Error relative to the tolerance from which on it runs slowest."""

MIN_CLOCK_RATE = 0.3

RATE_TIME_CONSTANT_S = 0.03
"""s: time constant of the rate, so that neither velocities nor accelerations jump."""

RATE_TOLERANCE = 1e-6
"""A rate that differs by less from 1 is set to 1."""


class ReferenceClock:
    """Clock of the references: it slows down while the robot lags behind (time scaling).

    ``k'' = (k* - k) / T² - 2 k' / T``, with k* from 1 down to `MIN_CLOCK_RATE` as the error grows.

    Attributes
    ----------
    rate, change : k, and its derivative (1/s).
    late : delay of the references (s).
    """

    def __init__(self) -> None:
        self.rate, self.change, self.late = 1.0, 0.0, 0.0

    def advance(self, dt: float, error: float) -> None:
        """Advance by dt (s) with an error relative to the tolerance."""
        behind = min(max((error - FREE_ERROR) / (FULL_ERROR - FREE_ERROR), 0.0), 1.0)
        wanted = 1.0 - (1.0 - MIN_CLOCK_RATE) * behind
        # implicit Euler: stable for any dt, no overshoot
        share = dt / RATE_TIME_CONSTANT_S
        change = (self.change + share / RATE_TIME_CONSTANT_S * (wanted - self.rate)) / (1.0 + share) ** 2
        rate = min(self.rate + dt * change, 1.0)
        if wanted == 1.0 and 1.0 - rate < RATE_TOLERANCE:
            rate, change = 1.0, 0.0
        self.late += dt * (1.0 - 0.5 * (rate + self.rate))
        self.rate, self.change = rate, change


class _Timing:
    """A time parameterization with a start time and a reference clock."""

    def __init__(self, law: TimeParameterization, start_time: float, stretch: ReferenceClock | None):
        self.law, self.start_time, self.stretch = law, start_time, stretch or ReferenceClock()
        self._late = self.stretch.late

    @property
    def lost(self) -> float:
        """Delay since its beginning (s)."""
        return self.stretch.late - self._late

    def at(self, t: float) -> tuple[float, float, float]:
        """Return s, sd and sdd at the present time t: ``sd = k s'``, ``sdd = k² s'' + k' s'``."""
        s, rate, change = self.law.at(t - self.start_time - self.lost)
        k = self.stretch.rate
        return s, k * rate, k * k * change + self.stretch.change * rate


class TimedPath:
    """Trajectory x(s(t)) with its time derivatives.

    Parameters
    ----------
    path : x(s), with its parameter from 0 on.
    law : s(t).
    start_time : s.
    stretch : reference clock. Samples are valid at the present time only: later rates of the clock are unknown.
    """

    def __init__(
        self,
        path: PostureSpline | Spline | LimbPath | PosturePath,
        law: TimeParameterization,
        start_time: float,
        stretch: ReferenceClock | None = None,
    ):
        self.path, self.law, self.start_time = path, law, start_time
        self._timing = _Timing(law, start_time, stretch)
        self._time, self._sample = float("nan"), None

    def sample(self, t: float) -> Any:
        """Return the reference at time t, of the sample type of the path; the end is held."""
        if t != self._time or self._sample is None:
            self._time, self._sample = t, self._compute(t)
        return self._sample

    def foreseen(self, t: float) -> Any:
        """Return the reference t (s) after its beginning, if the clock does not slow it down."""
        return self._at(*self.law.at(t))

    def _compute(self, t: float) -> Any:
        return self._at(*self._timing.at(t))

    def _at(self, s: float, rate: float, change: float) -> Any:
        x = self.path.sample(s)
        if isinstance(x, PoseSample):
            v, a = x.velocity, x.acceleration
            return PoseSample(x.R, x.p, rate * v, rate * rate * a + change * v, x.tightness)
        value, v, a = x
        return type(x)(value, rate * v, rate * rate * a + change * v)

    @property
    def end(self) -> Pose:
        """Pose at its end."""
        return self.path.end  # type: ignore[return-value]

    @property
    def knots(self) -> Sequence[np.ndarray]:
        """Knots of a whole-body posture."""
        return self.path.knots  # type: ignore[return-value, union-attr]

    @property
    def end_time(self) -> float:
        """Time from which the end is held (s); a limb may arrive after the body."""
        return self._when(self.path.end_time)

    @property
    def swing_time(self) -> float:
        """Time at which the lift of a limb ends (s)."""
        return self._when(self.path.swing_time)  # type: ignore[union-attr]

    @property
    def approach_time(self) -> float:
        """Time from which a limb moves only along the normal of its new contact (s)."""
        return self._when(self.path.approach_time)  # type: ignore[union-attr]

    def _when(self, s: float) -> float:
        return self.start_time + self._timing.lost + self.law.time_of(s)


class TimedRate:
    """Quantity proportional to the path rate, such as momentum: y(s) sd, with its derivative y' sd² + y sdd.

    Parameters
    ----------
    path : y(s), with its parameter from 0 on.
    law : s(t).
    start_time : s.
    stretch : reference clock.
    """

    def __init__(
        self, path: Spline, law: TimeParameterization, start_time: float, stretch: ReferenceClock | None = None
    ):
        self.path, self._timing = path, _Timing(law, start_time, stretch)

    def sample(self, t: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the value and its derivative at time t."""
        s, rate, change = self._timing.at(t)
        y = self.path.sample(s)
        return rate * y.value, rate * rate * y.velocity + change * y.value
