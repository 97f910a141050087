"""Waypoints (knots) of a motion: collision-free postures on the contacts, found in sequence by inverse kinematics.

The straight joint-space motion between two feasible postures may open contacts, lose balance, or pass through an
obstacle. `KnotSearch` finds postures near it, or near other guides, that satisfy these constraints. The inverse
kinematics is skipped if the offset of the previous knot from its guide already leads to such a posture. Finally the
path is smoothed. `PathJointLimits` gives bounds that keep joints away from their limits, `CollisionAvoidingIK` keeps
clearances between bodies.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from mcplan.collision.model import CollisionModel
from mcplan.core.posture import collision_free as core
from mcplan.core.posture.rows import POSE_ROWS, POSITION_ROWS, PostureTargets
from mcplan.errors import SolverFailed
from mcplan.motion.spline import PostureSpline
from mcplan.planning.posture.freedom import FrameRows, contact_rows
from mcplan.planning.posture.support_cache import ContactRegions, SupportData
from mcplan.planning.posture.task import PostureSearch, PostureSettings, coordinate_weights
from mcplan.planning.transition.knots import (
    MAX_DEFICIT_M,
    NO_VIOLATION,
    Knots,
    ObjectPoses,
    PatchPath,
    PathViolation,
    move_off_limits,
    smooth_offsets,
)
from mcplan.planning.transition.nearness import (
    GRAZING_ALLOWANCE_M,
    MIN_SEPARATION_M,
    DesiredClearance,
    Nearness,
    end_distances,
)
from mcplan.robot.robot import Robot
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment

JOINT_MARGIN_RAD = 0.05
"""Distance (rad or m) from joint limits along a path, because a joint at its limit cannot correct errors."""

JOINT_MARGIN_SHARE = 0.8
"""The distance is at most this share of the smaller distance at the two ends."""

FOLD_MARGIN_RAD = 0.25
"""Distance of knees and elbows of limbs in contact from the straight limb, bounded in the same manner."""

AT_BOUND_RAD = 1e-6
"""A joint this close (rad or m) to a bound counts as at the bound."""


class PathJointLimits:
    """Bounds of the joints of a robot on the path between two postures.

    Parameters
    ----------
    widest : (2, n) the widest bounds, used if tighter ones make the path infeasible.
    """

    def __init__(self, robot: Robot, widest: np.ndarray):
        self.robot, self.widest = robot, widest
        self.limits = np.array([robot.limits.lower, robot.limits.upper])

    def between(self, ends: np.ndarray, patches: Iterable[str]) -> np.ndarray:
        """Return bounds (2, n) that keep a path nearly as far from the limits as its ends (2, n) are.

        Limbs of ``patches``, which are in contact along the whole path, also stay bent if both ends bend them to the
        same side.
        """
        lower, upper = self.limits
        cap = np.minimum(JOINT_MARGIN_RAD, 0.5 * (upper - lower))
        margin = np.minimum(JOINT_MARGIN_SHARE * np.array([ends.min(axis=0) - lower, upper - ends.max(axis=0)]), cap)
        bounds = np.array(
            [np.maximum(lower + margin[0], self.widest[0]), np.minimum(upper - margin[1], self.widest[1])]
        )
        for fold in self.robot.folds_of(patches):
            bend0, bend1 = ends[:, fold.joint] - fold.straight
            if bend0 * bend1 > 0.0:
                fold.keep_bent(bounds, bend0, JOINT_MARGIN_SHARE * min(abs(bend0), abs(bend1), FOLD_MARGIN_RAD))
        return bounds

    def are_active(self, limit: np.ndarray, q: np.ndarray) -> bool:
        """Return whether a joint of postures (..., nq) is at or beyond bounds (2, n) that could be widened."""
        lower, upper = limit
        at_lower = (lower > self.widest[0]) & (q[..., 7:] < lower + AT_BOUND_RAD)
        at_upper = (upper < self.widest[1]) & (q[..., 7:] > upper - AT_BOUND_RAD)
        return bool((at_lower | at_upper).any())


CONTACT_TOLERANCE_M = 1e-3
"""Allowed contact error (m, rad) of a posture on the path; the controller corrects it."""

FIT_TOLERANCE_M = 1e-3
"""A posture with smaller errors (m, rad) of contacts and desired clearances is accepted without inverse kinematics."""

MAX_ROUNDS = 10
"""Maximum number of rounds of inverse kinematics per posture; each begins with new distances."""

IK_STEPS = 8
"""Maximum number of steps of the inverse kinematics per round."""

MIN_GAIN_M = 2e-4
"""A round that reduces the deficit (m, rad) by less is idle; the nearest points of a pair may alternate."""

MAX_IDLE_ROUNDS = 2
"""Number of successive idle rounds after which the search ends."""

MAX_PUSH_M = 0.02
"""Largest increase of a pair's distance per round, for HRP-2; scaled by leg length."""

