"""Convex decomposition of a mesh into obstacles that leave the surfaces free; thickness of the slabs below surfaces.

A convex hull fits if the triangles lie on it and face outwards, and if the hull adds no volume to the solid. A mesh
whose hull does not fit is split: into walls, which are slabs behind its planes, and the remaining triangles into halves
across their longest side. Obstacles are cut off at the slabs of surfaces; boxes are kept as boxes.
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
from mcplan.scene.detection.regions import GRID_M, Region, close_cracks, convex_parts, import_shapely, plane_frame
from mcplan.scene.detection.triangles import Triangles, normals_areas, winding_number
from mcplan.scene.environment import Obstacle, Surface
from mcplan.scene.polygon import clip, half_planes

SHEET_THICKNESS_M = 0.05
"""Thickness (m) given to an open sheet or the ground, below which the mesh has no triangles."""

MIN_SLAB_THICKNESS_M = 0.02
"""Minimum thickness of a slab; a landing foot would pass through a thinner one."""

DEPTH_INSET_M = 0.01
"""Distance of depth samples from the outline, so that their vertical lines miss the sides of the solid."""

SAMPLES_PER_SIDE = 6
"""Samples along each side of a surface's bounding rectangle."""


def slab_thickness(
    triangles: Triangles, R: np.ndarray, p: np.ndarray, polygon: np.ndarray, max_depth: float = 100.0
) -> float:
    """Return the minimum thickness (m) of the solid below a surface (R, p, corners (k,2)), at most ``max_depth``."""
    normals, _ = triangles.normals_areas
    top = np.column_stack([polygon, np.zeros(len(polygon))])
    prism_corners = np.concatenate([top, top - [0.0, 0.0, max_depth]]) @ R.T + p
    is_near = triangles.within(prism_corners.min(axis=0), prism_corners.max(axis=0))
    local = (triangles.corners[is_near] - p) @ R
    low, high = polygon.min(axis=0), polygon.max(axis=0)
    is_below = (normals[is_near] @ R[:, 2] < -1e-6) & (local[:, :, 2].min(axis=1) < -1e-3)
    is_below &= (local[:, :, :2].max(axis=1) > low).all(axis=1) & (local[:, :, :2].min(axis=1) < high).all(axis=1)
    if not is_below.any():
        return SHEET_THICKNESS_M
    samples = [_depth(local[is_below], point) for point in _inner_samples(polygon)]
    depths = [depth for depth in samples if depth is not None]
    return round(max(min(depths, default=SHEET_THICKNESS_M), MIN_SLAB_THICKNESS_M), 4)


def _inner_samples(polygon: np.ndarray) -> np.ndarray:
    """Return sample points (n,2) of a polygon, none within ``DEPTH_INSET_M`` of its sides."""
    A, b = half_planes(polygon)
    shares = np.linspace(0.0, 1.0, SAMPLES_PER_SIDE)
    low, high = polygon.min(axis=0), polygon.max(axis=0)
    grid = np.array(
        [[low[0] + s * (high[0] - low[0]), low[1] + t * (high[1] - low[1])] for s in shares for t in shares]
    )
    middle = polygon.mean(axis=0)
    to_middle = middle - polygon
    corners = polygon + 1.5 * DEPTH_INSET_M * to_middle / np.linalg.norm(to_middle, axis=1, keepdims=True)
    points = np.concatenate([grid, corners, 0.5 * (corners + middle), [middle]])
    is_inside = np.all(points @ A.T <= b - DEPTH_INSET_M, axis=1)
    return points[is_inside] if is_inside.any() else middle[None]


def _depth(corners: np.ndarray, point: np.ndarray) -> float | None:
    """Return the depth (m) of the first downward-facing triangle (m,3,3) below a point (2,), or None.

    ``corners`` are in the surface frame; u, v are barycentric coordinates of the point in the projected triangle.
    """
    a, b, c = corners[:, 0, :2], corners[:, 1, :2], corners[:, 2, :2]
    ab, ac, ap = b - a, c - a, point - a
    double_area = ab[:, 0] * ac[:, 1] - ab[:, 1] * ac[:, 0]
    valid = np.abs(double_area) > 1e-12
    double_area = np.where(valid, double_area, 1.0)
    u = (ap[:, 0] * ac[:, 1] - ap[:, 1] * ac[:, 0]) / double_area
    v = (ab[:, 0] * ap[:, 1] - ab[:, 1] * ap[:, 0]) / double_area
    is_hit = valid & (u >= -1e-9) & (v >= -1e-9) & (u + v <= 1 + 1e-9)
    z = corners[:, 0, 2] + u * (corners[:, 1, 2] - corners[:, 0, 2]) + v * (corners[:, 2, 2] - corners[:, 0, 2])
    is_hit &= z < -1e-3
    return float(-z[is_hit].max()) if is_hit.any() else None


