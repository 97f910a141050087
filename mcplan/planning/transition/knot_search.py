"""Waypoints (knots) of a motion: collision-free postures on the contacts, one after the other by inverse kinematics.

The straight joint-space motion between two feasible postures may open contacts, lose balance, or pass through an
obstacle. `KnotSearch` finds postures near it that satisfy these constraints. The inverse kinematics is skipped where
the offset of the previous knot already gives such a posture. Finally the path is smoothed. `PathJointLimits` keeps
joints away from their limits, `CollisionAvoidingIK` keeps bodies apart.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from mcplan.collision.model import CollisionModel
from mcplan.core.posture import apart as core
from mcplan.core.posture.rows import PLACE_ROWS, POSE_ROWS, PostureTargets
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
    draw_inside,
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
"""rad or m: distance from joint limits along a path, if the ends keep more: a joint at its limit corrects no error."""

JOINT_MARGIN_SHARE = 0.8
"""The same as a share of the distance at the ends, if that is less."""

FOLD_MARGIN_RAD = 0.25
"""rad: the same for knees and elbows of limbs in contact: distance from the straight limb."""

AT_BOUND_RAD = 1e-6
"""rad or m: a joint this close to a bound counts as at the bound."""


class PathJointLimits:
    """Joint limits of a robot on the path between two postures.

    Parameters
    ----------
    widest : (2, n) the widest bounds, used if tighter ones make the path infeasible.
    """

    def __init__(self, robot: Robot, widest: np.ndarray):
        self.robot, self.widest = robot, widest
        self.limits = np.array([robot.limits.lower, robot.limits.upper])

    def between(self, ends: np.ndarray, patches: Iterable[str]) -> np.ndarray:
        """Return bounds (2, n) that keep a path nearly as far from the limits as its ends (2, n) are.

        The limbs of ``patches``, in contact along the whole path, also stay bent if both ends bend them to one side.
        """
        lower, upper = self.limits
        full = np.minimum(JOINT_MARGIN_RAD, 0.5 * (upper - lower))
        margin = np.minimum(JOINT_MARGIN_SHARE * np.array([ends.min(axis=0) - lower, upper - ends.max(axis=0)]), full)
        bounds = np.array(
            [np.maximum(lower + margin[0], self.widest[0]), np.minimum(upper - margin[1], self.widest[1])]
        )
        for fold in self.robot.folds_of(patches):
            one, other = ends[:, fold.joint] - fold.straight
            if one * other > 0.0:
                fold.keep_bent(bounds, one, JOINT_MARGIN_SHARE * min(abs(one), abs(other), FOLD_MARGIN_RAD))
        return bounds

    def are_active(self, limit: np.ndarray, q: np.ndarray) -> bool:
        """Say whether a joint of postures (..., nq) is at or beyond bounds (2, n) that could be widened."""
        lower, upper = limit
        low = (lower > self.widest[0]) & (q[..., 7:] < lower + AT_BOUND_RAD)
        high = (upper < self.widest[1]) & (q[..., 7:] > upper - AT_BOUND_RAD)
        return bool((low | high).any())


CONTACT_TOLERANCE_M = 1e-3
"""m, rad: contact error of a posture on the path; the controller corrects it."""

FIT_TOLERANCE_M = 1e-3
"""m, rad: a posture with smaller errors of contacts and desired clearances is accepted without inverse kinematics."""

MAX_ROUNDS = 10
"""Maximum number of rounds of inverse kinematics per posture; each begins with new distances."""

IK_STEPS = 8
"""Steps of the inverse kinematics per round."""

MIN_GAIN_M = 2e-4
"""m, rad: a round that gains less is idle; the nearest points of a pair may alternate."""

MAX_IDLE_ROUNDS = 2
"""Idle rounds in a row after which the search ends."""

MAX_PUSH_M = 0.02
"""m: largest increase of a pair's distance per round, for a robot of the size of HRP-2."""

TRUST_RADIUS = 0.2
"""m, rad: bound of a step in each coordinate, within which distances are nearly linear."""

ROW_TOLERANCE = 1e-6
"""m, rad: tolerance of the constraints of the inverse kinematics."""

STEP_TOLERANCE = 1e-4
"""m, rad: a smaller step ends the search."""


