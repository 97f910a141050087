"""Data model of a URDF: links, joints, inertias, shapes and materials, before anything is merged or numbered.

An independent check can recompute the dynamics from these values alone.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from mcplan.util.text import summary

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
    """A cylinder along z with a half sphere on both ends, centred on its frame; radius and cylinder length in m."""

    radius: float
    length: float


@dataclass(frozen=True, eq=False)
class MeshShape:
    """A triangle mesh: ``vertices`` (k,3) in m, scaled, and ``faces`` (m,3) with their indices."""

    vertices: np.ndarray
    faces: np.ndarray

    __repr__ = summary


Shape = Box | Sphere | Cylinder | Capsule | MeshShape


@dataclass(frozen=True, eq=False)
class Geometry:
    """One shape on a link or in the world, with pose, role and colour.

    Parameters
    ----------
    shape : the shape in its own frame.
    R, p : rotation (3,3) and position (3,) of the shape's frame in the link.
    role : visual, collision, or both.
    color : red, green, blue, opacity in [0, 1], or None.
    patch : name of the patch that the shape was added for; empty for a shape of the URDF.
    """

    shape: Shape
    R: np.ndarray
    p: np.ndarray
    role: Role = "both"
    color: tuple[float, float, float, float] | None = None
    patch: str = ""


JointType = Literal["revolute", "continuous", "prismatic", "ball", "fixed"]


class RobotWarning(UserWarning):
    """The robot file is usable, but its content is doubtful: a non-physical inertia, a missing visual mesh."""


@dataclass(frozen=True, eq=False)
class Inertia:
    """Mass (kg), centre of mass (3,) in the link, inertia at the centre of mass (3,3) in the link's axes (kg m²)."""

    mass: float
    com: np.ndarray
    matrix: np.ndarray


@dataclass(frozen=True, eq=False)
class Link:
    """One ``<link>``, on a line of the file; ``inertia`` is None for a massless link."""

    name: str
    line: int
    inertia: Inertia | None
    geometry: tuple[Geometry, ...] = ()


@dataclass(frozen=True)
class Mimic:
    """Coupling of a mimic joint to another: ``position = multiplier * position of joint + offset``."""

    joint: str
    multiplier: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True, eq=False)
class Joint:
    """One ``<joint>``.

    ``R`` (3,3) and ``p`` (3,) place the joint's frame (the child link's frame at position zero) in the parent link;
    ``axis`` is a unit vector in the joint's frame. Limits are in rad or m, rad/s or m/s, N m or N; infinite where the
    file gives none. A ball joint of the file becomes three of these, one per coordinate, with massless links between
    them: ``part`` 0, 1 and 2 are the components of its rotation vector along x, y and z.
    """

    name: str
    line: int
    type: JointType
    parent: str
    child: str
    R: np.ndarray
    p: np.ndarray
    axis: np.ndarray
    lower: float = -np.inf
    upper: float = np.inf
    velocity: float = np.inf
    effort: float = np.inf
    damping: float = 0.0
    friction: float = 0.0
    mimic: Mimic | None = None

    @property
    def part(self) -> int:
        """Component of the rotation vector that is the coordinate of this part of a ball joint."""
        return int(np.argmax(self.axis))


def joint_unit(kind: str | None) -> str:
    """Return the unit of a joint's position: ``m`` for prismatic joints, ``rad`` for others."""
    return "m" if kind == "prismatic" else "rad"


@dataclass(frozen=True, eq=False)
class UrdfModel:
    """Content of a URDF file. ``links`` and ``joints`` are in depth-first order, siblings in the order of the file."""

    name: str
    path: Path
    root: str
    links: dict[str, Link]
    joints: dict[str, Joint]
    children: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Names of the joints whose parent is a link, by link."""
    meshes: dict[str, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)
    """Vertices (k,3) and faces (m,3) of every mesh, unscaled, by its name in the file."""
    urdf_root: str = ""
    """Root link of the file; ``root`` differs if a robot.yaml sets a base or its axes."""
