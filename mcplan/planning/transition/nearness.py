"""Clearances along a motion: distances of pairs of bodies, and their desired clearances."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from mcplan.collision.model import CollisionModel
from mcplan.core.posture import collision_free as core
from mcplan.core.posture.collision_free import PostureSurroundings
from mcplan.motion.spline import minimum_jerk
from mcplan.robot.pose import Pose
from mcplan.robot.robot import Robot
from mcplan.scene.contact import Contact

DESIRED_CLEARANCE_M = 0.02
"""Distance that a path should keep from the environment, for HRP-2; scaled by leg length, as the next three."""

SUFFICIENT_CLEARANCE_M = 0.006
"""Distance with which a path is accepted as collision-free with a margin."""

DESIRED_SELF_CLEARANCE_M = 0.008
"""Distance that a path should keep between links; more would exclude postures that arms and waist need."""

MAX_DISTANCE_M = 0.05
"""Largest distance of pairs that are examined."""

MIN_SEPARATION_M = 1e-4
"""Bodies nearer than this are in collision, whatever their desired clearance."""

GRAZING_ALLOWANCE_M = 1e-3
"""Tolerance of the clearance of a link from the support that it leaves or reaches, where they touch."""

CLEARANCE_PER_DISTANCE = 0.5
"""Desired clearance of a swinging patch from its support, relative to the distance from its position in contact."""

DISTANCE_RATE_FACTOR = 1.5
"""Safety factor on the change of a distance until the next check, as predicted by its rate."""

SEPARATION_SHARE = 0.2
"""Share of the path over which the desired clearance of a pair that is close at an end grows to its full value."""


class DesiredClearance(NamedTuple):
    """Clearances of each pair (P,), m: desired, sufficient, and the minimum, below which bodies are in collision.

    ``objects`` are the poses (R, p) of moved objects by name.
    """

    desired: np.ndarray
    sufficient: np.ndarray
    minimum: np.ndarray
    objects: Mapping[str, Pose] | None = None


class ClearanceDeficit(NamedTuple):
    """Clearance deficit of a posture (m; negative: excess), its two bodies, and a bound on the deficit nearby (m).

    ``around`` is the bound on the path until the next checks before and after the posture.
    """

    amount: float
    bodies: tuple[str, ...]
    around: float


class Nearness:
    """Distances between the bodies of a scene, and their desired clearances.

    Parameters
    ----------
    robot, collisions : the robot, and the collision model of the scene.
    """

    def __init__(self, robot: Robot, collisions: CollisionModel):
        self.robot, self.collisions = robot, collisions
        self.between_links = np.array([pair.b in robot.link_names for pair in collisions.pairs], dtype=bool)
        size = robot.scale.leg
        self.max_distance, self.sufficient, self._environment_clearance = (
            size * MAX_DISTANCE_M,
            size * SUFFICIENT_CLEARANCE_M,
            size * DESIRED_CLEARANCE_M,
        )
        self.clearance = np.where(self.between_links, size * DESIRED_SELF_CLEARANCE_M, self._environment_clearance)
        self.surroundings = collisions.posture_surroundings(self.max_distance)
        self._no_step, self._deficits = np.zeros(robot.nv), np.zeros(2)

    def surroundings_at(self, objects: Mapping[str, Pose] | None) -> PostureSurroundings:
        """Return the surroundings with objects at poses (R, p) that differ from their initial ones."""
        return self.surroundings._replace(shapes=self.collisions.shapes_at(objects)) if objects else self.surroundings

    def watched(self, contacts: Sequence[Contact]) -> np.ndarray:
        """Return a mask (P,) of the pairs to check while contacts are closed: neither fixed by them nor touching."""
        watched = np.ones(len(self.collisions.pairs), dtype=bool)
        watched[list(self.collisions.fixed_by(contacts) | self.collisions.pairs_of(contacts))] = False
        return watched

    def near(
        self, q: np.ndarray, watched: np.ndarray, objects: Mapping[str, Pose] | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the watched pairs nearer than ``max_distance``: indices, distances (m), and rates of distances."""
        pairs, distance, J = self.collisions.near_pairs(q, self.max_distance, objects)
        is_watched = watched[pairs]
        return pairs[is_watched], distance[is_watched], J[is_watched]

    def distances(self, q: np.ndarray, objects: Mapping[str, Pose] | None = None) -> np.ndarray:
        """Return the distances of all pairs (P,), m; inf beyond ``max_distance``."""
        distance = np.full(len(self.collisions.pairs), np.inf)
        pairs, values, _ = self.collisions.near_pairs(q, self.max_distance, objects)
        distance[pairs] = values
        return distance

    def deficit(
        self, q: np.ndarray, clearance: DesiredClearance, watched: np.ndarray, step: np.ndarray | None = None
    ) -> ClearanceDeficit:
        """Return the greatest deficit of a posture from the sufficient clearance.

        Parameters
        ----------
        q : (nq,) posture.
        clearance : clearances of all pairs.
        watched : (P,) mask of the pairs to check.
        step : (nv,) displacement along the path, forward and back, to the next checks; None: zero.
        """
        step, scene = self._no_step if step is None else step, self.surroundings_at(clearance.objects)
        worst = core.largest_deficit(
            self.robot.tree, scene, q, clearance.sufficient, clearance.minimum, SUFFICIENT_CLEARANCE_M, watched, step,
            DISTANCE_RATE_FACTOR, self._deficits,
        )  # fmt: skip
        if worst < 0:
            return ClearanceDeficit(-self.max_distance, (), -self.max_distance)
        pair, (amount, nearby_deficit) = self.collisions.pairs[worst], self._deficits.tolist()
        return ClearanceDeficit(amount, (pair.a, pair.b), nearby_deficit)

    def desired(
        self,
        share: float,
        ends: tuple[np.ndarray, np.ndarray],
        touching: list[tuple[list[int], str]],
        end_distances: dict[str, tuple[float, float]],
    ) -> np.ndarray:
        """Return the desired clearance (P,) of each pair (m), less near an end of the path at which the pair is closer.

        Parameters
        ----------
        share : share of the path.
        ends : distances (P,) of all pairs at both ends, m.
        touching : for each patch that touches at an end, the pairs that touch there, and its name.
        end_distances : by patch, its distances from both ends of its path, m.
        """
        full_clearance = self._environment_clearance
        increase = [
            full_clearance * minimum_jerk(min(1.0, part / SEPARATION_SHARE))[0] for part in (share, 1.0 - share)
        ]
        desired = np.minimum(self.clearance, np.minimum(ends[0] + increase[0], ends[1] + increase[1]))
        for pairs, patch in touching:
            # added to the clearance at the end: toes that wait above the floor for their knee do not touch it there
            for end, distance in zip(ends, end_distances[patch], strict=True):
                desired[pairs] = np.minimum(
                    desired[pairs], np.minimum(full_clearance, end[pairs] + CLEARANCE_PER_DISTANCE * distance)
                )
        return desired


def end_distances(positions: np.ndarray, k: int) -> tuple[float, float]:
    """Return the distances (m) of point k of a path (n, 3) from both of its ends."""
    first, last = (float(np.linalg.norm(positions[k] - positions[end])) for end in (0, -1))
    return first, last
