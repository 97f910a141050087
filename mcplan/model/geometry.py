"""Shapes of links and obstacles, and where they sit."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from mcplan.short import short

Role = Literal["visual", "collision", "both"]


@dataclass(frozen=True)
class Box:
    """A box centred on its frame; ``size`` holds the full edge lengths (m)."""

    size: tuple[float, float, float]


@dataclass(frozen=True)
class Sphere:
    """A sphere centred on its frame; radius in m."""

    radius: float


@dataclass(frozen=True)
class Cylinder:
    """A cylinder along z, centred on its frame; radius and full length in m."""

    radius: float
    length: float


@dataclass(frozen=True)
class Capsule:
    """A cylinder along z of this length with a half sphere on both ends, centred on its frame (m)."""

    radius: float
    length: float


@dataclass(frozen=True, eq=False)
class MeshShape:
    """Triangles; ``vertices`` (k,3) in m with any scale applied, ``faces`` (m,3) indices."""

    vertices: np.ndarray
    faces: np.ndarray

    __repr__ = short


Shape = Box | Sphere | Cylinder | Capsule | MeshShape


@dataclass(frozen=True, eq=False)
class Geometry:
    """One shape on a link (or in the world): its pose there, what it is for, and its colour.

    Parameters
    ----------
    shape : the shape in its own frame.
    R, p : rotation (3,3) and position (3,) of the shape's frame in the link.
    role : seen, collided with, or both.
    color : red, green, blue, opacity in [0, 1], or None.
    patch : that it stands for, empty for a shape of a file.
    """

    shape: Shape
    R: np.ndarray
    p: np.ndarray
    role: Role = "both"
    color: tuple[float, float, float, float] | None = None
    patch: str = ""
