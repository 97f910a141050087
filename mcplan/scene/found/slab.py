"""How thick the solid below a surface is."""

import numpy as np

from mcplan.scene.found.triangles import Triangles
from mcplan.scene.polygon import half_planes

SHEET = 0.05
"""m: thickness of what has nothing below it: a sheet, or the ground."""

THINNEST = 0.02
"""m: no slab is thinner: what lands would be through it."""

EDGE = 0.01
"""m: how far inside of the outline the depth is measured: what ends there is a side."""

SAMPLES = 6
"""Along each side of the rectangle around a surface."""


def thickness(triangles: Triangles, R: np.ndarray, p: np.ndarray, polygon: np.ndarray, most: float = 100.0) -> float:
    """Return how far (m) below a surface (R, p, corners (k,2)) its solid reaches, where that is least.

    No farther than ``most`` is looked.
    """
    normals, _ = triangles.normals_areas
    top = np.column_stack([polygon, np.zeros(len(polygon))])
    outline = np.concatenate([top, top - [0.0, 0.0, most]]) @ R.T + p
    near = triangles.within(outline.min(axis=0), outline.max(axis=0))
    local = (triangles.corners[near] - p) @ R
    low, high = polygon.min(axis=0), polygon.max(axis=0)
    below = (normals[near] @ R[:, 2] < -1e-6) & (local[:, :, 2].min(axis=1) < -1e-3)
    below &= (local[:, :, :2].max(axis=1) > low).all(axis=1) & (local[:, :, :2].min(axis=1) < high).all(axis=1)
    if not below.any():
        return SHEET
    found = [_depth(local[below], point) for point in _inner(polygon)]
    depths = [depth for depth in found if depth is not None]
    return round(max(min(depths, default=SHEET), THINNEST), 4)


def _inner(polygon: np.ndarray) -> np.ndarray:
    """Return points (n,2) all over a polygon, none within ``EDGE`` of its sides."""
    A, b = half_planes(polygon)
    steps = np.linspace(0.0, 1.0, SAMPLES)
    low, high = polygon.min(axis=0), polygon.max(axis=0)
    grid = np.array([[low[0] + s * (high[0] - low[0]), low[1] + t * (high[1] - low[1])] for s in steps for t in steps])
    middle = polygon.mean(axis=0)
    towards = middle - polygon
    corners = polygon + 1.5 * EDGE * towards / np.linalg.norm(towards, axis=1, keepdims=True)
    points = np.concatenate([grid, corners, 0.5 * (corners + middle), [middle]])
    inside = np.all(points @ A.T <= b - EDGE, axis=1)
    return points[inside] if inside.any() else middle[None]


def _depth(corners: np.ndarray, point: np.ndarray) -> float | None:
    """Return how far below a point (2,) the first of triangles (m,3,3) is that looks down; None where there is none."""
    a, b, c = corners[:, 0, :2], corners[:, 1, :2], corners[:, 2, :2]
    ab, ac, ap = b - a, c - a, point - a
    double = ab[:, 0] * ac[:, 1] - ab[:, 1] * ac[:, 0]
    sound = np.abs(double) > 1e-12
    double = np.where(sound, double, 1.0)
    u = (ap[:, 0] * ac[:, 1] - ap[:, 1] * ac[:, 0]) / double
    v = (ab[:, 0] * ap[:, 1] - ab[:, 1] * ap[:, 0]) / double
    hit = sound & (u >= -1e-9) & (v >= -1e-9) & (u + v <= 1 + 1e-9)
    z = corners[:, 0, 2] + u * (corners[:, 1, 2] - corners[:, 0, 2]) + v * (corners[:, 2, 2] - corners[:, 0, 2])
    hit &= z < -1e-3
    return float(-z[hit].max()) if hit.any() else None
