"""Clearances along a motion: distances of bodies, and those that they are to keep."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from mcplan.collision.model import CollisionModel
from mcplan.core.posture import apart as core
from mcplan.core.posture.apart import PostureSurroundings
from mcplan.motion.spline import minimum_jerk
from mcplan.robot.pose import Pose
from mcplan.robot.robot import Robot
from mcplan.scene.contact import Contact

DESIRED_CLEARANCE_M = 0.02
"""m: distance that a path tries to keep from the environment."""

SUFFICIENT_CLEARANCE_M = 0.006
"""m: distance with which it is collision-free with a margin."""

DESIRED_SELF_CLEARANCE_M = 0.008
"""m: distance that it tries to keep between links; more would exclude postures that arms and waist need."""

WATCH_DISTANCE_M = 0.05
"""m: pairs nearer than this are watched."""

MIN_SEPARATION_M = 1e-4
"""m: bodies nearer than this are in collision, however near they may be."""

GRAZING_ALLOWANCE_M = 1e-3
"""m: tolerance for a link at the support that it leaves or comes to: they touch."""

CLEARANCE_PER_DISTANCE = 0.5
"""Clearance per distance from the end of its path at which a patch touches."""

DISTANCE_RATE_FACTOR = 1.5
"""Factor on the change of a distance by its rate, until it is checked again."""

SEPARATION_SHARE = 0.2
"""Share of the path in which a pair that is close at an end separates; gently, since the body moves for it."""


class DesiredClearance(NamedTuple):
    """Clearance of each pair (m): desired, sufficient, and least, below which bodies overlap.

    ``objects`` are the poses of those that are not where the scene has them.
    """

    need: np.ndarray
    content: np.ndarray
    least: np.ndarray
    objects: Mapping[str, Pose] | None = None


class ClearanceDeficit(NamedTuple):
    """Deficit of a posture (m; negative: clearance to spare), its bodies, and the same on the path around it."""

    amount: float
    bodies: tuple[str, ...]
    around: float


class Nearness:
    """Distances of the bodies of one scene.

    Parameters
    ----------
    robot, collisions : the scene.
    """

    def __init__(self, robot: Robot, collisions: CollisionModel):
        self.robot, self.collisions = robot, collisions
        self.own = np.array([pair.b in robot.link_names for pair in collisions.pairs], dtype=bool)
        size = robot.scale.leg
        self.see, self.content, self._wanted = (
            size * WATCH_DISTANCE_M,
            size * SUFFICIENT_CLEARANCE_M,
            size * DESIRED_CLEARANCE_M,
        )
        self.wanted = np.where(self.own, size * DESIRED_SELF_CLEARANCE_M, self._wanted)
        self.around = collisions.around(self.see)
        self._still, self._found = np.zeros(robot.nv), np.zeros(2)

    def around_at(self, objects: Mapping[str, Pose] | None) -> PostureSurroundings:
        """Return the surroundings with objects at poses (R, p) that differ from their initial ones."""
        return self.around._replace(shapes=self.collisions.shapes_at(objects)) if objects else self.around

    def watched(self, contacts: Sequence[Contact]) -> np.ndarray:
        """Say of each pair whether it can come nearer or part on contacts that stay."""
        watched = np.ones(len(self.collisions.pairs), dtype=bool)
        watched[list(self.collisions.fixed_by(contacts) | self.collisions.pairs_of(contacts))] = False
        return watched

    def near(
        self, q: np.ndarray, watched: np.ndarray, objects: Mapping[str, Pose] | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the pairs that are watched and near, their distances, and rates of these."""
        pairs, distance, J = self.collisions.near(q, self.see, objects)
        close = watched[pairs]
        return pairs[close], distance[close], J[close]

    def distances(self, q: np.ndarray, objects: Mapping[str, Pose] | None = None) -> np.ndarray:
        """Return the distances of all pairs (m), inf where they are far."""
        distance = np.full(len(self.collisions.pairs), np.inf)
        pairs, near, _ = self.collisions.near(q, self.see, objects)
        distance[pairs] = near
        return distance

    def short(
        self, q: np.ndarray, wish: DesiredClearance, watched: np.ndarray, step: np.ndarray | None = None
    ) -> ClearanceDeficit:
        """Return the deficit of a posture against the sufficient clearance, and its bodies.

        Parameters
        ----------
        step : (nv,) step of the path from there, or back, until it is checked again.
        """
        step, scene = self._still if step is None else step, self.around_at(wish.objects)
        worst = core.shortfall(
            self.robot.tree, scene, q, wish.content, wish.least, SUFFICIENT_CLEARANCE_M, watched, step,
            DISTANCE_RATE_FACTOR, self._found,
        )  # fmt: skip
        if worst < 0:
            return ClearanceDeficit(-self.see, (), -self.see)
        pair, (short, around) = self.collisions.pairs[worst], self._found.tolist()
        return ClearanceDeficit(short, (pair.a, pair.b), around)

    def need(
        self,
        share: float,
        ends: tuple[np.ndarray, np.ndarray],
        passing: list[tuple[list[int], str]],
        away: dict[str, tuple[float, float]],
    ) -> np.ndarray:
        """Return the desired clearance of each pair (m), less near an end at which the pair is closer.

        Parameters
        ----------
        share : of the path.
        ends : distances of all pairs at both ends.
        passing : pairs that touch on purpose at an end, and the patch that they part with.
        away : by patch, its distances from both ends of its path.
        """
        gain = [self._wanted * minimum_jerk(min(1.0, part / SEPARATION_SHARE))[0] for part in (share, 1.0 - share)]
        need = np.minimum(self.wanted, np.minimum(ends[0] + gain[0], ends[1] + gain[1]))
        for pairs, patch in passing:
            # toes that wait above the floor while their knee comes down do not touch it where they begin
            for end, distance in zip(ends, away[patch], strict=True):
                need[pairs] = np.minimum(
                    need[pairs], np.minimum(self._wanted, end[pairs] + CLEARANCE_PER_DISTANCE * distance)
                )
        return need


def away_from_ends(places: np.ndarray, k: int) -> tuple[float, float]:
    """Return the distances (m) of a point of a path (n, 3) from both ends of it."""
    first, last = (float(np.linalg.norm(places[k] - places[end])) for end in (0, -1))
    return first, last
