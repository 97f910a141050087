"""Scene detection in triangle meshes: planar surfaces, bars, and convex obstacles.

    upward planes -> their free regions -> convex parts with room for a foot -> slabs as thick as the solid below
    long, thin parts -> bars
    all other triangles -> convex obstacles, outside the slabs

A bar is a connected part of the mesh: a cylinder, or a box that is thin in two directions.
"""

from dataclasses import dataclass, field

import numpy as np
from scipy.spatial import ConvexHull

from mcplan.errors import InputError
from mcplan.scene.detection.obstacles import SLAB_TOLERANCE_M, find_obstacles, slab_thickness
from mcplan.scene.detection.planes import EXACT_DISTANCE, Plane, find_planes
from mcplan.scene.detection.regions import Region, convex_parts, free_region, has_room, import_shapely, polygons
from mcplan.scene.detection.settings import FindSettings
from mcplan.scene.detection.triangles import Triangles, normals_areas
from mcplan.scene.environment import Bar, Environment, Obstacle, Surface
from mcplan.scene.polygon import area

MIN_SLENDERNESS = 5.0
"""Minimum ratio of a bar's length to its diameter."""

RADIUS_RATIOS = (0.6, 1.5)
"""Minimum and maximum distance of a bar's corners from its axis, relative to its radius; 1.1 for a square section."""


def find_bars(triangles: Triangles, settings: FindSettings) -> tuple[list[Bar], np.ndarray]:
    """Return the bars, and a mask (m,) of the triangles that belong to no bar."""
    part = triangles.parts()
    corners = triangles.corners
    normals, areas = normals_areas(corners)
    is_free = np.ones(len(part), bool)
    ends_and_radii = []
    for k in range(part.max() + 1):
        members = np.flatnonzero(part == k)
        ends_and_radius = fit_bar(corners[members], normals[members], areas[members], settings)
        if ends_and_radius is not None:
            is_free[members] = False
            ends_and_radii.append(ends_and_radius)
    ends_and_radii.sort(key=lambda bar: tuple(np.round(bar[0].mean(axis=0)[[2, 0, 1]], 3)))
    bars = [Bar(f"bar{k}", ends, radius, settings.friction) for k, (ends, radius) in enumerate(ends_and_radii, 1)]
    return bars, is_free


