"""What is near what: the answers of a CollisionModel."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

ALLOWED_PENETRATION = 0.002
"""How deep a link may sink into the support that one of its patches rests on (m)."""


class Pair(NamedTuple):
    """Two shapes by the names of what they belong to: a link, and a link or something in the environment.

    ``in_contact`` tells that a patch of this link rests on it.
    """

    a: str
    b: str
    in_contact: bool = False

    def __str__(self) -> str:
        return f"{self.a} and {self.b}"


class Distance(NamedTuple):
    """One pair: signed distance (m), unit normal from b to a, nearest points of a and of b, all in the world."""

    pair: Pair
    distance: float
    normal: np.ndarray
    point_a: np.ndarray
    point_b: np.ndarray


@dataclass(frozen=True, eq=False)
class Distances:
    """Pairs within a margin, in the model's order: ``distance = normal' (point_a - point_b)``.

    Parameters
    ----------
    pairs : (k) names; links with several shapes come up once for each of them.
    distance : (k,) signed, m.
    normal : (k,3) unit vectors from b to a.
    point_a, point_b : (k,3) nearest points, or the deepest ones where the shapes overlap, m.
    """

    pairs: tuple[Pair, ...]
    distance: np.ndarray
    normal: np.ndarray
    point_a: np.ndarray
    point_b: np.ndarray

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, i: int) -> Distance:
        return Distance(self.pairs[i], float(self.distance[i]), self.normal[i], self.point_a[i], self.point_b[i])

    @property
    def room(self) -> np.ndarray:
        """Distance to what is allowed (k,): contact for most, ``ALLOWED_PENETRATION`` for a link and its support."""
        return self.distance + ALLOWED_PENETRATION * np.array([pair.in_contact for pair in self.pairs], float)


class ConstraintRows(NamedTuple):
    """Rows for a solver: no pair comes nearer than it may as long as ``distance + rows @ dv >= 0``.

    ``distance`` (k,) is what remains above the clearance asked for (above minus ``ALLOWED_PENETRATION`` for a link and
    its support), ``rows`` (k, nv) its derivative with respect to v, ``pairs`` (k) the names.
    """

    distance: np.ndarray
    rows: np.ndarray
    pairs: tuple[Pair, ...]
