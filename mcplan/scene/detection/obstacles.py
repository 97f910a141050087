"""Convex decomposition of a mesh into obstacles that leave the surfaces free.

A convex hull fits if the triangles lie on it, face outwards, and the hull adds no volume to the solid. A mesh whose
hull does not fit is split: into walls, which are slabs behind its planes, and the rest in halves across its longest
side. Obstacles are cut off at the slabs of surfaces; boxes stay boxes. Also: thickness of the solid below a surface.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from scipy.spatial import ConvexHull, QhullError, cKDTree

from mcplan.robot.description import Box, MeshShape
from mcplan.scene.detection.planes import find_planes
from mcplan.scene.detection.regions import GRID, Region, close_cracks, convex_parts, import_shapely, plane_frame
from mcplan.scene.detection.triangles import Triangles, normals_areas, winding_number
from mcplan.scene.environment import Obstacle, Surface
from mcplan.scene.polygon import clip, half_planes

SHEET_THICKNESS = 0.05
"""m: thickness of an open sheet, or the ground."""

MIN_SLAB_THICKNESS = 0.02
"""m: minimum thickness of a slab: a landing foot would pass through a thinner one."""

DEPTH_INSET = 0.01
"""m: inset of depth samples from the outline, so that they miss the sides of the solid."""

SAMPLES_PER_SIDE = 6
"""Samples along each side of a surface's bounding rectangle."""


def thickness(
    triangles: Triangles, R: np.ndarray, p: np.ndarray, polygon: np.ndarray, max_depth: float = 100.0
) -> float:
    """Return the minimum thickness (m) of the solid below a surface (R, p, corners (k,2)), at most ``max_depth``."""
    normals, _ = triangles.normals_areas
    top = np.column_stack([polygon, np.zeros(len(polygon))])
    outline = np.concatenate([top, top - [0.0, 0.0, max_depth]]) @ R.T + p
    near = triangles.within(outline.min(axis=0), outline.max(axis=0))
    local = (triangles.corners[near] - p) @ R
    low, high = polygon.min(axis=0), polygon.max(axis=0)
    below = (normals[near] @ R[:, 2] < -1e-6) & (local[:, :, 2].min(axis=1) < -1e-3)
    below &= (local[:, :, :2].max(axis=1) > low).all(axis=1) & (local[:, :, :2].min(axis=1) < high).all(axis=1)
    if not below.any():
        return SHEET_THICKNESS
    sampled = [_depth(local[below], point) for point in _inner_samples(polygon)]
    depths = [depth for depth in sampled if depth is not None]
    return round(max(min(depths, default=SHEET_THICKNESS), MIN_SLAB_THICKNESS), 4)


def _inner_samples(polygon: np.ndarray) -> np.ndarray:
    """Return sample points (n,2) of a polygon, none within ``DEPTH_INSET`` of its sides."""
    A, b = half_planes(polygon)
    steps = np.linspace(0.0, 1.0, SAMPLES_PER_SIDE)
    low, high = polygon.min(axis=0), polygon.max(axis=0)
    grid = np.array([[low[0] + s * (high[0] - low[0]), low[1] + t * (high[1] - low[1])] for s in steps for t in steps])
    middle = polygon.mean(axis=0)
    towards = middle - polygon
    corners = polygon + 1.5 * DEPTH_INSET * towards / np.linalg.norm(towards, axis=1, keepdims=True)
    points = np.concatenate([grid, corners, 0.5 * (corners + middle), [middle]])
    inside = np.all(points @ A.T <= b - DEPTH_INSET, axis=1)
    return points[inside] if inside.any() else middle[None]


def _depth(corners: np.ndarray, point: np.ndarray) -> float | None:
    """Return the depth of the first downward-facing triangle (m,3,3) below a point (2,), or None."""
    a, b, c = corners[:, 0, :2], corners[:, 1, :2], corners[:, 2, :2]
    ab, ac, ap = b - a, c - a, point - a
    double = ab[:, 0] * ac[:, 1] - ab[:, 1] * ac[:, 0]
    valid = np.abs(double) > 1e-12
    double = np.where(valid, double, 1.0)
    u = (ap[:, 0] * ac[:, 1] - ap[:, 1] * ac[:, 0]) / double
    v = (ab[:, 0] * ap[:, 1] - ab[:, 1] * ap[:, 0]) / double
    hit = valid & (u >= -1e-9) & (v >= -1e-9) & (u + v <= 1 + 1e-9)
    z = corners[:, 0, 2] + u * (corners[:, 1, 2] - corners[:, 0, 2]) + v * (corners[:, 2, 2] - corners[:, 0, 2])
    hit &= z < -1e-3
    return float(-z[hit].max()) if hit.any() else None


