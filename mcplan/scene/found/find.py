"""Scene detection in triangle meshes: planar surfaces, bars, and convex obstacles.

planes that look up -> the free part of them -> convex parts with room -> slabs as thick as the solid below
parts that are round and long -> bars;   all else -> convex obstacles, clear of the surfaces

Bars are connected parts: cylinders, and boxes that are thin in two directions.
"""

from dataclasses import dataclass, field

import numpy as np
from scipy.spatial import ConvexHull

from mcplan.errors import InputError
from mcplan.scene.environment import Bar, Environment, Obstacle, Surface
from mcplan.scene.found.obstacles import COVERED, find_obstacles, thickness
from mcplan.scene.found.planes import EXACT, Plane, find_planes
from mcplan.scene.found.regions import Region, convex_parts, free_region, geometry, has_room, polygons
from mcplan.scene.found.settings import FindSettings
from mcplan.scene.found.triangles import Triangles, normals_areas
from mcplan.scene.polygon import area

SLENDER = 5.0
"""Minimum ratio of a bar's length to its diameter."""

ROUND = (0.6, 1.5)
"""Allowed distance of a bar's corners from its axis, relative to the radius; that of a square section is 1.1."""


def find_bars(triangles: Triangles, settings: FindSettings) -> tuple[list[Bar], np.ndarray]:
    """Return the bars, and a mask (m,) of the triangles that belong to none."""
    part = triangles.parts()
    corners = triangles.corners
    normals, areas = normals_areas(corners)
    rest = np.ones(len(part), bool)
    found = []
    for k in range(part.max() + 1):
        members = np.flatnonzero(part == k)
        axis = bar_of(corners[members], normals[members], areas[members], settings)
        if axis is not None:
            rest[members] = False
            found.append(axis)
    found.sort(key=lambda one: tuple(np.round(one[0].mean(axis=0)[[2, 0, 1]], 3)))
    bars = [Bar(f"bar{k}", ends, radius, settings.friction) for k, (ends, radius) in enumerate(found, 1)]
    return bars, rest


def bar_of(
    corners: np.ndarray, normals: np.ndarray, areas: np.ndarray, settings: FindSettings
) -> tuple[np.ndarray, float] | None:
    """Return ends (2,3) and radius (m) of the bar that triangles (m,3,3) form; None if they form none.

    The radius is that of a circle with the perimeter of the section: ``2 pi r L = A`` with the area A of the sides.
    """
    points = corners.reshape(-1, 3)
    low, high = points.min(axis=0), points.max(axis=0)
    if np.linalg.norm(high - low) < settings.bar_length or len(corners) < 8:
        return None
    weight = np.repeat(areas / 3, 3)
    middle = weight @ points / weight.sum()
    axis = np.linalg.eigh((points - middle).T @ ((points - middle) * weight[:, None]))[1][:, 2]
    if axis[np.argmax(np.abs(axis))] < 0:
        axis = -axis
    along = (points - middle) @ axis
    length = float(np.ptp(along))
    side = np.abs(normals @ axis) < 0.3
    radius = float(areas[side].sum() / (2 * np.pi * length))
    if not settings.bar[0] <= radius <= settings.bar[1] or length < max(settings.bar_length, 2 * SLENDER * radius):
        return None
    away = points - middle - along[:, None] * axis
    centre = middle + (away.max(axis=0) + away.min(axis=0)) / 2
    distance = np.linalg.norm(points - centre - ((points - centre) @ axis)[:, None] * axis, axis=1)
    if distance.max() > ROUND[1] * radius:
        return None
    at_side = distance[np.repeat(side, 3)]
    if at_side.min() < ROUND[0] * radius:
        return None
    # the sides must cover the whole length: two separate ends are no bar
    spread = np.histogram(along, 3)[0]
    if spread[0] == 0 or spread[2] == 0:
        return None
    start = (points - centre) @ axis
    return np.round(np.array([centre + start.min() * axis, centre + start.max() * axis]), 5), round(radius, 4)


STEEPEST = np.radians(75.0)
"""rad: steeper planes are walls, and are not reported as left out."""

LEVEL = np.cos(np.radians(3.0))
"""Minimum vertical component of the normal of a level surface."""

MARGIN = 1.5
"""m: margin of an added floor beyond the mesh."""


