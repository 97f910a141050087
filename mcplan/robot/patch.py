"""Patches: where a robot may touch."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from mcplan.util.arrays import read_only

Kind = Literal["surface", "point", "ball", "grasp"]

MOUNT = "fixed_base"
"""The patch by which the root link of a robot with a fixed base is held to the world: a hold that never opens."""

MOUNT_LIMIT = 1e4
"""N, N m: the most that a fixed base bears where its file says nothing."""


@dataclass(frozen=True, eq=False)
class Patch:
    """A flat part of a link's surface, or a hold.

    Parameters
    ----------
    name, link, limb : the patch, the link that carries it, the limb that it belongs to.
    kind : ``surface`` (rests on a surface), ``point`` (the same without moment), ``ball`` (the lowest point of a
        ball, which rolls), ``grasp`` (holds a bar).
    polygon : (k,2) convex corners in patch axes, counter-clockwise about z; two points are an edge; the origin alone
        for a point, a ball or a grasp.
    R, p : rotation (3,3) and position (3,) of the patch frame in the link; z points out of the link. Of a ball
        the origin is its centre, and z points down where the limb is upright.
    max_force, max_moment : bounds on a grasp (N, N m); infinite where none is given.
    radius : of a ball (m), 0 of all others.
    """

    name: str
    link: str
    limb: str
    kind: Kind
    polygon: np.ndarray
    R: np.ndarray
    p: np.ndarray
    max_force: float = np.inf
    max_moment: float = np.inf
    radius: float = 0.0

    @property
    def points(self) -> np.ndarray:
        """Contact points (k,3) in patch axes: the polygon's corners at ``z = 0``."""
        return np.column_stack([self.polygon, np.zeros(len(self.polygon))])

    @property
    def spread(self) -> np.ndarray:
        """Points (k,3) in the link's axes that are spread over it: corners, middles of its sides, its middle."""
        corners = self.points + np.array([0.0, 0.0, self.radius])
        middles = (corners + np.roll(corners, -1, axis=0)) / 2
        return np.vstack([corners, middles, corners.mean(axis=0)]) @ self.R.T + self.p


def mount_patch(link: str, max_force: float = MOUNT_LIMIT, max_moment: float = MOUNT_LIMIT) -> Patch:
    """Return the patch that holds a root link to the world, at the link's origin."""
    origin, R, p = read_only(np.zeros((1, 2))), read_only(np.eye(3)), read_only(np.zeros(3))
    return Patch(MOUNT, link, link, "grasp", origin, R, p, max_force, max_moment)


def convex_corners(polygon: np.ndarray) -> np.ndarray | None:
    """Return the polygon (k,2) counter-clockwise, or None when it is not convex, or has corners in one place or line.

    Two distinct points are an edge and returned as they are.
    """
    if len(polygon) == 1:
        return polygon
    sides = np.roll(polygon, -1, axis=0) - polygon
    size = np.linalg.norm(sides, axis=1)
    if size.min() < 1e-6:
        return None
    if len(polygon) == 2:
        return polygon
    following = np.roll(sides, -1, axis=0)
    turns = sides[:, 0] * following[:, 1] - sides[:, 1] * following[:, 0]
    if (turns < 0).all():
        return convex_corners(polygon[::-1])
    angle = np.arctan2(turns, (sides * following).sum(axis=1)).sum()
    # all turns to the left and one turn in all: a pentagram also turns left everywhere, but twice
    return polygon if (turns > 0).all() and angle < 3 * np.pi else None