SURFACE_TOLERANCE = 5e-3
"""m: a solid that rises by less above the plane of a surface counts as below the surface."""

MAX_CORNERS = 48
"""Maximum number of corners of an obstacle; with more, the extreme corners in as many directions are kept."""


MIN_THICKNESS = 2e-3
"""m: thinner solids are rounding artefacts."""


class Slabs:
    """Surfaces, and the bounding boxes of the slabs below them."""

    def __init__(self, surfaces: Sequence[Surface]):
        self.surfaces = tuple(surfaces)
        ends = [np.concatenate([s.corners, s.corners - s.thickness * s.normal]) for s in surfaces]
        self.low = np.array([points.min(axis=0) for points in ends]).reshape(-1, 3)
        self.high = np.array([points.max(axis=0) for points in ends]).reshape(-1, 3)

    def near(self, points: np.ndarray, margin: float) -> list[Surface]:
        """Return the surfaces whose slabs may be within a margin (m) of the bounding box of points (k,3)."""
        low, high = points.min(axis=0) - margin, points.max(axis=0) + margin
        overlaps = np.all((self.high >= low) & (self.low <= high), axis=1)
        return [self.surfaces[k] for k in np.flatnonzero(overlaps)]


def cut_at_slabs(corners: np.ndarray, slabs: Slabs) -> np.ndarray | None:
    """Cut a convex solid (k,3) off at the slabs of the surfaces on top of it; None if nothing is left.

    A foot may touch the slab of its surface, but must not touch an obstacle.
    """
    for slab in slabs.near(corners, SURFACE_TOLERANCE):
        local = (corners - slab.p) @ slab.R
        if local[:, 2].max() > SURFACE_TOLERANCE or local[:, 2].max() <= -slab.thickness + 1e-6:
            continue
        try:
            outline = local[ConvexHull(local[:, :2]).vertices, :2]
        except (QhullError, ValueError):
            continue
        A, b = half_planes(slab.polygon)
        if not len(clip(outline, A, b - 1e-3)):
            continue
        below = local[local[:, 2] <= -slab.thickness]
        above = local[local[:, 2] > -slab.thickness]
        if not len(below):
            return None
        share = (-slab.thickness - below[:, None, 2]) / (above[None, :, 2] - below[:, None, 2])
        crossing = below[:, None] + share[..., None] * (above[None] - below[:, None])
        corners = np.concatenate([below, crossing.reshape(-1, 3)]) @ slab.R.T + slab.p
        try:
            corners = corners[ConvexHull(corners).vertices]
        except (QhullError, ValueError):
            return None
    return corners


def is_flat(corners: np.ndarray) -> bool:
    """Whether a convex solid (k,3) is thinner than ``MIN_THICKNESS``: twice its volume over its area."""
    try:
        hull = ConvexHull(np.round(corners, 4))
    except (QhullError, ValueError):
        return True
    return 2.0 * hull.volume < MIN_THICKNESS * hull.area


def convex_obstacle(name: str, corners: np.ndarray) -> Obstacle:
    """Return the obstacle of convex corners (k,3)."""
    corners = np.round(corners, 4)
    box = _box(corners)
    if box is not None:
        R, middle, size = box
        return Obstacle(name, Box(size), R, middle)
    if len(corners) > MAX_CORNERS:
        used = np.unique(np.argmax((corners - corners.mean(axis=0)) @ directions(MAX_CORNERS).T, axis=0))
        corners = corners[used]
    middle = np.round((corners.min(axis=0) + corners.max(axis=0)) / 2, 4)
    return Obstacle(name, hull_shape(corners - middle), p=middle)


def hull_shape(corners: np.ndarray) -> MeshShape:
    """Return the convex hull of corners (k,3) as a mesh with outward triangles.

    Raises
    ------
    QhullError, ValueError
        The corners lie in a plane.
    """
    hull = ConvexHull(corners)
    used = np.sort(hull.vertices)
    number = np.zeros(len(corners), np.int64)
    number[used] = np.arange(len(used))
    faces = hull.simplices.astype(np.int64)
    a, b, c = corners[faces].transpose(1, 0, 2)
    inward = np.einsum("ij,ij->i", np.cross(b - a, c - a), hull.equations[:, :3]) < 0
    faces[inward] = faces[inward][:, ::-1]
    return MeshShape(corners[used], number[faces])


