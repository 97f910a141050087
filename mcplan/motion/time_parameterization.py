"""Time parameterization of paths (TOPP), time-parameterized trajectories, and their reference clock.

A path x(s) has the parameter s, the time at nominal speed. A time parameterization s(t) turns it into the trajectory
x(s(t)), with

    d/dt x = x' sd,   d²/dt² x = x'' sd² + x' sdd,   sd = ds/dt,   sdd = d²s/dt²

A `ReferenceClock` slows trajectories down while the robot lags behind.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from mcplan.core.motion.reference import sample_law, scale_pose_rates
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
    kept : fraction of the margins of its pace in friction, torque, contact forces and contact area that the motion
        keeps. 1: all of them; 0: it may use the limits of the controller.
    """

    def __init__(self, times: np.ndarray, path: np.ndarray, rate: np.ndarray, change: np.ndarray, kept: float = 1.0):
        self.times, self.path = np.array(times, float), np.array(path, float)
        self.rate, self.change, self.kept = np.array(rate, float), np.array(change, float), float(kept)

    @property
    def duration(self) -> float:
        """Duration of the motion (s)."""
        return float(self.times[-1])

    @cached_property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """Times, pieces and end for `sample_law`: lengths and coefficients of the pieces, and last s and sd."""
        T = np.diff(self.times)
        x0, v0, a0 = self.path[:-1], T * self.rate[:-1], T * T * self.change[:-1]
        x_gap = self.path[1:] - x0 - v0 - 0.5 * a0
        v_gap, a_gap = T * self.rate[1:] - v0 - a0, T * T * self.change[1:] - a0
        columns = [
            T,
            x0,
            v0,
            0.5 * a0,
            10 * x_gap - 4 * v_gap + 0.5 * a_gap,
            -15 * x_gap + 7 * v_gap - a_gap,
            6 * x_gap - 3 * v_gap + 0.5 * a_gap,
        ]
        return self.times, np.stack(columns, axis=1), np.array([self.path[-1], self.rate[-1]])

    def at(self, t: float) -> tuple[float, float, float]:
        """Return s, sd and sdd at time t (s) of the motion; after its end s continues at the last rate."""
        return sample_law(*self.arrays, float(t))

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
        low, high = self.times[i : i + 2].tolist()
        t = low + (high - low) * float((s - self.path[i]) / (self.path[i + 1] - self.path[i]))
        while high - low > 1e-9:  # Newton's method, between the bounds
            present, rate, _ = self.at(t)
            low, high = (t, high) if present < s else (low, t)
            step = (s - present) / rate
            if abs(step) < 0.5e-9:
                return t + step
            t = t + step if low < t + step < high else 0.5 * (low + high)
        return high


FREE_ERROR = 1.5
"""Error relative to the tolerance up to which the clock runs at its full rate."""

FULL_ERROR = 4.0
"""Error relative to the tolerance from which on the clock runs at its minimum rate."""

MIN_CLOCK_RATE = 0.3
"""Smallest rate of the clock: the references never stop."""

RATE_TIME_CONSTANT_S = 0.03
"""Time constant of the clock rate (s): with it neither velocities nor accelerations jump."""

RATE_TOLERANCE = 1e-6
"""A clock rate that differs from 1 by less than this is set to 1."""


class ReferenceClock:
    """Clock of the references: it slows down while the robot lags behind (time scaling).

    ``k'' = (k* - k) / T² - 2 k' / T`` for the rate k, with k* from 1 down to `MIN_CLOCK_RATE` as the tracking error
    grows, and T = `RATE_TIME_CONSTANT_S`.

    Attributes
    ----------
    rate, change : k, and its time derivative (1/s).
    delay : total delay of the references (s).
    """

    def __init__(self) -> None:
        self.rate, self.change, self.delay = 1.0, 0.0, 0.0

    def advance(self, dt: float, error: float) -> None:
        """Advance the clock by dt (s); ``error`` is the tracking error relative to its tolerance."""
        if error <= FREE_ERROR and self.rate == 1.0 and self.change == 0.0:
            return
        slowdown = min(max((error - FREE_ERROR) / (FULL_ERROR - FREE_ERROR), 0.0), 1.0)
        target_rate = 1.0 - (1.0 - MIN_CLOCK_RATE) * slowdown
        # implicit Euler: stable for any dt, no overshoot
        step = dt / RATE_TIME_CONSTANT_S
        change = (self.change + step / RATE_TIME_CONSTANT_S * (target_rate - self.rate)) / (1.0 + step) ** 2
        rate = min(self.rate + dt * change, 1.0)
        if target_rate == 1.0 and 1.0 - rate < RATE_TOLERANCE:
            rate, change = 1.0, 0.0
        self.delay += dt * (1.0 - 0.5 * (rate + self.rate))
        self.rate, self.change = rate, change


