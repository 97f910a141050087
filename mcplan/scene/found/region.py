"""Where on a plane something may stand: its triangles together, less what is overhung and what lies inside a solid."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mcplan.errors import InputError
from mcplan.scene.find_settings import FindSettings
from mcplan.scene.found.planes import Plane
from mcplan.scene.found.triangles import Triangles, winding_number

WALL = 1e-3
"""m: what rises from a plane takes so much around it: a wall seen from above has no width."""

GRID = 1e-6
"""m: to which the corners of polygons are rounded, so that what touches has no crack."""

UP = np.array([0.0, 0.0, 1.0])


def geometry() -> Any:
    """Return the library of plane geometry.

    Raises
    ------
    InputError
        It is not installed.
    """
    try:
        import shapely
    except ImportError:
        raise InputError("to find surfaces in a mesh takes shapely: pip install 'mcplan[scenes]'") from None
    return shapely


@dataclass(frozen=True, eq=False)
class Region:
    """What is free of a plane, and what is not.

    Parameters
    ----------
    R, p : frame (3,3), (3,) of the plane: z is its normal, x along its longer side.
    covered : all of its triangles together (polygons of shapely, in the frame), cracks closed.
    free : the part on which something may stand.
    overhung, inside : the parts that are taken by what is above them, and that lie in a solid.
    """

    R: np.ndarray
    p: np.ndarray
    covered: Any
    free: Any
    overhung: Any
    inside: Any


def free_region(plane: Plane, triangles: Triangles, settings: FindSettings) -> Region:
    """Return what of a plane is free.

    Parameters
    ----------
    plane : one that looks up.
    triangles : of the whole environment.
    """
    shapely = geometry()
    corners = triangles.corners
    R, p = _frame(plane, corners[plane.members])
    flat = to_plane(corners[plane.members].reshape(-1, 3), R, p)[0].reshape(-1, 3, 2)
    covered = shapely.union_all(_sound(shapely, shapely.polygons(flat)), grid_size=GRID)
    covered = areal(closed(covered, settings.gap))
    points = corners[plane.members].reshape(-1, 3)
    rise = [0.0, 0.0, settings.clearance / R[2, 2] + 2 * plane.spread]
    others = triangles.within(points.min(axis=0) - 2 * WALL - plane.spread, points.max(axis=0) + 2 * WALL + rise)
    others[plane.members] = False
    least = max(2 * WALL, 2 * plane.spread if plane.spread > WALL else 0.0)
    taken = _above(corners[others], R, p, shapely.bounds(covered), least, settings.clearance)
    free = covered if taken is None else areal(shapely.difference(covered, taken, grid_size=GRID))
    overhung = areal(shapely.difference(covered, free, grid_size=GRID))
    # nothing crosses the air over a connected part, so that one point tells whether it is air
    outside: list[Any] = []
    inside: list[Any] = []
    height = least + 0.4 * (settings.clearance - least)
    for part in polygons(free):
        x, y = shapely.point_on_surface(part).coords[0]
        above = p + R @ [x, y, 0.0] + height * UP
        (inside if winding_number(above, corners) > 0.5 else outside).append(part)
    return Region(R, p, covered, shapely.union_all(outside), overhung, shapely.union_all(inside))


def to_plane(points: np.ndarray, R: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return where points (k,3) are seen from above: places (k,2) in a plane's frame, and heights (k,) over it."""
    height = (points - p) @ R[:, 2] / R[2, 2]
    return (points - height[:, None] * UP - p) @ R[:, :2], height


def polygons(shape: Any) -> list:
    """Return the polygons of a shape, the largest first."""
    found = [part for part in getattr(shape, "geoms", [shape]) if part.geom_type == "Polygon" and part.area > 0.0]
    return sorted(found, key=lambda part: -part.area)


def areal(shape: Any) -> Any:
    """Return what of a shape has an area: rounding leaves lines and points behind."""
    return geometry().union_all(polygons(shape))


def closed(shape: Any, width: float) -> Any:
    """Return a shape without its cracks of up to a width (m)."""
    if width <= 0.0:
        return shape
    return shape.buffer(width / 2, join_style="mitre").buffer(-width / 2, join_style="mitre").union(shape)


def _sound(shapely: Any, parts: np.ndarray) -> np.ndarray:
    return parts[shapely.is_valid(parts) & (shapely.area(parts) > 0.0)]


def _frame(plane: Plane, corners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a frame of the plane: x along the longer side of what it covers, as near to x of the world as may be."""
    z = plane.normal
    shapely = geometry()
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
    turn = float(np.arctan2(side[1], side[0]))
    turn = (turn + np.pi / 4) % (np.pi / 2) - np.pi / 4  # sides of a rectangle: the nearest to where x is
    c, s = np.cos(turn), np.sin(turn)
    R = R @ np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    middle = outline[:4].mean(axis=0)
    axes = np.column_stack([x, np.cross(z, x)])
    return R, plane.point + axes @ middle


def _above(corners: np.ndarray, R: np.ndarray, p: np.ndarray, bounds: np.ndarray, low: float, high: float) -> Any:
    """Return what of triangles (m,3,3) is between two heights over a plane, seen from above; None where nothing is."""
    shapely = geometry()
    flat, height = to_plane(corners.reshape(-1, 3), R, p)
    flat, height = flat.reshape(-1, 3, 2), height.reshape(-1, 3)
    near = (height.max(axis=1) > low) & (height.min(axis=1) < high)
    near &= (flat.max(axis=1) > bounds[:2] - WALL).all(axis=1) & (flat.min(axis=1) < bounds[2:] + WALL).all(axis=1)
    flat, height = flat[near], height[near]
    if not len(flat):
        return None
    whole = (height.min(axis=1) >= low) & (height.max(axis=1) <= high)
    parts = list(shapely.convex_hull(shapely.linestrings(flat[whole]))) if whole.any() else []
    for points, heights in zip(flat[~whole], height[~whole], strict=True):
        cut = _between(points, heights, low, high)
        if len(cut) >= 2:
            parts.append(shapely.convex_hull(shapely.multipoints(cut)))
    if not parts:
        return None
    return areal(shapely.union_all(shapely.buffer(parts, WALL, quad_segs=1, cap_style="square", join_style="bevel")))


def _between(points: np.ndarray, heights: np.ndarray, low: float, high: float) -> np.ndarray:
    """Return the corners (k,2) of the part of a triangle between two heights."""
    found = [point for point, h in zip(points, heights, strict=True) if low <= h <= high]
    for i, j in ((0, 1), (1, 2), (2, 0)):
        for level in (low, high):
            if (heights[i] - level) * (heights[j] - level) < 0:
                share = (level - heights[i]) / (heights[j] - heights[i])
                found.append(points[i] + share * (points[j] - points[i]))
    return np.array(found).reshape(-1, 2)
