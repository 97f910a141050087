"""Rotation charts: the rotation, the map from rates to angular velocity, singularities and constraints.

S0 is Bouyarmane and Kheddar (2012), "Free-floating-base dynamics"; S1 the lecture notes "Robot Dynamics" of ETH Zurich
(`docs/sources.md`).
"""

from abc import ABC, abstractmethod
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mcplan.core.algebra.rotation import matrix_to_quaternion, quaternion_to_matrix
from mcplan.core.bundle import QUATERNION_TOLERANCE
from mcplan.errors import InputError
from mcplan.robot.pose import cross_matrix
from mcplan.util.arguments import describe

Array = NDArray[np.float64]

Axes = Literal["world", "base"]
"""Axes of an angular velocity: those of the world, or of the rotating frame."""

MIN_SINGULARITY_DISTANCE = 1e-9
"""Smallest distance to a singularity (rad, m) at which the inverse map is computed. Nearer, its condition number
exceeds 1e9."""


def real(value: ArrayLike, name: str) -> Array:
    """Return ``value`` as an array of any shape.

    Raises
    ------
    InputError : it is ragged, or an entry is not finite.
    """
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} = {describe(value)}; expected an array of numbers") from None
    if not np.isfinite(array).all():
        raise InputError(f"{name} = {array} is not finite")
    return array


def numbers(value: ArrayLike, shape: tuple[int | None, ...], name: str) -> Array:
    """Return ``value`` as an array of a given shape, in which None is any length.

    Raises
    ------
    InputError : it has another shape, or an entry is not finite.
    """
    array = np.ascontiguousarray(real(value, name))
    if array.shape != shape and (
        array.ndim != len(shape) or any(n not in (m, None) for n, m in zip(shape, array.shape, strict=True))
    ):
        expected = str(shape).replace("None", "k")
        raise InputError(f"{name} has the shape {array.shape}; expected {expected}")
    return array


def unit_quaternion(value: ArrayLike, name: str = "quaternion") -> Array:
    """Return a quaternion w x y z (4,).

    Raises
    ------
    InputError : it is not four numbers, or its length is not 1.
    """
    quat = numbers(value, (4,), name)
    length = float(np.linalg.norm(quat))
    if abs(length - 1.0) > QUATERNION_TOLERANCE:
        raise InputError(f"{name} w x y z has the length {length:.9g}; expected 1")
    return quat


def angular_map(R: Array, dR: Array) -> Array:
    """Return ``R3 R2' dR1 + R1 R3' dR2 + R2 R1' dR3`` (3, d), from a chart's rates to angular velocity: S0 eq. 10.

    Parameters
    ----------
    R : (3, 3) rotation.
    dR : (3, 3, d) its derivatives by the chart's numbers.
    """
    summands = (np.outer(R[:, (i + 2) % 3], R[:, (i + 1) % 3]) @ dR[:, i] for i in range(3))
    return np.asarray(sum(summands), dtype=np.float64)