def fit_bar(
    corners: np.ndarray, normals: np.ndarray, areas: np.ndarray, settings: FindSettings
) -> tuple[np.ndarray, float] | None:
    """Return ends (2,3) and radius (m) of the bar that triangles (m,3,3) form; None if they form no bar.

    The radius r is that of a circle with the perimeter of the section: ``2 pi r L = A``, with the length L of the bar
    and the area A of its sides.
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
    position = (points - middle) @ axis
    length = float(np.ptp(position))
    is_side = np.abs(normals @ axis) < 0.3
    radius = float(areas[is_side].sum() / (2 * np.pi * length))
    if not settings.bar[0] <= radius <= settings.bar[1] or length < max(
        settings.bar_length, 2 * MIN_SLENDERNESS * radius
    ):
        return None
    radial = points - middle - position[:, None] * axis
    centre = middle + (radial.max(axis=0) + radial.min(axis=0)) / 2
    distance = np.linalg.norm(points - centre - ((points - centre) @ axis)[:, None] * axis, axis=1)
    if distance.max() > RADIUS_RATIOS[1] * radius:
        return None
    side_distance = distance[np.repeat(is_side, 3)]
    if side_distance.min() < RADIUS_RATIOS[0] * radius:
        return None
    # the sides must cover the whole length: two separate ends are no bar
    histogram = np.histogram(position, 3)[0]
    if histogram[0] == 0 or histogram[2] == 0:
        return None
    axial = (points - centre) @ axis
    return np.round(np.array([centre + axial.min() * axis, centre + axial.max() * axis]), 5), round(radius, 4)


MAX_REPORTED_SLOPE = np.radians(75.0)
"""Steeper planes (rad) are walls, and are not reported as rejected."""

MIN_LEVEL_COSINE = np.cos(np.radians(3.0))
"""Minimum vertical component of the normal of a level surface."""

FLOOR_MARGIN_M = 1.5
"""Margin of an added floor beyond the mesh."""


@dataclass(frozen=True)
class RejectedPart:
    """A part of the mesh that is not used as a surface.

    Parameters
    ----------
    place : (3,) a point of the part, m.
    area : area of the part, m².
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
    """A plane: its region, the convex parts, whether it is exact (not rough), and the surfaces of the parts."""

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
    bars, is_free = find_bars(triangles, settings)
    corners = triangles.corners
    normals, areas = triangles.normals_areas
    min_area = settings.room[0] * settings.room[1]
    candidates = np.flatnonzero(is_free)
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
    plane_parts, is_used = [], np.zeros(len(corners), bool)
    for plane in planes:
        plane = Plane(plane.normal, plane.point, candidates[plane.members], plane.spread)
        slope = float(np.arccos(np.clip(plane.normal[2], -1.0, 1.0)))
        size = float(areas[plane.members].sum())
        point = corners[plane.members[np.argmax(areas[plane.members])]].mean(axis=0)
        if slope > settings.slope:
            if size >= min_area:
                steep = f"{np.degrees(slope):.0f} degrees steep, at most {np.degrees(settings.slope):.0f}"
                rejected.append(_rejected(point, size, f"{steep} (slope)"))
            continue
        if size < min_area or not has_room(_plane_hull(corners[plane.members], plane), settings.room):
            rejected.append(_rejected(point, size, _no_room_reason(settings)))
            continue
        split_plane = _split_plane(plane, triangles, settings, rejected)
        plane_parts.append(split_plane)
        is_used[plane.members] = True
    surfaces = _name_surfaces(plane_parts, triangles, settings)
    slabs = [surface for split_plane in plane_parts for surface in split_plane.surfaces]
    regions = [(split_plane.region, split_plane.parts) for split_plane in plane_parts]
    is_rough = any(not split_plane.exact for split_plane in plane_parts)
    tolerance = settings.flat if is_rough else SLAB_TOLERANCE_M
    obstacles, notices = find_obstacles(triangles, is_free & ~is_used, slabs, regions, tolerance)
    return DetectedScene(
        tuple(surfaces), tuple(bars), tuple(obstacles), tuple(_merge_rejected(rejected)), tuple(notices)
    )


def _rejected(place: np.ndarray, area: float, reason: str) -> RejectedPart:
    return RejectedPart((float(place[0]), float(place[1]), float(place[2])), area, reason)


def _no_room_reason(settings: FindSettings) -> str:
    return f"no room for {settings.room[0]:g} m x {settings.room[1]:g} m (room)"


def _plane_hull(corners: np.ndarray, plane: Plane) -> np.ndarray:
    """Return the convex outline (k,2) of triangles (m,3,3) in a plane, in in-plane axes."""
    x = np.cross(plane.normal, np.eye(3)[np.argmin(np.abs(plane.normal))])
    axes = np.column_stack([x, np.cross(plane.normal, x)]) / np.linalg.norm(x)
    flat = np.unique(np.round(corners.reshape(-1, 3) @ axes, 5), axis=0)
    return flat[ConvexHull(flat).vertices]


def _split_plane(
    plane: Plane, triangles: Triangles, settings: FindSettings, rejected: list[RejectedPart]
) -> _PlaneParts:
    """Return the convex parts of a plane; add the other parts to ``rejected``."""
    shapely = import_shapely()
    region = free_region(plane, triangles, settings)
    exact = plane.spread < 2 * EXACT_DISTANCE
    free = region.free if exact else region.free.buffer(-settings.flat / 2).buffer(settings.flat / 4)
    parts = convex_parts(free, settings.room, 2e-3 if exact else settings.flat / 2)
    no_clearance = f"something is less than {settings.clearance:g} m above it (clearance)"
    unused = shapely.difference(region.free, shapely.union_all([shapely.polygons(part).buffer(1e-3) for part in parts]))
    for shape, reason in (
        (region.overhung, no_clearance),
        (region.inside, "inside a solid"),
        (unused, _no_room_reason(settings)),
    ):
        # ignore strips along walls: they are as narrow as the margin of the wall
        for piece in polygons(shape.buffer(-2e-3).buffer(2e-3)):
            x, y = shapely.point_on_surface(piece).coords[0]
            rejected.append(_rejected(region.p + region.R @ [x, y, 0.0], piece.area, reason))
    return _PlaneParts(region, parts, exact)


