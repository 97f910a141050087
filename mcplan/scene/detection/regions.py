"""Free region of a plane, and its convex parts with room for a foot.

The free region is the union of the plane's triangles without the overhung part and the part inside a solid. Its convex
parts do not overlap; the largest is first.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mcplan.errors import InputError
from mcplan.scene.detection.planes import Plane
from mcplan.scene.detection.settings import FindSettings
from mcplan.scene.detection.triangles import Triangles, winding_number
from mcplan.scene.polygon import clip, erode, half_planes

WALL_MARGIN_M = 1e-3
"""Margin around parts that rise from a plane, because the projection of a wall onto the plane has no width."""

GRID_M = 1e-6
"""Grid to which corners of polygons are rounded, so that adjacent polygons have no crack between them."""

UP = np.array([0.0, 0.0, 1.0])
"""Upward unit vector."""


def import_shapely() -> Any:
    """Import shapely.

    Raises
    ------
    InputError
        shapely is not installed.
    """
    try:
        import shapely
    except ImportError:
        raise InputError("surface detection in a mesh needs shapely: pip install 'mcplan[scenes]'") from None
    return shapely


@dataclass(frozen=True, eq=False)
class Region:
    """Free and occupied parts of a plane.

    Parameters
    ----------
    R, p : frame (3,3), (3,) of the plane: z is its normal, x along a side of its bounding rectangle.
    covered : union of its triangles (polygons of shapely, in the frame), cracks closed.
    free : part of ``covered`` on which a contact is possible.
    overhung, inside : parts with too little clearance above, and parts inside a solid.
    """

    R: np.ndarray
    p: np.ndarray
    covered: Any
    free: Any
    overhung: Any
    inside: Any


def free_region(plane: Plane, triangles: Triangles, settings: FindSettings) -> Region:
    """Return the free region of a plane.

    Parameters
    ----------
    plane : a plane with an upward normal.
    triangles : all triangles of the environment.
    settings : gap and clearance.
    """
    shapely = import_shapely()
    corners = triangles.corners
    R, p = plane_frame(plane, corners[plane.members])
    flat = to_plane(corners[plane.members].reshape(-1, 3), R, p)[0].reshape(-1, 3, 2)
    covered = shapely.union_all(_valid(shapely, shapely.polygons(flat)), grid_size=GRID_M)
    covered = with_area(close_cracks(covered, settings.gap))
    points = corners[plane.members].reshape(-1, 3)
    top_margin = [0.0, 0.0, settings.clearance / R[2, 2] + 2 * plane.spread]
    is_other = triangles.within(
        points.min(axis=0) - 2 * WALL_MARGIN_M - plane.spread, points.max(axis=0) + 2 * WALL_MARGIN_M + top_margin
    )
    is_other[plane.members] = False
    min_height = max(2 * WALL_MARGIN_M, 2 * plane.spread if plane.spread > WALL_MARGIN_M else 0.0)
    blocked = _project_between(corners[is_other], R, p, shapely.bounds(covered), min_height, settings.clearance)
    free = covered if blocked is None else with_area(shapely.difference(covered, blocked, grid_size=GRID_M))
    overhung = with_area(shapely.difference(covered, free, grid_size=GRID_M))
    # no triangle crosses the space just above a connected part, so one point decides whether it is outside all solids
    free_parts: list[Any] = []
    inside_parts: list[Any] = []
    height = min_height + 0.4 * (settings.clearance - min_height)
    for part in polygons(free):
        x, y = shapely.point_on_surface(part).coords[0]
        test_point = p + R @ [x, y, 0.0] + height * UP
        (inside_parts if winding_number(test_point, corners) > 0.5 else free_parts).append(part)
    return Region(R, p, covered, shapely.union_all(free_parts), overhung, shapely.union_all(inside_parts))


def to_plane(points: np.ndarray, R: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Project points (k,3) vertically: return coordinates (k,2) in a plane's frame, and heights (k,) over it."""
    height = (points - p) @ R[:, 2] / R[2, 2]
    return (points - height[:, None] * UP - p) @ R[:, :2], height


def polygons(shape: Any) -> list:
    """Return the polygons of a shape, the largest first."""
    parts = [part for part in getattr(shape, "geoms", [shape]) if part.geom_type == "Polygon" and part.area > 0.0]
    return sorted(parts, key=lambda part: -part.area)


def with_area(shape: Any) -> Any:
    """Return the polygons of a shape, without the lines and points that rounding leaves."""
    return import_shapely().union_all(polygons(shape))


def close_cracks(shape: Any, width: float) -> Any:
    """Close the cracks of a shape up to a width (m)."""
    if width <= 0.0:
        return shape
    return shape.buffer(width / 2, join_style="mitre").buffer(-width / 2, join_style="mitre").union(shape)


