"""How far the joints keep from their limits on the way from one posture to another."""

from collections.abc import Iterable

import numpy as np

from mcplan.model.folds import folds_of
from mcplan.model.robot import Robot

ROOM, KEPT = 0.05, 0.8
"""rad or m: what a way keeps of the limits of joints where its ends do, and the part of what they keep where that is
less: a joint that comes to its limit leaves a run nothing to make up for what it is off the plan by."""

BENT = 0.25
"""rad: the same of knees and elbows of limbs that touch, from where these are straight."""

AT_BOUND = 1e-6
"""rad or m: a joint so near to a bound is held up by it."""


class JointRoom:
    """Bounds of the joints of a robot on the way between two postures.

    Parameters
    ----------
    least : (2, n) the widest bounds, where nothing else will do.
    """

    def __init__(self, robot: Robot, least: np.ndarray):
        self.robot, self.least = robot, least
        self.limits = np.array([robot.limits.lower, robot.limits.upper])

    def between(self, ends: np.ndarray, patches: Iterable[str]) -> np.ndarray:
        """Return bounds (2, n) that keep a way as far from the limits as its ends (2, n), or nearly.

        They keep limbs bent whose ``patches`` touch all along, where both ends bend them to the same side.
        """
        lower, upper = self.limits
        most = np.minimum(ROOM, 0.5 * (upper - lower))
        room = np.minimum(KEPT * np.array([ends.min(axis=0) - lower, upper - ends.max(axis=0)]), most)
        bounds = np.array([np.maximum(lower + room[0], self.least[0]), np.minimum(upper - room[1], self.least[1])])
        for fold in folds_of(self.robot, patches):
            one, other = ends[:, fold.joint] - fold.straight
            if one * other > 0.0:
                fold.keep_bent(bounds, one, KEPT * min(abs(one), abs(other), BENT))
        return bounds

    def hold_up(self, limit: np.ndarray, q: np.ndarray) -> bool:
        """Say whether a joint of postures (..., nq) is at or beyond bounds (2, n) that are not the widest."""
        lower, upper = limit
        low = (lower > self.least[0]) & (q[..., 7:] < lower + AT_BOUND)
        high = (upper < self.least[1]) & (q[..., 7:] > upper - AT_BOUND)
        return bool((low | high).any())
