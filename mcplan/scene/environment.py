"""Environment: surfaces and bars for contacts, obstacles to avoid, movable objects.

In Python::

    floor = Surface("floor", size=(4, 4))
    table = Surface("table", xyz=(0.6, 0, 0.9), size=(0.4, 1.2), friction=0.6)
    rail = Bar("rail", ends=[(0, 0.5, 0.8), (2, 0.5, 0.8)], radius=0.02)
    post = Obstacle("post", Box((0.1, 0.1, 1.0)), xyz=(1, 0, 0.5))
    environment = Environment([floor, table, rail, post])
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from mcplan.errors import InputError
from mcplan.robot.pose import quat_from_rotation, rotation_from_quat, rotation_from_rpy
from mcplan.scene.polygon import counter_clockwise, outline_error
from mcplan.util.arguments import check_instance, check_vector, describe
from mcplan.util.html_table import html_of, html_table, numbers

if TYPE_CHECKING:
    from mcplan.robot.description import Shape


def _set_attributes(thing: object, **values: object) -> None:
    """Set attributes of an instance of a frozen dataclass."""
    for name, value in values.items():
        object.__setattr__(thing, name, value)


def _named_label(kind: str, name: str) -> str:
    """Check that a name is non-empty text; return ``kind `name` `` for messages."""
    if not check_instance("environment", "name", name, str):
        raise InputError("environment: name: expected a text that is not empty")
    return f"{kind} `{name}`"


def _check_shape(label: str, shape: "Shape") -> "Shape":
    """Return a shape after checking its type and that its lengths are positive."""
    from mcplan.robot.description import Box, Capsule, Cylinder, MeshShape, Sphere

    if not isinstance(shape, Box | Sphere | Capsule | Cylinder | MeshShape):
        expected = "a Box, Sphere, Capsule, Cylinder or MeshShape"
        raise InputError(f"{label}: shape: expected {expected}, not {describe(shape)}")
    if isinstance(shape, Box):
        for length in check_vector(label, "size of its box", shape.size, 3):
            _check_number(label, "size of its box", length, "m", positive=True)
    elif not isinstance(shape, MeshShape):
        for key in ("radius", "length")[: 1 if isinstance(shape, Sphere) else 2]:
            _check_number(label, key, getattr(shape, key), "m", positive=True)
    return shape


def _float_array(label: str, key: str, value: ArrayLike) -> np.ndarray:
    """Return a value as an array of floats, or raise an InputError that names it."""
    try:
        return np.array(value, float)
    except (TypeError, ValueError):
        raise InputError(f"{label}: {key}: expected numbers in m, not {describe(value)}") from None


def _check_number(label: str, key: str, value: float, unit: str = "", positive: bool = False) -> float:
    """Return a number after checking that it is finite and at least 0, or with ``positive`` more than 0."""
    in_unit = f" {unit}" if unit else ""
    if not isinstance(value, int | float | np.floating | np.integer) or not np.isfinite(value):
        raise InputError(f"{label}: {key}: expected a finite number{unit and ' in ' + unit}, not {describe(value)}")
    if value < 0.0 or (positive and value == 0.0):
        raise InputError(f"{label}: {key} is {value:g}{in_unit}, expected {'more than 0' if positive else '0 or more'}")
    return float(value)


def pose_of(
    label: str,
    R: ArrayLike | None,
    p: ArrayLike | None,
    xyz: ArrayLike | None,
    rpy: ArrayLike | None,
    quat_wxyz: ArrayLike | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return rotation (3,3) and position (3,) of a pose in one of these representations; default: the world frame."""
    if p is not None and xyz is not None:
        raise InputError(f"{label}: p and xyz are both given; they are the same position")
    if sum(rotation is not None for rotation in (R, rpy, quat_wxyz)) > 1:
        raise InputError(f"{label}: give one of R, rpy and quat_wxyz; they are the same orientation")
    position = np.zeros(3) if p is None and xyz is None else check_vector(label, "xyz", p if xyz is None else xyz, 3)  # type: ignore[arg-type]
    if rpy is not None:
        return rotation_from_rpy(check_vector(label, "rpy", rpy, 3)), position
    if quat_wxyz is not None:
        quat = check_vector(label, "quat_wxyz", quat_wxyz, 4)
        if abs(np.linalg.norm(quat) - 1.0) > 1e-3:
            raise InputError(f"{label}: quat_wxyz has length {np.linalg.norm(quat):.6g}, expected 1 (within 0.001)")
        return rotation_from_quat(quat), position
    rotation = np.eye(3) if R is None else _float_array(label, "R", R)
    if rotation.shape != (3, 3) or not np.allclose(rotation @ rotation.T, np.eye(3), atol=1e-6):
        raise InputError(f"{label}: R is no rotation matrix (3, 3)")
    return rotation, position


