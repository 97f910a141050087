"""Scene detection in triangle meshes: planar surfaces, bars, and convex obstacles.

upward planes -> their free regions -> convex parts with room for a foot -> slabs as thick as the solid below
round, long parts -> bars;   everything else -> convex obstacles, outside the slabs

Bars are connected parts: cylinders, and boxes that are thin in two directions.
"""

from dataclasses import dataclass, field

import numpy as np
from scipy.spatial import ConvexHull

from mcplan.errors import InputError
from mcplan.scene.detection.obstacles import SLAB_TOLERANCE, find_obstacles, thickness
from mcplan.scene.detection.planes import EXACT_DISTANCE, Plane, find_planes
from mcplan.scene.detection.regions import Region, convex_parts, free_region, has_room, import_shapely, polygons
from mcplan.scene.detection.settings import FindSettings
from mcplan.scene.detection.triangles import Triangles, normals_areas
from mcplan.scene.environment import Bar, Environment, Obstacle, Surface
from mcplan.scene.polygon import area

MIN_SLENDERNESS = 5.0
"""Minimum ratio of a bar's length to its diameter."""

RADIUS_RATIOS = (0.6, 1.5)
"""Minimum and maximum distance of a bar's corners from its axis / radius; it is 1.1 for a square section."""


def find_bars(triangles: Triangles, settings: FindSettings) -> tuple[list[Bar], np.ndarray]:
    """Return the bars, and a mask (m,) of the triangles that belong to no bar."""
    part = triangles.parts()
    corners = triangles.corners
    normals, areas = normals_areas(corners)
    rest = np.ones(len(part), bool)
    found = []
    for k in range(part.max() + 1):
        members = np.flatnonzero(part == k)
        axis = fit_bar(corners[members], normals[members], areas[members], settings)
        if axis is not None:
            rest[members] = False
            found.append(axis)
    found.sort(key=lambda bar: tuple(np.round(bar[0].mean(axis=0)[[2, 0, 1]], 3)))
    bars = [Bar(f"bar{k}", ends, radius, settings.friction) for k, (ends, radius) in enumerate(found, 1)]
    return bars, rest