def _box(corners: np.ndarray) -> tuple[np.ndarray, np.ndarray, tuple[float, float, float]] | None:
    """Return rotation, middle and size of the box with these corners; None if they form no box."""
    if len(corners) != 8:
        return None
    normals = ConvexHull(corners).equations[:, :3]
    z = normals[np.argmax(np.abs(normals[:, 2]))]
    z = z if z[2] > 0 else -z
    level = normals[np.abs(normals @ z) < 1e-2]
    if not len(level):
        return None
    x = level[np.argmax(np.abs(level[:, 0]))]
    x = x if x[0] > 0 else -x
    x = x - (x @ z) * z
    R = np.column_stack([x / np.linalg.norm(x), np.cross(z, x / np.linalg.norm(x)), z])
    local = corners @ R
    low, high = local.min(axis=0), local.max(axis=0)
    if np.abs(np.where(local - low < high - local, low, high) - local).max() > 2e-4:
        return None
    size = np.round(high - low, 4)
    return R, R @ (low + high) / 2, (float(size[0]), float(size[1]), float(size[2]))


def directions(count: int) -> np.ndarray:
    """Return evenly distributed unit vectors (count,3) (a spiral of equal areas)."""
    z = np.linspace(-1, 1, count)
    turn = np.pi * (3 - np.sqrt(5)) * np.arange(count)
    r = np.sqrt(1 - z**2)
    return np.column_stack([r * np.cos(turn), r * np.sin(turn), z])


SLAB_TOLERANCE = 3e-3
"""m: tolerance within which a triangle belongs to a slab."""

MAX_DEPTH = 0.03
"""m: maximum depth of triangles inside their hull."""

MAX_HULL_DISTANCE = 0.05
"""m: maximum distance of a hull from the mesh."""

MAX_WALL_THICKNESS, MIN_WALL_THICKNESS = 0.05, 0.01
"""m: bounds of the measured thickness of a wall."""

MIN_WALL_AREA = 0.02
"""m²: minimum area of a wall."""

MIN_GAP = (0.04, 0.04)
"""m: narrower gaps between surfaces are left open."""

MIN_WALL_SHARE = 0.005
"""Minimum area of a wall / area of its part; smaller planes are facets of round shapes."""

MAX_HALVINGS = 8
"""Maximum depth of halving."""

MAX_OBSTACLES = 300
"""Maximum number of obstacles; beyond it the smallest are left out, with a notice."""

CHECKED_HEIGHTS = (0.02, 0.1, 0.25)
"""m: heights above a surface at which there must be no hull."""

BARYCENTRIC_SAMPLES = np.array([(i, j, 4 - i - j) for i in range(5) for j in range(5 - i)], float) / 4
"""Barycentric coordinates (15,3) of sample points of a triangle."""


@dataclass(frozen=True, eq=False)
class _Mesh:
    """The triangles, and sample points on them."""

    triangles: Triangles
    corners: np.ndarray
    normals: np.ndarray
    areas: np.ndarray
    tree: cKDTree
    spacing: float


def find_obstacles(
    triangles: Triangles,
    unassigned: np.ndarray,
    surfaces: Sequence[Surface],
    regions: Sequence[tuple[Region, list[np.ndarray]]],
    tolerance: float = SLAB_TOLERANCE,
) -> tuple[list[Obstacle], list[str]]:
    """Return the obstacles, and notices about them.

    Parameters
    ----------
    unassigned : mask (m,) of the triangles that belong to no surface plane and no bar.
    surfaces : the detected surfaces.
    regions : planes of surfaces, and their parts that are surfaces.
    tolerance : m, tolerance within which a triangle belongs to a slab.
    """
    corners = triangles.corners
    normals, areas = triangles.normals_areas
    slabs = Slabs(surfaces)
    mesh = _Mesh(triangles, corners, normals, areas, *_points(corners, areas))
    members = np.flatnonzero(unassigned)
    members = members[~_covered(corners[members], slabs, tolerance)]
    hulls: list[np.ndarray] = []
    for region, parts in regions:
        hulls += _unused_parts(region, parts, triangles)
    for cluster in _clusters(triangles.faces, members):
        hulls += _solids(mesh, cluster, slabs, 0)
    cut = [corner for hull in hulls if (corner := cut_at_slabs(hull, slabs)) is not None]
    cut = [hull for hull in cut if not is_flat(hull) and not _inside_slab(hull, slabs)]
    cut.sort(key=lambda hull: -float(np.prod(np.ptp(hull, axis=0) + 1e-3)))
    notices = []
    if len(cut) > MAX_OBSTACLES:
        notices.append(f"{len(cut)} obstacles, of which the {MAX_OBSTACLES} largest are kept: make the mesh coarser")
        cut = cut[:MAX_OBSTACLES]
    return [convex_obstacle(f"solid{k}", hull) for k, hull in enumerate(cut, 1)], notices


