"""Waypoints (knots) of a motion: collision-free postures on the contacts, one after the other by inverse kinematics.

The straight motion of the joints between two proven postures may leave the reach of the contacts or the region where
the robot balances, or pass through an obstacle. So postures near it are found that keep all of these (`KnotSearch`).
A posture that the one before leads to closely enough needs no search. At last the path is smoothed. Joints keep a
distance from their limits along the path (`JointRoom`), bodies from each other, round by round (`CollisionAvoidingIK`).
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
from mcplan.planning.posture.task import PostureSearch, PostureSettings, prices
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
    away_from_ends,
)
from mcplan.robot.robot import Robot
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment

JOINT_MARGIN_RAD = 0.05
"""rad or m: distance from joint limits along a path whose ends keep more: a joint at its limit corrects no error."""

JOINT_MARGIN_SHARE = 0.8
"""The same as a share of the distance at the ends, where that is less."""

FOLD_MARGIN_RAD = 0.25
"""rad: the same of knees and elbows of limbs that touch, from where these are straight."""

AT_BOUND_RAD = 1e-6
"""rad or m: a joint so near to a bound is held up by it."""


class JointRoom:
    """Joint limits of a robot on the path between two postures.

    Parameters
    ----------
    least : (2, n) the widest bounds, where nothing else will do.
    """

    def __init__(self, robot: Robot, least: np.ndarray):
        self.robot, self.least = robot, least
        self.limits = np.array([robot.limits.lower, robot.limits.upper])

    def between(self, ends: np.ndarray, patches: Iterable[str]) -> np.ndarray:
        """Return bounds (2, n) that keep a path nearly as far from the limits as its ends (2, n) are.

        They keep limbs bent whose ``patches`` touch all along, where both ends bend them to the same side.
        """
        lower, upper = self.limits
        most = np.minimum(JOINT_MARGIN_RAD, 0.5 * (upper - lower))
        room = np.minimum(JOINT_MARGIN_SHARE * np.array([ends.min(axis=0) - lower, upper - ends.max(axis=0)]), most)
        bounds = np.array([np.maximum(lower + room[0], self.least[0]), np.minimum(upper - room[1], self.least[1])])
        for fold in self.robot.folds_of(patches):
            one, other = ends[:, fold.joint] - fold.straight
            if one * other > 0.0:
                fold.keep_bent(bounds, one, JOINT_MARGIN_SHARE * min(abs(one), abs(other), FOLD_MARGIN_RAD))
        return bounds

    def hold_up(self, limit: np.ndarray, q: np.ndarray) -> bool:
        """Say whether a joint of postures (..., nq) is at or beyond bounds (2, n) that are not the widest."""
        lower, upper = limit
        low = (lower > self.least[0]) & (q[..., 7:] < lower + AT_BOUND_RAD)
        high = (upper < self.least[1]) & (q[..., 7:] > upper - AT_BOUND_RAD)
        return bool((low | high).any())


CONTACT_TOLERANCE_M = 1e-3
"""m, rad: contact error of a posture on the path; the controller corrects it."""

FIT_TOLERANCE_M = 1e-3
"""m, rad: a posture that misses its contacts and wanted distances by no more will do without a search."""

MAX_ROUNDS = 10
"""Times that distances are computed again at a posture."""

IK_STEPS = 8
"""Steps of the inverse kinematics between two of them."""

MIN_GAIN_M = 2e-4
"""m, rad: a round that gains less is idle; the nearest points of a pair may take turns."""

MAX_IDLE_ROUNDS = 2
"""Idle rounds in a row after which the search ends."""

MAX_PUSH_M = 0.02
"""m: the most that a pair is pushed apart before its distance is computed again, for a robot of the size of HRP-2."""

TRUST_RADIUS = 0.2
"""m, rad: bound of a step in each coordinate: distances are linear in so much."""

ROW_TOLERANCE = 1e-6
"""m, rad: tolerance of the rows."""

STEP_TOLERANCE = 1e-4
"""m, rad: a smaller step ends the search."""


class CollisionAvoidingIK:
    """Finds postures in one scene whose bodies keep apart.

    Parameters
    ----------
    nearness : of the scene.
    search : of postures, with its prices and margins.
    """

    def __init__(self, nearness: Nearness, search: PostureSearch):
        self.nearness, self.search, self._tree = nearness, search, nearness.robot.tree
        self._rule = search.rule(IK_STEPS, ROW_TOLERANCE, STEP_TOLERANCE, TRUST_RADIUS)
        self._measures, self._stretch = np.zeros(core.MEASURES), nearness.robot.scale.leg * MAX_PUSH_M

    def settle(
        self, task: PostureTargets, start: np.ndarray, wish: DesiredClearance, watched: np.ndarray
    ) -> tuple[np.ndarray, float]:
        """Find a posture of the task with distances of the watched pairs, from ``start``.

        Returns
        -------
        The posture that misses least, and by how much (m, rad).
        """
        around, measures = self.nearness.around_at(wish.objects), self._measures
        scratch = self.search.room_for(task, len(watched))
        q, report = np.array(start, dtype=float), self.search.report
        best, least, most, idle = start, np.inf, -np.inf, 0
        near = core.find_near(self._tree, around, q, watched)
        for _ in range(MAX_ROUNDS):
            near = core.keep_apart(
                self._tree, around, near, task, self._rule, q, wish.need, wish.content, watched, self._stretch, scratch,
                report, measures,
            )  # fmt: skip
            if near == core.NOT_FINITE:
                raise SolverFailed("posture search along the path: numbers that are not finite")
            amount, left = max(measures[core.OFF] - CONTACT_TOLERANCE_M, measures[core.SHORT]), measures[core.LEFT]
            idle = 0 if amount < least - MIN_GAIN_M or left > most + MIN_GAIN_M else idle + 1
            if amount < least:
                best, least = q.copy(), float(amount)
            most = max(most, left)
            done = measures[core.OFF] <= CONTACT_TOLERANCE_M / 10 and left > -FIT_TOLERANCE_M
            if done or idle == MAX_IDLE_ROUNDS:
                break
        return best, least

    def fits(self, task: PostureTargets, q: np.ndarray, wish: DesiredClearance, watched: np.ndarray) -> bool:
        """Say whether a posture needs no search."""
        scratch = self.search.room_for(task, 0)
        around = self.nearness.around_at(wish.objects)
        return bool(core.fits(self._tree, around, task, q, wish.need, watched, FIT_TOLERANCE_M, scratch))


CURVE_TOLERANCE_M = 1e-3
"""m, rad: contact error of the curve between knots that does not count."""

CURVE_ERROR_WEIGHT = 6.0
"""Weight of the error beyond: 1.8 mm at a contact count as much as the greatest clearance deficit, since a sole that is
2 mm deep in its support overlaps it."""

MAX_CHECKS_PER_PIECE = 32
"""Intervals between two knots at most at which distances are checked, where bodies may come too near."""

KNOT_STRIDE = 3
"""Postures from one that is searched for to the next; those in between are searched for where these do not lead."""

FIXED_ORIENTATION_M = 0.02
"""m: so near to an end of its path a patch keeps its orientation there."""

SMOOTHING_SWEEPS = 3
"""Smoothing passes over the postures."""

SMOOTHINGS = ((6, 4), (3, 2), (1, 1), (0, 1))
"""Passes of the filter (1, 2, 1) / 4 that smoothes a path, and knots at either end over which it leaves the guides, as
gently as they themselves begin and end: less where more would lead through something."""

MAX_SMOOTHED_DEFICIT_M = 0.01
"""m, rad: a path with a greater deficit is not smoothed."""

SMOOTHING_TOLERANCE_M = 1e-3
"""m, rad: deficit that smoothing may cause."""


class KnotSearch:
    """Searches for knots near guides, with joints within bounds where these allow it.

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
        self.finder, self.robot, self.apart, self.search = finder, finder.robot, finder.apart, finder.search
        self.joints, self.nearness, self.guided, self.objects = finder.joints, finder.nearness, guided, objects
        self.touching, self.keep_end_clearance, self.limit = touching, keep_end_clearance, limit
        self.guides, self.last = guides, len(guides) - 1
        self.tasks, self.wishes = list[PostureTargets](), list[DesiredClearance]()
        self.closed = at_knots(contacts, len(guides))
        self.moving = any(here is not self.closed[0] for here in self.closed)
        self.watched = self.nearness.watched(self.closed[0])
        self.q, self.missed = guides.copy(), np.zeros(len(guides))
        self.off = np.zeros((len(guides), self.robot.nv))
        self.parted = np.zeros(len(self.watched))
        """How far pairs are apart at the end at which they are farther (m)."""

    def run(self) -> Knots:
        """Search."""
        self._declare()
        self._march()
        self._from_the_other_side()
        self._sweep()
        q, missed = self.q, float(self.missed.max())
        if missed > MAX_DEFICIT_M:  # no smoothing makes it free
            worst = self._worst()
            return Knots(q, missed, missed, worst, check_separation=self._checks_separation(worst))
        smooth, short, worst, strayed = self._smoothed()
        worst = self._worst() if missed > short else worst
        return Knots(smooth, max(missed, short), missed, worst, strayed, self._checks_separation(worst))

    def _declare(self) -> None:
        """Declare each knot: on its contacts, near its guide, with the clearance that the ends allow."""
        finder, robot, last, guides = self.finder, self.robot, self.last, self.guides
        com = robot.com(guides)
        supports = [finder.support(here, com[k]) for k, here in enumerate(self.closed)]
        held = [[contact_rows(robot, finder.environment, contact, None) for contact in here] for here in self.closed]
        there = [self.objects and self.objects(k / last) for k in range(last + 1)]
        passing = [(list(finder.collisions.pairs_of([contact])), contact.patch) for contact in self.touching]
        ends = self.nearness.distances(guides[0], there[0]), self.nearness.distances(guides[-1], there[-1])
        self.parted = np.maximum(*ends)
        most = self.parted if self.keep_end_clearance else np.inf
        places = {patch: robot.frame_pose(guides, patch)[:, :3, 3] for _, patch in passing}
        places |= {lead.patch: lead.places for lead in self.guided}
        grazing = np.zeros(len(finder.collisions.pairs))
        grazing[[pair for pairs, _ in passing for pair in pairs]] = GRAZING_ALLOWANCE_M
        for k in range(last + 1):
            rows = [*held[k], *(guided_rows(robot, lead, k) for lead in self.guided)]
            pull = np.array([*com[k, :2], finder.settings.weights.com, 0.0])
            self.tasks.append(self.search.task(rows, guides[k], supports[k].rows, pull)._replace(limit=self.limit))
            away = {patch: away_from_ends(there, k) for patch, there in places.items()}
            need = np.minimum(self.nearness.need(k / last, ends, passing, away), most)
            least = np.minimum(MIN_SEPARATION_M, need - 1e-5)  # no more than the ends have
            content = np.minimum(need, self.nearness.content)
            graze = np.where(content < self.nearness.content, grazing, 0.0)  # not far from where it is to touch
            self.wishes.append(DesiredClearance(need, content - graze, least - graze, there[k]))

    def _settle(self, k: int, start: np.ndarray, guide: np.ndarray) -> tuple[np.ndarray, float]:
        """Return knot k from a start, near a guide, and its deficit; out to the joint limits where needed."""
        wish, watched = self.wishes[k], self.watched
        found, amount = self.apart.settle(self.tasks[k]._replace(guide=guide), start, wish, watched)
        if amount > FIT_TOLERANCE_M and self.joints.hold_up(self.tasks[k].limit, found):
            task = self.tasks[k] = self.tasks[k]._replace(limit=self.joints.least)
            other, less = self.apart.settle(task._replace(guide=guide), found, wish, watched)
            found, amount = (other, less) if less < amount else (found, amount)
        return found, amount

    def _fits(self, k: int, q: np.ndarray, task: PostureTargets | None = None) -> bool:
        return self.apart.fits(task or self.tasks[k], q, self.wishes[k], self.watched)

    def _worst(self) -> PathViolation:
        """Return where the deficit is greatest."""
        k = int(np.argmax(self.missed))
        return PathViolation(k / self.last, self.nearness.short(self.q[k], self.wishes[k], self.watched).bodies)

    def _checks_separation(self, worst: PathViolation) -> bool:
        """Say whether the bodies that come too near keep more than their clearance at the ends."""
        if not worst.bodies:
            return True
        pairs, need = self.finder.collisions.between(*worst.bodies), self.wishes[round(worst.share * self.last)].need
        return bool(np.any(need[pairs] > self.parted[pairs]))

    # -- the path ---------------------------------------------------------------------------------------------------

    def _march(self) -> None:
        """Find every `KNOT_STRIDE`-th knot from the one before, and those in between from both."""
        before, off = 0, self.off
        for here in [*range(KNOT_STRIDE, self.last, KNOT_STRIDE), self.last]:
            if here < self.last:
                self._place(here, off[before])
            for k in range(before + 1, here):
                part = (k - before) / (here - before)
                self._place(k, (1.0 - part) * off[before] + part * off[here])
            before = here

    def _place(self, k: int, step: np.ndarray) -> None:
        """Take the posture that is off its guide by ``step`` (nv,) if it will do, else one near the guide."""
        self.q[k], self.missed[k] = self.robot.integrate(self.guides[k], step, 1.0), 0.0
        if not self._fits(k, self.q[k]):
            self.q[k], self.missed[k] = self._settle(k, self.q[k], self.guides[k])
        self.off[k] = self.robot.difference(self.guides[k], self.q[k])

    def _from_the_other_side(self) -> None:
        """Search knots with a deficit again from their other neighbour."""
        for side, order in ((1, range(self.last - 1, 0, -1)), (-1, range(1, self.last))):
            for k in (k for k in order if self.missed[k] > 0.0):
                start = self.robot.integrate(self.guides[k], self.off[k + side], 1.0)
                other, amount = self._settle(k, start, self.guides[k])
                if amount < self.missed[k]:
                    self.q[k], self.missed[k] = other, amount
                    self.off[k] = self.robot.difference(self.guides[k], other)

    def _sweep(self) -> None:
        """Smooth the path through the knots."""
        for _ in range(SMOOTHING_SWEEPS if self.missed.max() <= MAX_SMOOTHED_DEFICIT_M else 0):
            off, settled = smooth_offsets(self.robot, self.guides, self.q, *SMOOTHINGS[0]), 0
            for k in range(1, self.last):
                better, amount = self.robot.integrate(self.guides[k], off[k], 1.0), 0.0
                if not self._fits(k, better):
                    better, amount = self._settle(k, self.q[k], better)
                    settled += 1
                if amount <= max(self.missed[k], SMOOTHING_TOLERANCE_M):
                    self.q[k], self.missed[k] = better, amount
            if not settled:
                break

    def _smoothed(self) -> tuple[np.ndarray, float, PathViolation, float]:
        """Return the smoothest knots of nearly the same violation; the violation, its place, the stray of guided ones.

        Smoothing draws them off their contacts and paths, and towards obstacles.
        """
        best: tuple[np.ndarray, float, PathViolation, float] = self.q, np.inf, NO_VIOLATION, 0.0
        content = max(float(self.missed.max()), SMOOTHING_TOLERANCE_M)
        for passes, ease in SMOOTHINGS:
            off = smooth_offsets(self.robot, self.guides, self.q, passes, ease)
            drawn = np.array([self.robot.integrate(at, step, 1.0) for at, step in zip(self.guides, off, strict=True)])
            for around in (False, True):
                softer = drawn.copy()
                for k in range(1, self.last):
                    back = self.tasks[k]._replace(guide=drawn[k])
                    if around and not self._fits(k, drawn[k], back):
                        settled = self.apart.settle(back, drawn[k], self.wishes[k], self.watched)
                        softer[k] = settled[0]
                    elif not around:
                        softer[k] = self.search.run(
                            back, drawn[k], IK_STEPS, ROW_TOLERANCE, STEP_TOLERANCE, TRUST_RADIUS
                        ).q
                draw_inside(self.robot, softer)
                amount, where, strayed = self._curve_misses(softer, best[1])
                if amount < best[1]:
                    best = softer, amount, where, strayed
                if best[1] <= content:
                    return best
        return best

    # -- the curve --------------------------------------------------------------------------------------------------

    def _curve_misses(self, q: np.ndarray, most: float) -> tuple[float, PathViolation, float]:
        """Return what the curve through knots (k, nq) misses of what is asked, where, and how far led patches stray.

        Contacts, joint limits and led patches are looked at in the knots and halfway between them, contacts that are
        elsewhere from knot to knot in the knots only; distances as closely as their rates ask for. Each is counted so
        that what is too much of it is as much as what a motion may miss its distances by. Where as much as ``most`` is
        missed, the rest does not matter.
        """
        last, limits, worst, where, strayed = self.last, self.robot.limits, 0.0, NO_VIOLATION, 0.0
        curve = PostureSpline(np.arange(last + 1.0), q)
        width, count = MAX_CHECKS_PER_PIECE // 2, MAX_CHECKS_PER_PIECE * last
        looked = set(range(0, count + 1, width))
        here = looked - {0, count}
        while here:
            doubtful: set[int] = set()
            for i in sorted(here):
                k, part = divmod(i, MAX_CHECKS_PER_PIECE)
                sample = curve.sample(i / MAX_CHECKS_PER_PIECE)
                q_here, wish = (q[k], self.wishes[k]) if part == 0 else (sample.q, self.wishes[k])
                if part:
                    after = self.wishes[k + 1]
                    content, least = np.minimum(wish.content, after.content), np.minimum(wish.least, after.least)
                    wish = wish._replace(content=content, least=least)
                    if self.objects is not None:
                        wish = wish._replace(objects=self.objects(i / count))
                short = self.nearness.short(q_here, wish, self.watched, 0.5 * width / MAX_CHECKS_PER_PIECE * sample.v)
                amount, bodies = (short.amount, short.bodies) if short.amount > 0.0 else (0.0, ())
                beyond = 10.0 * float(np.maximum(limits.lower - q_here[7:], q_here[7:] - limits.upper).max(initial=0.0))
                if part == 0 or (part == MAX_CHECKS_PER_PIECE // 2 and not self.moving):
                    beyond = max(beyond, self._off(self.tasks[k], q_here))
                if part in (0, MAX_CHECKS_PER_PIECE // 2):
                    strayed = max(strayed, self._strayed(q_here, k, part))
                if beyond > amount:
                    amount, bodies = beyond, ()
                if amount > worst:
                    worst, where = amount, PathViolation(i / count, bodies)
                    if worst >= most:
                        return worst, where, strayed
                if width > 1 and short.around > SMOOTHING_TOLERANCE_M:
                    doubtful |= {i - width // 2, i + width // 2}
            here, width = doubtful - looked, width // 2
            looked |= here
        return worst, where, strayed

    def _strayed(self, q: np.ndarray, k: int, part: int) -> float:
        """Return how far led patches are from their paths (m), in knot k or halfway from there to the next."""
        far = 0.0
        for lead in self.guided:
            places = lead.halves if part else lead.places
            if places is not None:
                far = max(far, float(np.linalg.norm(self.robot.frame_pose(q, lead.patch)[:3, 3] - places[k])))
        return far

    def _off(self, task: PostureTargets, q: np.ndarray) -> float:
        """Return by how much a posture is off the closed contacts of its task, which stand before led patches."""
        missed, closed = self.search.missed(task, q), len(task.contact) - len(self.guided)
        first = len(task.select) + len(task.centre)
        held = missed[: int(task.contact[:closed, 3].sum())]
        rolled = missed[first : first + len(task.cell)][task.cell[:, 0] < closed]  # of balls: where they roll to
        return CURVE_ERROR_WEIGHT * max(
            0.0, float(max(held.max(initial=0.0), rolled.max(initial=0.0))) - CURVE_TOLERANCE_M
        )


def guided_rows(robot: Robot, guided: PatchPath, k: int) -> FrameRows:
    """Return the rows that hold a led patch in its place in knot k, and near its ends in its orientation there.

    Close to a support a patch that turned would cut into it.
    """
    body, offset = robot.frame(guided.patch)
    near = [distance < robot.scale.leg * FIXED_ORIENTATION_M for distance in guided.away(k)]
    R = guided.turns[1] if near[1] else guided.turns[0]
    frame = np.concatenate([offset, np.asarray(R).ravel(), guided.places[k]])
    if any(near) and not robot.patches[guided.patch].radius:
        return FrameRows(POSE_ROWS, body, frame, np.eye(6), np.zeros((0, 10)))
    return FrameRows(PLACE_ROWS, body, frame, np.eye(6)[:3], np.zeros((0, 10)))


def at_knots(contacts: Sequence[Contact] | Sequence[Sequence[Contact]], count: int) -> list[tuple[Contact, ...]]:
    """Return the contacts in place at each knot."""
    alike = [contact for contact in contacts if isinstance(contact, Contact)]
    moving = [tuple(here) for here in contacts if not isinstance(here, Contact)]
    return moving or [tuple(alike)] * count


LIFTS = (1.0, 0.5, 0.25, 0.125)
"""Parts of the height to which a patch is lifted that are tried in turn."""


class KnotFinder:
    """Finds knots in one scene.

    Parameters
    ----------
    robot, environment : the scene.
    settings : margins of the postures.
    collisions : of the same scene, where they are known.
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
        # where nothing else will do, half of the planner's margin of joints is enough between two postures
        self.search = PostureSearch(robot, prices(robot, self.settings.weights), 0.5 * self.settings.joint_margin)
        self.joints = JointRoom(robot, self.search.limit)
        self.apart = CollisionAvoidingIK(self.nearness, self.search)
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
        guides : (k, nq) the motion that is preferred; its ends are kept.
        contacts : closed ones of the whole motion; or, where they move with an object, those at each knot.
        guided : patches that are led along.
        touching : contacts that limbs leave or come to: near them, the limb is close to its support.
        keep_end_clearance : let no pair part more than it does at one of the ends.
        objects : where objects that move along are, by the share of the path.
        """
        guides = np.asarray(guides, dtype=float)
        asked = contacts, guided, touching, keep_end_clearance, objects
        roomy = self.joints.between(guides[[0, -1], 7:], [contact.patch for contact in at_knots(contacts, 1)[0]])
        knots = KnotSearch(self, guides, *asked, roomy).run()
        if knots.missed > MAX_DEFICIT_M and self.joints.hold_up(roomy, knots.q):
            again = KnotSearch(self, guides, *asked, self.joints.least).run()
            knots = min(knots, again, key=lambda found: found.missed)
        return knots

    def lifted(
        self, guide: np.ndarray, contacts: Sequence[Contact], patch: str, place: np.ndarray, lift: np.ndarray
    ) -> np.ndarray:
        """Return a posture near a guide in which a patch is off a place by ``lift`` (3,), or by a part of it.

        Only how far it is off counts: straight up may be impossible, as for a knee below its hip. Where ``lift`` is
        zero that is the guide.

        Parameters
        ----------
        guide : (nq,) posture.
        contacts : what stays in place.
        place : (3,) what the patch leaves.
        """
        height = float(np.linalg.norm(lift))
        if height == 0.0:
            return guide
        com, (body, offset) = self.robot.com(guide), self.robot.frame(patch)
        held = [contact_rows(self.robot, self.environment, contact, None) for contact in contacts]
        watched = self.nearness.watched(contacts)
        content = self.nearness.content
        need = np.where(self.nearness.own, np.minimum(self.nearness.wanted, self.nearness.distances(guide)), content)
        wish = DesiredClearance(need, np.minimum(need, content), np.full(len(need), MIN_SEPARATION_M))
        normal = np.concatenate([lift / height, np.zeros(3)])[None]
        best, least = guide, np.inf
        for part in LIFTS:
            frame = np.concatenate([offset, np.eye(3).ravel(), place + part * lift])
            rows = [*held, FrameRows(PLACE_ROWS, body, frame, normal, np.zeros((0, 10)))]
            pull = np.array([*com[:2], self.settings.weights.com, 0.0])
            task = self.search.task(rows, guide, self.support(contacts, com).rows, pull)
            q, missed = self.apart.settle(task, guide, wish, watched)
            if missed < least:
                best, least = q, missed
            if missed <= FIT_TOLERANCE_M:
                break
        return best

    def room(self, contacts: Sequence[Contact], com: np.ndarray) -> float:
        """Return how far inside the region that contacts balance a centre of mass (3,) is (m); negative outside."""
        region = self.support(contacts, com).region
        return -np.inf if region.empty else float(region.depth(com))

    def support(self, contacts: Sequence[Contact], com: np.ndarray) -> SupportData:
        """Return where contacts balance the robot, whatever its height; ``com`` (3,) as for `ContactRegions`."""
        known = self._supports.get(asked := tuple(contacts))
        if known is None:
            spared = [self.settings.with_margin(contact) for contact in asked]
            known = self._supports[asked] = self._regions.support(spared, com)
        return known