def fit_bar(
    corners: np.ndarray, normals: np.ndarray, areas: np.ndarray, settings: FindSettings
) -> tuple[np.ndarray, float] | None:
    """Return ends (2,3) and radius (m) of the bar that triangles (m,3,3) form; None if they form no bar.

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
    if not settings.bar[0] <= radius <= settings.bar[1] or length < max(
        settings.bar_length, 2 * MIN_SLENDERNESS * radius
    ):
        return None
    away = points - middle - along[:, None] * axis
    centre = middle + (away.max(axis=0) + away.min(axis=0)) / 2
    distance = np.linalg.norm(points - centre - ((points - centre) @ axis)[:, None] * axis, axis=1)
    if distance.max() > RADIUS_RATIOS[1] * radius:
        return None
    at_side = distance[np.repeat(side, 3)]
    if at_side.min() < RADIUS_RATIOS[0] * radius:
        return None
    # the sides must cover the whole length: two separate ends are no bar
    spread = np.histogram(along, 3)[0]
    if spread[0] == 0 or spread[2] == 0:
        return None
    start = (points - centre) @ axis
    return np.round(np.array([centre + start.min() * axis, centre + start.max() * axis]), 5), round(radius, 4)


MAX_REPORTED_SLOPE = np.radians(75.0)
"""rad: steeper planes are walls, and are not reported as rejected."""

MIN_LEVEL_COSINE = np.cos(np.radians(3.0))
"""Minimum vertical component of the normal of a level surface."""

FLOOR_MARGIN = 1.5
"""m: margin of an added floor beyond the mesh."""


@dataclass(frozen=True)
class RejectedPart:
    """A part of the mesh that is not used as a surface.

    Parameters
    ----------
    place : (3,) a point of the part, m.
    area : m².
    reason : text for the user.
    """

    place: tuple[float, float, float]
    area: float
    reason: str

    def __str__(self) -> str:
        x, y, z = self.place
        return f"{self.area:.3g} m² at ({x:.2f}, {y:.2f}, {z:.2f}): {self.reason}"


@dataclass(frozen=True, eq=False)
class DetectedScene:
    """Result of the detection.

    Parameters
    ----------
    surfaces, bars, obstacles : with names, the lowest first.
    rejected : upward-facing parts that are no surfaces, with reasons.
    notices : messages for the user.
    """

    surfaces: tuple[Surface, ...]
    bars: tuple[Bar, ...]
    obstacles: tuple[Obstacle, ...]
    rejected: tuple[RejectedPart, ...]
    notices: tuple[str, ...] = ()

    @property
    def environment(self) -> Environment:
        """Environment of these surfaces, bars and obstacles."""
        return Environment([*self.surfaces, *self.bars, *self.obstacles])

    def __repr__(self) -> str:
        counts = f"{len(self.surfaces)} surfaces, {len(self.bars)} bars, {len(self.obstacles)} obstacles"
        return f"DetectedScene({counts}, {len(self.rejected)} rejected)"


@dataclass
class _PlaneParts:
    """A plane with its convex parts."""

    region: Region
    parts: list[np.ndarray]
    exact: bool
    surfaces: list[Surface] = field(default_factory=list)


def detect_scene(triangles: Triangles, settings: FindSettings | None = None) -> DetectedScene:
    """Detect surfaces, bars and obstacles in triangles.

    Raises
    ------
    InputError
        The package shapely is not installed.
    """
    import_shapely()
    with np.errstate(divide="ignore", invalid="ignore"):  # GEOS leaves floating-point flags set
        return _detect_scene(triangles, settings or FindSettings())


def _detect_scene(triangles: Triangles, settings: FindSettings) -> DetectedScene:
    if settings.ground:
        triangles = triangles.with_more([_floor(triangles)])
    bars, rest = find_bars(triangles, settings)
    corners = triangles.corners
    normals, areas = triangles.normals_areas
    min_area = settings.room[0] * settings.room[1]
    candidates = np.flatnonzero(rest)
    min_up = float(np.cos(max(settings.slope, MAX_REPORTED_SLOPE)))
    planes = find_planes(
        corners[candidates],
        triangles.faces[candidates],
        normals[candidates],
        areas[candidates],
        settings.flat,
        min_area / 4,
        min_up,
    )
    rejected: list[RejectedPart] = []
    grounds, used = [], np.zeros(len(corners), bool)
    for plane in planes:
        plane = Plane(plane.normal, plane.point, candidates[plane.members], plane.spread)
        slope = float(np.arccos(np.clip(plane.normal[2], -1.0, 1.0)))
        size = float(areas[plane.members].sum())
        place = corners[plane.members[np.argmax(areas[plane.members])]].mean(axis=0)
        if slope > settings.slope:
            if size >= min_area:
                steep = f"{np.degrees(slope):.0f} degrees steep, at most {np.degrees(settings.slope):.0f}"
                rejected.append(_rejected(place, size, f"{steep} (slope)"))
            continue
        if size < min_area or not has_room(_hull(corners[plane.members], plane), settings.room):
            rejected.append(_rejected(place, size, _no_room(settings)))
            continue
        ground = _split_plane(plane, triangles, settings, rejected)
        grounds.append(ground)
        used[plane.members] = True
    surfaces = _name_surfaces(grounds, triangles, settings)
    slabs = [surface for ground in grounds for surface in ground.surfaces]
    regions = [(ground.region, ground.parts) for ground in grounds]
    rough = any(not ground.exact for ground in grounds)
    tolerance = settings.flat if rough else SLAB_TOLERANCE
    obstacles, notices = find_obstacles(triangles, rest & ~used, slabs, regions, tolerance)
    return DetectedScene(
        tuple(surfaces), tuple(bars), tuple(obstacles), tuple(_merge_rejected(rejected)), tuple(notices)
    )


def _rejected(place: np.ndarray, area: float, reason: str) -> RejectedPart:
    return RejectedPart((float(place[0]), float(place[1]), float(place[2])), area, reason)


def _no_room(settings: FindSettings) -> str:
    return f"no room for {settings.room[0]:g} m x {settings.room[1]:g} m (room)"


def _hull(corners: np.ndarray, plane: Plane) -> np.ndarray:
    """Return the convex outline (k,2) of triangles (m,3,3) in a plane, in in-plane axes."""
    x = np.cross(plane.normal, np.eye(3)[np.argmin(np.abs(plane.normal))])
    axes = np.column_stack([x, np.cross(plane.normal, x)]) / np.linalg.norm(x)
    flat = np.unique(np.round(corners.reshape(-1, 3) @ axes, 5), axis=0)
    return flat[ConvexHull(flat).vertices]


def _split_plane(
    plane: Plane, triangles: Triangles, settings: FindSettings, rejected: list[RejectedPart]
) -> _PlaneParts:
    """Return the convex parts of a plane; add the rest to ``rejected``."""
    shapely = import_shapely()
    region = free_region(plane, triangles, settings)
    exact = plane.spread < 2 * EXACT_DISTANCE
    free = region.free if exact else region.free.buffer(-settings.flat / 2).buffer(settings.flat / 4)
    parts = convex_parts(free, settings.room, 2e-3 if exact else settings.flat / 2)
    over = f"something is less than {settings.clearance:g} m above it (clearance)"
    rest = shapely.difference(region.free, shapely.union_all([shapely.polygons(part).buffer(1e-3) for part in parts]))
    for shape, reason in ((region.overhung, over), (region.inside, "inside a solid"), (rest, _no_room(settings))):
        # ignore strips along walls: they are as narrow as the margin of the wall
        for piece in polygons(shape.buffer(-2e-3).buffer(2e-3)):
            x, y = shapely.point_on_surface(piece).coords[0]
            rejected.append(_rejected(region.p + region.R @ [x, y, 0.0], piece.area, reason))
    return _PlaneParts(region, parts, exact)


def _merge_rejected(rejected: list[RejectedPart], max_lines: int = 20) -> list[RejectedPart]:
    """Return the largest rejected parts, and one per reason for the others."""
    ordered = sorted(rejected, key=lambda part: -part.area)
    merged, rest = ordered[:max_lines], ordered[max_lines:]
    for reason in dict.fromkeys(part.reason for part in rest):
        same_reason = [part for part in rest if part.reason == reason]
        total = sum(part.area for part in same_reason)
        merged.append(
            RejectedPart(
                same_reason[0].place,
                total,
                reason + (f", and {len(same_reason) - 1} more" if len(same_reason) > 1 else ""),
            )
        )
    return merged


def _name_surfaces(grounds: list[_PlaneParts], triangles: Triangles, settings: FindSettings) -> list[Surface]:
    """Return the parts as named slabs: the lowest is ``floor``, then ``level1``, ``slope1``, ... upwards.

    The largest part of a plane has the plain name, so that files can refer to it, the others ``floor_2``, ...
    """
    heights = [float(np.mean([_centroid(g.region, part)[2] for part in g.parts])) for g in grounds if g.parts]
    with_parts = [g for g in grounds if g.parts]
    order = sorted(range(len(with_parts)), key=lambda k: (round(heights[k], 3), *np.round(with_parts[k].region.p, 3)))
    largest_area = max((sum(map(area, g.parts)) for g in with_parts), default=0.0)
    found: list[Surface] = []
    counts = {"level": 0, "slope": 0}
    for rank, k in enumerate(order):
        ground = with_parts[k]
        level = ground.region.R[2, 2] > MIN_LEVEL_COSINE
        if rank == 0 and level and sum(map(area, ground.parts)) > 0.2 * largest_area:
            name = "floor"
        else:
            kind = "level" if level else "slope"
            counts[kind] += 1
            name = f"{kind}{counts[kind]}"
        for number, part in enumerate(sorted(ground.parts, key=lambda part: -area(part)), 1):
            R, p, polygon = _centre_frame(ground.region, part)
            surface_name = name if number == 1 else f"{name}_{number}"
            depth = thickness(triangles, R, p, polygon)
            ground.surfaces.append(Surface(surface_name, R, p, polygon, depth, settings.friction))
        found += ground.surfaces
    return found


def _centre_frame(region: Region, part: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return frame and corners of a part, with the origin in the middle of its bounding rectangle."""
    middle = np.round((part.min(axis=0) + part.max(axis=0)) / 2, 4)
    return region.R, region.p + region.R[:, :2] @ middle, np.round(part - middle, 5)


def _centroid(region: Region, part: np.ndarray) -> np.ndarray:
    return region.p + region.R[:, :2] @ part.mean(axis=0)


def _floor(triangles: Triangles) -> Triangles:
    low, high = triangles.vertices.min(axis=0), triangles.vertices.max(axis=0)
    x0, y0, x1, y1 = low[0] - FLOOR_MARGIN, low[1] - FLOOR_MARGIN, high[0] + FLOOR_MARGIN, high[1] + FLOOR_MARGIN
    z = low[2]
    square = np.array([[x0, y0, z], [x1, y0, z], [x1, y1, z], [x0, y1, z]])
    return Triangles(square, np.array([[0, 1, 2], [0, 2, 3]]))


__all__ = ["DetectedScene", "InputError", "RejectedPart", "detect_scene"]
