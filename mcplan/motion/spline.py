"""Quintic interpolating splines in R^n, and of whole-body postures."""

from bisect import bisect_right
from copy import copy
from math import factorial

import numpy as np
from scipy.interpolate import make_interp_spline

from mcplan.core.algebra import minimum_jerk as core
from mcplan.core.rigid_body.manifold import integrate
from mcplan.motion.posture import PostureSample
from mcplan.motion.quintic import ReferenceSample, rotation_vector, vector_rates
from mcplan.robot.pose import base_rotation

Rates = np.ndarray | tuple[np.ndarray, np.ndarray]
"""Velocity and acceleration at one end, (2, n)."""


class Spline:
    """x(t) of degree five between ``times``, four times differentiable, through ``values``.

    Parameters
    ----------
    times : (k,) s, increasing; before them the first value is held, after them the last velocity.
    values : (k, n), at least six.
    begin, finish : (n,) velocity and acceleration at the start and at the end; None is rest.

    Attributes
    ----------
    coefficients : (k - 1, 6, n) of the powers of (t - t_i) / (t_i+1 - t_i), as `Quintic` has them.
    """

    def __init__(
        self,
        times: np.ndarray,
        values: np.ndarray,
        begin: Rates | None = None,
        finish: Rates | None = None,
    ):
        self.times, self.values = np.array(times, float), np.array(values, float)
        rest = np.zeros((2, self.values.shape[1]))
        first, last = (rest if rates is None else np.array(rates, float) for rates in (begin, finish))
        ends = tuple([(1, rates[0]), (2, rates[1])] for rates in (first, last))
        spline = make_interp_spline(self.times, self.values, k=5, bc_type=ends)
        lengths = np.diff(self.times)
        powers = [lengths[:, None] ** m / factorial(m) * spline(self.times[:-1], m) for m in range(6)]
        self.coefficients = np.ascontiguousarray(np.stack(powers, axis=1))
        self._starts, self._lengths = self.times[:-1].tolist(), lengths.tolist()
        self._finish, self._time = float(self.times[-1]), float("nan")
        self._sample: ReferenceSample | None = None
        self._begin, self._last = (
            ReferenceSample(self.values[0], *first),
            ReferenceSample(self.values[-1], last[0], rest[1]),
        )
        self._stops = not last.any()

    def begun(self, t: float) -> "Spline":
        """Return the curve shifted in time to begin at t (s)."""
        curve = copy(self)
        curve.times, curve._time = self.times + t, float("nan")
        curve._starts, curve._finish = curve.times[:-1].tolist(), float(curve.times[-1])
        return curve

    @property
    def start_time(self) -> float:
        """Time until which the start is held (s)."""
        return self._starts[0]

    @property
    def end_time(self) -> float:
        """Time at which the end is reached (s)."""
        return self._finish

    @property
    def end(self) -> np.ndarray:
        """The last value."""
        return self.values[-1]

    def piece(self, t: float) -> tuple[int, float, float]:
        """Return the piece at a time, the fraction of it that has passed, and its length (s)."""
        i = max(bisect_right(self._starts, t) - 1, 0)
        length = self._lengths[i]
        return i, min(max((t - self._starts[i]) / length, 0.0), 1.0), length

    def pieces(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return `piece` of times (m,), each result (m,)."""
        i = np.maximum(np.searchsorted(self._starts, t, side="right") - 1, 0)
        length = np.diff(self.times)[i]
        return i, np.clip((t - self.times[i]) / length, 0.0, 1.0), length

    def samples(self, t: np.ndarray) -> ReferenceSample:
        """Return the references at times (m,) between its start and its end, each (m, n)."""
        out = np.empty((len(t), 3, self.values.shape[1]))
        core.quintics(self.coefficients, *self.pieces(t), out)
        return ReferenceSample(out[:, 0], out[:, 1], out[:, 2])

    def sample(self, t: float) -> ReferenceSample:
        """Return the reference at time t. Do not modify the arrays."""
        if t != self._time or self._sample is None:
            self._sample, self._time = self._compute(t), t
        return self._sample

    def _compute(self, t: float) -> ReferenceSample:
        if t >= self._finish:
            value, velocity, acceleration = self._last
            return (
                self._last
                if self._stops
                else ReferenceSample(value + (t - self._finish) * velocity, velocity, acceleration)
            )
        if t <= self._starts[0]:
            return self._begin
        i, s, length = self.piece(t)
        out = np.empty((3, self.values.shape[1]))
        core.quintic(self.coefficients[i], s, length, out)
        return ReferenceSample(out[0], out[1], out[2])


class PostureSpline:
    """Spline through whole-body postures; `PostureTrajectory` connects two.

    Parameters
    ----------
    times : (k,) s.
    postures : (k, 7+n); each base is turned by less than pi from the first.
    begin, finish : (6+n,) v and vd at the start and at the end; None is rest.

    Attributes
    ----------
    knots : the postures.
    """

    def __init__(
        self,
        times: np.ndarray,
        postures: np.ndarray,
        begin: Rates | None = None,
        finish: Rates | None = None,
    ):
        self.knots = np.array(postures, float)
        self.start, self.end = self.knots[0], self.knots[-1]
        nv = len(self.start) - 1
        flat = np.r_[0:3, 6:nv]
        self._R = R = base_rotation(self.start)
        phi = np.array([rotation_vector(base_rotation(q) @ R.T) for q in postures])
        first, last = (np.zeros((2, nv)) if rates is None else np.array(rates, float) for rates in (begin, finish))
        self._flat = Spline(times, np.delete(postures, slice(3, 7), axis=1), first[:, flat], last[:, flat])
        turning = None if finish is None else vector_rates(phi[-1], *last[:, 3:6])
        self._phi = Spline(times, phi, first[:, 3:6], turning)
        self._scratch = np.empty(3 * nv + 9)
        self._last, self._stops = PostureSample(self.end, last[0], np.zeros(nv)), not last.any()
        self._time, self._sample = float("nan"), self._last

    def begun(self, t: float) -> "PostureSpline":
        """Return the curve shifted in time to begin at t (s)."""
        curve = copy(self)
        curve._flat, curve._phi, curve._time = self._flat.begun(t), self._phi.begun(t), float("nan")
        curve._scratch = self._scratch.copy()
        return curve

    def sample(self, t: float) -> PostureSample:
        """Return the reference at time t. Do not modify the arrays."""
        if t != self._time:
            self._sample, self._time = self._compute(t), t
        return self._sample

    def _compute(self, t: float) -> PostureSample:
        if t >= self._flat.end_time:
            return self._last if self._stops else self._onward(t - self._flat.end_time)
        i, s, length = self._flat.piece(t)
        nv = len(self.start) - 1
        q, v, vd = np.empty(nv + 1), np.empty(nv), np.empty(nv)
        flat, phi = self._flat.coefficients[i], self._phi.coefficients[i]
        core.posture(flat, phi, self._R, s, length, self._scratch, q, v, vd)
        return PostureSample(q, v, vd)

    def samples(self, t: np.ndarray) -> PostureSample:
        """Return the references at times (m,) between its start and its end, each (m, ..)."""
        nv = len(self.start) - 1
        q, v, vd = (np.empty((len(t), n)) for n in (nv + 1, nv, nv))
        flat, phi = self._flat.coefficients, self._phi.coefficients
        core.postures(flat, phi, self._R, *self._flat.pieces(t), self._scratch, q, v, vd)
        return PostureSample(q, v, vd)

    def _onward(self, dt: float) -> PostureSample:
        """Extrapolate with the last velocity to dt (s) after its end."""
        q, v = self.end.copy(), self._last.v
        integrate(self.end, v, dt, q)
        return PostureSample(q, v, self._last.vd)

    @property
    def start_time(self) -> float:
        """Time until which the start is held (s)."""
        return self._flat.start_time

    @property
    def end_time(self) -> float:
        """Time at which the end is reached (s)."""
        return self._flat.end_time
