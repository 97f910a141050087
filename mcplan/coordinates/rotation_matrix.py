"""The rotation matrix as nine coordinates with six constraints, without singularities."""

import numpy as np
from numpy.typing import ArrayLike

from mcplan.coordinates.chart import Array, Axes, RotationChart, numbers
from mcplan.model.pose import cross_matrix

PAIRS = tuple((i, j) for i in range(3) for j in range(i, 3))
"""The six products of columns that ``R' R = 1`` fixes."""


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

        It equals S0 eq. 10 on rates that keep R a rotation, and is zero across them, which eq. 10 is not.
        """
        R = self.rotation(theta)
        E = np.empty((3, 3, 3))
        for i in range(3):
            E[:, :, i] = 0.5 * cross_matrix(R[:, i])
        return self._in_axes(theta, E.reshape(3, 9), axes)

    def _world_rate(self, theta: Array, rate: Array) -> Array:
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
        return np.array([R[:, i] @ R[:, j] - (i == j) for i, j in PAIRS])

    def constraint_rows(self, theta: ArrayLike) -> Array:
        """Return half the gradient (6, 9) of the constraint."""
        R = self.rotation(theta)
        rows = np.zeros((6, 3, 3))
        for row, (i, j) in zip(rows, PAIRS, strict=True):
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