def _merge_rejected(rejected: list[RejectedPart], max_lines: int = 20) -> list[RejectedPart]:
    """Return the largest rejected parts, and one per reason for the others."""
    ordered = sorted(rejected, key=lambda part: -part.area)
    merged, others = ordered[:max_lines], ordered[max_lines:]
    for reason in dict.fromkeys(part.reason for part in others):
        same_reason = [part for part in others if part.reason == reason]
        total = sum(part.area for part in same_reason)
        merged.append(
            RejectedPart(
                same_reason[0].place,
                total,
                reason + (f", and {len(same_reason) - 1} more" if len(same_reason) > 1 else ""),
            )
        )
    return merged


def _name_surfaces(planes: list[_PlaneParts], triangles: Triangles, settings: FindSettings) -> list[Surface]:
    """Return the parts as named slabs: the lowest is ``floor``, then ``level1``, ``slope1``, ... upwards.

    The largest part of a plane has the plain name, so that files can refer to it, the others ``floor_2``, ...
    """
    heights = [
        float(np.mean([_centroid(plane.region, part)[2] for part in plane.parts])) for plane in planes if plane.parts
    ]
    with_parts = [plane for plane in planes if plane.parts]
    order = sorted(range(len(with_parts)), key=lambda k: (round(heights[k], 3), *np.round(with_parts[k].region.p, 3)))
    largest_area = max((sum(map(area, plane.parts)) for plane in with_parts), default=0.0)
    surfaces: list[Surface] = []
    counts = {"level": 0, "slope": 0}
    for rank, k in enumerate(order):
        plane = with_parts[k]
        is_level = plane.region.R[2, 2] > MIN_LEVEL_COSINE
        if rank == 0 and is_level and sum(map(area, plane.parts)) > 0.2 * largest_area:
            name = "floor"
        else:
            kind = "level" if is_level else "slope"
            counts[kind] += 1
            name = f"{kind}{counts[kind]}"
        for part_number, part in enumerate(sorted(plane.parts, key=lambda part: -area(part)), 1):
            R, p, polygon = _centre_frame(plane.region, part)
            surface_name = name if part_number == 1 else f"{name}_{part_number}"
            depth = slab_thickness(triangles, R, p, polygon)
            plane.surfaces.append(Surface(surface_name, R, p, polygon, depth, settings.friction))
        surfaces += plane.surfaces
    return surfaces


def _centre_frame(region: Region, part: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return frame and corners of a part, with the origin in the middle of its bounding rectangle."""
    middle = np.round((part.min(axis=0) + part.max(axis=0)) / 2, 4)
    return region.R, region.p + region.R[:, :2] @ middle, np.round(part - middle, 5)


def _centroid(region: Region, part: np.ndarray) -> np.ndarray:
    """Return the mean (3,) of the corners of a part in the world."""
    return region.p + region.R[:, :2] @ part.mean(axis=0)


def _floor(triangles: Triangles) -> Triangles:
    """Return a level floor below the lowest vertex."""
    low, high = triangles.vertices.min(axis=0), triangles.vertices.max(axis=0)
    (x0, y0), (x1, y1) = low[:2] - FLOOR_MARGIN_M, high[:2] + FLOOR_MARGIN_M
    z = low[2]
    square = np.array([[x0, y0, z], [x1, y0, z], [x1, y1, z], [x0, y1, z]])
    return Triangles(square, np.array([[0, 1, 2], [0, 2, 3]]))


__all__ = ["DetectedScene", "InputError", "RejectedPart", "detect_scene"]
