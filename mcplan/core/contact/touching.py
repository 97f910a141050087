"""Assignment of contact points to the patches of a link.

Among several patches near a point, active ones take precedence, then the one that faces the support best. For example,
a sole that stands on its front edge touches with the toe patch.
"""

import math
from typing import NamedTuple

import numpy as np

from mcplan.core.algebra.polygon import is_inside, nearest_on_border
from mcplan.core.algebra.pose import to_local
from mcplan.core.contact.model import PATCH_COUNT, PATCH_FIRST, PATCH_RADIUS
from mcplan.core.jit import jit

NO_PATCH = -1
"""In place of a patch number: no patch."""

CONTACT_TOLERANCE_M = 5e-3
"""Distance (m) from a patch within which a contact point counts as on the patch."""


class Patches(NamedTuple):
    """P patches, and the links whose contact points may belong to them."""

    index: np.ndarray  # (P, 5) int64, columns as in ``ContactScene.patch_index``
    shape: np.ndarray  # (P, 13), columns as in ``ContactScene.patch``
    corners: np.ndarray  # (K, 2) in patch axes, counter-clockwise (m)
    on_link: np.ndarray  # (links, P) int64: 1 if points on a link may belong to a patch
    frame: np.ndarray  # (P, 12) poses in the world


@jit
def polygon_distance(corners, first, count, x, y, z):
    """Return the distance (m) of a point from a convex polygon, an edge or a point in the plane z = 0.

    Its corners are ``first .. first + count - 1``; without corners it is the origin.
    """
    if count > 2 and is_inside(corners, first, count, x, y):
        return abs(z)
    bx, by = 0.0, 0.0
    if count == 1:
        bx, by = corners[first, 0], corners[first, 1]
    elif count > 1:
        bx, by = nearest_on_border(corners, first, count, x, y)
    return math.hypot(math.hypot(x - bx, y - by), z)


@jit
def touching_patch(patches, link, active, point, normal):
    """Return the number of the patch that a contact point on a link belongs to, or NO_PATCH.

    Parameters
    ----------
    patches : Patches.
    link : number of the link.
    active : (P,) int64, 1 for the patches that the controller takes to be in contact.
    point, normal : (3,) position of the point, and the contact normal there, towards the link.
    """
    best_patch, best_active, best_facing = NO_PATCH, 0, -math.inf
    index, frame = patches.index, patches.frame
    for p in range(len(frame)):
        if patches.on_link[link, p] == 0:
            continue
        x, y, z = to_local(frame, p, point[0], point[1], point[2])
        distance = polygon_distance(patches.corners, index[p, PATCH_FIRST], index[p, PATCH_COUNT], x, y, z)
        if abs(distance - patches.shape[p, PATCH_RADIUS]) < CONTACT_TOLERANCE_M:
            facing = -(frame[p, 2] * normal[0] + frame[p, 5] * normal[1] + frame[p, 8] * normal[2])
            if active[p] > best_active or (active[p] == best_active and facing > best_facing):
                best_patch, best_active, best_facing = p, active[p], facing
    return best_patch
