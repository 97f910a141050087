"""Coordinates of a point in space: Cartesian, cylindrical, spherical (S1 sections 2.2 and 2.3).

S1: `docs/sources.md`.
"""

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike

from mcplan.errors import InputError
from mcplan.textbook.coordinates.chart import MIN_SINGULARITY_DISTANCE, Array, numbers


class PositionChart(ABC):
    """Three numbers chi for a point: ``r = r(chi)``,  ``r_rate = E(chi) chi_rate`` (S1 eq. 2.10).

    Attributes
    ----------
    name : name of the chart.
    symbols : a name for each coordinate.
    """

    name: str
    symbols: tuple[str, str, str]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self.symbols)})"

    @property
    def size(self) -> int:
        """Number of coordinates: three."""
        return 3

    @abstractmethod
    def position(self, chi: ArrayLike) -> Array:
        """Return r (3,), m."""

    @abstractmethod
    def parameters(self, r: ArrayLike) -> Array:
        """Return chi (3,) of a position (3,)."""

    @abstractmethod
    def E(self, chi: ArrayLike) -> Array:
        """Return ``E = dr / dchi`` (3, 3)."""

    @abstractmethod
    def E_rate(self, chi: ArrayLike, rate: ArrayLike) -> Array:
        """Return the rate of E (3, 3): ``r_rate_rate = E chi_rate_rate + E_rate chi_rate``."""

    @abstractmethod
    def distance_to_singularity(self, chi: ArrayLike) -> float:
        """Return the distance (m) of the point to a rank loss of E; infinite without singularities."""

    def E_inverse(self, chi: ArrayLike) -> Array:
        """Return the inverse of E (3, 3), the map from velocity to rates (S1 eq. 2.11).

        Raises
        ------
        InputError : the coordinates are singular at this point.
        """
        chi = self._numbers(chi)
        distance = self.distance_to_singularity(chi)
        if distance < MIN_SINGULARITY_DISTANCE:
            values = ", ".join(f"{s} = {x:.6g}" for s, x in zip(self.symbols, chi, strict=True))
            raise InputError(
                f"{self.name} coordinates: {values} is {distance:.3g} m from the axis, where they are singular; "
                f"expected at least {MIN_SINGULARITY_DISTANCE:g} m"
            )
        return np.asarray(np.linalg.inv(self.E(chi)), dtype=np.float64)

    def _numbers(self, chi: ArrayLike) -> Array:
        return numbers(chi, (3,), f"{self.name} coordinates")


class Cartesian(PositionChart):
    """``x, y, z`` (S1 eq. 2.3, 2.4, 2.12)."""

    name = "Cartesian"
    symbols = ("x", "y", "z")

    def position(self, chi: ArrayLike) -> Array:
        """Return chi itself."""
        return self._numbers(chi).copy()

    def parameters(self, r: ArrayLike) -> Array:
        """Return r itself."""
        return numbers(r, (3,), "position").copy()

    def E(self, chi: ArrayLike) -> Array:
        """Return the identity."""
        return np.eye(3)

    def E_rate(self, chi: ArrayLike, rate: ArrayLike) -> Array:
        """Return zeros."""
        return np.zeros((3, 3))

    def distance_to_singularity(self, chi: ArrayLike) -> float:
        """Return infinity: there is none."""
        return float("inf")


class Cylindrical(PositionChart):
    """``rho, theta, z``: distance from the z axis, angle about it from x, height (S1 eq. 2.5, 2.6, 2.13 to 2.15)."""

    name = "cylindrical"
    symbols = ("rho", "theta", "z")

    def position(self, chi: ArrayLike) -> Array:
        """Return ``(rho cos theta, rho sin theta, z)``."""
        rho, theta, z = self._numbers(chi)
        return np.array([rho * np.cos(theta), rho * np.sin(theta), z])

    def parameters(self, r: ArrayLike) -> Array:
        """Return chi with ``rho >= 0`` and theta within pi."""
        x, y, z = numbers(r, (3,), "position")
        return np.array([np.hypot(x, y), np.arctan2(y, x), z])

    def E(self, chi: ArrayLike) -> Array:
        """Return S1 eq. 2.15."""
        rho, theta, _ = self._numbers(chi)
        c, s = np.cos(theta), np.sin(theta)
        return np.array([[c, -rho * s, 0], [s, rho * c, 0], [0, 0, 1.0]])

    def E_rate(self, chi: ArrayLike, rate: ArrayLike) -> Array:
        """Return the rate of S1 eq. 2.15."""
        rho, theta, _ = self._numbers(chi)
        drho, dtheta, _ = self._numbers(rate)
        c, s = np.cos(theta), np.sin(theta)
        return np.array(
            [
                [-s * dtheta, -drho * s - rho * c * dtheta, 0],
                [c * dtheta, drho * c - rho * s * dtheta, 0],
                [0, 0, 0.0],
            ]
        )

    def distance_to_singularity(self, chi: ArrayLike) -> float:
        """Return the distance from the z axis, m."""
        return abs(float(self._numbers(chi)[0]))


class Spherical(PositionChart):
    """``r, theta, phi``: distance, azimuth from x, polar angle from z (S1 eq. 2.7, 2.8, 2.16, 2.17)."""

    name = "spherical"
    symbols = ("r", "theta", "phi")

    def position(self, chi: ArrayLike) -> Array:
        """Return ``r (cos theta sin phi, sin theta sin phi, cos phi)``."""
        r, theta, phi = self._numbers(chi)
        return np.array([r * np.cos(theta) * np.sin(phi), r * np.sin(theta) * np.sin(phi), r * np.cos(phi)])

    def parameters(self, r: ArrayLike) -> Array:
        """Return chi with ``r >= 0``, theta within pi, phi from 0 to pi."""
        x, y, z = numbers(r, (3,), "position")
        radius = np.hypot(x, y)
        return np.array([np.hypot(radius, z), np.arctan2(y, x), np.arctan2(radius, z)])

    def E(self, chi: ArrayLike) -> Array:
        """Return S1 eq. 2.16."""
        r, theta, phi = self._numbers(chi)
        ct, st, cp, sp = np.cos(theta), np.sin(theta), np.cos(phi), np.sin(phi)
        return np.array([[ct * sp, -r * sp * st, r * cp * ct], [sp * st, r * ct * sp, r * cp * st], [cp, 0, -r * sp]])

    def E_rate(self, chi: ArrayLike, rate: ArrayLike) -> Array:
        """Return the rate of S1 eq. 2.16."""
        r, theta, phi = self._numbers(chi)
        dr, dt, dp = self._numbers(rate)
        ct, st, cp, sp = np.cos(theta), np.sin(theta), np.cos(phi), np.sin(phi)
        return np.array(
            [
                [
                    -st * sp * dt + ct * cp * dp,
                    -dr * sp * st - r * cp * st * dp - r * sp * ct * dt,
                    dr * cp * ct - r * sp * ct * dp - r * cp * st * dt,
                ],
                [
                    ct * sp * dt + st * cp * dp,
                    dr * ct * sp - r * st * sp * dt + r * ct * cp * dp,
                    dr * cp * st - r * sp * st * dp + r * cp * ct * dt,
                ],
                [-sp * dp, 0.0, -dr * sp - r * cp * dp],
            ]
        )

    def distance_to_singularity(self, chi: ArrayLike) -> float:
        """Return the distance from the z axis, m."""
        r, _, phi = self._numbers(chi)
        return abs(float(r * np.sin(phi)))


CARTESIAN, CYLINDRICAL, SPHERICAL = Cartesian(), Cylindrical(), Spherical()
