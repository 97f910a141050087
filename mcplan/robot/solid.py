"""Convex solids: shapes of links and obstacles, centred and packed for the distance kernels; inertia of shapes."""

from dataclasses import dataclass, field, replace
from weakref import WeakKeyDictionary

import numpy as np

from mcplan.core.distance.pair import DISTANCE, PAIR_SIZE, pair_distance
from mcplan.core.distance.shape import BOX, CAPSULE, CELLS, CYLINDER, HULL, PLANE, SPHERE, Shapes, scratch
from mcplan.errors import InputError
from mcplan.robot.description import Box, Capsule, Cylinder, MeshShape, Shape, Sphere
from mcplan.util.arrays import read_only

NO_VERTICES = np.zeros((0, 3))
"""Vertices of a solid that is not a hull."""

POINT_RADIUS_M, MAX_DISTANCE_M = 1e-6, 1e3
"""Radius (m) of a sphere that represents a point, and an upper bound (m) of distances."""


MIN_GRAPH_VERTICES = 24
"""Number of vertices below which a hull has no graph: testing all its vertices is as fast as hill climbing."""

NO_GRAPH = np.zeros(0, np.int64)
"""Graph of a solid without one."""


@dataclass(frozen=True, eq=False)
class HalfSpace:
    """The half-space below the plane z = 0 of its frame."""


@dataclass(frozen=True, eq=False)
class Solid:
    """A convex shape with its pose: the points within ``radius`` of a core.

    Parameters
    ----------
    kind : kind of the core, see ``mcplan.core.distance.shape``.
    half : (3,) half sizes of the core, m.
    radius : radius added around the core, m.
    R, p : pose of the shape in its link or in the world.
    vertices : (k,3) vertices of a hull, in the shape's frame, m.
    graph : edges of a hull, as in ``Shapes.graph``; empty for a hull with few vertices or a flat one.
    """

    kind: int
    half: np.ndarray
    radius: float
    R: np.ndarray
    p: np.ndarray
    vertices: np.ndarray
    graph: np.ndarray = field(default_factory=NO_GRAPH.copy)

    @property
    def bounding_radius(self) -> float:
        """Radius of the bounding sphere about the shape's frame."""
        if self.kind == PLANE:
            return np.inf
        if self.kind == HULL:
            return float(np.linalg.norm(self.vertices, axis=1).max())
        half = self.half if self.kind == BOX else self.half[[0, 2]]
        return float(np.linalg.norm(half)) + self.radius


_HULLS: WeakKeyDictionary[MeshShape, Solid] = WeakKeyDictionary()
"""Cache of mesh hulls in their own frames: collision checks and simulation need each of them about a dozen times, and a
large one takes about 10 ms."""


def solid(shape: Shape | HalfSpace, R: np.ndarray, p: np.ndarray) -> Solid:
    """Return the convex solid of a shape at a pose; for a mesh, its convex hull.

    Raises
    ------
    InputError
        The kind of the shape is unknown.
    """
    R, p = np.asarray(R, float), np.asarray(p, float)
    if isinstance(shape, Sphere):
        return Solid(SPHERE, np.zeros(3), shape.radius, R, p, NO_VERTICES)
    if isinstance(shape, Capsule):
        return Solid(CAPSULE, np.array([0, 0, shape.length / 2]), shape.radius, R, p, NO_VERTICES)
    if isinstance(shape, Box):
        return Solid(BOX, np.array(shape.size, float) / 2, 0.0, R, p, NO_VERTICES)
    if isinstance(shape, Cylinder):
        return Solid(CYLINDER, np.array([shape.radius, shape.radius, shape.length / 2]), 0.0, R, p, NO_VERTICES)
    if isinstance(shape, HalfSpace):
        return Solid(PLANE, np.zeros(3), 0.0, R, p, NO_VERTICES)
    if isinstance(shape, MeshShape):
        if shape not in _HULLS:
            _HULLS[shape] = hull(shape.vertices, np.eye(3), np.zeros(3))
        mesh_hull = _HULLS[shape]
        return replace(mesh_hull, R=R, p=p + R @ mesh_hull.p)
    raise InputError(f"{type(shape).__name__} is no shape that can collide")


def hull(points: np.ndarray, R: np.ndarray, p: np.ndarray) -> Solid:
    """Return the convex hull of points (k,3) that are given in a frame with the pose ``R``, ``p``."""
    corners, faces = hull_corners(np.asarray(points, float))
    low, high = corners.min(axis=0), corners.max(axis=0)
    middle = (low + high) / 2
    corners = corners - middle
    graph = hull_graph(corners, faces) if len(corners) >= MIN_GRAPH_VERTICES and len(faces) else NO_GRAPH
    return Solid(HULL, (high - low) / 2, 0.0, R, p + R @ middle, corners, graph)