SURFACE_TOLERANCE_M = 5e-3
"""A solid that rises by at most this above the plane of a surface counts as below the surface."""

MAX_CORNERS = 48
"""Maximum number of corners of an obstacle; of more corners, the extreme ones in 48 directions are kept."""

MIN_THICKNESS_M = 2e-3
"""Minimum thickness of a solid; thinner ones are rounding artefacts."""


class Slabs:
    """Surfaces, and the bounding boxes of the slabs below them."""

    def __init__(self, surfaces: Sequence[Surface]):
        self.surfaces = tuple(surfaces)
        slab_corners = [np.concatenate([s.corners, s.corners - s.thickness * s.normal]) for s in surfaces]
        self.low = np.array([points.min(axis=0) for points in slab_corners]).reshape(-1, 3)
        self.high = np.array([points.max(axis=0) for points in slab_corners]).reshape(-1, 3)

    def near_box(self, points: np.ndarray, margin: float) -> list[Surface]:
        """Return the surfaces whose slabs may be within a margin (m) of the bounding box of points (k,3)."""
        low, high = points.min(axis=0) - margin, points.max(axis=0) + margin
        overlaps = np.all((self.high >= low) & (self.low <= high), axis=1)
        return [self.surfaces[k] for k in np.flatnonzero(overlaps)]


def cut_at_slabs(corners: np.ndarray, slabs: Slabs) -> np.ndarray | None:
    """Cut the slabs of surfaces on top of a convex solid (k,3) off; return its corners, or None if nothing remains.

    A foot may touch the slab of its surface, but must not touch an obstacle.
    """
    for slab in slabs.near_box(corners, SURFACE_TOLERANCE_M):
        local = (corners - slab.p) @ slab.R
        if local[:, 2].max() > SURFACE_TOLERANCE_M or local[:, 2].max() <= -slab.thickness + 1e-6:
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
        crossings = below[:, None] + share[..., None] * (above[None] - below[:, None])
        corners = np.concatenate([below, crossings.reshape(-1, 3)]) @ slab.R.T + slab.p
        try:
            corners = corners[ConvexHull(corners).vertices]
        except (QhullError, ValueError):
            return None
    return corners


def is_flat(corners: np.ndarray) -> bool:
    """Whether a convex solid (k,3) is thinner than ``MIN_THICKNESS_M``; its thickness is 2 volume / area."""
    try:
        hull = ConvexHull(np.round(corners, 4))
    except (QhullError, ValueError):
        return True
    return 2.0 * hull.volume < MIN_THICKNESS_M * hull.area


def convex_obstacle(name: str, corners: np.ndarray) -> Obstacle:
    """Return the obstacle whose convex hull has the corners (k,3): a box, or a mesh."""
    corners = np.round(corners, 4)
    box = _box(corners)
    if box is not None:
        R, middle, size = box
        return Obstacle(name, Box(size), R, middle)
    if len(corners) > MAX_CORNERS:
        extreme = np.unique(np.argmax((corners - corners.mean(axis=0)) @ directions(MAX_CORNERS).T, axis=0))
        corners = corners[extreme]
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
    vertices = np.sort(hull.vertices)
    new_index = np.zeros(len(corners), np.int64)
    new_index[vertices] = np.arange(len(vertices))
    faces = hull.simplices.astype(np.int64)
    a, b, c = corners[faces].transpose(1, 0, 2)
    inward = np.einsum("ij,ij->i", np.cross(b - a, c - a), hull.equations[:, :3]) < 0
    faces[inward] = faces[inward][:, ::-1]
    return MeshShape(corners[vertices], new_index[faces])


