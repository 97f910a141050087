"""Plane detection in triangle meshes: exact planes first, then rough surfaces by region growing."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_matrix, csr_matrix

EXACT_DISTANCE = 5e-4
"""m: triangles within this distance of an exact plane belong to it, also without a common edge."""

EXACT_COSINE = np.cos(np.radians(0.5))
ROUGH_COSINE = np.cos(np.radians(12.0))
"""Cosine of the tolerance of smoothed normals; normals of single triangles of a scan vary much more."""

SMOOTHING_STEPS, CREASE_COSINE = 6, 0.7
"""Smoothing steps of the normals of a rough surface, and the cosine of the angle beyond which they belong to another
face."""

MAX_NEIGHBOUR_AREA = 0.3
"""Maximum area of neighbouring triangles with almost the same normal / area of an exact plane. Above it the plane is
part of a rough surface, with some triangles that are coplanar by chance."""


@dataclass(frozen=True, eq=False)
class Plane:
    """Triangles of one plane.

    Parameters
    ----------
    normal, point : (3,) unit vector out of the solid, and a point of the plane.
    members : indices of the triangles.
    spread : m, largest distance of their corners from the plane.
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
    available = normals[:, 2] >= min_up
    adjacency = _neighbours(faces) if len(faces) else csr_matrix((0, 0))
    found = []
    rough = np.zeros(len(faces), bool)
    seeds = np.flatnonzero(available)
    for seed in seeds[_exact_seeds(corners[available], normals[available], areas[available], min_area)]:
        if rough[seed] or not available[seed]:
            continue
        normal, point = normals[seed], corners[seed].mean(axis=0)
        members = _triangles_near(corners, normals, available, normal, point, EXACT_DISTANCE, EXACT_COSINE)
        if areas[members].sum() < min_area:
            continue
        normal, point = _fit_plane(corners[members], areas[members])
        members = _triangles_near(corners, normals, available, normal, point, EXACT_DISTANCE, EXACT_COSINE)
        neighbours = _coplanar_neighbours(members, normal, adjacency, normals)
        if areas[neighbours].sum() > MAX_NEIGHBOUR_AREA * areas[members].sum():
            rough[members] = rough[neighbours] = True
            continue
        available[members] = False
        found.append(_plane(corners, members, normal, point))
    used = np.zeros(len(faces), bool)
    for plane in found:
        used[plane.members] = True
    found += _grow_planes(corners, normals, areas, adjacency, np.flatnonzero(~used), max_distance, min_area, min_up)
    return sorted(found, key=lambda plane: -areas[plane.members].sum())


def _coplanar_neighbours(
    members: np.ndarray, normal: np.ndarray, adjacency: csr_matrix, normals: np.ndarray
) -> np.ndarray:
    """Return the neighbours of a plane's triangles that have almost the same normal."""
    inside = np.zeros(len(normals))
    inside[members] = 1.0
    return np.flatnonzero((adjacency @ inside > 0) & (inside == 0) & (normals @ normal > CREASE_COSINE))


def _exact_seeds(corners: np.ndarray, normals: np.ndarray, areas: np.ndarray, min_area: float) -> np.ndarray:
    """Return one triangle of each exact plane (equal within rounding), the largest total area first."""
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


def _triangles_near(corners, normals, available, normal, point, distance: float, cosine: float) -> np.ndarray:
    parallel = np.flatnonzero(available & (normals @ normal > cosine))
    return parallel[np.abs((corners[parallel] - point) @ normal).max(axis=1, initial=0.0) < distance]


