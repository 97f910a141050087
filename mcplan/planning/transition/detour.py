"""Detours around obstacles: RRT-Connect over postures on the contacts.

A local search near the straight motion (`KnotSearch`) cannot pass to the other side of an obstacle. Here one tree grows
towards random postures, the other one follows, and the path that joins them is shortened. Each step goes to the nearest
posture that satisfies contacts, balance and clearance, so trees slide along obstacles instead of ending there.

Sources: Kuffner & LaValle, RRT-Connect, ICRA 2000; Berenson et al., Manipulation planning on constraint manifolds,
ICRA 2009.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from mcplan.core.rigid_body.manifold import nearest_configuration
from mcplan.motion.spline import minimum_jerk
from mcplan.planning.posture.freedom import contact_rows
from mcplan.planning.transition.knot_search import KnotFinder
from mcplan.planning.transition.knots import filtered, straight_knots
from mcplan.planning.transition.nearness import CLEARANCE_PER_DISTANCE, GRAZING_ALLOWANCE_M
from mcplan.robot.robot import Robot
from mcplan.scene.contact import Contact

MAX_STEPS = 1500
"""Maximum number of steps of both trees; then the search ends without a path."""

STEP_LENGTH = 0.1
"""Length of a step in the coordinate that changes most (rad; positions weighted by `METRE_IN_RAD`)."""

STEPS_PER_SAMPLE = 6
"""Maximum number of steps of a tree towards a random posture."""

CLEARANCE_M = 0.015
"""Distance from the environment, for HRP-2; scaled by leg length; less if an end of the path is closer."""

SELF_CLEARANCE_M = 0.008
"""The same between links."""

CLEARANCE_SLACK_M = 1e-3
"""Tolerance of clearances at and between the postures of a tree."""

CONTACT_TOLERANCE_M = 5e-4
"""Tolerance of contacts and balance (m, rad)."""

MIN_PROGRESS = 0.01
"""Smallest progress of a step towards its target, as a weighted distance (rad); a smaller one ends the growth."""

SAME_POSTURE = 0.02
"""Postures at a smaller weighted distance (rad) count as the same."""

METRE_IN_RAD = 3.0
"""Weight of the position of the base relative to angles (rad/m), for HRP-2; divided by the scale of the legs."""

LIMB_DEVIATION = 0.7
"""Standard deviation (rad, m) of random postures from the straight motion, for joints of the moving limb."""

JOINT_DEVIATION = 0.15
"""The same for all other joints."""

BASE_DEVIATION = (0.1, 0.1, 0.1, 0.15, 0.2, 0.15)
"""The same for the base: position (m), for HRP-2, and rotation (rad)."""

DEVIATION_SCALES = (0.5, 1.0, 1.5)
"""Factors on these deviations, drawn with equal probability."""

SHORTCUT_ATTEMPTS = 60
"""Number of random pairs of postures between which a shorter path is sought."""

SHORTCUT_SHARE = 0.95
"""A shortcut replaces a part of the path if its length is less than this share of the part's."""

SMOOTHING_PASSES = 4
"""Number of passes of the filter (1, 2, 1) / 4 over the knots."""


