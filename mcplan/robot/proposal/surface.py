"""Contact faces of a link: points of its shapes, flat end in a direction, inscribed rectangle."""

from dataclasses import dataclass

import numpy as np

from mcplan.robot.anatomy import links_of_bodies
from mcplan.robot.description import Box, Geometry, MeshShape, Sphere
from mcplan.robot.robot import Robot

SPHERE_POINTS = 400
"""Number of sample points of a sphere."""


@dataclass(frozen=True, eq=False)
class Face:
    """A rectangle on a body.

    Parameters
    ----------
    R, p : rotation (3,3) and position (3,) of its frame in the body; z points out, x in the given direction.
    low, high : (2,) its corners in that frame.
    depth : m, tolerance along z of the points that the rectangle approximates.
    """

    R: np.ndarray
    p: np.ndarray
    low: np.ndarray
    high: np.ndarray
    depth: float

    @property
    def size(self) -> np.ndarray:
        """Lengths (2,) of its sides."""
        return self.high - self.low


def lowest_ball(robot: Robot, body: int, down: np.ndarray) -> tuple[np.ndarray, float] | None:
    """Return centre (3,) in the body and radius of its lowest collision sphere, or None."""
    spheres = [
        (p, geometry.shape.radius)
        for _, geometry, _, p in _collision_shapes(robot, body)
        if isinstance(geometry.shape, Sphere)
    ]
    return max(spheres, key=lambda ball: float(ball[0] @ down) + ball[1], default=None)


def body_points(robot: Robot, body: int) -> dict[str, np.ndarray]:
    """Return points (k,3) of the shapes of a body's links in the body: of collision shapes, else of visual ones."""
    points_by_link: dict[str, list[np.ndarray]] = {}
    for link, geometry, R, p in _collision_shapes(robot, body) or _shapes(robot, body):
        points_by_link.setdefault(link, []).append(shape_points(geometry.shape) @ R.T + p)
    return {link: np.concatenate(parts) for link, parts in points_by_link.items()}


def _collision_shapes(robot: Robot, body: int) -> list[tuple[str, Geometry, np.ndarray, np.ndarray]]:
    return [geometry for geometry in _shapes(robot, body) if geometry[1].role != "visual"]


def _shapes(robot: Robot, body: int) -> list[tuple[str, Geometry, np.ndarray, np.ndarray]]:
    """Return the shapes of a body's links: link, geometry, rotation (3,3) and position (3,) in the body."""
    shapes = []
    for link in links_of_bodies(robot)[body]:
        offset = robot.frame(link)[1]
        R, p = offset[:9].reshape(3, 3), offset[9:]
        shapes += [(link, geometry, R @ geometry.R, R @ geometry.p + p) for geometry in robot.geometry[link]]
    return shapes


def shape_points(shape) -> np.ndarray:
    """Return points (k,3) with approximately the shape as convex hull."""
    if isinstance(shape, MeshShape):
        return shape.vertices
    if isinstance(shape, Box):
        return np.array([(x, y, z) for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)]) * shape.size
    if isinstance(shape, Sphere):
        return shape.radius * _sphere()
    angle = np.linspace(0, 2 * np.pi, 48, endpoint=False)
    circle = shape.radius * np.column_stack([np.cos(angle), np.sin(angle), np.zeros(48)])
    half_length = np.array([0, 0, shape.length / 2])
    if type(shape).__name__ == "Capsule":
        ball = shape.radius * _sphere()
        return np.concatenate([ball + np.sign(ball[:, 2:]) * half_length, circle + half_length, circle - half_length])
    return np.concatenate([circle + half_length, circle - half_length])


def _sphere() -> np.ndarray:
    """Return points (SPHERE_POINTS,3) on the unit sphere, with its poles (a spiral of equal areas)."""
    z = np.linspace(-1, 1, SPHERE_POINTS)
    angle = np.pi * (3 - np.sqrt(5)) * np.arange(SPHERE_POINTS)
    r = np.sqrt(1 - z**2)
    return np.column_stack([r * np.cos(angle), r * np.sin(angle), z])


