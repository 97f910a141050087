"""Rotation vector and angle-axis charts.

S1: `docs/sources.md`.
"""

from math import factorial

import numpy as np
from numpy.typing import ArrayLike

from mcplan.core.algebra.rotation import matrix_to_quaternion, quaternion_exp, rotation_exp, rotation_log
from mcplan.robot.pose import cross_matrix
from mcplan.textbook.coordinates.chart import Array, Axes, RotationChart, numbers

SERIES_TERMS = range(12)
"""Terms of the power series of ``(1 - cos t) / t^2`` and ``(t - sin t) / t^3``. They are exact to rounding for t below
1 rad, where the quotients and their derivatives lose precision."""


def _coefficients(t: float) -> tuple[float, float, float, float]:
    """Return ``a = (1 - cos t) / t^2``, ``b = (t - sin t) / t^3``, ``da/dt / t`` and ``db/dt / t``."""
    if t < 1.0:
        s = t * t
        a, b = ([(-1.0) ** k / factorial(2 * k + n) for k in SERIES_TERMS] for n in (2, 3))
        values = [float(sum(c * s**k for k, c in enumerate(series))) for series in (a, b)]
        slopes = [float(sum(2 * k * c * s ** (k - 1) for k, c in enumerate(series) if k)) for series in (a, b)]
        return values[0], values[1], slopes[0], slopes[1]
    sine, versine = float(np.sin(t)), float(1.0 - np.cos(t))
    return (
        versine / t**2,
        (t - sine) / t**3,
        (t * sine - 2.0 * versine) / t**4,
        (t * versine - 3.0 * (t - sine)) / t**5,
    )


class RotationVector(RotationChart):
    """``phi``: axis times angle in rad (S1 eq. 2.47 and 2.104 to 2.107); singular at full turns."""

    name = "rotation vector"
    symbols = ("phi_x", "phi_y", "phi_z")

    def rotation(self, theta: ArrayLike) -> Array:
        """Return ``exp [phi x]`` (3, 3)."""
        R = np.empty((3, 3))
        rotation_exp(self._numbers(theta), R)
        return R

    def parameters(self, R: ArrayLike) -> Array:
        """Return phi (3,), at most pi long; at pi one of the two opposite vectors of the same rotation."""
        phi = np.empty(3)
        rotation_log(numbers(R, (3, 3), "rotation"), np.empty(4), phi)
        return phi

    def _equivalent(self, theta: Array) -> list[Array]:
        """Return the vectors that differ from phi by full turns about its axis."""
        angle = float(np.linalg.norm(theta))
        return [theta * (1.0 + 2 * np.pi * turns / angle) for turns in (-2, -1, 1)] if angle > 0.0 else []

    def E(self, theta: ArrayLike, axes: Axes = "world") -> Array:
        """Return ``1 + a [phi x] + b [phi x]^2`` (3, 3): S1 eq. 2.106, a = (1 - cos t)/t^2, b = (t - sin t)/t^3."""
        phi = self._numbers(theta)
        a, b, _, _ = _coefficients(float(np.linalg.norm(phi)))
        K = cross_matrix(phi)
        return self._in_axes(theta, np.eye(3) + a * K + b * K @ K, axes)

    def _world_rate(self, theta: Array, rate: Array) -> Array:
        """Return the rate of ``1 + a K + b K^2`` with ``K = [phi x]``."""
        a, b, a_slope, b_slope = _coefficients(float(np.linalg.norm(theta)))
        K, D, along = cross_matrix(theta), cross_matrix(rate), float(theta @ rate)
        E_rate = a * D + along * a_slope * K + b * (D @ K + K @ D) + along * b_slope * K @ K
        return np.asarray(E_rate, dtype=np.float64)

    def distance_to_singularity(self, theta: ArrayLike) -> float:
        """Return the distance (rad) of the angle to nonzero multiples of 2 pi; zero is regular."""
        angle = float(np.linalg.norm(self._numbers(theta)))
        turns = max(1.0, float(np.round(angle / (2 * np.pi))))
        return abs(angle - 2 * np.pi * turns)

    def to_quaternion(self, theta: ArrayLike) -> Array:
        """Return the unit quaternion of half the angle: S1 eq. 2.52."""
        quat = np.empty(4)
        quaternion_exp(self._numbers(theta), quat)
        return quat


