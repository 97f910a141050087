"""Smooth motion through given values at given times: splines of degree five in R^n, and whole postures by them."""

from bisect import bisect_right
from copy import copy
from math import factorial

import numpy as np
from scipy.interpolate import make_interp_spline

from mcplan.core.algebra import minimum_jerk as core
from mcplan.motion.posture import PostureSample, base_rotation
from mcplan.motion.quintic import Sample
from mcplan.motion.rotation import rotation_vector


class Spline:
    """x(t) of degree five between ``times``, four times differentiable, through ``values``; at rest at the end.

    Parameters
    ----------
    times : (k,) s, increasing; before them the first value is held, after them the last.
    values : (k, n), six at least.
    velocity, acceleration : (n,) at the start; None is zero.

    Attributes
    ----------
    coefficients : (k - 1, 6, n) of the powers of (t - t_i) / (t_i+1 - t_i), as `Quintic` has them.
    """

    def __init__(
        self,
        times: np.ndarray,
        values: np.ndarray,
        velocity: np.ndarray | None = None,
        acceleration: np.ndarray | None = None,
    ):
        self.times, self.values = np.array(times, float), np.array(values, float)
        zero = np.zeros(self.values.shape[1])
        first = [(1, zero if velocity is None else velocity), (2, zero if acceleration is None else acceleration)]
        spline = make_interp_spline(self.times, self.values, k=5, bc_type=(first, [(1, zero), (2, zero)]))
        lengths = np.diff(self.times)
        powers = [lengths[:, None] ** m / factorial(m) * spline(self.times[:-1], m) for m in range(6)]
        self.coefficients = np.ascontiguousarray(np.stack(powers, axis=1))
        self._starts, self._lengths = self.times[:-1].tolist(), lengths.tolist()
        self._finish, self._time = float(self.times[-1]), float("nan")
        self._sample: Sample | None = None
        self._rest = Sample(self.values[-1], zero, zero)
        self._begin = Sample(self.values[0], first[0][1], first[1][1])

    def begun(self, t: float) -> "Spline":
        """Return the same curve, its time counted from t (s)."""
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
        """Time from which the end is held (s)."""
        return self._finish

    @property
    def end(self) -> np.ndarray:
        """The last value."""
        return self.values[-1]

    def piece(self, t: float) -> tuple[int, float, float]:
        """Return the piece of a time, the share of it that is over, and its length (s)."""
        i = max(bisect_right(self._starts, t) - 1, 0)
        length = self._lengths[i]
        return i, min(max((t - self._starts[i]) / length, 0.0), 1.0), length

    def sample(self, t: float) -> Sample:
        """Return the reference at time t; the last one is kept. The arrays are not to be written to."""
        if t != self._time or self._sample is None:
            self._sample, self._time = self._compute(t), t
        return self._sample

    def _compute(self, t: float) -> Sample:
        if t >= self._finish:
            return self._rest
        if t <= self._starts[0]:
            return self._begin
        i, s, length = self.piece(t)
        out = np.empty((3, self.values.shape[1]))
        core.quintic(self.coefficients[i], s, length, out)
        return Sample(out[0], out[1], out[2])


class PostureSpline:
    """A whole posture through given ones: what `PostureTrajectory` is between two.

    Parameters
    ----------
    times : (k,) s.
    postures : (k, 7+n); each base is turned by less than pi from the first.
    velocity, acceleration : (6+n,) v and vd at the start; None is rest.

    Attributes
    ----------
    knots : the postures.
    """

    def __init__(
        self,
        times: np.ndarray,
        postures: np.ndarray,
        velocity: np.ndarray | None = None,
        acceleration: np.ndarray | None = None,
    ):
        self.knots = np.array(postures, float)
        self.start, self.end = self.knots[0], self.knots[-1]
        nv = len(self.start) - 1
        v = np.zeros(nv) if velocity is None else np.asarray(velocity, float)
        vd = np.zeros(nv) if acceleration is None else np.asarray(acceleration, float)
        flat = np.r_[0:3, 6:nv]
        self._R = R = base_rotation(self.start)
        phi = np.array([rotation_vector(base_rotation(q) @ R.T) for q in postures])
        self._flat = Spline(times, np.delete(postures, slice(3, 7), axis=1), v[flat], vd[flat])
        self._phi = Spline(times, phi, v[3:6], vd[3:6])
        self._scratch = np.empty(3 * nv + 9)
        self._rest = PostureSample(self.end, np.zeros(nv), np.zeros(nv))
        self._time, self._sample = float("nan"), self._rest

    def begun(self, t: float) -> "PostureSpline":
        """Return the same curve, its time counted from t (s)."""
        curve = copy(self)
        curve._flat, curve._phi, curve._time = self._flat.begun(t), self._phi.begun(t), float("nan")
        curve._scratch = self._scratch.copy()
        return curve

    def sample(self, t: float) -> PostureSample:
        """Return the reference at time t; the last one is kept. The arrays are not to be written to."""
        if t != self._time:
            self._sample, self._time = self._compute(t), t
        return self._sample

    def _compute(self, t: float) -> PostureSample:
        if t >= self._flat.end_time:
            return self._rest
        i, s, length = self._flat.piece(t)
        nv = len(self.start) - 1
        q, v, vd = np.empty(nv + 1), np.empty(nv), np.empty(nv)
        flat, phi = self._flat.coefficients[i], self._phi.coefficients[i]
        core.posture(flat, phi, self._R, s, length, self._scratch, q, v, vd)
        return PostureSample(q, v, vd)

    @property
    def start_time(self) -> float:
        """Time until which the start is held (s)."""
        return self._flat.start_time

    @property
    def end_time(self) -> float:
        """Time from which the end is held (s)."""
        return self._flat.end_time
