"""Convex polygons: half-planes, clipping, containment, erosion (Minkowski difference), nearest point.

A polygon is (k,2), counter-clockwise; its half-planes are ``A u <= b`` with unit rows of ``A``.
"""

from collections.abc import Sequence

import numpy as np

MIN_SIDE = 1e-6
"""Corners at a smaller distance (m) coincide."""


def counter_clockwise(polygon: np.ndarray) -> np.ndarray:
    """Return the corners in counter-clockwise order, with the same first corner."""
    return polygon if area(polygon) >= 0 else np.concatenate([polygon[:1], polygon[:0:-1]])


def area(polygon: np.ndarray) -> float:
    """Return the signed area (m²), positive for counter-clockwise corners."""
    x, y = np.asarray(polygon, float).T
    return 0.5 * float(x[:-1] @ y[1:] - y[:-1] @ x[1:] + x[-1] * y[0] - y[-1] * x[0])


def is_convex(polygon: np.ndarray) -> bool:
    """Whether the corners, in either orientation, form a convex polygon with an area."""
    polygon = counter_clockwise(np.asarray(polygon, float))
    edge = np.roll(polygon, -1, axis=0) - polygon
    next_edge = np.roll(edge, -1, axis=0)
    cross = edge[:, 0] * next_edge[:, 1] - edge[:, 1] * next_edge[:, 0]
    total_angle = np.arctan2(cross, np.sum(edge * next_edge, axis=1)).sum()
    return bool(area(polygon) > 1e-9 and np.all(cross > -1e-12) and total_angle < 3 * np.pi)


def outline_error(polygon: np.ndarray) -> str:
    """Return the reason why corners (k,2) are no valid outline of a surface; an empty text if they are valid."""
    sides = np.linalg.norm(np.roll(polygon, -1, axis=0) - polygon, axis=1)
    if sides[k := int(sides.argmin())] < MIN_SIDE:
        return f"has corners {k + 1} and {(k + 1) % len(polygon) + 1} in the same place; remove one of them"
    if abs(area(polygon)) < 1e-9 or not is_convex(polygon):
        return "is not convex, or has no area; split it into convex surfaces"
    return ""


def half_planes(polygon: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return ``A`` (k,2) of unit outward normals and ``b`` (k,) with ``A u <= b`` inside."""
    edge = np.roll(polygon, -1, axis=0) - polygon
    edge = edge / np.linalg.norm(edge, axis=1, keepdims=True)
    A = np.column_stack([edge[:, 1], -edge[:, 0]])
    return A, np.sum(A * polygon, axis=1)


def max_excess(points: np.ndarray, polygon: np.ndarray) -> float:
    """Return the largest signed distance (m) of ``points`` (k,2) beyond a side of ``polygon``; negative: all inside."""
    A, b = half_planes(polygon)
    return float(np.max(points @ A.T - b))


def clip(points: np.ndarray, A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the part of a convex polygon, a segment or a point (k,2) with ``A u <= b``; (0,2) if it is empty.

    Algorithm of Sutherland and Hodgman (1974): one half-plane at a time.
    """
    for a, limit in zip(A, b, strict=True):
        excess = (points @ a - limit).tolist()
        if max(excess, default=0.0) <= 0.0:  # inside
            continue
        corners, clipped, count = points.tolist(), [], len(excess)
        for k, (x, y) in enumerate(corners):
            # a segment has one side, not two
            k_next = (k + 1) % count
            if excess[k] <= 0.0:
                clipped.append((x, y))
            if excess[k] * excess[k_next] < 0.0 and (count > 2 or k == 0):
                share, (x_next, y_next) = excess[k] / (excess[k] - excess[k_next]), corners[k_next]
                clipped.append((x + share * (x_next - x), y + share * (y_next - y)))
        points = np.array(clipped).reshape(-1, 2)
        if not clipped:
            break
    return points


def uncovered_area(polygon: np.ndarray, pieces: Sequence[tuple[np.ndarray, np.ndarray]]) -> float:
    """Return the area (m²) of a convex polygon (k,2) outside of convex ``pieces``, each given as ``A, b``.

    Each piece is subtracted by cuts along its sides, so that the remaining parts are convex.
    """
    remaining = [polygon]
    for A, b in pieces:
        parts = []
        for part in remaining:
            for k in range(len(b)):
                parts.append(clip(part, -A[k : k + 1], -b[k : k + 1]))
                part = clip(part, A[k : k + 1], b[k : k + 1])
        remaining = [part for part in parts if len(part) > 2]
    return sum(area(part) for part in remaining)


def erode(polygon: np.ndarray, shape: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return ``A, b`` of the translations ``u`` for which ``u + shape`` (k,2) lies inside ``polygon``."""
    A, b = half_planes(polygon)
    return A, b - np.max(shape @ A.T, axis=0)


def nearest(point: np.ndarray, A: np.ndarray, b: np.ndarray, max_distance: float = 1e4) -> np.ndarray | None:
    """Return the point of ``{u: A u <= b}`` nearest to ``point`` (2,), or None if the set is empty.

    The solution is the point itself, or the nearest point of the sides of the polygon, which is clipped from a square
    of half-width ``max_distance`` (m) around ``point``.
    """
    square = point + max_distance * np.array([[-1.0, -1], [1, -1], [1, 1], [-1, 1]])
    if np.all(A @ point <= b):
        return np.array(point, float)
    # 1e-9 m lets a shape fit exactly between parallel sides
    corners = clip(square, A, b + 1e-9)
    if not len(corners):
        return None
    start, end = corners, np.roll(corners, -1, axis=0)
    edge = end - start
    length2 = np.maximum(np.sum(edge * edge, axis=1), 1e-30)
    share = np.clip(np.sum((point - start) * edge, axis=1) / length2, 0.0, 1.0)
    feet = start + share[:, None] * edge
    return np.array(feet[np.argmin(np.sum((feet - point) ** 2, axis=1))])