TRUST_RADIUS = 0.2
"""Bound of a step in each coordinate (m, rad), within which distances are nearly linear."""

ROW_TOLERANCE = 1e-6
"""Tolerance of the constraints of the inverse kinematics (m, rad)."""

STEP_TOLERANCE = 1e-4
"""A smaller step (m, rad) ends the search."""


class CollisionAvoidingIK:
    """Inverse kinematics with clearances between bodies, in one scene.

    Parameters
    ----------
    nearness : distances of the bodies of the scene.
    search : the inverse kinematics, with its weights and joint margins.
    """

    def __init__(self, nearness: Nearness, search: PostureSearch):
        self.nearness, self.search, self._tree = nearness, search, nearness.robot.tree
        self._rule = search.rule(IK_STEPS, ROW_TOLERANCE, STEP_TOLERANCE, TRUST_RADIUS)
        self._measures, self._max_push = np.zeros(core.MEASURE_COUNT), nearness.robot.scale.leg * MAX_PUSH_M

    def solve(
        self, task: PostureTargets, start: np.ndarray, clearance: DesiredClearance, watched: np.ndarray
    ) -> tuple[np.ndarray, float]:
        """Find a posture that satisfies a task, with clearances of the watched pairs (mask), from ``start`` (nq,).

        Return the posture with the smallest deficit found, and the deficit (m, rad).
        """
        surroundings, measures = self.nearness.surroundings_at(clearance.objects), self._measures
        scratch = self.search.scratch_for(task, len(watched))
        q, report = np.array(start, dtype=float), self.search.report
        best_posture, smallest_deficit, best_slack, idle_rounds = start, np.inf, -np.inf, 0
        count = core.find_near(self._tree, surroundings, q, watched)
        for _ in range(MAX_ROUNDS):
            count = core.search_with_distance_rows(
                self._tree, surroundings, count, task, self._rule, q, clearance.desired, clearance.sufficient, watched,
                self._max_push, scratch, report, measures,
            )  # fmt: skip
            if count == core.NOT_FINITE:
                raise SolverFailed("posture search along the path: numbers that are not finite")
            deficit, slack = (
                max(measures[core.TASK_VIOLATION] - CONTACT_TOLERANCE_M, measures[core.MAX_DEFICIT]),
                measures[core.MIN_SURPLUS],
            )
            idle_rounds = (
                0 if deficit < smallest_deficit - MIN_GAIN_M or slack > best_slack + MIN_GAIN_M else idle_rounds + 1
            )
            if deficit < smallest_deficit:
                best_posture, smallest_deficit = q.copy(), float(deficit)
            best_slack = max(best_slack, slack)
            converged = measures[core.TASK_VIOLATION] <= CONTACT_TOLERANCE_M / 10 and slack > -FIT_TOLERANCE_M
            if converged or idle_rounds == MAX_IDLE_ROUNDS:
                break
        return best_posture, smallest_deficit

    def is_feasible(
        self, task: PostureTargets, q: np.ndarray, clearance: DesiredClearance, watched: np.ndarray
    ) -> bool:
        """Return whether a posture satisfies a task and the desired clearances within `FIT_TOLERANCE_M`."""
        scratch = self.search.scratch_for(task, 0)
        surroundings = self.nearness.surroundings_at(clearance.objects)
        return bool(
            core.is_feasible(self._tree, surroundings, task, q, clearance.desired, watched, FIT_TOLERANCE_M, scratch)
        )