@dataclass(frozen=True)
class LeftOut:
    """A part of the mesh that is not used as a surface.

    Parameters
    ----------
    place : (3,) a point of it, m.
    area : m².
    why : reason, as text.
    """

    place: tuple[float, float, float]
    area: float
    why: str

    def __str__(self) -> str:
        x, y, z = self.place
        return f"{self.area:.3g} m² at ({x:.2f}, {y:.2f}, {z:.2f}): {self.why}"


@dataclass(frozen=True, eq=False)
class Found:
    """Result of the detection.

    Parameters
    ----------
    surfaces, bars, obstacles : with names, the lowest first.
    left_out : upward-facing parts that are no surface, with reasons.
    notices : messages for the user.
    """

    surfaces: tuple[Surface, ...]
    bars: tuple[Bar, ...]
    obstacles: tuple[Obstacle, ...]
    left_out: tuple[LeftOut, ...]
    notices: tuple[str, ...] = ()

    @property
    def environment(self) -> Environment:
        """Environment of these surfaces, bars and obstacles."""
        return Environment([*self.surfaces, *self.bars, *self.obstacles])

    def __repr__(self) -> str:
        counts = f"{len(self.surfaces)} surfaces, {len(self.bars)} bars, {len(self.obstacles)} obstacles"
        return f"Found({counts}, {len(self.left_out)} left out)"


@dataclass
class _Ground:
    """A plane with its convex parts."""

    region: Region
    parts: list[np.ndarray]
    exact: bool
    surfaces: list[Surface] = field(default_factory=list)


def find(triangles: Triangles, settings: FindSettings | None = None) -> Found:
    """Detect surfaces, bars and obstacles in triangles.

    Raises
    ------
    InputError
        The package shapely is not installed.
    """
    geometry()
    with np.errstate(divide="ignore", invalid="ignore"):  # GEOS leaves floating-point flags set
        return _find(triangles, settings or FindSettings())


def _find(triangles: Triangles, settings: FindSettings) -> Found:
    if settings.ground:
        triangles = triangles.with_more([_floor(triangles)])
    bars, rest = find_bars(triangles, settings)
    corners = triangles.corners
    normals, areas = triangles.normals_areas
    least = settings.room[0] * settings.room[1]
    up = np.flatnonzero(rest)
    lowest = float(np.cos(max(settings.slope, STEEPEST)))
    planes = find_planes(corners[up], triangles.faces[up], normals[up], areas[up], settings.flat, least / 4, lowest)
    left_out: list[LeftOut] = []
    grounds, used = [], np.zeros(len(corners), bool)
    for plane in planes:
        plane = Plane(plane.normal, plane.point, up[plane.members], plane.spread)
        slope = float(np.arccos(np.clip(plane.normal[2], -1.0, 1.0)))
        size = float(areas[plane.members].sum())
        place = corners[plane.members[np.argmax(areas[plane.members])]].mean(axis=0)
        if slope > settings.slope:
            if size >= least:
                steep = f"{np.degrees(slope):.0f} degrees steep, at most {np.degrees(settings.slope):.0f}"
                left_out.append(_left(place, size, f"{steep} (slope)"))
            continue
        if size < least or not has_room(_hull(corners[plane.members], plane), settings.room):
            left_out.append(_left(place, size, _small(settings)))
            continue
        ground = _ground(plane, triangles, settings, left_out)
        grounds.append(ground)
        used[plane.members] = True
    surfaces = _named(grounds, triangles, settings)
    slabs = [surface for ground in grounds for surface in ground.surfaces]
    left_regions = [(ground.region, ground.parts) for ground in grounds]
    rough = any(not ground.exact for ground in grounds)
    near = settings.flat if rough else COVERED
    obstacles, notices = find_obstacles(triangles, rest & ~used, slabs, left_regions, near)
    return Found(tuple(surfaces), tuple(bars), tuple(obstacles), tuple(_merged(left_out)), tuple(notices))


def _left(place: np.ndarray, area: float, why: str) -> LeftOut:
    return LeftOut((float(place[0]), float(place[1]), float(place[2])), area, why)


def _small(settings: FindSettings) -> str:
    return f"no room for {settings.room[0]:g} m x {settings.room[1]:g} m (room)"


def _hull(corners: np.ndarray, plane: Plane) -> np.ndarray:
    """Return the convex outline (k,2) of triangles (m,3,3) in a plane, in in-plane axes."""
    x = np.cross(plane.normal, np.eye(3)[np.argmin(np.abs(plane.normal))])
    axes = np.column_stack([x, np.cross(plane.normal, x)]) / np.linalg.norm(x)
    flat = np.unique(np.round(corners.reshape(-1, 3) @ axes, 5), axis=0)
    return flat[ConvexHull(flat).vertices]