def _points(corners: np.ndarray, areas: np.ndarray) -> tuple[cKDTree, float]:
    """Return sample points of triangles in a k-d tree, and their approximate spacing (m)."""
    spacing = max(0.02, float(np.sqrt(areas.sum() / 150_000)))
    count = np.clip(np.ceil(areas / spacing**2).astype(int), 1, 20_000)
    random = np.random.default_rng(0)
    which = np.repeat(np.arange(len(corners)), count)
    u, v = random.random(len(which)), random.random(len(which))
    flip = u + v > 1
    u[flip], v[flip] = 1 - u[flip], 1 - v[flip]
    a, b, c = corners[which].transpose(1, 0, 2)
    points = a + u[:, None] * (b - a) + v[:, None] * (c - a)
    return cKDTree(np.concatenate([points, corners.reshape(-1, 3)])), spacing


def _covered(corners: np.ndarray, slabs: Slabs, margin: float) -> np.ndarray:
    """Return a mask of the triangles (m,3,3) that lie in the slabs below surfaces."""
    points = np.einsum("sk,mkd->msd", BARYCENTRIC_SAMPLES, corners)
    low, high = corners.min(axis=1), corners.max(axis=1)
    inside = np.zeros(points.shape[:2], bool)
    for slab, lower, upper in zip(slabs.surfaces, slabs.low, slabs.high, strict=True):
        near = np.all((high >= lower - margin) & (low <= upper + margin), axis=1)
        inside[near] |= _in_slab(points[near], slab, margin)
    return np.asarray(inside.all(axis=1))


def _in_slab(points: np.ndarray, slab: Surface, margin: float) -> np.ndarray:
    local = (points - slab.p) @ slab.R
    A, b = half_planes(slab.polygon)
    inside = (local[..., 2] < margin) & (local[..., 2] > -slab.thickness - margin)
    return np.asarray(inside & np.all(local[..., :2] @ A.T < b + margin, axis=-1))


def _inside_slab(hull: np.ndarray, slabs: Slabs) -> bool:
    return any(bool(_in_slab(hull, slab, SLAB_TOLERANCE).all()) for slab in slabs.near(hull, SLAB_TOLERANCE))


def _clusters(faces: np.ndarray, members: np.ndarray) -> list[np.ndarray]:
    """Return the connected parts of triangles, the largest first."""
    if not len(members):
        return []
    cluster_faces = faces[members]
    _, local = np.unique(cluster_faces, return_inverse=True)
    local = local.reshape(cluster_faces.shape)
    rows, columns = local[:, [0, 1]].ravel(), local[:, [1, 2]].ravel()
    graph = coo_matrix((np.ones(len(rows)), (rows, columns)), shape=(local.max() + 1,) * 2)
    part = connected_components(graph, directed=False)[1][local[:, 0]]
    return sorted((members[part == k] for k in range(part.max() + 1)), key=lambda cluster: (-len(cluster), cluster[0]))


def _unused_parts(region: Region, parts: list[np.ndarray], triangles: Triangles) -> list[np.ndarray]:
    """Return the parts of a plane outside its surfaces, as slabs."""
    shapely = import_shapely()
    rest = shapely.difference(region.covered, region.inside, grid_size=GRID)
    if parts:
        surfaces = shapely.union_all([shapely.polygons(part).buffer(1e-3, join_style="mitre") for part in parts])
        rest = shapely.difference(rest, surfaces, grid_size=GRID)
    return [_slab(region.R, region.p, part, triangles) for part in convex_parts(rest, MIN_GAP, 5e-3)]


def _slab(R: np.ndarray, p: np.ndarray, polygon: np.ndarray, triangles: Triangles) -> np.ndarray:
    depth = np.clip(thickness(triangles, R, p, polygon, MAX_WALL_THICKNESS), MIN_WALL_THICKNESS, MAX_WALL_THICKNESS)
    top = np.column_stack([polygon, np.zeros(len(polygon))])
    return np.concatenate([top, top - [0.0, 0.0, depth]]) @ R.T + p