@dataclass(frozen=True, eq=False, init=False)
class Surface:
    """Planar convex polygon where contact is allowed: the top of a solid slab.

    Parameters
    ----------
    name : unique among surfaces and bars.
    R, p : rotation (3,3) and position (3,) of the surface frame in the world; its z axis is the outward normal.
    polygon : (k,2) corners in the surface frame, m; stored counter-clockwise.
    thickness : of the slab below the polygon, m.
    friction : Coulomb coefficient.
    owner : name of the object that carries the surface, or None.
    size : length and width (m) of a rectangle about the frame's origin, instead of ``polygon``.
    xyz, rpy, quat_wxyz : the pose in the form of files, instead of ``R`` and ``p``: m, rad.

    Raises
    ------
    InputError
        Neither or both of ``size`` and ``polygon`` are given, the outline is not convex, or a pose is given twice.
    """

    name: str
    R: np.ndarray
    p: np.ndarray
    polygon: np.ndarray
    thickness: float
    friction: float
    owner: str | None

    def __init__(
        self,
        name: str,
        R: ArrayLike | None = None,
        p: ArrayLike | None = None,
        polygon: ArrayLike | None = None,
        thickness: float = 0.05,
        friction: float = 0.7,
        owner: str | None = None,
        *,
        size: tuple[float, float] | None = None,
        xyz: ArrayLike | None = None,
        rpy: ArrayLike | None = None,
        quat_wxyz: ArrayLike | None = None,
    ):
        label = _named_label("surface", name)
        if (size is None) == (polygon is None):
            raise InputError(f"{label}: give either size=(length, width) or polygon=[(x, y), ...], in m")
        if size is not None:
            for length in (sides := check_vector(label, "size", size, 2)):
                _check_number(label, "size", length, "m", positive=True)
            corners = sides / 2 * np.array([[-1.0, -1], [1, -1], [1, 1], [-1, 1]])
        else:
            corners = _float_array(label, "polygon", polygon)  # type: ignore[arg-type]
        if corners.ndim != 2 or corners.shape[1] != 2 or len(corners) < 3 or not np.isfinite(corners).all():
            raise InputError(f"{label}: polygon has the shape {corners.shape}, expected at least 3 rows of x, y in m")
        if error := outline_error(corners):
            raise InputError(f"{label}: the outline {error}")
        R, p = pose_of(label, R, p, xyz, rpy, quat_wxyz)
        _set_attributes(self, name=name, R=R, p=p, polygon=counter_clockwise(corners), owner=owner)
        _set_attributes(self, thickness=_check_number(label, "thickness", thickness, "m"))
        _set_attributes(self, friction=_check_number(label, "friction", friction))

    def __repr__(self) -> str:
        xyz = ", ".join(f"{x:.4g}" for x in self.p)
        return f"Surface({self.name!r}, xyz=({xyz}), {len(self.polygon)} corners, friction={self.friction:g})"

    @property
    def normal(self) -> np.ndarray:
        """Outward unit normal (3,) in the world."""
        return self.R[:, 2]

    @property
    def corners(self) -> np.ndarray:
        """Corners (k,3) in the world, m."""
        return self.p + self.polygon @ self.R[:, :2].T


@dataclass(frozen=True, eq=False, init=False)
class Bar:
    """Round bar that the robot may grasp, stand on, or lean on.

    Parameters
    ----------
    name : unique among surfaces and bars.
    ends : (2,3) ends of the axis in the world, m.
    radius : m.
    friction : Coulomb coefficient, for contacts that are not grasps.
    max_force : largest norm of the force of a grasp (N); None: that of the patch.
    """

    name: str
    ends: np.ndarray
    radius: float
    friction: float
    max_force: float | None

    def __init__(
        self, name: str, ends: ArrayLike, radius: float, friction: float = 0.7, max_force: float | None = None
    ):
        label = _named_label("bar", name)
        points = _float_array(label, "ends", ends)
        if points.shape != (2, 3) or not np.isfinite(points).all():
            raise InputError(f"{label}: ends has the shape {points.shape}, expected two points x, y, z in m")
        if np.linalg.norm(points[1] - points[0]) < 1e-6:
            raise InputError(f"{label}: the two ends are the same point")
        _set_attributes(self, name=name, ends=points, max_force=max_force)
        _set_attributes(self, radius=_check_number(label, "radius", radius, "m", positive=True))
        _set_attributes(self, friction=_check_number(label, "friction", friction))

    def __repr__(self) -> str:
        ends = ", ".join("(" + ", ".join(f"{x:.4g}" for x in end) + ")" for end in self.ends)
        return f"Bar({self.name!r}, ends=({ends}), radius={self.radius:g})"

    @property
    def length(self) -> float:
        """Length of the axis (m)."""
        return float(np.linalg.norm(self.ends[1] - self.ends[0]))

    @property
    def direction(self) -> np.ndarray:
        """Unit vector (3,) from the first end to the second."""
        return (self.ends[1] - self.ends[0]) / self.length