CURVE_TOLERANCE_M = 1e-3
"""Contact errors (m, rad) of the curve below this count as zero."""

CURVE_ERROR_WEIGHT = 6.0
"""Weight of the contact error beyond it. So 1.8 mm at a contact count as much as `MAX_DEFICIT_M`, the largest accepted
clearance deficit, since a sole 2 mm deep in its support is in collision."""

MAX_CHECKS_PER_PIECE = 32
"""Maximum number of intervals between two knots at whose ends distances are checked, if bodies may come too close."""

KNOT_STRIDE = 3
"""Every third knot is found first; those between are interpolated, and searched for only if that fails."""

FIXED_ORIENTATION_M = 0.02
"""Within this distance of an end of its path a patch has the orientation of that end; scaled by leg length."""

SMOOTHING_SWEEPS = 3
"""Number of smoothing passes over the postures."""

SMOOTHINGS = ((6, 4), (3, 2), (1, 1), (0, 1))
"""Arguments ``passes`` and ``ease`` of `smooth_offsets`, tried in turn, since strong smoothing may lead through an
obstacle."""

MAX_SMOOTHED_DEFICIT_M = 0.01
"""A path with a greater deficit (m, rad) is not smoothed by sweeps over its postures."""

SMOOTHING_TOLERANCE_M = 1e-3
"""Deficit (m, rad) accepted after smoothing."""


