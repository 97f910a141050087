"""From the shapes of links and obstacles to the packed, centred ones of the kernels."""

from dataclasses import dataclass

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from mcplan.core.distance.pair import DISTANCE, PAIR_SIZE, pair_distance
from mcplan.core.distance.shape import BOX, CAPSULE, CYLINDER, HULL, PLANE, SPHERE, Shapes, scratch
from mcplan.errors import InputError
from mcplan.model.geometry import Box, Capsule, Cylinder, MeshShape, Shape, Sphere

NOTHING = np.zeros((0, 3))

POINT, FAR = 1e-6, 1e3
"""m: radius of a sphere that stands for a point, and a distance that none exceeds."""


@dataclass(frozen=True, eq=False)
class HalfSpace:
    """Everything below the plane z = 0 of its frame."""


@dataclass(frozen=True, eq=False)
class Solid:
    """A convex shape and where it is.

    Parameters
    ----------
    kind : of the core, see ``mcplan.core.distance.shape``.
    half : (3,) half sizes of the core, m.
    radius : around the core, m.
    R, p : pose of the shape in its link or in the world.
    vertices : (k,3) of a hull, in the shape's frame.
    """

    kind: int
    half: np.ndarray
    radius: float
    R: np.ndarray
    p: np.ndarray
    vertices: np.ndarray

    @property
    def ball(self) -> float:
        """Radius of the bounding sphere about the shape's frame."""
        if self.kind == PLANE:
            return np.inf
        if self.kind == HULL:
            return float(np.linalg.norm(self.vertices, axis=1).max())
        half = self.half if self.kind == BOX else self.half[[0, 2]]
        return float(np.linalg.norm(half)) + self.radius


def solid(shape: Shape | HalfSpace, R: np.ndarray, p: np.ndarray) -> Solid:
    """Return a shape at a pose; a mesh stands for its convex hull.

    Raises
    ------
    InputError
        The shape is of no known kind.
    """
    R, p = np.asarray(R, float), np.asarray(p, float)
    if isinstance(shape, Sphere):
        return Solid(SPHERE, np.zeros(3), shape.radius, R, p, NOTHING)
    if isinstance(shape, Capsule):
        return Solid(CAPSULE, np.array([0, 0, shape.length / 2]), shape.radius, R, p, NOTHING)
    if isinstance(shape, Box):
        return Solid(BOX, np.array(shape.size, float) / 2, 0.0, R, p, NOTHING)
    if isinstance(shape, Cylinder):
        return Solid(CYLINDER, np.array([shape.radius, shape.radius, shape.length / 2]), 0.0, R, p, NOTHING)
    if isinstance(shape, HalfSpace):
        return Solid(PLANE, np.zeros(3), 0.0, R, p, NOTHING)
    if isinstance(shape, MeshShape):
        return hull(shape.vertices, R, p)
    raise InputError(f"{type(shape).__name__} is no shape that can collide")


def hull(points: np.ndarray, R: np.ndarray, p: np.ndarray) -> Solid:
    """Return the convex hull of points (k,3), given in the frame (R, p)."""
    points = np.unique(np.asarray(points, float), axis=0)
    try:
        corners = points[np.sort(ConvexHull(points).vertices)]
    except (QhullError, ValueError):  # flat, or fewer than four points: all of them are kept
        corners = points
    low, high = corners.min(axis=0), corners.max(axis=0)
    middle = (low + high) / 2
    return Solid(HULL, (high - low) / 2, 0.0, R, p + R @ middle, corners - middle)


def distances_to(solids: list[Solid], points: np.ndarray) -> np.ndarray:
    """Return how far points (k,3) are from the nearest of solids in the same frame (k,) (m), negative inside of it."""
    count = len(solids)
    balls = [Solid(SPHERE, np.zeros(3), POINT, np.eye(3), x, NOTHING) for x in points]
    shapes = pack([*solids, *balls], [0] * (count + len(balls)))
    found, value, work = np.full(len(points), np.inf), np.zeros(PAIR_SIZE), scratch()
    for k in range(len(points)):
        for i in range(count):
            pair_distance(shapes, count + k, i, shapes.offset, FAR, work, value)
            found[k] = min(found[k], value[DISTANCE] + POINT)
    return found


def pack(solids: list[Solid], bodies: list[int]) -> Shapes:
    """Pack solids; each is in the frame of a body of the tree, or in the world where the body is -1."""
    counts = [len(s.vertices) for s in solids]
    starts = np.cumsum(counts, dtype=int) - np.array(counts, int)
    rows = zip(solids, bodies, starts, counts, strict=True)
    return Shapes(
        frozen(np.array([[s.kind, body, start, n] for s, body, start, n in rows], np.int64).reshape(-1, 4)),
        frozen(np.array([[*s.half, s.radius, s.ball] for s in solids], float).reshape(-1, 5)),
        frozen(np.array([[*s.R.ravel(), *s.p] for s in solids], float).reshape(-1, 12)),
        frozen(np.concatenate([np.zeros((0, 3)), *(s.vertices for s in solids)])),
    )


def frozen(array: np.ndarray) -> np.ndarray:
    """Return the array, contiguous and read-only."""
    array = np.ascontiguousarray(array)
    array.flags.writeable = False
    return array
