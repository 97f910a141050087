"""Which patch of a link a contact point belongs to."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from mcplan.model.patch import Patch

NEAR = 5e-3
"""A point so near to a patch belongs to it (m)."""


def touching_patch(
    names: Iterable[str],
    patches: Mapping[str, Patch],
    pose: Callable[[str], tuple[np.ndarray, np.ndarray]],
    xyz: np.ndarray,
    normal: np.ndarray,
    active: Sequence[str],
) -> str | None:
    """Return the patch that a point lies in, or None: one that is meant to touch, then the one that faces the support.

    A sole that stands on its front edge touches with the toe.

    Parameters
    ----------
    names : of the patches of the link.
    patches : by name.
    pose : of a patch: R (3,3) and p (3,).
    xyz, normal : (3,) of the point, the normal towards the link.
    active : patches that are meant to touch.
    """
    best, found = (False, -np.inf), None
    for name in names:
        R, p = pose(name)
        if distance(R.T @ (xyz - p), patches[name].polygon) < NEAR:
            rank = (name in active, float(-R[:, 2] @ normal))
            if rank > best:
                best, found = rank, name
    return found


def distance(local: np.ndarray, polygon: np.ndarray) -> float:
    """Distance (m) of a point in patch axes from a convex polygon, an edge or a point."""
    a, b = polygon, np.roll(polygon, -1, axis=0)
    edge, arm = b - a, local[:2] - a
    if len(polygon) > 2 and np.all(edge[:, 0] * arm[:, 1] - edge[:, 1] * arm[:, 0] >= 0.0):
        return float(abs(local[2]))
    along = np.clip(np.sum(edge * arm, axis=1) / np.maximum(np.sum(edge * edge, axis=1), 1e-18), 0.0, 1.0)
    flat = np.linalg.norm(arm - along[:, None] * edge, axis=1).min()
    return float(np.hypot(flat, local[2]))
