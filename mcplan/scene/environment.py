"""What stands around the robot: surfaces and bars to touch, obstacles to avoid, objects to move."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from mcplan.errors import InputError
from mcplan.model.pose import quat_from_rotation, rotation_from_quat

if TYPE_CHECKING:
    from mcplan.model.geometry import Shape


@dataclass(frozen=True, eq=False)
class Surface:
    """A planar convex patch where contact is allowed: the top of a solid slab.

    Parameters
    ----------
    name : unique among surfaces and bars.
    R, p : rotation (3,3) and position (3,) of the surface frame in the world; its z axis is the outward normal.
    polygon : (k,2) corners in the surface frame, counter-clockwise, m.
    thickness : of the slab below the polygon, m.
    friction : Coulomb coefficient.
    owner : name of the object that carries the surface, or None.
    """

    name: str
    R: np.ndarray
    p: np.ndarray
    polygon: np.ndarray
    thickness: float = 0.05
    friction: float = 0.7
    owner: str | None = None

    @property
    def normal(self) -> np.ndarray:
        """Outward normal (3,) in the world."""
        return self.R[:, 2]

    @property
    def corners(self) -> np.ndarray:
        """Corners (k,3) in the world."""
        return self.p + self.polygon @ self.R[:, :2].T


@dataclass(frozen=True, eq=False)
class Bar:
    """A round bar: it can be grasped, stood on, or leant on.

    Parameters
    ----------
    name : unique among surfaces and bars.
    ends : (2,3) ends of the axis in the world, m.
    radius : m.
    friction : Coulomb coefficient, for contacts that are not grasps.
    max_force : largest force of a grasp (N) instead of the patch's; None: the patch's.
    """

    name: str
    ends: np.ndarray
    radius: float
    friction: float = 0.7
    max_force: float | None = None

    @property
    def length(self) -> float:
        """Length of the axis (m)."""
        return float(np.linalg.norm(self.ends[1] - self.ends[0]))

    @property
    def direction(self) -> np.ndarray:
        """Unit vector (3,) from the first end to the second."""
        return (self.ends[1] - self.ends[0]) / self.length


@dataclass(frozen=True, eq=False)
class Obstacle:
    """A solid that only collides: its shape and the pose ``R`` (3,3), ``p`` (3,) of the shape's frame."""

    name: str
    shape: "Shape"
    R: np.ndarray
    p: np.ndarray


@dataclass(frozen=True, eq=False)
class SceneObject:
    """A free-floating solid with surfaces of its own.

    Parameters
    ----------
    shape, R, p : its shape and initial pose.
    mass : kg.
    friction : of its hull against the environment.
    surfaces : in world coordinates at the initial pose; ``owner`` is this object's name.
    """

    name: str
    shape: "Shape"
    R: np.ndarray
    p: np.ndarray
    mass: float
    friction: float
    surfaces: tuple[Surface, ...] = ()

    @property
    def pose(self) -> np.ndarray:
        """Position and quaternion w x y z (7,) in the world."""
        return np.array([*self.p, *quat_from_rotation(self.R)])

    def placed(self, pose: np.ndarray) -> "SceneObject":
        """Return the object with its surfaces at another pose (7,)."""
        p, R = pose[:3], rotation_from_quat(pose[3:])
        turn = R @ self.R.T
        surfaces = tuple(replace(s, R=turn @ s.R, p=p + turn @ (s.p - self.p)) for s in self.surfaces)
        return replace(self, R=R, p=p, surfaces=surfaces)


Support = Surface | Bar


@dataclass(frozen=True, eq=False)
class Environment:
    """Everything around the robot; a surface of an object is found by its name like any other."""

    surfaces: tuple[Surface, ...] = ()
    bars: tuple[Bar, ...] = ()
    obstacles: tuple[Obstacle, ...] = ()
    objects: tuple[SceneObject, ...] = ()
    supports: dict[str, Support] = field(init=False, repr=False)

    def __post_init__(self):
        owned = [surface for thing in self.objects for surface in thing.surfaces]
        object.__setattr__(self, "supports", {s.name: s for s in (*self.surfaces, *owned, *self.bars)})

    @property
    def owners(self) -> dict[str, str]:
        """Names of the objects that carry surfaces, by the surface's name."""
        return {surface.name: thing.name for thing in self.objects for surface in thing.surfaces}

    def placed(self, poses: Mapping[str, np.ndarray]) -> "Environment":
        """Return the environment with some of its objects at other poses (7,)."""
        if not poses:
            return self
        unknown = sorted(set(poses) - {thing.name for thing in self.objects})
        if unknown:
            known = ", ".join(thing.name for thing in self.objects) or "none"
            raise InputError(f"there is no object `{unknown[0]}`; there are: {known}")
        objects = (thing.placed(poses[thing.name]) if thing.name in poses else thing for thing in self.objects)
        return replace(self, objects=tuple(objects))

    def support(self, name: str) -> Support:
        """Return the surface or bar of that name."""
        if name not in self.supports:
            raise InputError(f"there is no surface or bar `{name}`; there are: {', '.join(self.supports) or 'none'}")
        return self.supports[name]
