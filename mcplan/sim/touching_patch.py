"""Assignment of contact points to the patches of a link."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from mcplan.robot.description import Geometry, MeshShape, Sphere
from mcplan.robot.patch import Patch

MAX_PROTRUSION = 3e-3
"""m: largest distance by which a rounded foot may extend beyond the ball that represents it."""

NEAR = 5e-3
"""m: a point belongs to a patch if it is nearer than this."""


def touching_patch(
    names: Iterable[str],
    patches: Mapping[str, Patch],
    pose: Callable[[str], tuple[np.ndarray, np.ndarray]],
    xyz: np.ndarray,
    normal: np.ndarray,
    active: Sequence[str],
) -> str | None:
    """Return the patch that contains a point, or None. Active patches come first, then the one that faces the support.

    For example, a sole that stands on its front edge touches with the toe patch.

    Parameters
    ----------
    names : of the patches of the link.
    patches : by name.
    pose : of a patch: R (3,3) and p (3,).
    xyz, normal : (3,) of the point, the normal towards the link.
    active : patches in contact according to the controller.
    """
    best, found = (False, -np.inf), None
    for name in names:
        R, p = pose(name)
        off, radius = distance(R.T @ (xyz - p), patches[name].polygon), patches[name].radius
        if abs(off - radius) < NEAR:
            rank = (name in active, float(-R[:, 2] @ normal))
            if rank > best:
                best, found = rank, name
    return found


def ball_covers_shape(patch: Patch, link: str, geometry: Geometry) -> bool:
    """Return whether a ball patch replaces a shape of its link, because the shape does not extend beyond the ball."""
    shape = geometry.shape
    if not patch.radius or patch.link != link or not isinstance(shape, Sphere | MeshShape):
        return False
    arm = geometry.p - patch.p
    if isinstance(shape, Sphere):
        return float(np.linalg.norm(arm)) + shape.radius < patch.radius + MAX_PROTRUSION
    return bool(np.linalg.norm(shape.vertices @ geometry.R.T + arm, axis=1).max() < patch.radius + MAX_PROTRUSION)


def distance(local: np.ndarray, polygon: np.ndarray) -> float:
    """Return the distance (m) of a point in patch axes from a convex polygon, an edge or a point."""
    x, y, z = local.tolist()  # Python floats: overhead of arrays exceeds the arithmetic of four corners
    corners = polygon.tolist()
    inside, nearest = len(corners) > 2, math.inf
    for k, (ax, ay) in enumerate(corners):
        bx, by = corners[k + 1 - len(corners)]
        u, v, dx, dy = x - ax, y - ay, bx - ax, by - ay
        inside = inside and dx * v - dy * u >= 0.0
        along = min(max((dx * u + dy * v) / max(dx * dx + dy * dy, 1e-18), 0.0), 1.0)
        nearest = min(nearest, math.hypot(u - along * dx, v - along * dy))
    return abs(z) if inside else math.hypot(nearest, z)
