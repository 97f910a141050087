"""Charts of rotations without singularities: unit quaternion (one constraint) and rotation matrix (six constraints).

S0 and S1: `docs/sources.md`.
"""

import numpy as np
from numpy.typing import ArrayLike

from mcplan.core.algebra.rotation import matrix_to_quaternion, quaternion_normalise
from mcplan.errors import InputError
from mcplan.robot.pose import cross_matrix
from mcplan.textbook.coordinates.chart import Array, Axes, RotationChart, numbers, unit_quaternion


class UnitQuaternion(RotationChart):
    """``theta = (w, x, y, z)``, w the real part (S0 eq. 11, S1 eq. 2.51 to 2.55 and 2.94 to 2.99)."""

    name = "unit quaternion"
    symbols = ("w", "x", "y", "z")

    def rotation(self, theta: ArrayLike) -> Array:
        """Return R (3, 3) by S0 eq. 11, a rotation if theta has unit length."""
        a, b, c, d = self._numbers(theta)
        return np.array(
            [
                [2 * (a * a + b * b) - 1, 2 * (b * c - a * d), 2 * (b * d + a * c)],
                [2 * (b * c + a * d), 2 * (a * a + c * c) - 1, 2 * (c * d - a * b)],
                [2 * (b * d - a * c), 2 * (c * d + a * b), 2 * (a * a + d * d) - 1],
            ]
        )

    def parameters(self, R: ArrayLike) -> Array:
        """Return the quaternion with ``w >= 0`` (4,)."""
        quat = np.empty(4)
        matrix_to_quaternion(numbers(R, (3, 3), "rotation"), quat)
        return quat

    def _equivalent(self, theta: Array) -> list[Array]:
        """Return the opposite quaternion, which is the same rotation."""
        return [-theta]

    def derivatives(self, theta: ArrayLike) -> Array:
        """Return ``dR / dtheta`` (3, 3, 4): S0 eq. 12."""
        a, b, c, d = self._numbers(theta)
        columns = [
            [[2 * a, 2 * b, 0, 0], [d, c, b, a], [-c, d, -a, b]],
            [[-d, c, b, -a], [2 * a, 0, 2 * c, 0], [b, a, d, c]],
            [[c, d, a, b], [-b, -a, d, c], [2 * a, 0, 0, 2 * d]],
        ]
        return 2.0 * np.array(columns).transpose(1, 0, 2)

    def E(self, theta: ArrayLike, axes: Axes = "world") -> Array:
        """Return ``E = 2 [-e, w 1 + [e x]]`` (3, 4): S1 eq. 2.98.

        It equals S0 eq. 10 for rates tangent to the unit sphere. For rates normal to it, it is zero, unlike eq. 10.
        """
        w, x, y, z = self._numbers(theta)
        E = 2.0 * np.array([[-x, w, -z, y], [-y, z, w, -x], [-z, -y, x, w]])
        return self._in_axes(theta, E, axes)

    def _world_rate(self, theta: Array, rate: Array) -> Array:
        """Return ``E(rate)``: E is linear in theta."""
        return self.E(rate)

    def _world_inverse(self, theta: Array) -> Array:
        """Return ``E' / 4``: S1 eq. 2.99."""
        return 0.25 * self.E(theta).T

    def distance_to_singularity(self, theta: ArrayLike) -> float:
        """Return infinity: there is none."""
        return float("inf")

    def constraint(self, theta: ArrayLike) -> Array:
        """Return ``theta' theta - 1`` (1,): S0 eq. 28."""
        theta = self._numbers(theta)
        return np.array([theta @ theta - 1.0])

    def constraint_rows(self, theta: ArrayLike) -> Array:
        """Return ``theta'`` (1, 4): S0 eq. 30."""
        return self._numbers(theta)[None, :].copy()

    def nearest(self, theta: ArrayLike) -> Array:
        """Return theta at unit length.

        Raises
        ------
        InputError : its length is zero.
        """
        theta, out = self._numbers(theta), np.empty(4)
        if not theta.any():
            raise InputError("unit quaternion: w x y z are all zero, which is no rotation")
        quaternion_normalise(theta, out)
        return out

    def from_quaternion(self, quat: ArrayLike) -> Array:
        """Return the quaternion itself, with its sign."""
        return unit_quaternion(quat).copy()

    def to_quaternion(self, theta: ArrayLike) -> Array:
        """Return theta at unit length, with its sign."""
        return self.nearest(theta)


