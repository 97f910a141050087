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
from mcplan.core.posture import collision_free, knots as core
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
    smoothed,
)
from mcplan.planning.transition.nearness import (
    DISTANCE_RATE_FACTOR,
    GRAZING_ALLOWANCE_M,
    MIN_SEPARATION_M,
    SUFFICIENT_CLEARANCE_M,
    DesiredClearance,
    Nearness,
    end_distances,
)
from mcplan.robot.robot import Robot
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment
from mcplan.util.arrays import read_only

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
        self.rule = search.rule(IK_STEPS, ROW_TOLERANCE, STEP_TOLERANCE, TRUST_RADIUS)
        self.measures, max_push = np.zeros(collision_free.MEASURE_COUNT), nearness.robot.scale.leg * MAX_PUSH_M
        self.rounds = np.array(
            [MAX_ROUNDS, MAX_IDLE_ROUNDS, MIN_GAIN_M, max_push, CONTACT_TOLERANCE_M, FIT_TOLERANCE_M, AT_BOUND_RAD]
        )
        assert len(self.rounds) == core.ROUNDS_SIZE

    def solve(
        self, task: PostureTargets, start: np.ndarray, clearance: DesiredClearance, watched: np.ndarray
    ) -> tuple[np.ndarray, float]:
        """Find a posture that satisfies a task, with clearances of the watched pairs (mask), from ``start`` (nq,).

        Return the posture with the smallest deficit found, and the deficit (m, rad).
        """
        scratch, (q, best) = self.search.scratch_for(task, len(watched)), np.empty((2, len(start)))
        deficit = core.search_in_rounds(
            self._tree, self.nearness.surroundings_at(clearance.objects), task, self.rule, self.rounds, start,
            clearance.desired, clearance.sufficient, watched, scratch, self.search.report, self.measures, q, best,
        )  # fmt: skip
        check_finite(deficit != core.FAILED)
        return best, deficit

    def is_feasible(
        self, task: PostureTargets, q: np.ndarray, clearance: DesiredClearance, watched: np.ndarray
    ) -> bool:
        """Return whether a posture satisfies a task and the desired clearances within `FIT_TOLERANCE_M`."""
        scratch = self.search.scratch_for(task, 0)
        surroundings = self.nearness.surroundings_at(clearance.objects)
        return bool(
            collision_free.is_feasible(
                self._tree, surroundings, task, q, clearance.desired, watched, FIT_TOLERANCE_M, scratch
            )
        )


def check_finite(is_finite: bool) -> None:
    """Raise `SolverFailed` if a search has ended in a posture that is not finite."""
    if not is_finite:
        raise SolverFailed("posture search along the path: numbers that are not finite")


CURVE_TOLERANCE_M = 1e-3
"""Contact errors (m, rad) of the curve below this count as zero."""

CURVE_ERROR_WEIGHT = 6.0
"""Weight of the contact error beyond it. So 1.8 mm at a contact count as much as `MAX_DEFICIT_M`, the largest accepted
clearance deficit, since a sole 2 mm deep in its support is in collision."""

JOINT_ERROR_WEIGHT = 10.0
"""Weight of an exceeded joint limit (rad, m)."""

MAX_CHECKS_PER_PIECE = 32
"""Maximum number of intervals between two knots at whose ends distances are checked, if bodies may come too close."""

KNOT_STRIDE = 3
"""Every third knot is found first; those between are interpolated, and searched for only if that fails."""

FIXED_ORIENTATION_M = 0.02
"""Within this distance of an end of its path a patch has the orientation of that end; scaled by leg length."""

SMOOTHING_SWEEPS = 3
"""Number of smoothing passes over the postures."""

