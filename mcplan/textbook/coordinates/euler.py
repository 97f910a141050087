"""Euler angles: sequences of three rotations about coordinate axes (S1 eq. 2.32 to 2.45 and 2.83 to 2.93).

S0 and S1: `docs/sources.md`.
"""

import numpy as np
from numpy.typing import ArrayLike

from mcplan.errors import InputError
from mcplan.robot.pose import axis_rotation, cross_matrix
from mcplan.textbook.coordinates.chart import Array, RotationChart, numbers

PARALLEL_TOLERANCE = 1e-12
"""Sine or cosine of the middle angle below which the outer axes count as parallel: only the sum of the outer angles is
determined."""


class EulerAngles(RotationChart):
    """``R = R_i(a) R_j(b) R_k(c)``: intrinsic rotations, or in reverse order extrinsic (about fixed axes).

    The columns of the map to angular velocity are the axes of the three rotations. It is singular where the first and
    the last axis are parallel: at ``cos b = 0`` for three different axes, at ``sin b = 0`` if the first is repeated.

    Parameters
    ----------
    sequence : three letters of x, y, z, without adjacent equal ones: ``zyx``, ``zyz``, ...
    fixed : whether the rotations are extrinsic, about the world axes: the first number is the first rotation.
    symbols : names of the three numbers; by default the letters, numbered if one is repeated.
    """

    def __init__(self, sequence: str, fixed: bool = False, symbols: tuple[str, str, str] | None = None):
        if len(sequence) != 3 or set(sequence) - set("xyz") or sequence[1] in (sequence[0], sequence[2]):
            raise InputError(f"Euler angles {sequence!r}: expected three of x, y, z, no equal neighbours")
        self.sequence, self.fixed = sequence, fixed
        repeats_first = sequence[0] == sequence[2]
        self.symbols = symbols or (
            (sequence[0] + "1", sequence[1], sequence[2] + "2")
            if repeats_first
            else (sequence[0], sequence[1], sequence[2])
        )
        about = " about fixed axes" if fixed else ""
        self.name = "-".join(symbols) if symbols else f"Euler angles {sequence}{about}"
        order = sequence[::-1] if fixed else sequence
        self._i, self._j, last = ("xyz".index(letter) for letter in order)
        self._k = 3 - self._i - self._j
        self._last = last
        self._sign = 1.0 if (self._j - self._i) % 3 == 1 else -1.0
        """1 if the axes i, j, k are right-handed, otherwise -1."""

    def _in_order(self, theta: ArrayLike) -> Array:
        """Return the angles in the order of the product."""
        angles = self._numbers(theta)
        return angles[::-1] if self.fixed else angles

    def _factors(self, theta: ArrayLike) -> tuple[Array, Array, Array]:
        """Return the three rotation matrices of the product."""
        a, b, c = self._in_order(theta)
        axes = np.eye(3)
        return axis_rotation(axes[self._i], a), axis_rotation(axes[self._j], b), axis_rotation(axes[self._last], c)

    def rotation(self, theta: ArrayLike) -> Array:
        """Return ``R_i(a) R_j(b) R_k(c)`` (3, 3); S1 eq. 2.33, 2.37, 2.41, 2.44."""
        A, B, C = self._factors(theta)
        return A @ B @ C

    def derivatives(self, theta: ArrayLike) -> Array:
        """Return ``dR / dtheta`` (3, 3, 3) by the product rule; the derivative of a factor is ``[axis x]`` times it."""
        A, B, C = self._factors(theta)
        da, db, dc = (cross_matrix(np.eye(3)[i]) for i in (self._i, self._j, self._last))
        rows = [da @ A @ B @ C, A @ db @ B @ C, A @ B @ dc @ C]
        return np.stack(rows[::-1] if self.fixed else rows, axis=2)

    def _world_rate(self, theta: Array, rate: Array) -> Array:
        """Return the rate of E: each axis rotates with the rotations before it."""
        E, rates = self.E(theta), rate
        if self.fixed:
            E, rates = E[:, ::-1], rate[::-1]
        omega_1 = rates[0] * E[:, 0]
        columns = [np.zeros(3), np.cross(omega_1, E[:, 1]), np.cross(omega_1 + rates[1] * E[:, 1], E[:, 2])]
        return np.column_stack(columns[::-1] if self.fixed else columns)

    def parameters(self, R: ArrayLike) -> Array:
        """Return the angles (3,), the outer two within pi; S1 eq. 2.35, 2.39, 2.42, 2.45.

        The middle one is within pi/2 of zero, or from 0 to pi if the first axis is repeated. At a singularity the last
        angle of the product is zero.
        """
        R = numbers(R, (3, 3), "rotation")
        i, j, k, sign = self._i, self._j, self._k, self._sign
        # `middle` is the sine or cosine of the middle angle; a and c are arbitrary where it vanishes
        if self._last == i:
            middle = np.hypot(R[j, i], R[k, i])
            b = np.arctan2(middle, R[i, i])
            a, c = np.arctan2(R[j, i], -sign * R[k, i]), np.arctan2(R[i, j], sign * R[i, k])
        else:
            middle = np.hypot(R[i, i], R[i, j])
            b = np.arctan2(sign * R[i, k], middle)
            a, c = np.arctan2(-sign * R[j, k], R[k, k]), np.arctan2(-sign * R[i, j], R[i, i])
        if middle < PARALLEL_TOLERANCE:
            outer = R @ axis_rotation(np.eye(3)[j], b).T
            a, c = np.arctan2(sign * outer[k, j], outer[j, j]), 0.0
        return np.array([c, b, a] if self.fixed else [a, b, c])

    def parameters_near(self, R: ArrayLike, theta: ArrayLike) -> Array:
        """Return the angles (3,) of a rotation (3, 3), each shifted by multiples of 2 pi to be nearest to theta.

        The second set of angles of every rotation, on the other side of a singularity, is ignored.
        """
        near, angles = self._numbers(theta), self.parameters(R)
        return np.asarray(angles + 2 * np.pi * np.round((near - angles) / (2 * np.pi)))

    def distance_to_singularity(self, theta: ArrayLike) -> float:
        """Return the distance (rad) of the middle angle to the nearest one at which the outer axes are parallel."""
        b = self._numbers(theta)[1]
        return float(np.arcsin(min(1.0, abs(np.sin(b) if self._last == self._i else np.cos(b)))))


ROLL_PITCH_YAW = EulerAngles("xyz", fixed=True, symbols=("roll", "pitch", "yaw"))
"""``R = Rz(yaw) Ry(pitch) Rx(roll)``: roll, pitch and yaw of files and S0 table I."""

ZYX, XYZ, ZYZ, ZXZ = EulerAngles("zyx"), EulerAngles("xyz"), EulerAngles("zyz"), EulerAngles("zxz")
"""The intrinsic sets of S1 section 2.4.5."""