class PathTiming:
    """A time parameterization with a start time and a reference clock."""

    def __init__(self, law: TimeParameterization, start_time: float, clock: ReferenceClock | None):
        self.law, self.start_time, self.clock = law, start_time, clock or ReferenceClock()
        self._start_delay = self.clock.delay

    @property
    def delay(self) -> float:
        """Delay since the start of the motion (s)."""
        return self.clock.delay - self._start_delay

    def agrees(self, other: "PathTiming") -> bool:
        """Whether both give the same parameter at all times."""
        starts = self.start_time, self._start_delay, other.start_time, other._start_delay
        return self.law is other.law and self.clock is other.clock and starts[:2] == starts[2:]

    def at(self, t: float) -> tuple[float, float, float]:
        """Return s, sd and sdd at the present time t: ``sd = k s'``, ``sdd = k² s'' + k' s'`` with the clock rate k."""
        at, k, slope = self.law_time(t)
        s, rate, change = self.law.at(at)
        return s, k * rate, k * k * change + slope * rate

    def law_time(self, t: float) -> tuple[float, float, float]:
        """Return the time (s) of the parameterization at the present time t, and rate and change of the clock."""
        clock = self.clock
        return t - self.start_time - (clock.delay - self._start_delay), clock.rate, clock.change


class TimedPath:
    """Trajectory x(s(t)) of a path x(s), with its time derivatives.

    Parameters
    ----------
    path : x(s), with its parameter from 0 on.
    law : time parameterization s(t).
    start_time : s.
    clock : reference clock; None: one that is never slowed down. Samples are valid at the present time
        only, as later rates of the clock are unknown.

    Attributes
    ----------
    timing : path parameter over time, by ``law``, ``start_time`` and ``clock``.
    """

    def __init__(
        self,
        path: PostureSpline | Spline | LimbPath | PosturePath,
        law: TimeParameterization,
        start_time: float,
        clock: ReferenceClock | None = None,
    ):
        self.path, self.law, self.start_time = path, law, start_time
        self.timing = PathTiming(law, start_time, clock)

    def sample(self, t: float) -> Any:
        """Return the reference at time t, of the sample type of the path; the end is held."""
        s, rate, change = self.timing.at(t)
        x = self.path.sample(s)
        if isinstance(x, PoseSample):
            v, a = x.velocity, x.acceleration
            return PoseSample(x.R, x.p, rate * v, rate * rate * a + change * v, x.tightness)
        value, v, a = x
        return type(x)(value, rate * v, rate * rate * a + change * v)

    def write(self, t: float, pose: np.ndarray) -> float:
        """Write the reference of a limb at time t to ``pose`` (24,), see `PosePath.write`; return the tightness."""
        s, rate, change = self.timing.at(t)
        tightness = self.path.write(s, pose)  # type: ignore[union-attr]
        scale_pose_rates(rate, change, pose)
        return tightness

    @property
    def end(self) -> Pose:
        """Pose at the end of a limb path."""
        return self.path.end  # type: ignore[return-value]

    @property
    def knots(self) -> Sequence[np.ndarray]:
        """Knots of a posture path."""
        return self.path.knots  # type: ignore[return-value, union-attr]

    @property
    def end_time(self) -> float:
        """Time from which the end is held (s); a limb may arrive after the body."""
        return self.start_time + self.timing.delay + self._duration

    @cached_property
    def _duration(self) -> float:
        """Time from start to end at the full rate of the clock (s)."""
        return self.law.time_of(self.path.end_time)

    @property
    def swing_time(self) -> float:
        """Time at which the lift of a limb ends (s)."""
        return self._time_at(self.path.swing_time)  # type: ignore[union-attr]

    @property
    def approach_time(self) -> float:
        """Time from which a limb moves only along the normal of its new contact (s)."""
        return self._time_at(self.path.approach_time)  # type: ignore[union-attr]

    def _time_at(self, s: float) -> float:
        """Return the time (s) at which the path parameter is s."""
        return self.start_time + self.timing.delay + self.law.time_of(s)


class TimedRate:
    """Quantity proportional to the path rate, such as momentum: y(s) sd, with its derivative y' sd² + y sdd.

    Parameters
    ----------
    path : y(s), with its parameter from 0 on.
    law : time parameterization s(t).
    start_time : s.
    clock : reference clock; None: one that is never slowed down.
    """

    def __init__(self, path: Spline, law: TimeParameterization, start_time: float, clock: ReferenceClock | None = None):
        self.path, self.timing = path, PathTiming(law, start_time, clock)

    def sample(self, t: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the value and its derivative at time t."""
        s, rate, change = self.timing.at(t)
        y = self.path.sample(s)
        return rate * y.value, rate * rate * y.velocity + change * y.value