SMOOTHINGS = ((6, 4), (3, 2), (1, 1), (0, 1))
"""Arguments ``passes`` and ``ease`` of `smoothed`, tried in turn, since strong smoothing may lead through an
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
    tasks : constraints of all knots.
    closed : closed contacts at each knot.
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
        self.nearness, self.guided, self.objects = finder.nearness, guided, objects
        self.touching, self.keep_end_clearance, self.limit = touching, keep_end_clearance, limit
        self.guides, self.last = guides, len(guides) - 1
        self.closed = at_knots(contacts, len(guides))
        self.contacts_move = any(contacts_ is not self.closed[0] for contacts_ in self.closed)
        self.q, self.deficits = guides.copy(), np.zeros(len(guides))
        self.offsets = np.zeros((len(guides), self.robot.nv))
        first, final = (self.nearness.distances(guides[k], objects and objects(k / self.last)) for k in (0, self.last))
        self.end_distances = first, final
        """Distances (P,) of all pairs at both ends (m)."""
        self.tasks = self._define_tasks()
        tasks, nq = self.tasks, self.robot.nq
        rows = int(np.diff(tasks.first, axis=0).sum(axis=1).max()) + len(tasks.watched)
        self._errors, self._shares = np.empty(rows), np.empty((2, len(tasks.watched)))
        self._space = self.search.scratch(rows), self.search.report, self.ik.measures, np.empty((4, nq))
        self._problem = self.robot.tree, self.nearness.surroundings, tasks, self.ik.rule, self.ik.rounds

    def run(self) -> Knots:
        """Return the smoothed knots, or unsmoothed ones if they are in collision."""
        outputs = self.q, self.deficits, self.offsets
        check_finite(core.find_knots(*self._problem, self.guides, KNOT_STRIDE, *self._space, *outputs))
        self._smooth_postures()
        q, unsmoothed = self.q, float(self.deficits.max())
        if unsmoothed > MAX_DEFICIT_M:  # smoothing does not make it collision-free
            worst = self._worst()
            return Knots(q, unsmoothed, unsmoothed, worst, check_separation=self._checks_separation(worst))
        smooth, deficit, worst, path_error = self._smoothed_knots()
        worst = self._worst() if unsmoothed > deficit else worst
        return Knots(smooth, max(unsmoothed, deficit), unsmoothed, worst, path_error, self._checks_separation(worst))

    def _define_tasks(self) -> core.KnotTasks:
        """Return the constraints of each knot: contacts, balance, guided patches, clearances that the ends allow."""
        finder, robot, last, guides, nearness = self.finder, self.robot, self.last, self.guides, self.nearness
        com, pairs_of = robot.com(guides), finder.collisions.pairs_of
        constant = not self.contacts_move
        closed = self.closed[:1] if constant else self.closed
        closed_rows = [[contact_rows(robot, finder.environment, c, None) for c in contacts] for contacts in closed]
        supports = [finder.support(contacts, com[k]).rows for k, contacts in enumerate(closed)]
        rows = [
            [*closed_rows[0 if constant else k], *(guided_rows(robot, path, k) for path in self.guided)]
            for k in range(last + 1)
        ]
        regions = supports * (last + 1) if constant else supports
        touching = [(list(pairs_of([contact])), contact.patch) for contact in self.touching]
        positions = {patch: robot.frame_pose(guides, patch)[:, :3, 3] for _, patch in touching}
        positions |= {path.patch: path.positions for path in self.guided}
        upper = np.maximum(*self.end_distances) if self.keep_end_clearance else np.inf
        from_ends = [{name: end_distances(points, k) for name, points in positions.items()} for k in range(last + 1)]
        desired = np.array(
            [nearness.desired(k / last, self.end_distances, touching, from_ends[k]) for k in range(last + 1)]
        )
        desired = np.minimum(desired, upper)
        sufficient = np.minimum(desired, nearness.sufficient)
        # the allowance is only for patches close to their contacts
        grazing_allowance = np.zeros(len(finder.collisions.pairs))
        grazing_allowance[[pair for pairs, _ in touching for pair in pairs]] = GRAZING_ALLOWANCE_M
        allowance = np.where(sufficient < nearness.sufficient, grazing_allowance, 0.0)
        minimum = np.minimum(MIN_SEPARATION_M, desired - 1e-5)  # at most the distances at the ends
        hint = np.column_stack([com[:, :2], np.tile([finder.settings.weights.com, 0.0], (last + 1, 1))])
        return self.search.tasks(
            rows, regions, hint, self.limit, desired, sufficient - allowance, minimum - allowance,
            nearness.watched(self.closed[0]), self._offsets(np.arange(last + 1) / last),
        )  # fmt: skip

    def _offsets(self, shares: np.ndarray) -> np.ndarray:
        """Return the poses (m, S, 12) of the shapes at shares of the path; (1, S, 12) if no object moves."""
        shapes_at, objects = self.finder.collisions.shapes_at, self.objects
        poses = [None] if objects is None else [objects(share) for share in shares.tolist()]
        return read_only(np.array([shapes_at(pose).offset for pose in poses]))

    def _worst(self) -> PathViolation:
        """Return the violation at the knot with the greatest deficit."""
        k, tasks = int(np.argmax(self.deficits)), self.tasks
        objects = self.objects and self.objects(k / self.last)
        clearance = DesiredClearance(tasks.desired[k], tasks.sufficient[k], tasks.minimum[k], objects)
        return PathViolation(k / self.last, self.nearness.deficit(self.q[k], clearance, tasks.watched).bodies)

    def _checks_separation(self, worst: PathViolation) -> bool:
        """Return whether the desired clearance of the worst pair exceeds its distance at both ends."""
        if not worst.bodies:
            return True
        pairs = self.finder.collisions.pairs_between(*worst.bodies)
        desired = self.tasks.desired[round(worst.share * self.last)]
        return bool(np.any(desired[pairs] > np.maximum(*self.end_distances)[pairs]))

    # -- the path ---------------------------------------------------------------------------------------------------

    def _smooth_postures(self) -> None:
        """Replace knots by feasible postures near the smoothed path, in several sweeps."""
        outputs = self.q, self.deficits
        for _ in range(SMOOTHING_SWEEPS if self.deficits.max() <= MAX_SMOOTHED_DEFICIT_M else 0):
            smooth = smoothed(self.robot, self.guides, self.q, *SMOOTHINGS[0])
            solved = core.replace_knots(*self._problem, smooth, SMOOTHING_TOLERANCE_M, *self._space, *outputs)
            check_finite(solved >= 0)
            if not solved:
                break

    def _smoothed_knots(self) -> tuple[np.ndarray, float, PathViolation, float]:
        """Return the smoothest knots of nearly the same deficit, their deficit, the violation, and the path error.

        Smoothing moves knots off their contacts and paths, and towards obstacles. Each smoothed knot is corrected by
        inverse kinematics, at first without clearances; with them if these are violated then.
        """
        best: tuple[np.ndarray, float, PathViolation, float] = self.q, np.inf, NO_VIOLATION, 0.0
        accepted = max(float(self.deficits.max()), SMOOTHING_TOLERANCE_M)
        for passes, ease in SMOOTHINGS:
            guides = smoothed(self.robot, self.guides, self.q, passes, ease)
            for with_clearance in (False, True):
                knots = guides.copy()
                check_finite(core.correct_knots(*self._problem, guides, with_clearance, *self._space, knots))
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
        last, worst, violation, path_error = self.last, 0.0, NO_VIOLATION, 0.0
        curve, pairs = PostureSpline(np.arange(last + 1.0), q), self.finder.collisions.pairs
        width, count = MAX_CHECKS_PER_PIECE // 2, MAX_CHECKS_PER_PIECE * last
        checked = set(range(0, count + 1, width))
        samples = checked - {0, count}
        while samples:
            indices = np.array(sorted(samples))
            result, worst_pairs = self._check(curve, q, indices, 0.5 * width / MAX_CHECKS_PER_PIECE, upper)
            is_checked = worst_pairs != core.UNCHECKED
            amounts, path_errors = result[is_checked, core.AMOUNT], result[is_checked, core.PATH_ERROR]
            i, path_error = int(amounts.argmax()), max(path_error, float(path_errors.max()))
            if amounts[i] > worst:
                bodies = () if worst_pairs[i] == core.NO_PAIR else (pairs[worst_pairs[i]].a, pairs[worst_pairs[i]].b)
                worst, violation = float(amounts[i]), PathViolation(int(indices[i]) / count, bodies)
                if worst >= upper:
                    break
            near = indices[result[:, core.AROUND] > SMOOTHING_TOLERANCE_M] if width > 1 else indices[:0]
            width //= 2
            samples = {*(near - width).tolist(), *(near + width).tolist()} - checked
            checked |= samples
        return worst, violation, path_error

    def _check(
        self, curve: PostureSpline, q: np.ndarray, samples: np.ndarray, width: float, upper: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the results of `core.check_curve` at samples (m,) of a curve through knots q (k, nq).

        ``width`` is the distance between a sample and the next checks, relative to that between knots.
        """
        tasks, limits, guided = self.tasks, self.robot.limits, self.guided
        references = curve.samples(samples / MAX_CHECKS_PER_PIECE)
        postures, at_knot = references.q, samples % MAX_CHECKS_PER_PIECE == 0
        postures[at_knot] = q[samples[at_knot] // MAX_CHECKS_PER_PIECE]
        positions = np.array([path.positions for path in guided]).reshape(len(guided), self.last + 1, 3)
        between = [path.midpoints for path in guided if path.midpoints is not None]
        midpoints = np.array(between).reshape(len(guided), self.last if between else 0, 3)
        check = np.array([CURVE_TOLERANCE_M, CURVE_ERROR_WEIGHT, JOINT_ERROR_WEIGHT, SUFFICIENT_CLEARANCE_M,
                          DISTANCE_RATE_FACTOR])  # fmt: skip
        result, pairs = np.empty((len(samples), core.RESULT_SIZE)), np.empty(len(samples), np.int64)
        core.check_curve(
            self.robot.tree, self.nearness.surroundings, tasks, check, np.array([limits.lower, limits.upper]), samples,
            MAX_CHECKS_PER_PIECE, postures, width * references.v,
            self._offsets(samples / (MAX_CHECKS_PER_PIECE * self.last)), tasks.contact.shape[1] - len(guided),
            self.contacts_move, positions, midpoints, upper, self._space[0], *self._shares, np.empty(2), self._errors,
            result, pairs,
        )  # fmt: skip
        return result, pairs


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