UNIT_QUATERNION = UnitQuaternion()


COLUMN_PAIRS = tuple((i, j) for i in range(3) for j in range(i, 3))
"""Pairs (i, j) of columns of R: their six inner products are the constraints ``R' R = 1``."""


class RotationMatrix(RotationChart):
    """``theta`` (9,) is R row by row; ``R' R = 1`` (S0 tables I and II, last row; six constraints, each once)."""

    name = "rotation matrix"
    symbols = tuple(f"r{i}{j}" for i in (1, 2, 3) for j in (1, 2, 3))

    def rotation(self, theta: ArrayLike) -> Array:
        """Return theta as a matrix (3, 3)."""
        return self._numbers(theta).reshape(3, 3).copy()

    def parameters(self, R: ArrayLike) -> Array:
        """Return R row by row (9,)."""
        return numbers(R, (3, 3), "rotation").reshape(9).copy()

    def derivatives(self, theta: ArrayLike) -> Array:
        """Return ``dR / dtheta`` (3, 3, 9): ones and zeros."""
        self._numbers(theta)
        return np.eye(9).reshape(3, 3, 9)

    def E(self, theta: ArrayLike, axes: Axes = "world") -> Array:
        """Return E (3, 9) of ``omega = sum R_i x dR_i / 2`` over the columns.

        It equals S0 eq. 10 for rates that keep R a rotation. For rates normal to these it is zero, unlike eq. 10.
        """
        R = self.rotation(theta)
        E = np.empty((3, 3, 3))
        for i in range(3):
            E[:, :, i] = 0.5 * cross_matrix(R[:, i])
        return self._in_axes(theta, E.reshape(3, 9), axes)

    def _world_rate(self, theta: Array, rate: Array) -> Array:
        """Return ``E(rate)``: E is linear in theta."""
        return self.E(rate)

    def _world_inverse(self, theta: Array) -> Array:
        """Return ``2 E'``: each column of R moves by ``omega x R_i``."""
        return 2.0 * self.E(theta).T

    def distance_to_singularity(self, theta: ArrayLike) -> float:
        """Return infinity: there is none."""
        return float("inf")

    def constraint(self, theta: ArrayLike) -> Array:
        """Return the six different entries of ``R' R - 1``: S0 table II."""
        R = self.rotation(theta)
        return np.array([R[:, i] @ R[:, j] - (i == j) for i, j in COLUMN_PAIRS])

    def constraint_rows(self, theta: ArrayLike) -> Array:
        """Return half the gradient (6, 9) of the constraint."""
        R = self.rotation(theta)
        rows = np.zeros((6, 3, 3))
        for row, (i, j) in zip(rows, COLUMN_PAIRS, strict=True):
            row[:, i] += 0.5 * R[:, j]
            row[:, j] += 0.5 * R[:, i]
        return rows.reshape(6, 9)

    def nearest(self, theta: ArrayLike) -> Array:
        """Return the rotation nearest to theta in all nine numbers: ``U V'`` of ``R = U S V'``."""
        U, _, Vt = np.linalg.svd(self.rotation(theta))
        return np.asarray(U @ Vt, dtype=np.float64).reshape(9)

    def to_quaternion(self, theta: ArrayLike) -> Array:
        """Return the unit quaternion of the nearest rotation."""
        return super().to_quaternion(self.nearest(theta))


ROTATION_MATRIX = RotationMatrix()