def _solids(mesh: _Mesh, cluster: np.ndarray, slabs: Slabs, halvings: int) -> list[np.ndarray]:
    """Return the corners (k,3) of convex solids that represent a cluster of triangles."""
    corners = mesh.corners[cluster]
    points = np.unique(corners.reshape(-1, 3), axis=0)
    try:
        hull = ConvexHull(points)
    except (QhullError, ValueError):  # flat
        return _walls(mesh, cluster, 0.0)[0]
    if halvings >= MAX_HALVINGS or _fits(mesh, cluster, hull, slabs):
        return [points[hull.vertices]]
    solids: list[np.ndarray] = []
    if halvings == 0:
        solids, cluster = _walls(mesh, cluster, max(MIN_WALL_AREA, MIN_WALL_SHARE * float(mesh.areas[cluster].sum())))
        clusters = _clusters(mesh.triangles.faces, cluster)
        if solids or len(clusters) > 1:
            for part in clusters:
                solids += _solids(mesh, part, slabs, 1)
            return solids
    middle = mesh.corners[cluster].mean(axis=1)
    axis = int(np.argmax(np.ptp(middle, axis=0)))
    upper = middle[:, axis] > np.median(middle[:, axis])
    if upper.all() or not upper.any():
        return [points[hull.vertices]]
    for half in (cluster[upper], cluster[~upper]):
        for part in _clusters(mesh.triangles.faces, half):
            solids += _solids(mesh, part, slabs, halvings + 1)
    return solids


def _fits(mesh: _Mesh, cluster: np.ndarray, hull: ConvexHull, slabs: Slabs) -> bool:
    """Whether a hull represents its triangles: they lie on it and face outwards, and it adds no volume."""
    A, b = hull.equations[:, :3], hull.equations[:, 3]
    samples = np.einsum("sk,mkd->msd", BARYCENTRIC_SAMPLES, mesh.corners[cluster])
    depth = samples @ A.T + b
    if depth.max(axis=2).min() < -MAX_DEPTH:
        return False
    facet = depth.mean(axis=1).argmax(axis=1)
    out = np.einsum("ij,ij->i", A[facet], mesh.normals[cluster]) > -0.2
    if mesh.areas[cluster][out].sum() < 0.9 * mesh.areas[cluster].sum():
        return False
    if any(_reaches_above(slab, A, b) for slab in slabs.near(hull.points, CHECKED_HEIGHTS[-1])):
        return False
    sides = hull.points[hull.simplices]
    _, areas = normals_areas(sides)
    tree, _ = _points(sides, areas)
    distance, _ = mesh.tree.query(tree.data)
    far = np.array(tree.data)[distance > MAX_HULL_DISTANCE + mesh.spacing]
    for slab in slabs.near(hull.points, SLAB_TOLERANCE):
        far = far[~_in_slab(far, slab, SLAB_TOLERANCE)]
    far = far[:: max(1, len(far) // 40)]
    return not any(winding_number(point, mesh.corners) < 0.5 for point in far)


def _reaches_above(slab: Surface, A: np.ndarray, b: np.ndarray) -> bool:
    """Whether a hull ``A x + b <= 0`` reaches above a surface."""
    middle = slab.polygon.mean(axis=0)
    grid = np.linspace(0.0, 1.0, 7)
    edge = np.concatenate([slab.polygon, 0.5 * (slab.polygon + np.roll(slab.polygon, -1, axis=0))])
    flat = np.concatenate([middle + 0.97 * share * (edge - middle) for share in grid])
    points = np.concatenate([np.column_stack([flat, np.full(len(flat), height)]) for height in CHECKED_HEIGHTS])
    return bool(np.any(np.max((points @ slab.R.T + slab.p) @ A.T + b, axis=1) < -5e-3))


def _walls(mesh: _Mesh, cluster: np.ndarray, min_area: float) -> tuple[list[np.ndarray], np.ndarray]:
    """Return slabs behind the planes of at least ``min_area`` (m²), and the remaining triangles."""
    shapely = import_shapely()
    corners = mesh.corners[cluster]
    planes = find_planes(
        corners, mesh.triangles.faces[cluster], mesh.normals[cluster], mesh.areas[cluster], 0.01, min_area
    )
    walls: list[np.ndarray] = []
    remaining = np.ones(len(cluster), bool)
    for plane in planes:
        remaining[plane.members] = False
        R, p = plane_frame(plane, corners[plane.members])
        flat = ((corners[plane.members] - p) @ R)[:, :, :2]
        parts: Any = shapely.polygons(flat)
        parts = parts[shapely.is_valid(parts)]
        covered = close_cracks(shapely.union_all(parts, grid_size=GRID), 5e-3)
        walls += [_slab(R, p, part, mesh.triangles) for part in convex_parts(covered, (0.01, 0.01), 5e-3)]
    return walls, cluster[remaining]