def _box(corners: np.ndarray) -> tuple[np.ndarray, np.ndarray, tuple[float, float, float]] | None:
    """Return rotation, centre and size of the box with these corners (k,3); None if they form no box."""
    if len(corners) != 8:
        return None
    normals = ConvexHull(corners).equations[:, :3]
    z = normals[np.argmax(np.abs(normals[:, 2]))]
    z = z if z[2] > 0 else -z
    side_normals = normals[np.abs(normals @ z) < 1e-2]
    if not len(side_normals):
        return None
    x = side_normals[np.argmax(np.abs(side_normals[:, 0]))]
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
    """Return evenly distributed unit vectors (count,3), along a spiral with the golden angle."""
    z = np.linspace(-1, 1, count)
    angle = np.pi * (3 - np.sqrt(5)) * np.arange(count)
    r = np.sqrt(1 - z**2)
    return np.column_stack([r * np.cos(angle), r * np.sin(angle), z])


SLAB_TOLERANCE_M = 3e-3
"""Tolerance within which a triangle belongs to a slab."""

MAX_DEPTH_M = 0.03
"""Maximum depth of triangles inside their hull."""

MAX_HULL_DISTANCE_M = 0.05
"""Maximum distance of a hull from the mesh."""

MAX_WALL_THICKNESS_M, MIN_WALL_THICKNESS_M = 0.05, 0.01
"""Bounds of the thickness of a wall; the measured thickness is clipped to them."""

MIN_WALL_AREA_M2 = 0.02
"""Minimum area of a wall."""

MIN_PART_SIDES_M = (0.04, 0.04)
"""Sides of the rectangle that must fit into an unused part of a plane; narrower parts, as gaps between surfaces, become
no obstacle."""

MIN_WALL_SHARE = 0.005
"""Minimum area of a wall relative to its cluster of triangles; smaller planes are facets of round shapes."""

MAX_HALVINGS = 8
"""Maximum number of times that a cluster of triangles is halved."""

MAX_OBSTACLES = 300
"""Maximum number of obstacles; the smallest beyond it are omitted, with a notice."""

CHECKED_HEIGHTS_M = (0.02, 0.1, 0.25)
"""Heights above a surface at which there must be no hull."""

BARYCENTRIC_SAMPLES = np.array([(i, j, 4 - i - j) for i in range(5) for j in range(5 - i)], float) / 4
"""Barycentric coordinates (15,3) of sample points of a triangle."""


@dataclass(frozen=True, eq=False)
class _Mesh:
    """Triangles with normals and areas, and a k-d tree of sample points on them with their ``spacing`` (m)."""

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
    tolerance: float = SLAB_TOLERANCE_M,
) -> tuple[list[Obstacle], list[str]]:
    """Return the obstacles, and notices about them.

    Parameters
    ----------
    unassigned : mask (m,) of the triangles that belong to no surface plane and no bar.
    surfaces : the detected surfaces.
    regions : planes of surfaces, and their parts that are surfaces.
    tolerance : distance within which a triangle belongs to a slab, m.
    """
    corners = triangles.corners
    normals, areas = triangles.normals_areas
    slabs = Slabs(surfaces)
    mesh = _Mesh(triangles, corners, normals, areas, *_sample_points(corners, areas))
    members = np.flatnonzero(unassigned)
    members = members[~_in_slabs(corners[members], slabs, tolerance)]
    hulls: list[np.ndarray] = []
    for region, parts in regions:
        hulls += _unused_parts(region, parts, triangles)
    for cluster in _clusters(triangles.faces, members):
        hulls += _solids(mesh, cluster, slabs, 0)
    solids = [solid for hull in hulls if (solid := cut_at_slabs(hull, slabs)) is not None]
    solids = [hull for hull in solids if not is_flat(hull) and not _inside_slab(hull, slabs)]
    solids.sort(key=lambda hull: -float(np.prod(np.ptp(hull, axis=0) + 1e-3)))
    notices = []
    if len(solids) > MAX_OBSTACLES:
        notices.append(f"{len(solids)} obstacles, of which the {MAX_OBSTACLES} largest are kept: make the mesh coarser")
        solids = solids[:MAX_OBSTACLES]
    return [convex_obstacle(f"solid{k}", hull) for k, hull in enumerate(solids, 1)], notices


