"""All corners of a link above a surface: one nearest point is not enough to hold a flat face off another.

Where two faces are almost parallel the nearest point jumps from corner to corner. A row for one of them alone is then
obeyed by turning about it, and the next one comes too near.
"""

import numpy as np

from mcplan.collision.pairs import link_solids
from mcplan.collision.shape import Solid, solid_corners
from mcplan.model.robot import Robot
from mcplan.scene.environment import Surface

MOST = 4
"""Corners of a link that are looked at: those nearest to the surface."""

SAME = 1e-4
"""m: the face of a surface is what is nearest when its nearest corner is at the distance of the pair."""


class FaceRows:
    """Distances of a robot's corners from surfaces, and their rates.

    For a corner at x on a link with Jacobian (J_v, J_w) at p, over a surface with normal n through s::

        d = n' (x - s) - radius,   d' = (n' J_v + ((x - p) x n)' J_w) v

    Parameters
    ----------
    robot : Robot
    surfaces : by name.
    """

    def __init__(self, robot: Robot, surfaces: dict[str, Surface]):
        self.robot, self._surfaces = robot, surfaces
        self._corners: dict[str, list[tuple[np.ndarray, float]]] = {}
        links, solids, _bodies = link_solids(robot)
        for link, shape in zip(links, solids, strict=True):
            self._corners.setdefault(link, []).append(self._in_link(link, shape))

    def _in_link(self, link: str, shape: Solid) -> tuple[np.ndarray, float]:
        offset = self.robot.frame(link)[1]
        return (solid_corners(shape) - offset[9:]) @ offset[:9].reshape(3, 3), shape.radius

    def rows(self, q: np.ndarray, link: str, surface: str, distance: float) -> tuple[np.ndarray, np.ndarray] | None:
        """Return distances (k,) and rates (k, nv) of the corners of a link above a surface, nearest first.

        None where its face is not what the link is nearest to, or where at most one corner is above it.

        Parameters
        ----------
        q : (nq,)
        link, surface : names.
        distance : of the pair, m.
        """
        support = self._surfaces.get(surface)
        if support is None:
            return None
        X, n = self.robot.frame_pose(q, link), support.R[:, 2]
        for corners, radius in self._corners[link]:
            x = corners @ X[:3, :3].T + X[:3, 3]
            local = (x - support.p) @ support.R
            height = local[:, 2] - radius
            above = np.flatnonzero(_inside(local[:, :2], support.polygon))
            if len(above) < 2 or abs(height[above].min() - distance) > SAME:
                continue
            above = above[np.argsort(height[above], kind="stable")[:MOST]]
            J = self.robot.frame_jacobian(q, link)
            arm = np.cross(x[above] - X[:3, 3], n)
            return height[above], n @ J[:3] + arm @ J[3:]
        return None


def _inside(points: np.ndarray, polygon: np.ndarray) -> np.ndarray:
    """Say which points (k,2) are in a convex polygon that turns to the left."""
    edge = np.roll(polygon, -1, axis=0) - polygon
    arm = points[:, None] - polygon
    return np.all(edge[:, 0] * arm[..., 1] - edge[:, 1] * arm[..., 0] >= 0.0, axis=1)
