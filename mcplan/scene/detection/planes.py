"""Plane detection in triangle meshes: exact planes first, then rough surfaces by region growing."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_matrix, csr_matrix

EXACT_DISTANCE = 5e-4
"""Triangles within this distance of an exact plane belong to it, also without a common edge."""

EXACT_COSINE = np.cos(np.radians(0.5))
"""Cosine of the largest angle between the normals of a triangle and of its exact plane."""

ROUGH_COSINE = np.cos(np.radians(12.0))
"""The same for the smoothed normals of a rough surface; normals of single triangles of a scan vary much more."""

SMOOTHING_STEPS, CREASE_COSINE = 6, 0.7
"""Number of smoothing steps of the normals of a rough surface, and the cosine of the angle between the normals of
neighbours beyond which they belong to different faces."""

MAX_NEIGHBOUR_AREA = 0.3
"""Maximum area of neighbouring triangles with almost the same normal, relative to the area of an exact plane. Above it
the plane is part of a rough surface, and its triangles are coplanar by chance."""


@dataclass(frozen=True, eq=False)
class Plane:
    """Triangles of one plane.

    Parameters
    ----------
    normal, point : (3,) unit vector out of the solid, and a point of the plane, m.
    members : indices of the triangles.
    spread : largest distance of their corners from the plane, m.
    """

    normal: np.ndarray
    point: np.ndarray
    members: np.ndarray
    spread: float


def find_planes(
    corners: np.ndarray,
    faces: np.ndarray,
    normals: np.ndarray,
    areas: np.ndarray,
    max_distance: float,
    min_area: float,
    min_up: float = -1.0,
) -> list[Plane]:
    """Return the planes of triangles, largest first.

    Parameters
    ----------
    corners, faces, normals, areas : (m,3,3), (m,3), (m,3), (m,) of the triangles.
    max_distance : maximum distance of a rough surface from its plane, m.
    min_area : minimum area of a plane, m².
    min_up : minimum vertical component of the normal.
    """
    is_available = normals[:, 2] >= min_up
    adjacency = _adjacency(faces) if len(faces) else csr_matrix((0, 0))
    planes = []
    is_rough = np.zeros(len(faces), bool)
    seeds = np.flatnonzero(is_available)
    for seed in seeds[_exact_seeds(corners[is_available], normals[is_available], areas[is_available], min_area)]:
        if is_rough[seed] or not is_available[seed]:
            continue
        normal, point = normals[seed], corners[seed].mean(axis=0)
        members = _coplanar_triangles(corners, normals, is_available, normal, point, EXACT_DISTANCE, EXACT_COSINE)
        if areas[members].sum() < min_area:
            continue
        normal, point = _fit_plane(corners[members], areas[members])
        members = _coplanar_triangles(corners, normals, is_available, normal, point, EXACT_DISTANCE, EXACT_COSINE)
        neighbours = _coplanar_neighbours(members, normal, adjacency, normals)
        if areas[neighbours].sum() > MAX_NEIGHBOUR_AREA * areas[members].sum():
            is_rough[members] = is_rough[neighbours] = True
            continue
        is_available[members] = False
        planes.append(_plane(corners, members, normal, point))
    is_used = np.zeros(len(faces), bool)
    for plane in planes:
        is_used[plane.members] = True
    planes += _grow_planes(corners, normals, areas, adjacency, np.flatnonzero(~is_used), max_distance, min_area, min_up)
    return sorted(planes, key=lambda plane: -areas[plane.members].sum())


def _coplanar_neighbours(
    members: np.ndarray, normal: np.ndarray, adjacency: csr_matrix, normals: np.ndarray
) -> np.ndarray:
    """Return the neighbours of a plane's triangles that have almost the same normal."""
    indicator = np.zeros(len(normals))
    indicator[members] = 1.0
    return np.flatnonzero((adjacency @ indicator > 0) & (indicator == 0) & (normals @ normal > CREASE_COSINE))


def _exact_seeds(corners: np.ndarray, normals: np.ndarray, areas: np.ndarray, min_area: float) -> np.ndarray:
    """Return the largest triangle of each set with the same plane (after rounding), the largest total area first."""
    offset = np.einsum("ij,ij->i", normals, corners.mean(axis=1))
    key = np.column_stack([np.round(normals / 5e-3), np.round(offset / EXACT_DISTANCE)]).astype(np.int64)
    _, group = np.unique(key, axis=0, return_inverse=True)
    group = group.ravel()
    total = np.bincount(group, areas)
    largest = {}
    order = np.argsort(-areas, kind="stable")
    for k in order[areas[order] > 0]:
        if total[group[k]] >= min_area / 4 and group[k] not in largest:
            largest[group[k]] = k
    return np.array([largest[g] for g in sorted(largest, key=lambda g: -total[g])], np.int64)


def _coplanar_triangles(corners, normals, is_available, normal, point, distance: float, cosine: float) -> np.ndarray:
    """Return the available triangles within a distance (m) of a plane whose normals are parallel to it."""
    parallel = np.flatnonzero(is_available & (normals @ normal > cosine))
    return parallel[np.abs((corners[parallel] - point) @ normal).max(axis=1, initial=0.0) < distance]


