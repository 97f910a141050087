"""Convex corners as obstacles: cut off below what is stood on, boxes where they are boxes."""

from collections.abc import Sequence

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from mcplan.model.geometry import Box, MeshShape
from mcplan.scene.environment import Obstacle, Surface
from mcplan.scene.polygon import clip, half_planes

BEHIND = 5e-3
"""m: what rises no higher over the plane of a surface is behind it."""

CORNERS = 48
"""Of one obstacle; with more, those are kept that lie farthest out in as many directions."""


THIN = 2e-3
"""m: what is thinner is what rounding has left."""


class Slabs:
    """Surfaces, and the boxes around the slabs below them."""

    def __init__(self, surfaces: Sequence[Surface]):
        self.surfaces = tuple(surfaces)
        ends = [np.concatenate([s.corners, s.corners - s.thickness * s.normal]) for s in surfaces]
        self.low = np.array([points.min(axis=0) for points in ends]).reshape(-1, 3)
        self.high = np.array([points.max(axis=0) for points in ends]).reshape(-1, 3)

    def near(self, points: np.ndarray, margin: float) -> list[Surface]:
        """Return the surfaces whose slabs may be within a margin (m) of what spans points (k,3)."""
        low, high = points.min(axis=0) - margin, points.max(axis=0) + margin
        meets = np.all((self.high >= low) & (self.low <= high), axis=1)
        return [self.surfaces[k] for k in np.flatnonzero(meets)]


def recessed(corners: np.ndarray, slabs: Slabs) -> np.ndarray | None:
    """Return what of a convex solid (k,3) is not in the slabs of the surfaces that it bears; None where nothing is.

    A foot rests on its surface, whose slab it may touch, and on nothing else.
    """
    for slab in slabs.near(corners, BEHIND):
        local = (corners - slab.p) @ slab.R
        if local[:, 2].max() > BEHIND or local[:, 2].max() <= -slab.thickness + 1e-6:
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


def flat(corners: np.ndarray) -> bool:
    """Whether a convex solid (k,3) is thinner than ``THIN``: twice its volume over its area."""
    try:
        hull = ConvexHull(np.round(corners, 4))
    except (QhullError, ValueError):
        return True
    return 2.0 * hull.volume < THIN * hull.area


def block(name: str, corners: np.ndarray) -> Obstacle:
    """Return the obstacle of convex corners (k,3)."""
    corners = np.round(corners, 4)
    box = _box(corners)
    if box is not None:
        R, middle, size = box
        return Obstacle(name, Box(size), R, middle)
    if len(corners) > CORNERS:
        kept = np.unique(np.argmax((corners - corners.mean(axis=0)) @ directions(CORNERS).T, axis=0))
        corners = corners[kept]
    middle = np.round((corners.min(axis=0) + corners.max(axis=0)) / 2, 4)
    return Obstacle(name, hull_shape(corners - middle), p=middle)


def hull_shape(corners: np.ndarray) -> MeshShape:
    """Return the convex hull of corners (k,3) as a mesh whose triangles look out.

    Raises
    ------
    QhullError, ValueError
        They are flat.
    """
    hull = ConvexHull(corners)
    kept = np.sort(hull.vertices)
    number = np.zeros(len(corners), np.int64)
    number[kept] = np.arange(len(kept))
    faces = hull.simplices.astype(np.int64)
    a, b, c = corners[faces].transpose(1, 0, 2)
    wrong = np.einsum("ij,ij->i", np.cross(b - a, c - a), hull.equations[:, :3]) < 0
    faces[wrong] = faces[wrong][:, ::-1]
    return MeshShape(corners[kept], number[faces])


def _box(corners: np.ndarray) -> tuple[np.ndarray, np.ndarray, tuple[float, float, float]] | None:
    """Return rotation, middle and size of a box with these corners; None where they are not those of one."""
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
    """Return unit vectors (count,3) that are spread evenly (a spiral of equal areas)."""
    z = np.linspace(-1, 1, count)
    turn = np.pi * (3 - np.sqrt(5)) * np.arange(count)
    r = np.sqrt(1 - z**2)
    return np.column_stack([r * np.cos(turn), r * np.sin(turn), z])