class CollisionAvoidingIK:
    """Inverse kinematics with clearances between bodies, in one scene.

    Parameters
    ----------
    nearness : of the scene.
    search : the inverse kinematics, with its weights and joint margins.
    """

    def __init__(self, nearness: Nearness, search: PostureSearch):
        self.nearness, self.search, self._tree = nearness, search, nearness.robot.tree
        self._rule = search.rule(IK_STEPS, ROW_TOLERANCE, STEP_TOLERANCE, TRUST_RADIUS)
        self._measures, self._max_push = np.zeros(core.MEASURES), nearness.robot.scale.leg * MAX_PUSH_M

    def solve(
        self, task: PostureTargets, start: np.ndarray, clearance: DesiredClearance, watched: np.ndarray
    ) -> tuple[np.ndarray, float]:
        """Find a posture for a task with clearances of the watched pairs, from ``start`` (nq,).

        Returns
        -------
        The posture with the smallest deficit, and the deficit (m, rad).
        """
        surroundings, measures = self.nearness.surroundings_at(clearance.objects), self._measures
        scratch = self.search.scratch_for(task, len(watched))
        q, report = np.array(start, dtype=float), self.search.report
        best, smallest, best_slack, idle = start, np.inf, -np.inf, 0
        near = core.find_near(self._tree, surroundings, q, watched)
        for _ in range(MAX_ROUNDS):
            near = core.keep_apart(
                self._tree, surroundings, near, task, self._rule, q, clearance.desired, clearance.sufficient, watched,
                self._max_push, scratch, report, measures,
            )  # fmt: skip
            if near == core.NOT_FINITE:
                raise SolverFailed("posture search along the path: numbers that are not finite")
            deficit, slack = max(measures[core.OFF] - CONTACT_TOLERANCE_M, measures[core.SHORT]), measures[core.LEFT]
            idle = 0 if deficit < smallest - MIN_GAIN_M or slack > best_slack + MIN_GAIN_M else idle + 1
            if deficit < smallest:
                best, smallest = q.copy(), float(deficit)
            best_slack = max(best_slack, slack)
            done = measures[core.OFF] <= CONTACT_TOLERANCE_M / 10 and slack > -FIT_TOLERANCE_M
            if done or idle == MAX_IDLE_ROUNDS:
                break
        return best, smallest

    def fits(self, task: PostureTargets, q: np.ndarray, clearance: DesiredClearance, watched: np.ndarray) -> bool:
        """Say whether a posture satisfies the task and the desired clearances within `FIT_TOLERANCE_M`."""
        scratch = self.search.scratch_for(task, 0)
        surroundings = self.nearness.surroundings_at(clearance.objects)
        return bool(core.fits(self._tree, surroundings, task, q, clearance.desired, watched, FIT_TOLERANCE_M, scratch))


CURVE_TOLERANCE_M = 1e-3
"""m, rad: contact error of the curve between knots below which it counts as zero."""

CURVE_ERROR_WEIGHT = 6.0
"""Weight of the contact error beyond it: 1.8 mm at a contact count as much as the largest accepted clearance deficit,
since a sole that is 2 mm deep in its support overlaps it."""

MAX_CHECKS_PER_PIECE = 32
"""Maximum number of intervals between two knots at which distances are checked, where bodies may come too close."""

KNOT_STRIDE = 3
"""Every so many knots one is found first; those in between are interpolated, and searched for only if that fails."""

FIXED_ORIENTATION_M = 0.02
"""m: within this distance of an end of its path a patch has its orientation of that end."""

SMOOTHING_SWEEPS = 3
"""Smoothing passes over the postures."""

SMOOTHINGS = ((6, 4), (3, 2), (1, 1), (0, 1))
"""Passes of the smoothing filter (1, 2, 1) / 4, and knots at either end over which the path leaves the guides with a
minimum-jerk profile. Tried in turn: strong smoothing may lead through an obstacle."""

MAX_SMOOTHED_DEFICIT_M = 0.01
"""m, rad: a path with a greater deficit is not smoothed."""

SMOOTHING_TOLERANCE_M = 1e-3
"""m, rad: deficit accepted after smoothing."""