@dataclass(frozen=True, eq=False, init=False)
class Obstacle:
    """Solid that the robot must not touch.

    Parameters
    ----------
    name : unique in the environment.
    shape : ``Box``, ``Sphere``, ``Capsule``, ``Cylinder`` or ``MeshShape`` of `mcplan.robot.description`.
    R, p : rotation (3,3) and position (3,) of the shape's frame in the world.
    xyz, rpy, quat_wxyz : the pose in the form of files, instead of ``R`` and ``p``: m, rad.
    """

    name: str
    shape: "Shape"
    R: np.ndarray
    p: np.ndarray

    def __init__(
        self,
        name: str,
        shape: "Shape",
        R: ArrayLike | None = None,
        p: ArrayLike | None = None,
        *,
        xyz: ArrayLike | None = None,
        rpy: ArrayLike | None = None,
        quat_wxyz: ArrayLike | None = None,
    ):
        label = _named_label("obstacle", name)
        R, p = pose_of(label, R, p, xyz, rpy, quat_wxyz)
        _set_attributes(self, name=name, shape=_check_shape(label, shape), R=R, p=p)

    def __repr__(self) -> str:
        return f"Obstacle({self.name!r}, {type(self.shape).__name__}, xyz=({', '.join(f'{x:.4g}' for x in self.p)}))"


@dataclass(frozen=True, eq=False, init=False)
class FreeObject:
    """Movable rigid body with surfaces.

    Parameters
    ----------
    name : unique in the environment.
    shape, R, p : its shape and initial pose.
    mass : kg.
    friction : Coulomb coefficient between its hull and the environment.
    surfaces : in world coordinates at the initial pose; ``owner`` is this object's name.
    xyz, rpy, quat_wxyz : the pose in the form of files, instead of ``R`` and ``p``: m, rad.
    """

    name: str
    shape: "Shape"
    R: np.ndarray
    p: np.ndarray
    mass: float
    friction: float
    surfaces: tuple[Surface, ...]

    def __init__(
        self,
        name: str,
        shape: "Shape",
        R: ArrayLike | None = None,
        p: ArrayLike | None = None,
        mass: float = 1.0,
        friction: float = 0.7,
        surfaces: Sequence[Surface] = (),
        *,
        xyz: ArrayLike | None = None,
        rpy: ArrayLike | None = None,
        quat_wxyz: ArrayLike | None = None,
    ):
        label = _named_label("object", name)
        R, p = pose_of(label, R, p, xyz, rpy, quat_wxyz)
        _set_attributes(self, name=name, shape=_check_shape(label, shape), R=R, p=p)
        _set_attributes(self, mass=_check_number(label, "mass", mass, "kg", positive=True))
        _set_attributes(self, friction=_check_number(label, "friction", friction))
        _set_attributes(self, surfaces=tuple(s if s.owner == name else replace(s, owner=name) for s in surfaces))

    def __repr__(self) -> str:
        label = f"{type(self.shape).__name__}, {self.mass:g} kg, {len(self.surfaces)} surfaces"
        return f"FreeObject({self.name!r}, {label})"

    @property
    def pose(self) -> np.ndarray:
        """Position and quaternion w x y z (7,) in the world."""
        return np.array([*self.p, *quat_from_rotation(self.R)])

    def placed(self, pose: np.ndarray) -> "FreeObject":
        """Return the object with its surfaces at another pose (7,)."""
        p, R = pose[:3], rotation_from_quat(pose[3:])
        rotation = R @ self.R.T
        surfaces = tuple(replace(s, R=rotation @ s.R, p=p + rotation @ (s.p - self.p)) for s in self.surfaces)
        return replace(self, R=R, p=p, surfaces=surfaces)