def _ground(plane: Plane, triangles: Triangles, settings: FindSettings, left_out: list[LeftOut]) -> _Ground:
    """Return a plane's convex parts; add the rest to ``left_out``."""
    shapely = geometry()
    region = free_region(plane, triangles, settings)
    exact = plane.spread < 2 * EXACT
    free = region.free if exact else region.free.buffer(-settings.flat / 2).buffer(settings.flat / 4)
    parts = convex_parts(free, settings.room, 2e-3 if exact else settings.flat / 2)
    over = f"something is less than {settings.clearance:g} m above it (clearance)"
    rest = shapely.difference(region.free, shapely.union_all([shapely.polygons(part).buffer(1e-3) for part in parts]))
    for shape, why in ((region.overhung, over), (region.inside, "inside a solid"), (rest, _small(settings))):
        # ignore strips along walls: they are as narrow as the wall's margin
        for piece in polygons(shape.buffer(-2e-3).buffer(2e-3)):
            x, y = shapely.point_on_surface(piece).coords[0]
            left_out.append(_left(region.p + region.R @ [x, y, 0.0], piece.area, why))
    return _Ground(region, parts, exact)


def _merged(left_out: list[LeftOut], most: int = 20) -> list[LeftOut]:
    """Return the largest ones, and one line per reason for the others."""
    ordered = sorted(left_out, key=lambda one: -one.area)
    kept, rest = ordered[:most], ordered[most:]
    for why in dict.fromkeys(one.why for one in rest):
        alike = [one for one in rest if one.why == why]
        total = sum(one.area for one in alike)
        kept.append(LeftOut(alike[0].place, total, why + (f", and {len(alike) - 1} more" if len(alike) > 1 else "")))
    return kept


def _named(grounds: list[_Ground], triangles: Triangles, settings: FindSettings) -> list[Surface]:
    """Return the parts as named slabs: the lowest is ``floor``, then ``level1``, ``slope1``, ... upwards.

    The largest part of a plane has the plain name, so that files can refer to it, the others ``floor_2``, ...
    """
    heights = [float(np.mean([_place(g.region, part)[2] for part in g.parts])) for g in grounds if g.parts]
    with_parts = [g for g in grounds if g.parts]
    order = sorted(range(len(with_parts)), key=lambda k: (round(heights[k], 3), *np.round(with_parts[k].region.p, 3)))
    widest = max((sum(map(area, g.parts)) for g in with_parts), default=0.0)
    found: list[Surface] = []
    counts = {"level": 0, "slope": 0}
    for rank, k in enumerate(order):
        ground = with_parts[k]
        level = ground.region.R[2, 2] > LEVEL
        if rank == 0 and level and sum(map(area, ground.parts)) > 0.2 * widest:
            name = "floor"
        else:
            kind = "level" if level else "slope"
            counts[kind] += 1
            name = f"{kind}{counts[kind]}"
        for number, part in enumerate(sorted(ground.parts, key=lambda part: -area(part)), 1):
            R, p, polygon = _centred(ground.region, part)
            own = name if number == 1 else f"{name}_{number}"
            depth = thickness(triangles, R, p, polygon)
            ground.surfaces.append(Surface(own, R, p, polygon, depth, settings.friction))
        found += ground.surfaces
    return found


def _centred(region: Region, part: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return frame and corners of a part, with the origin in the middle of its bounding rectangle."""
    middle = np.round((part.min(axis=0) + part.max(axis=0)) / 2, 4)
    return region.R, region.p + region.R[:, :2] @ middle, np.round(part - middle, 5)


def _place(region: Region, part: np.ndarray) -> np.ndarray:
    return region.p + region.R[:, :2] @ part.mean(axis=0)


def _floor(triangles: Triangles) -> Triangles:
    low, high = triangles.vertices.min(axis=0), triangles.vertices.max(axis=0)
    x0, y0, x1, y1 = low[0] - MARGIN, low[1] - MARGIN, high[0] + MARGIN, high[1] + MARGIN
    z = low[2]
    square = np.array([[x0, y0, z], [x1, y0, z], [x1, y1, z], [x0, y1, z]])
    return Triangles(square, np.array([[0, 1, 2], [0, 2, 3]]))


__all__ = ["Found", "InputError", "LeftOut", "find"]
