"""Quintic splines in R^n and of whole-body postures: through values, or minimum jerk to rest."""

from copy import copy
from math import factorial
from typing import NamedTuple

import numpy as np

from mcplan.core.algebra import minimum_jerk as core
from mcplan.core.motion.reference import sample_curve, sample_posture
from mcplan.motion.rotation import rotation_vector, vector_rates
from mcplan.robot.pose import base_rotation


class ReferenceSample(NamedTuple):
    """A reference at one time: value, first and second time derivative, each of the shape of the value."""

    value: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray


class PostureSample(NamedTuple):
    """A posture reference: q (7+n,), v (6+n,), vd (6+n,)."""

    q: np.ndarray
    v: np.ndarray
    vd: np.ndarray


Rates = np.ndarray | tuple[np.ndarray, np.ndarray]
"""Velocity and acceleration at one end of a curve: (2, n), or a pair of (n,)."""


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


class Spline:
    """Quintic spline x(t) through ``values`` at ``times``, four times differentiable; `to_rest` has one piece.

    Parameters
    ----------
    times : (k,) s, increasing, k >= 2. Before the first time the first value is held; after the last one the curve
        continues at its end velocity.
    values : (k, n) at these times.
    start_rates, end_rates : velocity and acceleration (n,) at the start and at the end; None is rest.

    Attributes
    ----------
    start_time, end_time : time until which the start is held, and at which the end is reached (s).
    coefficients : (k - 1, 6, n), of each piece i for the powers 0 to 5 of (t - t_i) / (t_i+1 - t_i).
    arrays : arguments of ``core.motion.reference.sample_curve`` from ``times`` to ``ends``.
    """

    def __init__(
        self,
        times: np.ndarray,
        values: np.ndarray,
        start_rates: Rates | None = None,
        end_rates: Rates | None = None,
    ):
        from scipy.interpolate import make_interp_spline

        times, values = np.array(times, float), np.array(values, float)
        rest = np.zeros((2, values.shape[1]))
        start, end = (rest if rates is None else np.array(rates, float) for rates in (start_rates, end_rates))
        ends = tuple([(1, rates[0]), (2, rates[1])] for rates in (start, end))
        spline = make_interp_spline(times, values, k=5, bc_type=ends)
        lengths = np.diff(times)
        powers = [lengths[:, None] ** m / factorial(m) * spline(times[:-1], m) for m in range(6)]
        self._set(times, lengths, np.ascontiguousarray(np.stack(powers, axis=1)), values, start, end[0])

    @classmethod
    def to_rest(
        cls,
        start: np.ndarray,
        end: np.ndarray,
        duration: float,
        velocity: np.ndarray | None = None,
        acceleration: np.ndarray | None = None,
        start_time: float = 0.0,
    ) -> "Spline":
        """Return the curve from any velocity and acceleration (n,) to ``end``, which is reached at rest, then held.

        With a = end - start - T xd0 - T²/2 xdd0,  b = -T xd0 - T² xdd0,  c = -T² xdd0 and s = (t - t0) / T:

            x = x0 + T xd0 s + T²/2 xdd0 s² + (10 a - 4 b + c/2) s³ + (-15 a + 7 b - c) s⁴ + (6 a - 3 b + c/2) s⁵

        From rest this is minimum jerk.
        """
        start, end, T = np.array(start, float), np.array(end, float), float(duration)
        zero = np.zeros_like(start)
        d1 = zero if velocity is None else T * np.asarray(velocity, float)
        d2 = zero if acceleration is None else T * T * np.asarray(acceleration, float)
        a, b, c = end - start - d1 - d2 / 2, -d1 - d2, -d2
        coefficients = [start, d1, d2 / 2, 10 * a - 4 * b + c / 2, -15 * a + 7 * b - c, 6 * a - 3 * b + c / 2]
        curve = cls.__new__(cls)
        times, values = np.array([start_time, start_time + T]), np.array([start, end])
        curve._set(times, np.array([T]), np.array([coefficients]), values, (d1 / T, d2 / (T * T)), zero)
        return curve

    def _set(
        self,
        times: np.ndarray,
        lengths: np.ndarray,
        coefficients: np.ndarray,
        values: np.ndarray,
        start_rates: Rates,
        end_velocity: np.ndarray,
    ) -> None:
        """Set pieces, end values and end rates."""
        self.values, self.coefficients = values, coefficients
        ends = [[values[0], *start_rates], [values[-1], end_velocity, np.zeros_like(end_velocity)]]
        self._set_arrays(times, lengths, coefficients, np.array(ends))

    def _set_arrays(self, times: np.ndarray, *others: np.ndarray) -> None:
        """Set the arguments of the kernel."""
        self.times, self.start_time, self.end_time = times, float(times[0]), float(times[-1])
        self.arrays = times, *others

    def part(self, columns: np.ndarray) -> "Spline":
        """Return the curve of some coordinates."""
        curve, (times, lengths, coefficients, ends) = copy(self), self.arrays
        curve.values, curve.coefficients = self.values[:, columns], coefficients.take(columns, axis=2)
        curve._set_arrays(times, lengths, curve.coefficients, ends.take(columns, axis=2))
        return curve

    def starting_at(self, t: float) -> "Spline":
        """Return this curve, which begins at time 0, shifted in time to begin at t (s)."""
        curve = copy(self)
        curve._set_arrays(self.times + t, *self.arrays[1:])
        return curve

    @property
    def duration(self) -> float:
        """Time from start to end (s)."""
        lengths = self.arrays[1]
        return float(lengths[0]) if len(lengths) == 1 else self.end_time - self.start_time

    @property
    def end(self) -> np.ndarray:
        """The last value."""
        return self.values[-1]

    def pieces(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the index of the piece at times (m,), its elapsed fraction, and its length (s), each (m,)."""
        i = np.maximum(np.searchsorted(self.times[:-1], t, side="right") - 1, 0)
        length = self.arrays[1][i]
        return i, np.clip((t - self.times[i]) / length, 0.0, 1.0), length

    def samples(self, t: np.ndarray) -> ReferenceSample:
        """Return the references at times (m,) between start and end of the curve, each (m, n)."""
        out = np.empty((len(t), 3, self.values.shape[1]))
        core.quintics(self.coefficients, *self.pieces(t), out)
        return ReferenceSample(out[:, 0], out[:, 1], out[:, 2])

    def sample(self, t: float) -> ReferenceSample:
        """Return the reference at time t."""
        out = np.empty((3, self.values.shape[1]))
        sample_curve(*self.arrays, t, out)
        return ReferenceSample(out[0], out[1], out[2])


class PostureSpline:
    """Curve through whole-body postures: a spline of base position and joints, and one of the base rotation vector.

    The rotation vector phi is relative to the first base orientation: ``R(t) = exp(phi(t)) R_0``.

    Parameters
    ----------
    times : (k,) s, increasing, k >= 2.
    postures : (k, 7+n); the angle between each base orientation and the first one is less than pi.
    start_rates, end_rates : v and vd (6+n,) at the start and at the end; None is rest.

    Attributes
    ----------
    knots : (k, 7+n) the postures.
    arrays : arguments of ``core.motion.reference.sample_posture`` from ``times`` to ``end_velocity``.
    workspace : its last four, which every sample overwrites.
    """

    def __init__(
        self,
        times: np.ndarray,
        postures: np.ndarray,
        start_rates: Rates | None = None,
        end_rates: Rates | None = None,
    ):
        knots = np.array(postures, float)
        nv = knots.shape[1] - 1
        start, end = (
            np.zeros((2, nv)) if rates is None else np.array(rates, float) for rates in (start_rates, end_rates)
        )
        phi, end_velocity = self._coordinates(knots), end[0].copy()
        if end_rates is not None:  # at the start phi is zero: its rates are angular velocity and acceleration
            end[:, 3:6] = vector_rates(phi[-1], *end[:, 3:6])
        curve = Spline(times, np.concatenate([knots[:, :3], phi, knots[:, 7:]], axis=1), start, end)
        self._set(knots, curve.part(_linear_indices(nv)), curve.part(np.arange(3, 6)), end_velocity)

    @classmethod
    def to_rest(
        cls,
        start: np.ndarray,
        end: np.ndarray,
        duration: float,
        velocity: np.ndarray | None = None,
        acceleration: np.ndarray | None = None,
        start_time: float = 0.0,
    ) -> "PostureSpline":
        """Return the curve from one posture (7+n,), with v and vd (6+n,), to another, which is reached at rest."""
        knots = np.array([start, end], float)
        nv = knots.shape[1] - 1
        v, vd = (np.zeros(nv) if rate is None else np.asarray(rate, float) for rate in (velocity, acceleration))
        curve, linear = cls.__new__(cls), _linear_indices(nv)
        phi, (p0, p1) = curve._coordinates(knots), np.delete(knots, slice(3, 7), axis=1)
        rotation = Spline.to_rest(np.zeros(3), phi[1], duration, v[3:6], vd[3:6], start_time)
        position = Spline.to_rest(p0, p1, duration, v[linear], vd[linear], start_time)
        curve._set(knots, position, rotation, np.zeros(nv))
        return curve

    def _coordinates(self, knots: np.ndarray) -> np.ndarray:
        """Return the rotation vectors (k, 3) of the bases relative to the first."""
        self._R = R = np.ascontiguousarray(base_rotation(knots[0]))
        return np.array([rotation_vector(base_rotation(q) @ R.T) for q in knots])

    def _set(self, knots: np.ndarray, position: Spline, rotation: Spline, end_velocity: np.ndarray) -> None:
        """Set the curves of base position and joints, and of the rotation vector; ``end_velocity`` is (6+n,)."""
        self.knots, self.start, self.end = knots, knots[0], knots[-1]
        self._linear, self._phi, self._end_velocity = position, rotation, end_velocity
        self._set_arrays()

    def _set_arrays(self) -> None:
        """Set the arguments of the kernels, with an empty cache of samples."""
        linear, nv = self._linear, len(self.start) - 1
        self.arrays = (
            *linear.arrays[:3], self._phi.coefficients, self._R, self.end, self._end_velocity,
        )  # fmt: skip
        self.workspace = np.empty(3 * nv + 9), np.empty(nv + 1), np.empty(nv), np.empty(nv)

    def starting_at(self, t: float) -> "PostureSpline":
        """Return this curve, which begins at time 0, shifted in time to begin at t (s)."""
        curve = copy(self)
        curve._linear, curve._phi = self._linear.starting_at(t), self._phi.starting_at(t)
        curve._set_arrays()
        return curve

    def sample(self, t: float) -> PostureSample:
        """Return the reference at time t."""
        nv = len(self.start) - 1
        q, v, vd = np.empty(nv + 1), np.empty(nv), np.empty(nv)
        sample_posture(*self.arrays, t, self.workspace[0], q, v, vd)
        return PostureSample(q, v, vd)

    def samples(self, t: np.ndarray) -> PostureSample:
        """Return the references at times (m,) between start and end of the curve: q (m, 7+n), v and vd (m, 6+n)."""
        nv = len(self.start) - 1
        q, v, vd = (np.empty((len(t), n)) for n in (nv + 1, nv, nv))
        linear, phi = self._linear.coefficients, self._phi.coefficients
        core.postures(linear, phi, self._R, *self._linear.pieces(t), self.workspace[0], q, v, vd)
        return PostureSample(q, v, vd)

    @property
    def start_time(self) -> float:
        """Time until which the start is held (s)."""
        return self._linear.start_time

    @property
    def end_time(self) -> float:
        """Time at which the end is reached (s)."""
        return self._linear.end_time


def _linear_indices(nv: int) -> np.ndarray:
    """Return the indices of base position and joints in a velocity vector of length nv."""
    return np.r_[0:3, 6:nv]