def hull_corners(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the corners (c,3) of the convex hull of points (k,3), and its triangles (m,3).

    For coplanar or fewer than four points, all points are corners, and there are no triangles.
    """
    from scipy.spatial import ConvexHull, QhullError  # slow import, not needed to load most robots

    try:
        convex_hull = ConvexHull(points)
    except (QhullError, ValueError):
        return np.unique(points, axis=0), np.zeros((0, 3), int)
    corners = np.sort(convex_hull.vertices)
    return points[corners], np.searchsorted(corners, convex_hull.simplices)


def hull_graph(vertices: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Return the graph of a hull with vertices (k,3) and triangles (m,3), in the form of ``Shapes.graph``.

    It has the extreme vertex for each cell of the directions, then the end vertices of the edges from each vertex.
    """
    edges = np.vstack([faces[:, pair] for pair in ([0, 1], [1, 2], [2, 0], [1, 0], [2, 1], [0, 2])])
    start_vertices, end_vertices = np.divmod(np.unique(edges[:, 0] * len(vertices) + edges[:, 1]), len(vertices))
    edge_starts = np.searchsorted(start_vertices, np.arange(len(vertices) + 1))
    cell_centres = (np.arange(CELLS) + 0.5) * 2.0 / CELLS - 1.0
    u, v = (grid.ravel() for grid in np.meshgrid(cell_centres, cell_centres, indexing="ij"))
    ones = np.ones_like(u)
    sides = [(ones, u, v), (-ones, u, v), (v, ones, u), (v, -ones, u), (u, v, ones), (u, v, -ones)]
    extreme_vertices = [np.argmax(np.column_stack(side) @ vertices.T, axis=1) for side in sides]
    offset = 6 * CELLS**2 + len(edge_starts)
    return np.concatenate([*extreme_vertices, edge_starts + offset, end_vertices]).astype(np.int64)


def distances_to(solids: list[Solid], points: np.ndarray) -> np.ndarray:
    """Return the distances (k,) (m) of points (k,3) from the nearest solid, in the same frame; negative inside."""
    count = len(solids)
    balls = [Solid(SPHERE, np.zeros(3), POINT_RADIUS_M, np.eye(3), x, NO_VERTICES) for x in points]
    shapes = pack([*solids, *balls], [0] * (count + len(balls)))
    distances, value, work = np.full(len(points), np.inf), np.zeros(PAIR_SIZE), scratch()
    pose = shapes.offset.copy()  # writable as in all other calls, or the kernel would be compiled again
    for k in range(len(points)):
        for i in range(count):
            pair_distance(shapes, count + k, i, pose, MAX_DISTANCE_M, work, value)
            distances[k] = min(distances[k], value[DISTANCE] + POINT_RADIUS_M)
    return distances


def pack(solids: list[Solid], bodies: list[int]) -> Shapes:
    """Pack solids for the kernels; each is in the frame of a body, whose index is -1 for the world."""
    counts = np.array([(len(s.vertices), len(s.graph)) for s in solids], int).reshape(-1, 2)
    starts = np.cumsum(counts, axis=0) - counts
    graphs = np.where(counts[:, 1] > 0, starts[:, 1], -1)
    rows = zip(solids, bodies, starts[:, 0], counts[:, 0], graphs, strict=True)
    return Shapes(
        read_only(np.array([[s.kind, body, *numbers] for s, body, *numbers in rows], np.int64).reshape(-1, 5)),
        read_only(np.array([[*s.half, s.radius, s.bounding_radius] for s in solids], float).reshape(-1, 5)),
        read_only(np.array([[*s.R.ravel(), *s.p] for s in solids], float).reshape(-1, 12)),
        read_only(np.concatenate([np.zeros((0, 3)), *(s.vertices for s in solids)])),
        read_only(np.concatenate([NO_GRAPH, *(s.graph for s in solids)])),
    )


def shape_inertia(shape: Shape, mass: float) -> tuple[np.ndarray, np.ndarray]:
    """Return centre of mass (3,) and principal inertia (3,) of a shape of uniform density.

    A mesh is replaced by its bounding box.
    """
    if isinstance(shape, Sphere):
        return np.zeros(3), np.full(3, 0.4 * mass * shape.radius**2)
    if isinstance(shape, Box):
        x, y, z = np.square(shape.size)
        return np.zeros(3), mass / 12 * np.array([y + z, x + z, x + y])
    if isinstance(shape, MeshShape):
        low, high = shape.vertices.min(axis=0), shape.vertices.max(axis=0)
        return (low + high) / 2, shape_inertia(Box(tuple(high - low)), mass)[1]
    r, length = shape.radius, shape.length
    if isinstance(shape, Cylinder):
        transverse = mass * (3 * r**2 + length**2) / 12
        return np.zeros(3), np.array([transverse, transverse, mass * r**2 / 2])
    # capsule: a tube and two half balls, whose volume is that of a tube of length 4 r / 3
    tube, balls = length, 4 * r / 3
    m_tube, m_balls = mass * tube / (tube + balls), mass * balls / (tube + balls)
    transverse = m_tube * (3 * r**2 + length**2) / 12 + m_balls * (0.4 * r**2 + length**2 / 4 + 3 * length * r / 8)
    return np.zeros(3), np.array([transverse, transverse, m_tube * r**2 / 2 + m_balls * 0.4 * r**2])