class RotationChart(ABC):
    """Parameterization of rotations by numbers theta (d,), S0 table I and S1 section 2.4.5.

    ``R = rho(theta)``,  ``omega = E(theta) theta_rate``                              (S0 eq. 2 and S1 eq. 2.82)

    ``E`` is ``J_omega`` of S0. Charts with more than three numbers have ``d - 3`` constraints (S0 table II); ``E``
    applies to rates tangent to them.

    Attributes
    ----------
    name : name of the chart.
    symbols : a name for each parameter.
    """

    name: str
    symbols: tuple[str, ...]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self.symbols)})"

    @property
    def size(self) -> int:
        """Number of parameters: d."""
        return len(self.symbols)

    @abstractmethod
    def rotation(self, theta: ArrayLike) -> Array:
        """Return ``R = rho(theta)`` (3, 3), from the axes of the rotating frame to the world."""

    @abstractmethod
    def parameters(self, R: ArrayLike) -> Array:
        """Return theta (d,) of a rotation (3, 3)."""

    def _equivalent(self, theta: Array) -> list[Array]:
        """Return other parameters of the same rotation."""
        return []

    def parameters_near(self, R: ArrayLike, theta: ArrayLike) -> Array:
        """Return the parameters (d,) of a rotation (3, 3); if they are not unique, those nearest to theta.

        They change continuously with the rotation.
        """
        near, principal = self._numbers(theta), self.parameters(R)
        candidates = [principal, *self._equivalent(principal)]
        return min(candidates, key=lambda candidate: float(np.linalg.norm(candidate - near)))

    def derivatives(self, theta: ArrayLike) -> Array:
        """Return ``dR / dtheta`` (3, 3, d): the derivative of column i of R is ``-[R_i x] E`` (S0 eq. 6)."""
        R, E = self.rotation(theta), self.E(theta)
        return np.stack([np.cross(E.T, R[:, i]).T for i in range(3)], axis=1)

    def E(self, theta: ArrayLike, axes: Axes = "world") -> Array:
        """Return ``E`` (3, d), the map from the rate of theta to angular velocity, rad/s per unit of theta.

        ``E = R3 R2' dR1 + R1 R3' dR2 + R2 R1' dR3`` (S0 eq. 10); in the axes of the frame ``R' E`` (S0 eq. 13).
        """
        return self._in_axes(theta, angular_map(self.rotation(theta), self.derivatives(theta)), axes)

    @abstractmethod
    def _world_rate(self, theta: Array, rate: Array) -> Array:
        """Return the rate of E (3, d) in world axes."""

    def E_rate(self, theta: ArrayLike, rate: ArrayLike, axes: Axes = "world") -> Array:
        """Return the rate of ``E`` (3, d) in a motion: ``omega_rate = E theta_rate_rate + E_rate theta_rate``.

        In the axes of the frame it is ``R' (E_rate - [omega x] E)``.
        """
        theta, rate = self._numbers(theta), numbers(rate, (self.size,), f"rate of {self.name}")
        Edot = self._world_rate(theta, rate)
        if axes == "base":
            E = self.E(theta)
            Edot = Edot - cross_matrix(E @ rate) @ E
        return self._in_axes(theta, Edot, axes)

    def E_inverse(self, theta: ArrayLike, axes: Axes = "world") -> Array:
        """Return the map (d, 3) from angular velocity to rates tangent to the constraints: ``E E_inverse = 1``.

        Raises
        ------
        InputError : the chart is singular at theta.
        """
        theta = self._numbers(theta)
        self.require_regular(theta)
        inverse = self._world_inverse(theta)
        return inverse @ self.rotation(theta) if axes == "base" else inverse

    def _world_inverse(self, theta: Array) -> Array:
        """Return the inverse of E in world axes (d, 3)."""
        return np.asarray(np.linalg.inv(self.E(theta)), dtype=np.float64)

    @abstractmethod
    def distance_to_singularity(self, theta: ArrayLike) -> float:
        """Return the distance (rad) of theta to a rank loss of E; infinite for a chart without singularities."""

    def require_regular(self, theta: ArrayLike, distance: float = MIN_SINGULARITY_DISTANCE) -> None:
        """Raise an error if theta is within a distance (rad) of a singularity.

        Raises
        ------
        InputError : theta is nearer than ``distance``.
        """
        actual = self.distance_to_singularity(theta)
        if actual < distance:
            values = ", ".join(f"{s} = {x:.6g}" for s, x in zip(self.symbols, np.asarray(theta), strict=True))
            raise InputError(
                f"{self.name}: {values} is {actual:.3g} rad from a singularity, expected {distance:.3g} at least: "
                "there an angular velocity has no rates; take another chart"
            )

    def constraint(self, theta: ArrayLike) -> Array:
        """Return ``C(theta)`` (d - 3,), zero on rotations (S0 table II)."""
        return np.zeros(self.size - 3)

    def constraint_rows(self, theta: ArrayLike) -> Array:
        """Return half the gradient of C (d - 3, d), which is linear in theta.

        With it S0 eq. 30 reads ``rows(theta) theta_rate_rate + rows(theta_rate) theta_rate = 0``.
        """
        return np.zeros((self.size - 3, self.size))

    def projector(self, theta: ArrayLike) -> Array:
        """Return the projector ``1 - c' (c c')^-1 c`` (d, d) onto the tangent space of the constraint with rows c."""
        rows = self.constraint_rows(theta)
        return np.asarray(np.eye(self.size) - rows.T @ np.linalg.solve(rows @ rows.T, rows))

    def nearest(self, theta: ArrayLike) -> Array:
        """Return the nearest theta (d,) that satisfies the constraints."""
        return self._numbers(theta).copy()

    def from_quaternion(self, quat: ArrayLike) -> Array:
        """Return theta (d,) of a unit quaternion w x y z (4,)."""
        R = np.empty((3, 3))
        quaternion_to_matrix(unit_quaternion(quat), R)
        return self.parameters(R)

    def to_quaternion(self, theta: ArrayLike) -> Array:
        """Return a unit quaternion w x y z (4,) of theta."""
        quat = np.empty(4)
        matrix_to_quaternion(self.rotation(theta), quat)
        return quat

    def _numbers(self, theta: ArrayLike) -> Array:
        """Return theta as an array (d,) of finite numbers."""
        return numbers(theta, (self.size,), self.name)

    def _in_axes(self, theta: ArrayLike, E: Array, axes: Axes) -> Array:
        """Return E, given in world axes, in the axes of the world or of the rotating frame."""
        if axes not in ("world", "base"):
            raise InputError(f"axes = {axes!r}; expected 'world' or 'base'")
        return E if axes == "world" else self.rotation(theta).T @ E