class Detour:
    """Finder of a path between two postures on constant contacts; deterministic, since the random seed is fixed.

    Parameters
    ----------
    finder : knot finder of the scene.
    q0, q1 : (nq,) collision-free postures at the ends.
    contacts : closed contacts.
    touching : contacts that limbs leave or reach.
    """

    def __init__(
        self,
        finder: KnotFinder,
        q0: np.ndarray,
        q1: np.ndarray,
        contacts: Sequence[Contact],
        touching: Sequence[Contact],
    ):
        self.finder, self.robot, self.nearness = finder, finder.robot, finder.nearness
        self.q0, self.q1, self.random, self.steps = q0, q1, np.random.default_rng(0), 0
        robot, nearness = self.robot, self.nearness
        self._contact_rows = [contact_rows(robot, finder.environment, contact, None) for contact in contacts]
        self._com = robot.com(q0)
        self._support = finder.support(contacts, self._com).rows
        self._watched = nearness.watched(contacts)
        self._clearance = np.minimum(
            robot.scale.leg * np.where(nearness.between_links, SELF_CLEARANCE_M, CLEARANCE_M),
            np.minimum(*map(nearness.distances, (q0, q1))),
        )
        self._touching = [(list(nearness.collisions.pairs_of([contact])), contact.patch) for contact in touching]
        moving = {contact.patch for contact in touching}
        self._contact_positions = {patch: [robot.frame_pose(q, patch)[:3, 3] for q in (q0, q1)] for patch in moving}
        self._weight = np.ones(robot.nv)
        self._weight[:3] = METRE_IN_RAD / robot.scale.leg
        self._deviation = np.full(robot.nv, JOINT_DEVIATION)
        self._deviation[
            _moving_coordinates(robot, q0, moving)
            & ~_moving_coordinates(robot, q0, {contact.patch for contact in contacts})
        ] = LIMB_DEVIATION
        self._deviation[:6] = BASE_DEVIATION
        self._deviation[:3] *= robot.scale.leg

    def knots(self, count: int) -> np.ndarray | None:
        """Find evenly spaced knots (count + 1, nq) of a path, from rest to rest; None if there is none."""
        path = self._find_path()
        if path is None:
            return None
        path = self._shorten(path)
        lengths = np.array([0.0, *(self._distance(a, b) for a, b in pairwise(path))]).cumsum()
        straight, knots = straight_knots(self.robot, self.q0, self.q1, count), []
        for k in range(count + 1):
            length = minimum_jerk(k / count)[0] * lengths[-1]
            i = int(np.clip(np.searchsorted(lengths, length, side="right") - 1, 0, len(path) - 2))
            share = (length - lengths[i]) / max(lengths[i + 1] - lengths[i], 1e-12)
            knots.append(self._interpolate(path[i], path[i + 1], share))
        offsets = filtered(
            np.array([self.robot.difference(a, b) for a, b in zip(straight, knots, strict=True)]), SMOOTHING_PASSES
        )
        offsets[[0, -1]] = 0.0
        return np.array([self.robot.integrate(q, step, 1.0) for q, step in zip(straight, offsets, strict=True)])

    # -- trees ------------------------------------------------------------------------------------------------------

    def _find_path(self) -> list[np.ndarray] | None:
        """Return the postures of a path from q0 to q1, or None."""
        tree, other_tree = _Tree(self.q0), _Tree(self.q1)
        i, reached = self._extend(tree, 0, self.q1)
        if reached:
            return [*tree.path(i), self.q1]
        forward = True
        while self.steps < MAX_STEPS:
            count, target = tree.count, self._sample()
            i, _ = self._extend(tree, self._nearest(tree, target), target, STEPS_PER_SAMPLE)
            if tree.count > count:
                j, reached = self._extend(other_tree, self._nearest(other_tree, tree.q[i]), tree.q[i])
                if reached:
                    path = [*tree.path(i), *reversed(other_tree.path(j))]
                    return path if forward else path[::-1]
            tree, other_tree, forward = other_tree, tree, not forward
        return None

    def _extend(self, tree: "_Tree", i: int, target: np.ndarray, max_steps: int = MAX_STEPS) -> tuple[int, bool]:
        """Grow a tree from its posture i towards a target; return the index of its last posture, and success."""
        distance = self._distance(tree.q[i], target)
        for _ in range(max_steps):
            if distance < SAME_POSTURE:
                break
            q = self._step(tree.q[i], target)
            if q is None or (new_distance := self._distance(q, target)) > distance - MIN_PROGRESS:
                break
            i, distance = tree.add(q, i), new_distance
        return i, distance < SAME_POSTURE

    def _shorten(self, path: list[np.ndarray]) -> list[np.ndarray]:
        """Return a path shortened by connections between random pairs of its postures."""
        for _ in range(SHORTCUT_ATTEMPTS):
            i, j = sorted(self.random.integers(len(path), size=2))
            if j - i < 2:
                continue
            tree = _Tree(path[i])
            last, reached = self._extend(tree, 0, path[j])
            shortcut = [*tree.path(last), path[j]]
            if reached and self._length(shortcut) < SHORTCUT_SHARE * self._length(path[i : j + 1]):
                path = path[:i] + shortcut + path[j + 1 :]
        return path

    def _sample(self) -> np.ndarray:
        """Return a random posture near the straight motion, within joint limits."""
        robot, limits = self.robot, self.robot.limits
        q = self._interpolate(self.q0, self.q1, self.random.uniform())
        offset = self.random.choice(DEVIATION_SCALES) * self._deviation * self.random.normal(size=robot.nv)
        q = robot.integrate(q, offset, 1.0)
        q[7:] = np.clip(q[7:], limits.lower, limits.upper)
        return q

    # -- postures ---------------------------------------------------------------------------------------------------

    def _step(self, q: np.ndarray, target: np.ndarray) -> np.ndarray | None:
        """Return the posture one step from ``q`` towards a target, or None if the step is not collision-free."""
        self.steps += 1
        difference = self.robot.difference(q, target)
        length = float(np.abs(self._weight * difference).max())
        goal = target if length <= STEP_LENGTH else self.robot.integrate(q, difference, STEP_LENGTH / length)
        pairs, distance, J = self.nearness.near(q, self._watched)
        linear = np.ascontiguousarray(np.column_stack([J, self._clearances(q)[pairs] - distance]))
        search, hint = self.finder.search, np.zeros(4)
        task = search.task(self._contact_rows, goal, self._support, hint, linear, q)
        solution = search.run(task, q, 4, 1e-5, 1e-4, trust=STEP_LENGTH)
        if solution.missed[: len(solution.missed) - len(linear)].max(initial=0.0) > CONTACT_TOLERANCE_M:
            return None
        return (
            solution.q
            if self._is_collision_free(solution.q) and self._is_collision_free(self._interpolate(q, solution.q, 0.5))
            else None
        )

    def _is_collision_free(self, q: np.ndarray) -> bool:
        """Whether a posture keeps its clearances within `CLEARANCE_SLACK_M`."""
        pairs, distance, _ = self.nearness.near(q, self._watched)
        return bool((distance - self._clearances(q)[pairs]).min(initial=0.0) > -CLEARANCE_SLACK_M)

    def _clearances(self, q: np.ndarray) -> np.ndarray:
        """Return the clearance of each pair (m); for a swinging patch it grows with the distance from its contacts."""
        clearance = self._clearance.copy()
        for pairs, patch in self._touching:
            p = self.robot.frame_pose(q, patch)[:3, 3]
            distance = min(float(np.linalg.norm(p - position)) for position in self._contact_positions[patch])
            clearance[pairs] = np.minimum(clearance[pairs], CLEARANCE_PER_DISTANCE * distance - GRAZING_ALLOWANCE_M)
        return clearance

    def _interpolate(self, a: np.ndarray, b: np.ndarray, share: float) -> np.ndarray:
        """Return the posture at a share of the straight motion from a to b."""
        return np.asarray(self.robot.integrate(a, self.robot.difference(a, b), share))

    def _distance(self, a: np.ndarray, b: np.ndarray) -> float:
        """Return the weighted distance between two postures (rad)."""
        return float(np.linalg.norm(self._weight * self.robot.difference(a, b)))

    def _length(self, path: list[np.ndarray]) -> float:
        return sum(self._distance(a, b) for a, b in pairwise(path))

    def _nearest(self, tree: "_Tree", q: np.ndarray) -> int:
        return int(nearest_configuration(tree.q[: tree.count], q, self._weight, np.empty(self.robot.nv)))


class _Tree:
    """Tree of postures, each with the index of its parent.

    The array has room for `MAX_STEPS` steps and one more extension.
    """

    def __init__(self, root: np.ndarray):
        self.q, self.count, self._parents = np.empty((2 * MAX_STEPS + STEPS_PER_SAMPLE, len(root))), 1, [-1]
        self.q[0] = root

    def add(self, q: np.ndarray, parent: int) -> int:
        self.q[self.count] = q
        self.count += 1
        self._parents.append(parent)
        return self.count - 1

    def path(self, i: int) -> list[np.ndarray]:
        """Return the postures from the root to posture i."""
        path = []
        while i >= 0:
            path.append(self.q[i])
            i = self._parents[i]
        return path[::-1]


def _moving_coordinates(robot: Robot, q: np.ndarray, patches: set[str]) -> np.ndarray:
    """Return a mask (nv,) of the coordinates that move one of the patches."""
    mask = np.zeros(robot.nv, dtype=bool)
    for patch in patches:
        mask |= np.abs(robot.frame_jacobian(q, patch)).max(axis=0) > 1e-9
    return mask
