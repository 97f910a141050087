"""Assignment of contact points to the patches of a link."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from mcplan.robot.description import Geometry, MeshShape, Sphere
from mcplan.robot.patch import Patch

MAX_PROTRUSION_M = 3e-3
"""Largest distance (m) by which a rounded foot may extend beyond the ball that represents it."""

CONTACT_TOLERANCE_M = 5e-3
"""Distance (m) from a patch within which a contact point counts as on the patch."""


def touching_patch(
    names: Iterable[str],
    patches: Mapping[str, Patch],
    pose: Callable[[str], tuple[np.ndarray, np.ndarray]],
    xyz: np.ndarray,
    normal: np.ndarray,
    active: Sequence[str],
) -> str | None:
    """Return the patch that a contact point belongs to, or None.

    Among several patches near the point, active ones take precedence, then the one that faces the support best. For
    example, a sole that stands on its front edge touches with the toe patch.

    Parameters
    ----------
    names : names of the patches of the link.
    patches : all patches by name.
    pose : returns R (3,3) and p (3,) of a patch in the world.
    xyz, normal : (3,) position of the point, and the contact normal there, towards the link.
    active : names of the patches that the controller takes to be in contact.
    """
    best_rank, best_patch = (False, -np.inf), None
    for name in names:
        R, p = pose(name)
        patch_distance, radius = distance(R.T @ (xyz - p), patches[name].polygon), patches[name].radius
        if abs(patch_distance - radius) < CONTACT_TOLERANCE_M:
            rank = (name in active, float(-R[:, 2] @ normal))
            if rank > best_rank:
                best_rank, best_patch = rank, name
    return best_patch


def ball_covers_shape(patch: Patch, link: str, geometry: Geometry) -> bool:
    """Return whether a ball patch replaces a shape of its link, which reaches beyond the ball by little."""
    shape = geometry.shape
    if not patch.radius or patch.link != link or not isinstance(shape, Sphere | MeshShape):
        return False
    arm = geometry.p - patch.p
    if isinstance(shape, Sphere):
        return float(np.linalg.norm(arm)) + shape.radius < patch.radius + MAX_PROTRUSION_M
    return bool(np.linalg.norm(shape.vertices @ geometry.R.T + arm, axis=1).max() < patch.radius + MAX_PROTRUSION_M)


def distance(local: np.ndarray, polygon: np.ndarray) -> float:
    """Return the distance (m) of a point (3,) from a convex polygon, an edge or a point (k, 2) in the plane z = 0."""
    x, y, z = local.tolist()  # Python floats: for four corners the overhead of arrays exceeds their arithmetic
    corners = polygon.tolist()
    is_inside, edge_distance = len(corners) > 2, math.inf
    for k, (ax, ay) in enumerate(corners):
        bx, by = corners[k + 1 - len(corners)]
        u, v, dx, dy = x - ax, y - ay, bx - ax, by - ay
        is_inside = is_inside and dx * v - dy * u >= 0.0
        along = min(max((dx * u + dy * v) / max(dx * dx + dy * dy, 1e-18), 0.0), 1.0)
        edge_distance = min(edge_distance, math.hypot(u - along * dx, v - along * dy))
    return abs(z) if is_inside else math.hypot(edge_distance, z)