def _fit_plane(corners: np.ndarray, areas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return normal and point of the area-weighted least-squares plane of triangles (m,3,3)."""
    weight = np.repeat(areas / 3, 3)
    points = corners.reshape(-1, 3)
    middle = weight @ points / weight.sum()
    scatter = (points - middle).T @ ((points - middle) * weight[:, None])
    normal = np.linalg.eigh(scatter)[1][:, 0]
    facing = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]).sum(axis=0)
    return normal * (1.0 if normal @ facing >= 0 else -1.0), middle


def _plane(corners: np.ndarray, members: np.ndarray, normal: np.ndarray, point: np.ndarray) -> Plane:
    return Plane(normal, point, members, float(np.abs((corners[members] - point) @ normal).max(initial=0.0)))


def _grow_planes(
    corners, normals, areas, adjacency, rest, max_distance: float, min_area: float, min_up: float
) -> list[Plane]:
    if not len(rest) or areas[rest].sum() < min_area:
        return []
    adjacency = adjacency[rest][:, rest].tocsr()
    smooth = _smooth_normals(normals[rest], areas[rest], adjacency)
    local, available = corners[rest], smooth[:, 2] >= min_up
    degree = np.maximum(np.asarray(adjacency.sum(axis=1)).ravel(), 1)
    evenness = np.einsum("ij,ij->i", adjacency @ smooth, smooth) / degree
    untried, found = available.copy(), []
    for seed in np.argsort(-evenness, kind="stable"):
        if not (untried[seed] and available[seed]):
            continue
        region, normal, point = _grow_plane(seed, local, areas[rest], smooth, adjacency, available, max_distance)
        untried[region] = False
        if areas[rest][region].sum() < min_area:
            continue
        # also take triangles with corners slightly farther off by noise: they would be holes
        distance = np.abs((local[region] - point) @ normal)
        reach = min(2 * max_distance, max(max_distance, 4 * float(np.sqrt(np.mean(distance**2)))))
        inside = np.zeros(len(rest), bool)
        inside[region] = True
        for _ in range(2):
            more = (adjacency @ inside.astype(float) > 0) & available & ~inside
            more &= np.abs((local - point) @ normal).max(axis=1) < reach
            inside |= more & (smooth @ normal > CREASE_COSINE)
        region = np.flatnonzero(inside)
        available[region] = False
        found.append(_plane(corners, rest[region], normal, point))
    return found


def _smooth_normals(normals: np.ndarray, areas: np.ndarray, adjacency: csr_matrix) -> np.ndarray:
    """Return normals (m,3) averaged with those of neighbours, but not across creases."""
    of, near = adjacency.nonzero()
    smooth = normals
    for _ in range(SMOOTHING_STEPS):
        alike = np.einsum("ij,ij->i", smooth[of], smooth[near])
        weight = np.where(alike > CREASE_COSINE, areas[near], 0.0)
        share = csr_matrix((weight, (of, near)), shape=adjacency.shape)
        smooth = share @ smooth + areas[:, None] * smooth
        smooth = smooth / np.maximum(np.linalg.norm(smooth, axis=1), 1e-300)[:, None]
    return smooth


def _grow_plane(seed, corners, areas, smooth, adjacency: csr_matrix, available, max_distance: float):
    """Grow a plane from a seed; return its connected triangles (indices), its normal and a point."""
    inside = np.zeros(len(corners), bool)
    inside[seed] = True
    normal, point = smooth[seed], corners[seed].mean(axis=0)
    front, fitted_at = np.array([seed]), 1
    while len(front):
        neighbours = np.unique(
            np.concatenate([adjacency.indices[adjacency.indptr[k] : adjacency.indptr[k + 1]] for k in front])
        )
        neighbours = neighbours[available[neighbours] & ~inside[neighbours]]
        accepted = smooth[neighbours] @ normal > ROUGH_COSINE
        accepted &= np.abs((corners[neighbours] - point) @ normal).max(axis=1, initial=0.0) < max_distance
        front = neighbours[accepted]
        inside[front] = True
        count = int(inside.sum())
        if count >= 1.5 * fitted_at and count >= 6:
            members = np.flatnonzero(inside)
            normal, point = _fit_plane(corners[members], areas[members])
            fitted_at = count
    members = np.flatnonzero(inside)
    if len(members) >= 2:
        normal, point = _fit_plane(corners[members], areas[members])
    return members, normal, point


def _neighbours(faces: np.ndarray) -> csr_matrix:
    """Return the adjacency matrix (m,m) of triangles that share an edge."""
    edges = np.sort(np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]), axis=1)
    owner = np.tile(np.arange(len(faces)), 3)
    _, edge = np.unique(edges, axis=0, return_inverse=True)
    of_edge = coo_matrix((np.ones(len(edge)), (owner, edge.ravel())), shape=(len(faces), edge.max() + 1)).tocsr()
    matrix = (of_edge @ of_edge.T).tocsr()
    matrix.setdiag(0)
    matrix.eliminate_zeros()
    matrix.data[:] = 1.0
    return matrix
