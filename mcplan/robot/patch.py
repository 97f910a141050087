"""Contact patches of a robot: surfaces, edges, points, balls, grasps, and the mount of a fixed base."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from mcplan.util.arrays import read_only

Kind = Literal["surface", "point", "ball", "grasp"]

MOUNT = "fixed_base"
"""Name of the patch that fixes the root link of a fixed-base robot to the world; its contact never opens."""

MOUNT_LIMIT = 1e4
"""Default limit of the force (N) and of the moment (N m) on a fixed base."""


@dataclass(frozen=True, eq=False)
class Patch:
    """A contact patch: a flat part of a link's surface, a point, a ball, or a gripper.

    Parameters
    ----------
    name, link, limb : names of the patch, of the link that carries it, and of the limb that it belongs to.
    kind : ``surface`` (polygon or edge), ``point`` (without moment), ``ball`` (rolling, in contact at its lowest
        point), ``grasp`` (holds a bar).
    polygon : (k,2) corners of a convex polygon in patch axes, counter-clockwise about z (m); two corners are an edge; a
        point, a ball and a grasp have the origin only.
    R, p : rotation (3,3) and position (3,) of the patch frame in the link; z points out of the link. The origin of a
        ball is its centre; its z axis points down when the limb is upright.
    max_force, max_moment : limits of a grasp (N, N m); infinite by default.
    radius : radius of a ball (m), else 0.
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
    def sample_points(self) -> np.ndarray:
        """Sample points (k,3) in the link's axes: corners, midpoints of the sides, centre."""
        corners = self.points + np.array([0.0, 0.0, self.radius])
        midpoints = (corners + np.roll(corners, -1, axis=0)) / 2
        return np.vstack([corners, midpoints, corners.mean(axis=0)]) @ self.R.T + self.p


def mount_patch(link: str, max_force: float = MOUNT_LIMIT, max_moment: float = MOUNT_LIMIT) -> Patch:
    """Return the patch that fixes a root link to the world, at the link's origin."""
    origin, R, p = read_only(np.zeros((1, 2))), read_only(np.eye(3)), read_only(np.zeros(3))
    return Patch(MOUNT, link, link, "grasp", origin, R, p, max_force, max_moment)


def convex_corners(polygon: np.ndarray) -> np.ndarray | None:
    """Return a polygon (k,2) in counter-clockwise order, or None if it is not strictly convex.

    One point, and two distinct points (an edge), are returned unchanged.
    """
    if len(polygon) == 1:
        return polygon
    sides = np.roll(polygon, -1, axis=0) - polygon
    lengths = np.linalg.norm(sides, axis=1)
    if lengths.min() < 1e-6:
        return None
    if len(polygon) == 2:
        return polygon
    next_sides = np.roll(sides, -1, axis=0)
    turns = sides[:, 0] * next_sides[:, 1] - sides[:, 1] * next_sides[:, 0]
    if (turns < 0).all():
        return convex_corners(polygon[::-1])
    angle = np.arctan2(turns, (sides * next_sides).sum(axis=1)).sum()
    # a pentagram also turns left at each corner, but by two full turns in total
    return polygon if (turns > 0).all() and angle < 3 * np.pi else None