class KnotSearch:
    """One search for knots near guides, with joints within bounds, or within the widest ones if these are infeasible.

    Parameters
    ----------
    finder : knot finder of the scene.
    guides, contacts, guided, touching, keep_end_clearance, objects : see `KnotFinder.find`.
    limit : (2, n) bounds of the joints.

    Attributes
    ----------
    tasks, clearances : constraints of each knot.
    closed : closed contacts at each knot.
    watched : (P,) mask of the pairs to check.
    q, deficits, offsets : posture (nq,) of each knot, its deficit (m, rad), and its offset (nv,) from the guide.
    """

    def __init__(
        self,
        finder: "KnotFinder",
        guides: np.ndarray,
        contacts: Sequence[Contact] | Sequence[Sequence[Contact]],
        guided: Sequence[PatchPath],
        touching: Sequence[Contact],
        keep_end_clearance: bool,
        objects: ObjectPoses | None,
        limit: np.ndarray,
    ):
        self.finder, self.robot, self.ik, self.search = finder, finder.robot, finder.ik, finder.search
        self.joints, self.nearness, self.guided, self.objects = finder.joints, finder.nearness, guided, objects
        self.touching, self.keep_end_clearance, self.limit = touching, keep_end_clearance, limit
        self.guides, self.last = guides, len(guides) - 1
        self.tasks, self.clearances = list[PostureTargets](), list[DesiredClearance]()
        self.closed = at_knots(contacts, len(guides))
        self.contacts_move = any(contacts_ is not self.closed[0] for contacts_ in self.closed)
        self.watched = self.nearness.watched(self.closed[0])
        self.q, self.deficits = guides.copy(), np.zeros(len(guides))
        self.offsets = np.zeros((len(guides), self.robot.nv))
        self.end_distance = np.zeros(len(self.watched))
        """Distance of each pair at the end at which it is larger (m)."""

    def run(self) -> Knots:
        """Return the smoothed knots, or unsmoothed ones if they are in collision."""
        self._define_tasks()
        self._find_knots()
        self._search_from_neighbours()
        self._smooth_postures()
        q, unsmoothed = self.q, float(self.deficits.max())
        if unsmoothed > MAX_DEFICIT_M:  # smoothing does not make it collision-free
            worst = self._worst()
            return Knots(q, unsmoothed, unsmoothed, worst, check_separation=self._checks_separation(worst))
        smooth, deficit, worst, path_error = self._smoothed_knots()
        worst = self._worst() if unsmoothed > deficit else worst
        return Knots(smooth, max(unsmoothed, deficit), unsmoothed, worst, path_error, self._checks_separation(worst))

    def _define_tasks(self) -> None:
        """Set up the constraints of each knot: contacts, balance, guided patches, clearances that the ends allow."""
        finder, robot, last, guides = self.finder, self.robot, self.last, self.guides
        com = robot.com(guides)
        supports = [finder.support(contacts, com[k]) for k, contacts in enumerate(self.closed)]
        contact_rows_by_knot = [
            [contact_rows(robot, finder.environment, contact, None) for contact in contacts] for contacts in self.closed
        ]
        objects = [self.objects and self.objects(k / last) for k in range(last + 1)]
        touching = [(list(finder.collisions.pairs_of([contact])), contact.patch) for contact in self.touching]
        ends = self.nearness.distances(guides[0], objects[0]), self.nearness.distances(guides[-1], objects[-1])
        self.end_distance = np.maximum(*ends)
        upper = self.end_distance if self.keep_end_clearance else np.inf
        positions = {patch: robot.frame_pose(guides, patch)[:, :3, 3] for _, patch in touching}
        positions |= {path.patch: path.positions for path in self.guided}
        grazing_allowance = np.zeros(len(finder.collisions.pairs))
        grazing_allowance[[pair for pairs, _ in touching for pair in pairs]] = GRAZING_ALLOWANCE_M
        for k in range(last + 1):
            rows = [*contact_rows_by_knot[k], *(guided_rows(robot, path, k) for path in self.guided)]
            hint = np.array([*com[k, :2], finder.settings.weights.com, 0.0])
            self.tasks.append(self.search.task(rows, guides[k], supports[k].rows, hint)._replace(limit=self.limit))
            from_ends = {patch: end_distances(points, k) for patch, points in positions.items()}
            desired = np.minimum(self.nearness.desired(k / last, ends, touching, from_ends), upper)
            minimum = np.minimum(MIN_SEPARATION_M, desired - 1e-5)  # at most the distances at the ends
            sufficient = np.minimum(desired, self.nearness.sufficient)
            # the allowance is only for patches close to their contacts
            allowance = np.where(sufficient < self.nearness.sufficient, grazing_allowance, 0.0)
            self.clearances.append(DesiredClearance(desired, sufficient - allowance, minimum - allowance, objects[k]))

    def _solve(self, k: int, start: np.ndarray, guide: np.ndarray) -> tuple[np.ndarray, float]:
        """Return knot k near ``guide``, found from ``start``, and its deficit; with the widest bounds if necessary."""
        clearance, watched = self.clearances[k], self.watched
        posture, deficit = self.ik.solve(self.tasks[k]._replace(guide=guide), start, clearance, watched)
        if deficit > FIT_TOLERANCE_M and self.joints.are_active(self.tasks[k].limit, posture):
            task = self.tasks[k] = self.tasks[k]._replace(limit=self.joints.widest)
            wide_posture, wide_deficit = self.ik.solve(task._replace(guide=guide), posture, clearance, watched)
            posture, deficit = (wide_posture, wide_deficit) if wide_deficit < deficit else (posture, deficit)
        return posture, deficit

    def _is_feasible(self, k: int, q: np.ndarray, task: PostureTargets | None = None) -> bool:
        return self.ik.is_feasible(task or self.tasks[k], q, self.clearances[k], self.watched)

    def _worst(self) -> PathViolation:
        """Return the violation at the knot with the greatest deficit."""
        k = int(np.argmax(self.deficits))
        return PathViolation(k / self.last, self.nearness.deficit(self.q[k], self.clearances[k], self.watched).bodies)

    def _checks_separation(self, worst: PathViolation) -> bool:
        """Return whether the desired clearance of the worst pair exceeds its distance at both ends."""
        if not worst.bodies:
            return True
        pairs = self.finder.collisions.pairs_between(*worst.bodies)
        desired = self.clearances[round(worst.share * self.last)].desired
        return bool(np.any(desired[pairs] > self.end_distance[pairs]))

    # -- the path ---------------------------------------------------------------------------------------------------

    def _find_knots(self) -> None:
        """Find every `KNOT_STRIDE`-th knot, starting from the previous one, then those between, starting from both."""
        previous_k, offsets = 0, self.offsets
        for next_k in [*range(KNOT_STRIDE, self.last, KNOT_STRIDE), self.last]:
            if next_k < self.last:
                self._find_knot(next_k, offsets[previous_k])
            for k in range(previous_k + 1, next_k):
                share = (k - previous_k) / (next_k - previous_k)
                self._find_knot(k, (1.0 - share) * offsets[previous_k] + share * offsets[next_k])
            previous_k = next_k

    def _find_knot(self, k: int, offset: np.ndarray) -> None:
        """Use the posture at ``offset`` (nv,) from the guide if it is feasible, else search for one near the guide."""
        self.q[k], self.deficits[k] = self.robot.integrate(self.guides[k], offset, 1.0), 0.0
        if not self._is_feasible(k, self.q[k]):
            self.q[k], self.deficits[k] = self._solve(k, self.q[k], self.guides[k])
        self.offsets[k] = self.robot.difference(self.guides[k], self.q[k])

    def _search_from_neighbours(self) -> None:
        """Repeat the search for knots with a deficit, starting from the offsets of their two neighbours."""
        for neighbour, order in ((1, range(self.last - 1, 0, -1)), (-1, range(1, self.last))):
            for k in (k for k in order if self.deficits[k] > 0.0):
                start = self.robot.integrate(self.guides[k], self.offsets[k + neighbour], 1.0)
                posture, deficit = self._solve(k, start, self.guides[k])
                if deficit < self.deficits[k]:
                    self.q[k], self.deficits[k] = posture, deficit
                    self.offsets[k] = self.robot.difference(self.guides[k], posture)

    def _smooth_postures(self) -> None:
        """Replace knots by feasible postures near the smoothed path, in several sweeps."""
        for _ in range(SMOOTHING_SWEEPS if self.deficits.max() <= MAX_SMOOTHED_DEFICIT_M else 0):
            offsets, solved_count = smooth_offsets(self.robot, self.guides, self.q, *SMOOTHINGS[0]), 0
            for k in range(1, self.last):
                posture, deficit = self.robot.integrate(self.guides[k], offsets[k], 1.0), 0.0
                if not self._is_feasible(k, posture):
                    posture, deficit = self._solve(k, self.q[k], posture)
                    solved_count += 1
                if deficit <= max(self.deficits[k], SMOOTHING_TOLERANCE_M):
                    self.q[k], self.deficits[k] = posture, deficit
            if not solved_count:
                break

    def _smoothed_knots(self) -> tuple[np.ndarray, float, PathViolation, float]:
        """Return the smoothest knots of nearly the same deficit, their deficit, the violation, and the path error.

        Smoothing moves knots off their contacts and paths, and towards obstacles. Each smoothed knot is corrected by
        inverse kinematics, at first without clearances; with them if these are violated then.
        """
        best: tuple[np.ndarray, float, PathViolation, float] = self.q, np.inf, NO_VIOLATION, 0.0
        accepted = max(float(self.deficits.max()), SMOOTHING_TOLERANCE_M)
        for passes, ease in SMOOTHINGS:
            offsets = smooth_offsets(self.robot, self.guides, self.q, passes, ease)
            guides = np.array(
                [self.robot.integrate(guide, step, 1.0) for guide, step in zip(self.guides, offsets, strict=True)]
            )
            for with_clearance in (False, True):
                knots = guides.copy()
                for k in range(1, self.last):
                    task = self.tasks[k]._replace(guide=guides[k])
                    if with_clearance and not self._is_feasible(k, guides[k], task):
                        solved = self.ik.solve(task, guides[k], self.clearances[k], self.watched)
                        knots[k] = solved[0]
                    elif not with_clearance:
                        knots[k] = self.search.run(
                            task, guides[k], IK_STEPS, ROW_TOLERANCE, STEP_TOLERANCE, TRUST_RADIUS
                        ).q
                move_off_limits(self.robot, knots)
                deficit, violation, path_error = self._curve_deficit(knots, best[1])
                if deficit < best[1]:
                    best = knots, deficit, violation, path_error
                if best[1] <= accepted:
                    return best
        return best

    # -- the curve --------------------------------------------------------------------------------------------------

    def _curve_deficit(self, q: np.ndarray, upper: float) -> tuple[float, PathViolation, float]:
        """Return the deficit of the curve through knots (k, nq), the violation, and the error of guided patches (m).

        Contacts and guided patches are checked at the knots and halfway between them; contacts that move with objects
        at the knots only. Distances and joint limits are checked in intervals that are halved where the rates of the
        distances require it. Violations are scaled to the clearance deficit that a motion may have. Checking stops when
        the deficit reaches ``upper``.
        """
        last, limits, worst, violation, path_error = self.last, self.robot.limits, 0.0, NO_VIOLATION, 0.0
        curve = PostureSpline(np.arange(last + 1.0), q)
        width, count = MAX_CHECKS_PER_PIECE // 2, MAX_CHECKS_PER_PIECE * last
        checked = set(range(0, count + 1, width))
        samples = checked - {0, count}
        while samples:
            next_samples: set[int] = set()
            for i in sorted(samples):
                k, index = divmod(i, MAX_CHECKS_PER_PIECE)
                sample = curve.sample(i / MAX_CHECKS_PER_PIECE)
                q_here, clearance = (q[k], self.clearances[k]) if index == 0 else (sample.q, self.clearances[k])
                if index:
                    next_clearance = self.clearances[k + 1]
                    sufficient = np.minimum(clearance.sufficient, next_clearance.sufficient)
                    minimum = np.minimum(clearance.minimum, next_clearance.minimum)
                    clearance = clearance._replace(sufficient=sufficient, minimum=minimum)
                    if self.objects is not None:
                        clearance = clearance._replace(objects=self.objects(i / count))
                step = 0.5 * width / MAX_CHECKS_PER_PIECE * sample.v
                deficit = self.nearness.deficit(q_here, clearance, self.watched, step)
                amount, bodies = (deficit.amount, deficit.bodies) if deficit.amount > 0.0 else (0.0, ())
                error = 10.0 * float(np.maximum(limits.lower - q_here[7:], q_here[7:] - limits.upper).max(initial=0.0))
                if index == 0 or (index == MAX_CHECKS_PER_PIECE // 2 and not self.contacts_move):
                    error = max(error, self._contact_error(self.tasks[k], q_here))
                if index in (0, MAX_CHECKS_PER_PIECE // 2):
                    path_error = max(path_error, self._path_error(q_here, k, index))
                if error > amount:
                    amount, bodies = error, ()
                if amount > worst:
                    worst, violation = amount, PathViolation(i / count, bodies)
                    if worst >= upper:
                        return worst, violation, path_error
                if width > 1 and deficit.around > SMOOTHING_TOLERANCE_M:
                    next_samples |= {i - width // 2, i + width // 2}
            samples, width = next_samples - checked, width // 2
            checked |= samples
        return worst, violation, path_error

    def _path_error(self, q: np.ndarray, k: int, part: int) -> float:
        """Return the largest distance (m) of guided patches from their paths at knot k (``part``: halfway to k + 1)."""
        largest = 0.0
        for path in self.guided:
            positions = path.midpoints if part else path.positions
            if positions is not None:
                largest = max(
                    largest, float(np.linalg.norm(self.robot.frame_pose(q, path.patch)[:3, 3] - positions[k]))
                )
        return largest

    def _contact_error(self, task: PostureTargets, q: np.ndarray) -> float:
        """Return the weighted error of the closed contacts of a task, whose rows precede those of guided patches."""
        errors, closed = self.search.missed(task, q), len(task.contact) - len(self.guided)
        first = len(task.select) + len(task.centre)
        fixed = errors[: int(task.contact[:closed, 3].sum())]
        rolling = errors[first : first + len(task.cell)][task.cell[:, 0] < closed]  # positions of balls that roll
        return CURVE_ERROR_WEIGHT * max(
            0.0, float(max(fixed.max(initial=0.0), rolling.max(initial=0.0))) - CURVE_TOLERANCE_M
        )


def guided_rows(robot: Robot, guided: PatchPath, k: int) -> FrameRows:
    """Return the constraint rows of the position of a guided patch at knot k, near an end of its path also of rotation.

    A patch that rotates close to its support would cut into it.
    """
    body, offset = robot.frame(guided.patch)
    is_near_end = [distance < robot.scale.leg * FIXED_ORIENTATION_M for distance in guided.end_distances(k)]
    R = guided.end_rotations[1] if is_near_end[1] else guided.end_rotations[0]
    frame = np.concatenate([offset, np.asarray(R).ravel(), guided.positions[k]])
    if any(is_near_end) and not robot.patches[guided.patch].radius:
        return FrameRows(POSE_ROWS, body, frame, np.eye(6), np.zeros((0, 10)))
    return FrameRows(POSITION_ROWS, body, frame, np.eye(6)[:3], np.zeros((0, 10)))


def at_knots(contacts: Sequence[Contact] | Sequence[Sequence[Contact]], count: int) -> list[tuple[Contact, ...]]:
    """Return the closed contacts at each knot, from constant contacts or from those at each knot."""
    constant = [contact for contact in contacts if isinstance(contact, Contact)]
    by_knot = [tuple(knot_contacts) for knot_contacts in contacts if not isinstance(knot_contacts, Contact)]
    return by_knot or [tuple(constant)] * count


LIFT_SHARES = (1.0, 0.5, 0.25, 0.125)
"""Shares of the lift height of a patch, tried in turn."""


class KnotFinder:
    """Finder of knots in one scene.

    Parameters
    ----------
    robot, environment : the scene.
    settings : weights and margins of the postures.
    collisions : collision model of the scene; None: a new one.
    """

    def __init__(
        self,
        robot: Robot,
        environment: Environment,
        settings: PostureSettings | None = None,
        collisions: CollisionModel | None = None,
    ):
        self.robot, self.environment, self.settings = robot, environment, settings or PostureSettings().of(robot.scale)
        self.collisions = collisions or CollisionModel(robot, environment)
        self.nearness = Nearness(robot, self.collisions)
        # between two postures half of the planner's joint margin is accepted as a last resort
        self.search = PostureSearch(
            robot, coordinate_weights(robot, self.settings.weights), 0.5 * self.settings.joint_margin
        )
        self.joints = PathJointLimits(robot, self.search.limit)
        self.ik = CollisionAvoidingIK(self.nearness, self.search)
        self._regions = ContactRegions(robot.mass, self.settings.com_inset, self.settings.comfort)
        self._supports = dict[tuple[Contact, ...], SupportData]()

    def find(
        self,
        guides: np.ndarray,
        contacts: Sequence[Contact] | Sequence[Sequence[Contact]],
        guided: Sequence[PatchPath] = (),
        touching: Sequence[Contact] = (),
        keep_end_clearance: bool = False,
        objects: ObjectPoses | None = None,
    ) -> Knots:
        """Find knots near the guides.

        Parameters
        ----------
        guides : (k, nq) preferred postures; the first and the last one are kept.
        contacts : closed contacts; or those at each knot, if they move with an object.
        guided : paths of patches.
        touching : contacts that limbs leave or reach; near them, a limb may be close to its support.
        keep_end_clearance : limit desired clearances to the larger distance of a pair at the two ends.
        objects : poses of moved objects, as a function of the share of the path.
        """
        guides = np.asarray(guides, dtype=float)
        problem = contacts, guided, touching, keep_end_clearance, objects
        bounds = self.joints.between(guides[[0, -1], 7:], [contact.patch for contact in at_knots(contacts, 1)[0]])
        knots = KnotSearch(self, guides, *problem, bounds).run()
        if knots.missed > MAX_DEFICIT_M and self.joints.are_active(bounds, knots.q):
            wide_knots = KnotSearch(self, guides, *problem, self.joints.widest).run()
            knots = min(knots, wide_knots, key=lambda candidate: candidate.missed)
        return knots

    def lift_patch(
        self, guide: np.ndarray, contacts: Sequence[Contact], patch: str, position: np.ndarray, lift: np.ndarray
    ) -> np.ndarray:
        """Return a posture near a guide with a patch lifted by ``lift`` (3,), or by a share of it.

        Only the displacement along ``lift`` is constrained: a motion straight up may be impossible, as for a knee below
        its hip. Without lift the result is the guide.

        Parameters
        ----------
        guide : (nq,) posture.
        contacts : closed contacts.
        patch : name of the patch.
        position : (3,) position from which the patch is lifted, m.
        lift : (3,) displacement, m.
        """
        height = float(np.linalg.norm(lift))
        if height == 0.0:
            return guide
        com, (body, offset) = self.robot.com(guide), self.robot.frame(patch)
        closed_rows = [contact_rows(self.robot, self.environment, contact, None) for contact in contacts]
        watched = self.nearness.watched(contacts)
        nearness, sufficient = self.nearness, self.nearness.sufficient
        between_links = np.minimum(nearness.clearance, nearness.distances(guide))
        desired = np.where(nearness.between_links, between_links, sufficient)
        clearance = DesiredClearance(desired, np.minimum(desired, sufficient), np.full(len(desired), MIN_SEPARATION_M))
        normal = np.concatenate([lift / height, np.zeros(3)])[None]
        best, smallest = guide, np.inf
        for share in LIFT_SHARES:
            frame = np.concatenate([offset, np.eye(3).ravel(), position + share * lift])
            rows = [*closed_rows, FrameRows(POSITION_ROWS, body, frame, normal, np.zeros((0, 10)))]
            hint = np.array([*com[:2], self.settings.weights.com, 0.0])
            task = self.search.task(rows, guide, self.support(contacts, com).rows, hint)
            q, deficit = self.ik.solve(task, guide, clearance, watched)
            if deficit < smallest:
                best, smallest = q, deficit
            if deficit <= FIT_TOLERANCE_M:
                break
        return best

    def com_inset(self, contacts: Sequence[Contact], com: np.ndarray) -> float:
        """Return the distance (m) of a centre of mass (3,) from the edge of its support region; negative outside."""
        region = self.support(contacts, com).region
        return -np.inf if region.empty else float(region.depth(com))

    def support(self, contacts: Sequence[Contact], com: np.ndarray) -> SupportData:
        """Return the support region of contacts; it does not depend on the height of ``com`` (3,)."""
        cached = self._supports.get(key := tuple(contacts))
        if cached is None:
            with_margin = [self.settings.with_margin(contact) for contact in key]
            cached = self._supports[key] = self._regions.support(with_margin, com)
        return cached