def _sample_points(corners: np.ndarray, areas: np.ndarray) -> tuple[cKDTree, float]:
    """Return sample points of triangles in a k-d tree, and their approximate spacing (m)."""
    spacing = max(0.02, float(np.sqrt(areas.sum() / 150_000)))
    count = np.clip(np.ceil(areas / spacing**2).astype(int), 1, 20_000)
    random = np.random.default_rng(0)
    owner = np.repeat(np.arange(len(corners)), count)
    u, v = random.random(len(owner)), random.random(len(owner))
    flip = u + v > 1
    u[flip], v[flip] = 1 - u[flip], 1 - v[flip]
    a, b, c = corners[owner].transpose(1, 0, 2)
    points = a + u[:, None] * (b - a) + v[:, None] * (c - a)
    return cKDTree(np.concatenate([points, corners.reshape(-1, 3)])), spacing


def _in_slabs(corners: np.ndarray, slabs: Slabs, margin: float) -> np.ndarray:
    """Return a mask (m,) of the triangles (m,3,3) that lie in slabs, with a margin (m)."""
    points = np.einsum("sk,mkd->msd", BARYCENTRIC_SAMPLES, corners)
    low, high = corners.min(axis=1), corners.max(axis=1)
    is_inside = np.zeros(points.shape[:2], bool)
    for slab, lower, upper in zip(slabs.surfaces, slabs.low, slabs.high, strict=True):
        is_near = np.all((high >= lower - margin) & (low <= upper + margin), axis=1)
        is_inside[is_near] |= _in_slab(points[is_near], slab, margin)
    return np.asarray(is_inside.all(axis=1))


def _in_slab(points: np.ndarray, slab: Surface, margin: float) -> np.ndarray:
    """Return a mask of the points (..., 3) that lie in a slab, with a margin (m)."""
    local = (points - slab.p) @ slab.R
    A, b = half_planes(slab.polygon)
    is_inside = (local[..., 2] < margin) & (local[..., 2] > -slab.thickness - margin)
    return np.asarray(is_inside & np.all(local[..., :2] @ A.T < b + margin, axis=-1))


def _inside_slab(hull: np.ndarray, slabs: Slabs) -> bool:
    """Whether the corners (k,3) of a hull all lie in one slab."""
    return any(bool(_in_slab(hull, slab, SLAB_TOLERANCE_M).all()) for slab in slabs.near_box(hull, SLAB_TOLERANCE_M))


def _clusters(faces: np.ndarray, members: np.ndarray) -> list[np.ndarray]:
    """Return the connected clusters of the triangles ``members`` (indices), the largest first."""
    if not len(members):
        return []
    cluster_faces = faces[members]
    _, local = np.unique(cluster_faces, return_inverse=True)
    local = local.reshape(cluster_faces.shape)
    rows, columns = local[:, [0, 1]].ravel(), local[:, [1, 2]].ravel()
    graph = coo_matrix((np.ones(len(rows)), (rows, columns)), shape=(local.max() + 1,) * 2)
    label = connected_components(graph, directed=False)[1][local[:, 0]]
    return sorted(
        (members[label == k] for k in range(label.max() + 1)), key=lambda cluster: (-len(cluster), cluster[0])
    )


def _unused_parts(region: Region, parts: list[np.ndarray], triangles: Triangles) -> list[np.ndarray]:
    """Return the parts of a plane outside its surfaces, as slabs."""
    shapely = import_shapely()
    remaining = shapely.difference(region.covered, region.inside, grid_size=GRID_M)
    if parts:
        surfaces = shapely.union_all([shapely.polygons(part).buffer(1e-3, join_style="mitre") for part in parts])
        remaining = shapely.difference(remaining, surfaces, grid_size=GRID_M)
    return [_slab(region.R, region.p, part, triangles) for part in convex_parts(remaining, MIN_PART_SIDES_M, 5e-3)]


def _slab(R: np.ndarray, p: np.ndarray, polygon: np.ndarray, triangles: Triangles) -> np.ndarray:
    """Return the corners (k,3) of the slab behind a polygon (k,2) in a plane R, p, as thick as the solid there."""
    depth = np.clip(
        slab_thickness(triangles, R, p, polygon, MAX_WALL_THICKNESS_M), MIN_WALL_THICKNESS_M, MAX_WALL_THICKNESS_M
    )
    top = np.column_stack([polygon, np.zeros(len(polygon))])
    return np.concatenate([top, top - [0.0, 0.0, depth]]) @ R.T + p