def _valid(shapely: Any, parts: np.ndarray) -> np.ndarray:
    """Return the polygons that are valid and have an area."""
    return parts[shapely.is_valid(parts) & (shapely.area(parts) > 0.0)]


def plane_frame(plane: Plane, corners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a frame of the plane: origin in the middle of its bounding rectangle, x along the side nearest to x_W."""
    z = plane.normal
    shapely = import_shapely()
    x = np.array([1.0, 0.0, 0.0]) - z[0] * z
    if np.linalg.norm(x) < 1e-6:
        x = np.array([0.0, 1.0, 0.0])
    x /= np.linalg.norm(x)
    R = np.column_stack([x, np.cross(z, x), z])
    flat = ((corners.reshape(-1, 3) - plane.point) @ R)[:, :2]
    box = shapely.minimum_rotated_rectangle(shapely.multipoints(flat))
    if box.geom_type != "Polygon":
        return R, plane.point
    outline = np.array(box.exterior.coords)
    side = outline[1] - outline[0]
    angle = float(np.arctan2(side[1], side[0]))
    angle = (angle + np.pi / 4) % (np.pi / 2) - np.pi / 4  # to the side nearest to x
    c, s = np.cos(angle), np.sin(angle)
    R = R @ np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    middle = outline[:4].mean(axis=0)
    axes = np.column_stack([x, np.cross(z, x)])
    return R, plane.point + axes @ middle


def _project_between(
    corners: np.ndarray, R: np.ndarray, p: np.ndarray, bounds: np.ndarray, low: float, high: float
) -> Any:
    """Return the vertical projection of the parts of triangles (m,3,3) between two heights over a plane, or None."""
    shapely = import_shapely()
    flat, height = to_plane(corners.reshape(-1, 3), R, p)
    flat, height = flat.reshape(-1, 3, 2), height.reshape(-1, 3)
    is_near = (height.max(axis=1) > low) & (height.min(axis=1) < high)
    is_near &= (flat.max(axis=1) > bounds[:2] - WALL_MARGIN_M).all(axis=1) & (
        flat.min(axis=1) < bounds[2:] + WALL_MARGIN_M
    ).all(axis=1)
    flat, height = flat[is_near], height[is_near]
    if not len(flat):
        return None
    is_between = (height.min(axis=1) >= low) & (height.max(axis=1) <= high)
    parts = list(shapely.convex_hull(shapely.linestrings(flat[is_between]))) if is_between.any() else []
    for points, heights in zip(flat[~is_between], height[~is_between], strict=True):
        clipped = _between(points, heights, low, high)
        if len(clipped) >= 2:
            parts.append(shapely.convex_hull(shapely.multipoints(clipped)))
    if not parts:
        return None
    return with_area(
        shapely.union_all(shapely.buffer(parts, WALL_MARGIN_M, quad_segs=1, cap_style="square", join_style="bevel"))
    )


def _between(points: np.ndarray, heights: np.ndarray, low: float, high: float) -> np.ndarray:
    """Return the corners (k,2) of the part of a triangle between two heights."""
    corners = [point for point, h in zip(points, heights, strict=True) if low <= h <= high]
    for i, j in ((0, 1), (1, 2), (2, 0)):
        for level in (low, high):
            if (heights[i] - level) * (heights[j] - level) < 0:
                share = (level - heights[i]) / (heights[j] - heights[i])
                corners.append(points[i] + share * (points[j] - points[i]))
    return np.array(corners).reshape(-1, 2)


MAX_PARTS = 60
"""Maximum number of convex parts of one region."""

MAX_CORNERS = 16
"""Maximum number of corners of a part; excess corners are cut off where the loss of area is smallest."""

TRIED_ANGLES = np.linspace(0.0, np.pi, 36, endpoint=False)
"""Orientations (rad) of a rectangle that are tried in addition to those along the sides of a polygon."""

DIAGONAL_WEIGHT = 0.5
"""Weight of the area that a cut along no side leaves; cuts along sides are preferred, their parts fit together."""

RECTANGLE_TOLERANCE_M = 4e-3
"""Tolerance within which four corners form an axis-aligned rectangle."""

MIN_LENGTH_M = 1e-4
"""Shorter sides and narrower slivers are ignored."""


def convex_parts(region: Any, room: tuple[float, float], tolerance: float = 2e-3) -> list[np.ndarray]:
    """Return convex polygons (k,2), counter-clockwise, that lie in a region and do not overlap.

    Each part is cut around the centre of the largest circle inscribed in the remaining region, then removed from it.

    Parameters
    ----------
    region : polygons of shapely, with holes.
    room : sides of a rectangle that must fit on a part, m.
    tolerance : largest displacement when the outline of the region is simplified, m.
    """
    shapely = import_shapely()
    simplified = shapely.union_all([_simplified(part, tolerance) for part in polygons(region)])
    outlines: list[np.ndarray] = []
    queue = [part for part in polygons(simplified) if part.area >= room[0] * room[1]]
    while queue and len(outlines) < MAX_PARTS:
        part = queue.pop(0)
        if is_convex_polygon(part):
            convex_part = part
        else:
            circle = shapely.maximum_inscribed_circle(part, tolerance=max(1e-3, 0.02 * min(room)))
            if shapely.length(circle) < 0.49 * min(room):
                continue
            convex_part = _cut_convex_part(part, np.array(circle.coords[0]), shapely.length(circle))
        outline = _outline(convex_part)
        if outline is not None and has_room(outline, room):
            outlines.append(outline)
        if convex_part is part:
            continue
        remaining = shapely.difference(
            part, shapely.buffer(convex_part, MIN_LENGTH_M, join_style="mitre"), grid_size=GRID_M
        )
        queue += [piece for piece in polygons(remaining) if piece.area >= room[0] * room[1]]
        queue.sort(key=lambda piece: -piece.area)
    return outlines


def _simplified(part: Any, tolerance: float) -> Any:
    """Return a simplified polygon; its rings start at an outermost corner, because the first corner is always kept."""
    shapely = import_shapely()
    rings = []
    for ring in (part.exterior, *part.interiors):
        points = np.array(ring.coords)[:-1]
        farthest = int(np.argmax(np.sum((points - points.mean(axis=0)) ** 2, axis=1)))
        rings.append(np.roll(points, -farthest, axis=0))
    return shapely.simplify(shapely.Polygon(rings[0], rings[1:]), tolerance)


def has_room(polygon: np.ndarray, room: tuple[float, float]) -> bool:
    """Whether a rectangle with the sides ``room`` (m) fits into a convex polygon (k,2) in some orientation."""
    half = np.array(room) / 2
    box = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]]) * half
    low, high = polygon.min(axis=0) - 1.0, polygon.max(axis=0) + 1.0
    square = np.array([low, [high[0], low[1]], high, [low[0], high[1]]])
    edges = np.roll(polygon, -1, axis=0) - polygon
    for angle in (*np.arctan2(edges[:, 1], edges[:, 0]), *TRIED_ANGLES):
        c, s = np.cos(angle), np.sin(angle)
        A, b = erode(polygon, box @ np.array([[c, s], [-s, c]]))
        if len(clip(square, A, b + 1e-9)):
            return True
    return False


def is_convex_polygon(part: Any) -> bool:
    """Whether a polygon has no holes and no reflex corner."""
    return not part.interiors and not len(_reflex_corners(part))


def _cut_convex_part(part: Any, middle: np.ndarray, radius: float) -> Any:
    """Return a convex part around the point ``middle``, cut along the nearest sides that end in reflex corners.

    The part beyond such a side is cut off, until no reflex corner remains (as IRIS does with tangents of obstacles,
    Deits and Tedrake 2014). If the corner itself is nearest, the cut runs along one of its two sides, whichever leaves
    more area, or perpendicular to the line from the corner to the point if that leaves twice as much.

    If rounding prevents termination, the result is the circle of ``radius`` (m) about the point, inside the part.
    """
    shapely = import_shapely()
    circle = shapely.buffer(shapely.points(middle), radius, quad_segs=4)
    for _ in range(500):
        corners = _reflex_corners(part)
        if not len(corners):
            break
        corner, directions = _candidate_cuts(corners, middle)
        best_piece, best_score = None, 0.0
        for direction, weight in directions:
            length = np.linalg.norm(direction)
            if length < 1e-9:
                continue
            piece = _piece_on_side(part, corner, direction / length, middle)
            if piece is not None and weight * piece.area > best_score:
                best_piece, best_score = piece, weight * piece.area
        if best_piece is None or best_piece.area > part.area - 1e-12:
            return circle
        part = best_piece
    return part if is_convex_polygon(part) else circle


def _candidate_cuts(corners: np.ndarray, middle: np.ndarray) -> tuple[np.ndarray, list[tuple[np.ndarray, float]]]:
    """Return a point (2,) and the directions of candidate cuts through it, with the weights of their areas.

    ``corners`` (k,3,2) are the reflex corners, each with the one before and the one after it.
    """
    starts = np.concatenate([corners[:, 1], corners[:, 1]])
    sides = np.concatenate([corners[:, 0], corners[:, 2]]) - starts
    share = np.einsum("ij,ij->i", middle - starts, sides) / np.maximum(np.sum(sides**2, axis=1), 1e-18)
    feet = starts + np.clip(share, 0.0, 1.0)[:, None] * sides
    k = int(np.argmin(np.sum((feet - middle) ** 2, axis=1)))
    if share[k] > 1e-6:
        return starts[k], [(sides[k], 1.0)]
    previous_corner, corner, next_corner = corners[k % len(corners)]
    perpendicular = np.array([middle[1] - corner[1], corner[0] - middle[0]])
    return corner, [(corner - previous_corner, 1.0), (next_corner - corner, 1.0), (perpendicular, DIAGONAL_WEIGHT)]


def _piece_on_side(part: Any, point: np.ndarray, direction: np.ndarray, middle: np.ndarray) -> Any:
    """Return the piece of a polygon that contains ``middle``, cut at a line given by point and direction.

    None if the line passes within 1 mm of ``middle``.
    """
    shapely = import_shapely()
    normal = np.array([-direction[1], direction[0]])
    distance = float((middle - point) @ normal)
    if abs(distance) < 1e-3:
        return None
    normal = normal if distance > 0 else -normal
    length = 4.0 * max(np.ptp(np.array(part.bounds).reshape(2, 2), axis=0).max(), 1.0)
    a, b = point - length * direction, point + length * direction
    half_plane = shapely.polygons([a, b, b + 2 * length * normal, a + 2 * length * normal])
    middle_point = shapely.points(middle)
    for piece in polygons(shapely.intersection(part, half_plane, grid_size=GRID_M)):
        if piece.distance(middle_point) < 1e-9:
            return piece
    return None


def _reflex_corners(part: Any) -> np.ndarray:
    """Return the reflex corners (k,3,2), each with the one before and the one after it: previous, corner, next."""
    shapely = import_shapely()
    part = shapely.simplify(part, MIN_LENGTH_M / 10)
    corners = []
    for k, ring in enumerate((part.exterior, *part.interiors)):
        points = np.array(ring.coords)[:-1]
        if (_doubled_area(points) < 0) == (k == 0):  # counter-clockwise outside, clockwise holes
            points = points[::-1]
        previous_corners, next_corners = np.roll(points, 1, axis=0), np.roll(points, -1, axis=0)
        incoming, outgoing = points - previous_corners, next_corners - points
        lengths = np.linalg.norm(incoming, axis=1) * np.linalg.norm(outgoing, axis=1)
        cross = incoming[:, 0] * outgoing[:, 1] - incoming[:, 1] * outgoing[:, 0]
        is_reflex = cross < -1e-6 * np.maximum(lengths, 1e-12)
        corners.append(np.stack([previous_corners, points, next_corners], axis=1)[is_reflex])
    return np.concatenate(corners) if corners else np.zeros((0, 3, 2))


def _doubled_area(points: np.ndarray) -> float:
    """Return twice the signed area (m²) of a polygon (k,2)."""
    x, y = points.T
    return float(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)))


def _snap_to_rectangle(corners: np.ndarray) -> np.ndarray:
    """Return the axis-aligned rectangle inside four corners that nearly form one; other corners unchanged."""
    low, high = corners.min(axis=0), corners.max(axis=0)
    box = np.array([low, [high[0], low[1]], high, [low[0], high[1]]])
    if len(corners) != 4:
        return corners
    order = [int(np.argmin(np.sum((corners - corner) ** 2, axis=1))) for corner in box]
    nearest_corners = corners[order]
    if len(set(order)) < 4 or np.abs(nearest_corners - box).max() > RECTANGLE_TOLERANCE_M:
        return corners
    x0, x1 = nearest_corners[[0, 3], 0].max(), nearest_corners[[1, 2], 0].min()
    y0, y1 = nearest_corners[[0, 1], 1].max(), nearest_corners[[2, 3], 1].min()
    return np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]])


def _outline(part: Any) -> np.ndarray | None:
    """Return at most ``MAX_CORNERS`` corners (k,2) of a convex polygon, rounded to 0.1 mm; None if nothing is left."""
    from scipy.spatial import ConvexHull, QhullError

    points = np.round(np.array(part.exterior.coords)[:-1], 4)
    try:
        hull = points[ConvexHull(points).vertices]
    except (QhullError, ValueError):
        return None
    while len(hull) > 3:
        previous_corners, next_corners = np.roll(hull, 1, axis=0), np.roll(hull, -1, axis=0)
        a, b = hull - previous_corners, next_corners - hull
        lost_area = np.abs(a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]) / 2
        # remove almost straight corners, and corners beyond the limit
        if (
            lost_area.min()
            > MIN_LENGTH_M * np.linalg.norm(next_corners - previous_corners, axis=1)[np.argmin(lost_area)] / 2
            and len(hull) <= MAX_CORNERS
        ):
            break
        hull = np.delete(hull, int(np.argmin(lost_area)), axis=0)
    hull = _snap_to_rectangle(hull)
    A, b = half_planes(hull)
    return hull if np.all(hull.mean(axis=0) @ A.T < b) else None
