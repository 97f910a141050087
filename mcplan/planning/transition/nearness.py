"""Clearances along a motion: distances of pairs of bodies, and their desired clearances."""

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
"""m: distance from which on a path is accepted: collision-free with a margin."""

DESIRED_SELF_CLEARANCE_M = 0.008
"""m: distance that a path tries to keep between links; more would exclude postures that arms and waist need."""

WATCH_DISTANCE_M = 0.05
"""m: distances of pairs are computed below this."""

MIN_SEPARATION_M = 1e-4
"""m: bodies nearer than this are in collision, whatever their desired clearance."""

GRAZING_ALLOWANCE_M = 1e-3
"""m: tolerance for a link close to the support that it leaves or comes to: there they touch."""

CLEARANCE_PER_DISTANCE = 0.5
"""Desired clearance of a swinging patch from its support, per distance from the place of contact."""

DISTANCE_RATE_FACTOR = 1.5
"""Factor on the change of a distance that its rate predicts until the next check."""

SEPARATION_SHARE = 0.2
"""Share of the path over which a pair that is close at an end separates: gradually, since the body has to move."""


class DesiredClearance(NamedTuple):
    """Clearances of each pair (P,), m: desired, sufficient, and minimum, below which bodies are in collision.

    ``objects`` are the poses of moved objects.
    """

    desired: np.ndarray
    sufficient: np.ndarray
    minimum: np.ndarray
    objects: Mapping[str, Pose] | None = None


class ClearanceDeficit(NamedTuple):
    """Clearance deficit of a posture (m; negative: excess), its bodies, and the deficit on the path around it (m)."""

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
        self.between_links = np.array([pair.b in robot.link_names for pair in collisions.pairs], dtype=bool)
        size = robot.scale.leg
        self.watch_distance, self.sufficient, self._environment_clearance = (
            size * WATCH_DISTANCE_M,
            size * SUFFICIENT_CLEARANCE_M,
            size * DESIRED_CLEARANCE_M,
        )
        self.clearance = np.where(self.between_links, size * DESIRED_SELF_CLEARANCE_M, self._environment_clearance)
        self.surroundings = collisions.around(self.watch_distance)
        self._no_step, self._deficits = np.zeros(robot.nv), np.zeros(2)

    def surroundings_at(self, objects: Mapping[str, Pose] | None) -> PostureSurroundings:
        """Return the surroundings with objects at poses (R, p) that differ from their initial ones."""
        return self.surroundings._replace(shapes=self.collisions.shapes_at(objects)) if objects else self.surroundings

    def watched(self, contacts: Sequence[Contact]) -> np.ndarray:
        """Return for each pair whether its distance can change while the contacts stay closed."""
        watched = np.ones(len(self.collisions.pairs), dtype=bool)
        watched[list(self.collisions.fixed_by(contacts) | self.collisions.pairs_of(contacts))] = False
        return watched

    def near(
        self, q: np.ndarray, watched: np.ndarray, objects: Mapping[str, Pose] | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the watched pairs within the watch distance, their distances, and the Jacobians of the distances."""
        pairs, distance, J = self.collisions.near(q, self.watch_distance, objects)
        close = watched[pairs]
        return pairs[close], distance[close], J[close]

    def distances(self, q: np.ndarray, objects: Mapping[str, Pose] | None = None) -> np.ndarray:
        """Return the distances of all pairs (m), inf beyond the watch distance."""
        distance = np.full(len(self.collisions.pairs), np.inf)
        pairs, near, _ = self.collisions.near(q, self.watch_distance, objects)
        distance[pairs] = near
        return distance

    def deficit(
        self, q: np.ndarray, clearance: DesiredClearance, watched: np.ndarray, step: np.ndarray | None = None
    ) -> ClearanceDeficit:
        """Return the deficit of a posture against the sufficient clearance, and its bodies.

        Parameters
        ----------
        step : (nv,) step of the path, forward and back, until the next checks.
        """
        step, scene = self._no_step if step is None else step, self.surroundings_at(clearance.objects)
        worst = core.shortfall(
            self.robot.tree, scene, q, clearance.sufficient, clearance.minimum, SUFFICIENT_CLEARANCE_M, watched, step,
            DISTANCE_RATE_FACTOR, self._deficits,
        )  # fmt: skip
        if worst < 0:
            return ClearanceDeficit(-self.watch_distance, (), -self.watch_distance)
        pair, (amount, around) = self.collisions.pairs[worst], self._deficits.tolist()
        return ClearanceDeficit(amount, (pair.a, pair.b), around)

    def desired(
        self,
        share: float,
        ends: tuple[np.ndarray, np.ndarray],
        touching: list[tuple[list[int], str]],
        end_distances: dict[str, tuple[float, float]],
    ) -> np.ndarray:
        """Return the desired clearance of each pair (m), less near an end at which the pair is closer.

        Parameters
        ----------
        share : of the path.
        ends : distances of all pairs at both ends.
        touching : pairs that may touch at an end, and the patch whose contact this is.
        end_distances : by patch, its distances from both ends of its path.
        """
        full = self._environment_clearance
        gain = [full * minimum_jerk(min(1.0, part / SEPARATION_SHARE))[0] for part in (share, 1.0 - share)]
        desired = np.minimum(self.clearance, np.minimum(ends[0] + gain[0], ends[1] + gain[1]))
        for pairs, patch in touching:
            # not only the distance counts: toes that wait above the floor for their knee start without touching it
            for end, distance in zip(ends, end_distances[patch], strict=True):
                desired[pairs] = np.minimum(
                    desired[pairs], np.minimum(full, end[pairs] + CLEARANCE_PER_DISTANCE * distance)
                )
        return desired


def end_distances(places: np.ndarray, k: int) -> tuple[float, float]:
    """Return the distances (m) of point k of a path (n, 3) from both of its ends."""
    first, last = (float(np.linalg.norm(places[k] - places[end])) for end in (0, -1))
    return first, last