def _fit_plane(corners: np.ndarray, areas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return normal and point of the area-weighted least-squares plane of triangles (m,3,3)."""
    weight = np.repeat(areas / 3, 3)
    points = corners.reshape(-1, 3)
    middle = weight @ points / weight.sum()
    scatter = (points - middle).T @ ((points - middle) * weight[:, None])
    normal = np.linalg.eigh(scatter)[1][:, 0]
    mean_normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]).sum(axis=0)
    return normal * (1.0 if normal @ mean_normal >= 0 else -1.0), middle


def _plane(corners: np.ndarray, members: np.ndarray, normal: np.ndarray, point: np.ndarray) -> Plane:
    """Return a plane with its spread."""
    return Plane(normal, point, members, float(np.abs((corners[members] - point) @ normal).max(initial=0.0)))


def _grow_planes(
    corners, normals, areas, adjacency, unused, max_distance: float, min_area: float, min_up: float
) -> list[Plane]:
    if not len(unused) or areas[unused].sum() < min_area:
        return []
    adjacency = adjacency[unused][:, unused].tocsr()
    smooth_normals = _smoothed_normals(normals[unused], areas[unused], adjacency)
    local, is_available = corners[unused], smooth_normals[:, 2] >= min_up
    degree = np.maximum(np.asarray(adjacency.sum(axis=1)).ravel(), 1)
    flatness = np.einsum("ij,ij->i", adjacency @ smooth_normals, smooth_normals) / degree
    is_seed, planes = is_available.copy(), []
    for seed in np.argsort(-flatness, kind="stable"):
        if not (is_seed[seed] and is_available[seed]):
            continue
        region, normal, point = _grow_plane(
            seed, local, areas[unused], smooth_normals, adjacency, is_available, max_distance
        )
        is_seed[region] = False
        if areas[unused][region].sum() < min_area:
            continue
        # add triangles whose corners are slightly farther off by noise; they would be holes
        distance = np.abs((local[region] - point) @ normal)
        max_noise = min(2 * max_distance, max(max_distance, 4 * float(np.sqrt(np.mean(distance**2)))))
        is_inside = np.zeros(len(unused), bool)
        is_inside[region] = True
        for _ in range(2):
            is_added = (adjacency @ is_inside.astype(float) > 0) & is_available & ~is_inside
            is_added &= np.abs((local - point) @ normal).max(axis=1) < max_noise
            is_inside |= is_added & (smooth_normals @ normal > CREASE_COSINE)
        region = np.flatnonzero(is_inside)
        is_available[region] = False
        planes.append(_plane(corners, unused[region], normal, point))
    return planes


def _smoothed_normals(normals: np.ndarray, areas: np.ndarray, adjacency: csr_matrix) -> np.ndarray:
    """Return normals (m,3) averaged with those of neighbours, but not across creases."""
    rows, columns = adjacency.nonzero()
    smooth = normals
    for _ in range(SMOOTHING_STEPS):
        cosine = np.einsum("ij,ij->i", smooth[rows], smooth[columns])
        weight = np.where(cosine > CREASE_COSINE, areas[columns], 0.0)
        weights = csr_matrix((weight, (rows, columns)), shape=adjacency.shape)
        smooth = weights @ smooth + areas[:, None] * smooth
        smooth = smooth / np.maximum(np.linalg.norm(smooth, axis=1), 1e-300)[:, None]
    return smooth


def _grow_plane(seed, corners, areas, smooth_normals, adjacency: csr_matrix, is_available, max_distance: float):
    """Grow a plane from a seed along shared edges; return its triangles (indices), its normal and a point."""
    is_inside = np.zeros(len(corners), bool)
    is_inside[seed] = True
    normal, point = smooth_normals[seed], corners[seed].mean(axis=0)
    front, fitted_count = np.array([seed]), 1
    while len(front):
        neighbours = np.unique(
            np.concatenate([adjacency.indices[adjacency.indptr[k] : adjacency.indptr[k + 1]] for k in front])
        )
        neighbours = neighbours[is_available[neighbours] & ~is_inside[neighbours]]
        is_accepted = smooth_normals[neighbours] @ normal > ROUGH_COSINE
        is_accepted &= np.abs((corners[neighbours] - point) @ normal).max(axis=1, initial=0.0) < max_distance
        front = neighbours[is_accepted]
        is_inside[front] = True
        count = int(is_inside.sum())
        if count >= 1.5 * fitted_count and count >= 6:
            members = np.flatnonzero(is_inside)
            normal, point = _fit_plane(corners[members], areas[members])
            fitted_count = count
    members = np.flatnonzero(is_inside)
    if len(members) >= 2:
        normal, point = _fit_plane(corners[members], areas[members])
    return members, normal, point


def _adjacency(faces: np.ndarray) -> csr_matrix:
    """Return the adjacency matrix (m,m) of triangles that share an edge."""
    edges = np.sort(np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]), axis=1)
    owner = np.tile(np.arange(len(faces)), 3)
    _, edge_index = np.unique(edges, axis=0, return_inverse=True)
    incidence = coo_matrix(
        (np.ones(len(edge_index)), (owner, edge_index.ravel())), shape=(len(faces), edge_index.max() + 1)
    ).tocsr()
    matrix = (incidence @ incidence.T).tocsr()
    matrix.setdiag(0)
    matrix.eliminate_zeros()
    matrix.data[:] = 1.0
    return matrix