class KnotSearch:
    """One search for knots near guides, with joints within bounds, or within the widest ones if these are infeasible.

    Parameters
    ----------
    finder : of the scene.
    guides, contacts, guided, touching, keep_end_clearance, objects : see `KnotFinder.find`.
    limit : (2, n) bounds of the joints.
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
        self.contacts_move = any(here is not self.closed[0] for here in self.closed)
        self.watched = self.nearness.watched(self.closed[0])
        self.q, self.deficits = guides.copy(), np.zeros(len(guides))
        self.offsets = np.zeros((len(guides), self.robot.nv))
        self.end_distance = np.zeros(len(self.watched))
        """Distance of each pair at the end at which it is larger (m)."""

    def run(self) -> Knots:
        """Return the smoothed knots, or unsmoothed ones if they are in collision."""
        self._define_tasks()
        self._march()
        self._search_from_neighbours()
        self._sweep()
        q, unsmoothed = self.q, float(self.deficits.max())
        if unsmoothed > MAX_DEFICIT_M:  # smoothing does not make it collision-free
            worst = self._worst()
            return Knots(q, unsmoothed, unsmoothed, worst, check_separation=self._checks_separation(worst))
        smooth, deficit, worst, path_error = self._smoothed()
        worst = self._worst() if unsmoothed > deficit else worst
        return Knots(smooth, max(unsmoothed, deficit), unsmoothed, worst, path_error, self._checks_separation(worst))

    def _define_tasks(self) -> None:
        """Set up the task of each knot: on its contacts, near its guide, with the clearance that the ends allow."""
        finder, robot, last, guides = self.finder, self.robot, self.last, self.guides
        com = robot.com(guides)
        supports = [finder.support(here, com[k]) for k, here in enumerate(self.closed)]
        held = [[contact_rows(robot, finder.environment, contact, None) for contact in here] for here in self.closed]
        objects = [self.objects and self.objects(k / last) for k in range(last + 1)]
        touching = [(list(finder.collisions.pairs_of([contact])), contact.patch) for contact in self.touching]
        ends = self.nearness.distances(guides[0], objects[0]), self.nearness.distances(guides[-1], objects[-1])
        self.end_distance = np.maximum(*ends)
        upper = self.end_distance if self.keep_end_clearance else np.inf
        places = {patch: robot.frame_pose(guides, patch)[:, :3, 3] for _, patch in touching}
        places |= {path.patch: path.places for path in self.guided}
        grazing = np.zeros(len(finder.collisions.pairs))
        grazing[[pair for pairs, _ in touching for pair in pairs]] = GRAZING_ALLOWANCE_M
        for k in range(last + 1):
            rows = [*held[k], *(guided_rows(robot, path, k) for path in self.guided)]
            hint = np.array([*com[k, :2], finder.settings.weights.com, 0.0])
            self.tasks.append(self.search.task(rows, guides[k], supports[k].rows, hint)._replace(limit=self.limit))
            from_ends = {patch: end_distances(points, k) for patch, points in places.items()}
            desired = np.minimum(self.nearness.desired(k / last, ends, touching, from_ends), upper)
            minimum = np.minimum(MIN_SEPARATION_M, desired - 1e-5)  # no more than the ends have
            sufficient = np.minimum(desired, self.nearness.sufficient)
            # grazing is allowed only close to the place of contact
            graze = np.where(sufficient < self.nearness.sufficient, grazing, 0.0)
            self.clearances.append(DesiredClearance(desired, sufficient - graze, minimum - graze, objects[k]))

    def _solve(self, k: int, start: np.ndarray, guide: np.ndarray) -> tuple[np.ndarray, float]:
        """Return knot k from a start, near a guide, and its deficit; with the widest joint bounds if necessary."""
        clearance, watched = self.clearances[k], self.watched
        found, deficit = self.ik.solve(self.tasks[k]._replace(guide=guide), start, clearance, watched)
        if deficit > FIT_TOLERANCE_M and self.joints.are_active(self.tasks[k].limit, found):
            task = self.tasks[k] = self.tasks[k]._replace(limit=self.joints.widest)
            other, less = self.ik.solve(task._replace(guide=guide), found, clearance, watched)
            found, deficit = (other, less) if less < deficit else (found, deficit)
        return found, deficit

    def _fits(self, k: int, q: np.ndarray, task: PostureTargets | None = None) -> bool:
        return self.ik.fits(task or self.tasks[k], q, self.clearances[k], self.watched)

    def _worst(self) -> PathViolation:
        """Return the knot with the greatest deficit as a violation."""
        k = int(np.argmax(self.deficits))
        return PathViolation(k / self.last, self.nearness.deficit(self.q[k], self.clearances[k], self.watched).bodies)

    def _checks_separation(self, worst: PathViolation) -> bool:
        """Say whether the desired clearance of the worst pair exceeds its distance at both ends."""
        if not worst.bodies:
            return True
        pairs = self.finder.collisions.between(*worst.bodies)
        desired = self.clearances[round(worst.share * self.last)].desired
        return bool(np.any(desired[pairs] > self.end_distance[pairs]))

    # -- the path ---------------------------------------------------------------------------------------------------

    def _march(self) -> None:
        """Find every `KNOT_STRIDE`-th knot from the one before, and those in between from both."""
        before, offsets = 0, self.offsets
        for here in [*range(KNOT_STRIDE, self.last, KNOT_STRIDE), self.last]:
            if here < self.last:
                self._find_knot(here, offsets[before])
            for k in range(before + 1, here):
                part = (k - before) / (here - before)
                self._find_knot(k, (1.0 - part) * offsets[before] + part * offsets[here])
            before = here

    def _find_knot(self, k: int, offset: np.ndarray) -> None:
        """Use the posture at ``offset`` (nv,) from the guide if it fits, else a feasible one near the guide."""
        self.q[k], self.deficits[k] = self.robot.integrate(self.guides[k], offset, 1.0), 0.0
        if not self._fits(k, self.q[k]):
            self.q[k], self.deficits[k] = self._solve(k, self.q[k], self.guides[k])
        self.offsets[k] = self.robot.difference(self.guides[k], self.q[k])

    def _search_from_neighbours(self) -> None:
        """Search for knots with a deficit again, from their later and from their earlier neighbour."""
        for side, order in ((1, range(self.last - 1, 0, -1)), (-1, range(1, self.last))):
            for k in (k for k in order if self.deficits[k] > 0.0):
                start = self.robot.integrate(self.guides[k], self.offsets[k + side], 1.0)
                other, deficit = self._solve(k, start, self.guides[k])
                if deficit < self.deficits[k]:
                    self.q[k], self.deficits[k] = other, deficit
                    self.offsets[k] = self.robot.difference(self.guides[k], other)

    def _sweep(self) -> None:
        """Smooth the path through the knots."""
        for _ in range(SMOOTHING_SWEEPS if self.deficits.max() <= MAX_SMOOTHED_DEFICIT_M else 0):
            offsets, solved = smooth_offsets(self.robot, self.guides, self.q, *SMOOTHINGS[0]), 0
            for k in range(1, self.last):
                better, deficit = self.robot.integrate(self.guides[k], offsets[k], 1.0), 0.0
                if not self._fits(k, better):
                    better, deficit = self._solve(k, self.q[k], better)
                    solved += 1
                if deficit <= max(self.deficits[k], SMOOTHING_TOLERANCE_M):
                    self.q[k], self.deficits[k] = better, deficit
            if not solved:
                break

    def _smoothed(self) -> tuple[np.ndarray, float, PathViolation, float]:
        """Return the smoothest knots of nearly the same deficit; their deficit, its place, and the path error.

        Smoothing moves knots off their contacts and paths, and towards obstacles. Each smoothed knot is corrected by
        inverse kinematics; if distances then fall short, with clearances.
        """
        best: tuple[np.ndarray, float, PathViolation, float] = self.q, np.inf, NO_VIOLATION, 0.0
        accepted = max(float(self.deficits.max()), SMOOTHING_TOLERANCE_M)
        for passes, ease in SMOOTHINGS:
            offsets = smooth_offsets(self.robot, self.guides, self.q, passes, ease)
            guides = np.array(
                [self.robot.integrate(at, step, 1.0) for at, step in zip(self.guides, offsets, strict=True)]
            )
            for with_clearance in (False, True):
                knots = guides.copy()
                for k in range(1, self.last):
                    task = self.tasks[k]._replace(guide=guides[k])
                    if with_clearance and not self._fits(k, guides[k], task):
                        solved = self.ik.solve(task, guides[k], self.clearances[k], self.watched)
                        knots[k] = solved[0]
                    elif not with_clearance:
                        knots[k] = self.search.run(
                            task, guides[k], IK_STEPS, ROW_TOLERANCE, STEP_TOLERANCE, TRUST_RADIUS
                        ).q
                draw_inside(self.robot, knots)
                deficit, where, path_error = self._curve_deficit(knots, best[1])
                if deficit < best[1]:
                    best = knots, deficit, where, path_error
                if best[1] <= accepted:
                    return best
        return best

    # -- the curve --------------------------------------------------------------------------------------------------

    def _curve_deficit(self, q: np.ndarray, upper: float) -> tuple[float, PathViolation, float]:
        """Return the deficit of the curve through knots (k, nq), its place, and the error of guided patches (m).

        Contacts, joint limits and guided patches are checked at the knots and halfway between them; contacts that move
        with objects at the knots only. Distances are sampled as densely as their rates require. All violations are
        scaled to the clearance deficit that a motion may have. Checking stops when the deficit reaches ``upper``.
        """
        last, limits, worst, where, path_error = self.last, self.robot.limits, 0.0, NO_VIOLATION, 0.0
        curve = PostureSpline(np.arange(last + 1.0), q)
        width, count = MAX_CHECKS_PER_PIECE // 2, MAX_CHECKS_PER_PIECE * last
        checked = set(range(0, count + 1, width))
        samples = checked - {0, count}
        while samples:
            refined: set[int] = set()
            for i in sorted(samples):
                k, part = divmod(i, MAX_CHECKS_PER_PIECE)
                sample = curve.sample(i / MAX_CHECKS_PER_PIECE)
                q_here, clearance = (q[k], self.clearances[k]) if part == 0 else (sample.q, self.clearances[k])
                if part:
                    after = self.clearances[k + 1]
                    sufficient = np.minimum(clearance.sufficient, after.sufficient)
                    minimum = np.minimum(clearance.minimum, after.minimum)
                    clearance = clearance._replace(sufficient=sufficient, minimum=minimum)
                    if self.objects is not None:
                        clearance = clearance._replace(objects=self.objects(i / count))
                step = 0.5 * width / MAX_CHECKS_PER_PIECE * sample.v
                deficit = self.nearness.deficit(q_here, clearance, self.watched, step)
                amount, bodies = (deficit.amount, deficit.bodies) if deficit.amount > 0.0 else (0.0, ())
                error = 10.0 * float(np.maximum(limits.lower - q_here[7:], q_here[7:] - limits.upper).max(initial=0.0))
                if part == 0 or (part == MAX_CHECKS_PER_PIECE // 2 and not self.contacts_move):
                    error = max(error, self._contact_error(self.tasks[k], q_here))
                if part in (0, MAX_CHECKS_PER_PIECE // 2):
                    path_error = max(path_error, self._path_error(q_here, k, part))
                if error > amount:
                    amount, bodies = error, ()
                if amount > worst:
                    worst, where = amount, PathViolation(i / count, bodies)
                    if worst >= upper:
                        return worst, where, path_error
                if width > 1 and deficit.around > SMOOTHING_TOLERANCE_M:
                    refined |= {i - width // 2, i + width // 2}
            samples, width = refined - checked, width // 2
            checked |= samples
        return worst, where, path_error

    def _path_error(self, q: np.ndarray, k: int, part: int) -> float:
        """Return the largest distance of guided patches from their paths (m), at knot k or halfway to the next one."""
        largest = 0.0
        for path in self.guided:
            places = path.halves if part else path.places
            if places is not None:
                largest = max(largest, float(np.linalg.norm(self.robot.frame_pose(q, path.patch)[:3, 3] - places[k])))
        return largest

    def _contact_error(self, task: PostureTargets, q: np.ndarray) -> float:
        """Return the weighted error of the closed contacts of a task, whose rows precede those of guided patches."""
        errors, closed = self.search.missed(task, q), len(task.contact) - len(self.guided)
        first = len(task.select) + len(task.centre)
        fixed = errors[: int(task.contact[:closed, 3].sum())]
        rolling = errors[first : first + len(task.cell)][task.cell[:, 0] < closed]  # balls, at the place they roll to
        return CURVE_ERROR_WEIGHT * max(
            0.0, float(max(fixed.max(initial=0.0), rolling.max(initial=0.0))) - CURVE_TOLERANCE_M
        )


def guided_rows(robot: Robot, guided: PatchPath, k: int) -> FrameRows:
    """Return the rows that hold a guided patch in its place at knot k; near an end of its path its orientation, too.

    Close to its support a rotating patch would cut into it.
    """
    body, offset = robot.frame(guided.patch)
    near = [distance < robot.scale.leg * FIXED_ORIENTATION_M for distance in guided.end_distances(k)]
    R = guided.turns[1] if near[1] else guided.turns[0]
    frame = np.concatenate([offset, np.asarray(R).ravel(), guided.places[k]])
    if any(near) and not robot.patches[guided.patch].radius:
        return FrameRows(POSE_ROWS, body, frame, np.eye(6), np.zeros((0, 10)))
    return FrameRows(PLACE_ROWS, body, frame, np.eye(6)[:3], np.zeros((0, 10)))


def at_knots(contacts: Sequence[Contact] | Sequence[Sequence[Contact]], count: int) -> list[tuple[Contact, ...]]:
    """Return the contacts in place at each knot."""
    constant = [contact for contact in contacts if isinstance(contact, Contact)]
    by_knot = [tuple(here) for here in contacts if not isinstance(here, Contact)]
    return by_knot or [tuple(constant)] * count


LIFT_SHARES = (1.0, 0.5, 0.25, 0.125)
"""Shares of the lift height of a patch, tried in turn."""


class KnotFinder:
    """Finds knots in one scene.

    Parameters
    ----------
    robot, environment : the scene.
    settings : margins of the postures.
    collisions : collision model of the scene, if there is one already.
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
        guides : (k, nq) preferred motion; its ends are kept.
        contacts : closed during the whole motion; or the contacts at each knot, if they move with an object.
        guided : paths of patches.
        touching : contacts that limbs leave or come to: near them, the limb is close to its support.
        keep_end_clearance : limit desired clearances to the larger distance of a pair at the two ends.
        objects : poses of moved objects, by the share of the path.
        """
        guides = np.asarray(guides, dtype=float)
        problem = contacts, guided, touching, keep_end_clearance, objects
        bounds = self.joints.between(guides[[0, -1], 7:], [contact.patch for contact in at_knots(contacts, 1)[0]])
        knots = KnotSearch(self, guides, *problem, bounds).run()
        if knots.missed > MAX_DEFICIT_M and self.joints.are_active(bounds, knots.q):
            again = KnotSearch(self, guides, *problem, self.joints.widest).run()
            knots = min(knots, again, key=lambda found: found.missed)
        return knots

    def lifted(
        self, guide: np.ndarray, contacts: Sequence[Contact], patch: str, place: np.ndarray, lift: np.ndarray
    ) -> np.ndarray:
        """Return a posture near a guide with a patch lifted by ``lift`` (3,) from a place, or by a share of it.

        Only the height counts: a motion straight up may be impossible, as for a knee below its hip. Without lift the
        result is the guide.

        Parameters
        ----------
        guide : (nq,) posture.
        contacts : closed contacts.
        place : (3,) position that the patch leaves.
        """
        height = float(np.linalg.norm(lift))
        if height == 0.0:
            return guide
        com, (body, offset) = self.robot.com(guide), self.robot.frame(patch)
        held = [contact_rows(self.robot, self.environment, contact, None) for contact in contacts]
        watched = self.nearness.watched(contacts)
        nearness, sufficient = self.nearness, self.nearness.sufficient
        between_links = np.minimum(nearness.clearance, nearness.distances(guide))
        desired = np.where(nearness.between_links, between_links, sufficient)
        clearance = DesiredClearance(desired, np.minimum(desired, sufficient), np.full(len(desired), MIN_SEPARATION_M))
        normal = np.concatenate([lift / height, np.zeros(3)])[None]
        best, smallest = guide, np.inf
        for part in LIFT_SHARES:
            frame = np.concatenate([offset, np.eye(3).ravel(), place + part * lift])
            rows = [*held, FrameRows(PLACE_ROWS, body, frame, normal, np.zeros((0, 10)))]
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
        """Return the support region of contacts, the same for every height; ``com`` (3,) as for `ContactRegions`."""
        cached = self._supports.get(key := tuple(contacts))
        if cached is None:
            with_margin = [self.settings.with_margin(contact) for contact in key]
            cached = self._supports[key] = self._regions.support(with_margin, com)
        return cached