class AngleAxis(RotationChart):
    """``theta = (angle, n)`` with a unit axis n (S1 eq. 2.46 to 2.50 and 2.100 to 2.103); singular at angle 0."""

    name = "angle and axis"
    symbols = ("angle", "n_x", "n_y", "n_z")

    def rotation(self, theta: ArrayLike) -> Array:
        """Return ``c 1 + s [n x] + (1 - c) n n'`` (3, 3): S1 eq. 2.48."""
        angle, *axis = self._numbers(theta)
        n, c, s = np.array(axis), np.cos(angle), np.sin(angle)
        return np.asarray(c * np.eye(3) + s * cross_matrix(n) + (1 - c) * np.outer(n, n), dtype=np.float64)

    def parameters(self, R: ArrayLike) -> Array:
        """Return the angle, from 0 to pi, and the axis (4,), which is x at angle 0.

        It uses the arctangent of the quaternion's parts: the arccosine of S1 eq. 2.49 loses half the digits near 0, pi.
        """
        quat = np.empty(4)
        matrix_to_quaternion(numbers(R, (3, 3), "rotation"), quat)
        length = float(np.linalg.norm(quat[1:]))
        axis = quat[1:] / length if length > 0.0 else np.array([1.0, 0.0, 0.0])
        return np.array([2.0 * np.arctan2(length, quat[0]), *axis])

    def _equivalent(self, theta: Array) -> list[Array]:
        """Return the parameters that differ by full turns, and those of the opposite axis and angle."""
        turns = [theta + np.array([2 * np.pi * k, 0.0, 0.0, 0.0]) for k in (-1, 0, 1)]
        return turns + [-other for other in turns]

    def derivatives(self, theta: ArrayLike) -> Array:
        """Return ``dR / dtheta`` (3, 3, 4) of S1 eq. 2.48."""
        angle, *axis = self._numbers(theta)
        n, c, s = np.array(axis), np.cos(angle), np.sin(angle)
        out = np.empty((3, 3, 4))
        out[:, :, 0] = s * (np.outer(n, n) - np.eye(3)) + c * cross_matrix(n)
        for k, e in enumerate(np.eye(3)):
            out[:, :, 1 + k] = s * cross_matrix(e) + (1 - c) * (np.outer(e, n) + np.outer(n, e))
        return out

    def E(self, theta: ArrayLike, axes: Axes = "world") -> Array:
        """Return ``[n, s 1 + (1 - c) [n x]]`` (3, 4): S1 eq. 2.102."""
        angle, *axis = self._numbers(theta)
        n = np.array(axis)
        E = np.column_stack([n, np.sin(angle) * np.eye(3) + (1 - np.cos(angle)) * cross_matrix(n)])
        return self._in_axes(theta, E, axes)

    def _world_rate(self, theta: Array, rate: Array) -> Array:
        """Return the rate of S1 eq. 2.102."""
        c, s, K, D = np.cos(theta[0]), np.sin(theta[0]), cross_matrix(theta[1:]), cross_matrix(rate[1:])
        return np.column_stack([rate[1:], rate[0] * (c * np.eye(3) + s * K) + (1 - c) * D])

    def _world_inverse(self, theta: Array) -> Array:
        """Return ``[n'; -cot(angle / 2) / 2 [n x]^2 - [n x] / 2]``: S1 eq. 2.103."""
        K = cross_matrix(theta[1:])
        return np.vstack([theta[1:], -0.5 / np.tan(0.5 * theta[0]) * K @ K - 0.5 * K])

    def distance_to_singularity(self, theta: ArrayLike) -> float:
        """Return the distance (rad) of the angle to multiples of 2 pi, zero included."""
        angle = self._numbers(theta)[0]
        return float(abs(angle - 2 * np.pi * np.round(angle / (2 * np.pi))))

    def constraint(self, theta: ArrayLike) -> Array:
        """Return ``n' n - 1`` (1,)."""
        n = self._numbers(theta)[1:]
        return np.array([n @ n - 1.0])

    def constraint_rows(self, theta: ArrayLike) -> Array:
        """Return ``(0, n')`` (1, 4)."""
        return np.array([[0.0, *self._numbers(theta)[1:]]])

    def nearest(self, theta: ArrayLike) -> Array:
        """Return theta with an axis of unit length."""
        angle, *n = self._numbers(theta)
        return np.array([angle, *(np.array(n) / np.linalg.norm(n))])


ROTATION_VECTOR, ANGLE_AXIS = RotationVector(), AngleAxis()