def _solids(mesh: _Mesh, cluster: np.ndarray, slabs: Slabs, halvings: int) -> list[np.ndarray]:
    """Return the corners (k,3) of convex solids that represent a cluster of triangles, halved ``halvings`` times."""
    corners = mesh.corners[cluster]
    points = np.unique(corners.reshape(-1, 3), axis=0)
    try:
        hull = ConvexHull(points)
    except (QhullError, ValueError):  # flat
        return _walls(mesh, cluster, 0.0)[0]
    if halvings >= MAX_HALVINGS or _hull_fits(mesh, cluster, hull, slabs):
        return [points[hull.vertices]]
    solids: list[np.ndarray] = []
    if halvings == 0:
        solids, cluster = _walls(
            mesh, cluster, max(MIN_WALL_AREA_M2, MIN_WALL_SHARE * float(mesh.areas[cluster].sum()))
        )
        clusters = _clusters(mesh.triangles.faces, cluster)
        if solids or len(clusters) > 1:
            for part in clusters:
                solids += _solids(mesh, part, slabs, 1)
            return solids
    centroids = mesh.corners[cluster].mean(axis=1)
    axis = int(np.argmax(np.ptp(centroids, axis=0)))
    is_upper = centroids[:, axis] > np.median(centroids[:, axis])
    if is_upper.all() or not is_upper.any():
        return [points[hull.vertices]]
    for half in (cluster[is_upper], cluster[~is_upper]):
        for part in _clusters(mesh.triangles.faces, half):
            solids += _solids(mesh, part, slabs, halvings + 1)
    return solids


def _hull_fits(mesh: _Mesh, cluster: np.ndarray, hull: ConvexHull, slabs: Slabs) -> bool:
    """Whether a hull represents its triangles: they lie on it and face outwards, and it adds no volume."""
    A, b = hull.equations[:, :3], hull.equations[:, 3]
    samples = np.einsum("sk,mkd->msd", BARYCENTRIC_SAMPLES, mesh.corners[cluster])
    depth = samples @ A.T + b
    if depth.max(axis=2).min() < -MAX_DEPTH_M:
        return False
    facet = depth.mean(axis=1).argmax(axis=1)
    is_outward = np.einsum("ij,ij->i", A[facet], mesh.normals[cluster]) > -0.2
    if mesh.areas[cluster][is_outward].sum() < 0.9 * mesh.areas[cluster].sum():
        return False
    if any(_is_above_surface(slab, A, b) for slab in slabs.near_box(hull.points, CHECKED_HEIGHTS_M[-1])):
        return False
    hull_triangles = hull.points[hull.simplices]
    _, areas = normals_areas(hull_triangles)
    tree, _ = _sample_points(hull_triangles, areas)
    distance, _ = mesh.tree.query(tree.data)
    far_points = np.array(tree.data)[distance > MAX_HULL_DISTANCE_M + mesh.spacing]
    for slab in slabs.near_box(hull.points, SLAB_TOLERANCE_M):
        far_points = far_points[~_in_slab(far_points, slab, SLAB_TOLERANCE_M)]
    far_points = far_points[:: max(1, len(far_points) // 40)]
    return not any(winding_number(point, mesh.corners) < 0.5 for point in far_points)


def _is_above_surface(slab: Surface, A: np.ndarray, b: np.ndarray) -> bool:
    """Whether a hull ``A x + b <= 0`` contains points above a surface, at one of ``CHECKED_HEIGHTS_M``."""
    middle = slab.polygon.mean(axis=0)
    shares = np.linspace(0.0, 1.0, 7)
    outline = np.concatenate([slab.polygon, 0.5 * (slab.polygon + np.roll(slab.polygon, -1, axis=0))])
    plane_points = np.concatenate([middle + 0.97 * share * (outline - middle) for share in shares])
    points = np.concatenate(
        [np.column_stack([plane_points, np.full(len(plane_points), height)]) for height in CHECKED_HEIGHTS_M]
    )
    return bool(np.any(np.max((points @ slab.R.T + slab.p) @ A.T + b, axis=1) < -5e-3))


def _walls(mesh: _Mesh, cluster: np.ndarray, min_area: float) -> tuple[list[np.ndarray], np.ndarray]:
    """Return slabs behind the planes with an area of at least ``min_area`` (m²), and the remaining triangles."""
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
        covered = close_cracks(shapely.union_all(parts, grid_size=GRID_M), 5e-3)
        walls += [_slab(R, p, part, mesh.triangles) for part in convex_parts(covered, (0.01, 0.01), 5e-3)]
    return walls, cluster[remaining]