def face(points: np.ndarray, normal: np.ndarray, forward: np.ndarray, origin: np.ndarray, depth: float) -> Face:
    """Return the largest rectangle inscribed in the points within ``depth`` (m) of the farthest one along ``normal``.

    Parameters
    ----------
    points : (k,3) points of the body.
    normal : (3,) direction out of the body.
    forward : (3,) direction of the rectangle's x axis, before its part along the normal is removed.
    origin : (3,) the rectangle's frame has its origin on the line along ``normal`` through this point.
    """
    z = normal / np.linalg.norm(normal)
    x = forward - (forward @ z) * z
    x /= np.linalg.norm(x)
    R = np.column_stack([x, np.cross(z, x), z])
    height = points @ z
    p = origin + (height.max() - origin @ z) * z
    face_points = (points[height > height.max() - depth] - p) @ R[:, :2]
    low, high = inscribed_rectangle(face_points)
    return Face(R, p, low, high, depth)


def inscribed_rectangle(points: np.ndarray, steps: int = 31) -> tuple[np.ndarray, np.ndarray]:
    """Return two opposite corners of the largest axis-parallel rectangle in the convex hull of points (k,2).

    Its sides along y are at two of ``steps`` equidistant values of x.
    """
    from scipy.spatial import ConvexHull, QhullError  # slow import

    try:
        corners = points[ConvexHull(points).vertices]
    except (QhullError, ValueError):  # a point or a line
        middle = (points.min(axis=0) + points.max(axis=0)) / 2
        return middle, middle
    x = np.linspace(corners[:, 0].min(), corners[:, 0].max(), steps)
    # the hull's lower and upper edge at x
    upper, lower = np.full(steps, -np.inf), np.full(steps, np.inf)
    for (ax, ay), (bx, by) in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        inside = (x >= min(ax, bx) - 1e-12) & (x <= max(ax, bx) + 1e-12)
        fraction = np.clip((x - ax) / (bx - ax), 0, 1) if abs(bx - ax) > 1e-12 else np.zeros(steps)
        for y in (ay + fraction * (by - ay), *([np.full(steps, by)] if abs(bx - ax) <= 1e-12 else [])):
            upper = np.where(inside, np.maximum(upper, y), upper)
            lower = np.where(inside, np.minimum(lower, y), lower)
    i, j = np.triu_indices(steps, 1)
    top, bottom = np.minimum(upper[i], upper[j]), np.maximum(lower[i], lower[j])
    best = int(np.argmax((x[j] - x[i]) * np.maximum(top - bottom, 0)))
    return np.array([x[i[best]], bottom[best]]), np.array([x[j[best]], top[best]])


def flattest_direction(points: np.ndarray, towards: np.ndarray, axes: np.ndarray, depth: float) -> np.ndarray:
    """Return the direction (3,) near ``towards`` (3,) whose `face` of points (k,3) has the largest rectangle.

    Candidates are ``towards``, and the ``axes`` (m,3) and normals of the convex hull within 30 degrees of it. An axis
    is preferred unless the rectangle of another candidate is more than a tenth larger.
    """
    from scipy.spatial import ConvexHull, QhullError

    towards = towards / np.linalg.norm(towards)
    candidates = [(axis, 1.1) for axis in axes if axis @ towards > np.cos(np.deg2rad(30))] + [(towards, 1.0)]
    try:
        hull = ConvexHull(points)
        facets = {tuple(np.round(row[:3], 3)) for row in hull.equations if row[:3] @ towards > np.cos(np.deg2rad(30))}
        candidates += [(np.array(facet) / np.linalg.norm(facet), 1.0) for facet in sorted(facets)[:200]]
        points = points[hull.vertices]
    except (QhullError, ValueError):
        pass
    forward = np.eye(3)[np.argmin(np.abs(towards))]
    area = [bonus * float(np.prod(face(points, z, forward, np.zeros(3), depth).size)) for z, bonus in candidates]
    return candidates[int(np.argmax(area))][0]