Support = Surface | Bar
Thing = Surface | Bar | Obstacle | FreeObject


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Environment:
    """Surfaces, bars, obstacles and free objects of a scene ("things").

    Parameters
    ----------
    surfaces : surfaces; or things of all kinds in one list, ``Environment([floor, rail, post])``.
    bars, obstacles, objects : the other kinds.

    Attributes
    ----------
    supports : surfaces, also those of objects, and bars by name.

    Raises
    ------
    InputError
        A thing has another type.
    """

    surfaces: tuple[Surface, ...]
    bars: tuple[Bar, ...]
    obstacles: tuple[Obstacle, ...]
    objects: tuple[FreeObject, ...]
    supports: dict[str, Support] = field(init=False)

    def __init__(
        self,
        surfaces: Iterable[Thing] = (),
        bars: Iterable[Thing] = (),
        obstacles: Iterable[Thing] = (),
        objects: Iterable[Thing] = (),
    ):
        groups = {"surfaces": surfaces, "bars": bars, "obstacles": obstacles, "objects": objects}
        for group, members in groups.items():
            if isinstance(members, str) or not isinstance(members, Iterable):
                raise InputError(f"Environment: {group}: expected a list, [floor, table], not {describe(members)}")
        things: list[Thing] = [thing for members in groups.values() for thing in members]
        for thing in things:
            if not isinstance(thing, Surface | Bar | Obstacle | FreeObject):
                raise InputError(f"an environment holds surfaces, bars, obstacles and free objects, not {thing!r:.80}")
        _set_attributes(self, surfaces=tuple(thing for thing in things if isinstance(thing, Surface)))
        _set_attributes(self, bars=tuple(thing for thing in things if isinstance(thing, Bar)))
        _set_attributes(self, obstacles=tuple(thing for thing in things if isinstance(thing, Obstacle)))
        _set_attributes(self, objects=tuple(thing for thing in things if isinstance(thing, FreeObject)))
        owned = [surface for thing in self.objects for surface in thing.surfaces]
        supports: list[Support] = [*self.surfaces, *owned, *self.bars]
        _set_attributes(self, supports={support.name: support for support in supports})

    def __repr__(self) -> str:
        names = [thing.name for thing in self.things]
        shown_names = ", ".join(names[:6]) + (f", ... ({len(names)} in all)" if len(names) > 6 else "")
        return f"Environment({shown_names or 'nothing'})"

    def _repr_html_(self) -> str:
        """Return a table of surfaces, bars, obstacles and objects for notebooks."""
        rows = []
        for thing in self.things:
            position = thing.ends.mean(axis=0) if isinstance(thing, Bar) else thing.p
            rows.append((thing.name, type(thing).__name__, numbers(position), getattr(thing, "friction", None)))
        return html_of(self, html_table(["name", "is", "x, y, z (m)", "friction"], rows))

    @property
    def things(self) -> tuple[Thing, ...]:
        """All surfaces, bars, obstacles and objects."""
        return (*self.surfaces, *self.bars, *self.obstacles, *self.objects)

    def check_names(self) -> None:
        """Raise an InputError if two things have the same name."""
        seen: set[str] = set()
        for name in _all_names(self.things):
            if name in seen:
                raise InputError(f"two things are called `{name}`; contacts go by names, so each needs its own")
            seen.add(name)

    @property
    def owners(self) -> dict[str, str]:
        """Name of the object that carries a surface, by the name of the surface."""
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


def _all_names(things: Iterable[Thing]) -> Iterable[str]:
    """Yield the names of things, and of the surfaces of objects."""
    for thing in things:
        yield thing.name
        yield from (surface.name for surface in getattr(thing, "surfaces", ()))


SAME_PLANE, SAME_DIRECTION = 1e-4, 1e-6
"""Tolerances of coplanar surfaces: distance of corners from the plane (m), and 1 - cos of the angle between normals."""


@lru_cache(maxsize=64)
def coplanar_surfaces(environment: Environment) -> dict[str, frozenset[str]]:
    """Return, by the name of each fixed surface, the names of all fixed surfaces in its plane, including itself.

    A patch that reaches over a seam touches several of them.
    """
    surfaces = environment.surfaces
    if not surfaces:
        return {}
    normals = np.array([surface.normal for surface in surfaces])
    parallel = normals @ normals.T > 1.0 - SAME_DIRECTION
    coplanar = {}
    for i, surface in enumerate(surfaces):
        same_plane = [
            other.name
            for j, other in enumerate(surfaces)
            if parallel[i, j] and np.abs((other.corners - surface.p) @ surface.normal).max() < SAME_PLANE
        ]
        coplanar[surface.name] = frozenset({surface.name, *same_plane})
    return coplanar
