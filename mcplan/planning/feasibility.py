"""Feasibility of stances and of the motions between them in one scene, cached by value, within a budget.

Its parts share a scene and a budget: `PostureFinder` (one posture per stance), `MotionChecker` (swings and shifts
between postures) and `LinkOccupancy` (collisions of a link at its contact). `MotionCheckCache` keeps
the results of checks of whole motions.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from mcplan.collision.model import ALLOWED_PENETRATION, CollisionModel
from mcplan.errors import PlanningFailed
from mcplan.motion.limb_path import LimbPath
from mcplan.planning.posture.continuity import Continuity
from mcplan.planning.posture.freedom import Freedom
from mcplan.planning.posture.generator import PostureGenerator
from mcplan.planning.posture.limbs import FreeLimbs
from mcplan.planning.posture.reference import Mirror, ground_patches, guide_posture
from mcplan.planning.posture.result import PostureResult, Violation
from mcplan.planning.posture.support_cache import contact_key
from mcplan.planning.posture.task import PostureSettings
from mcplan.planning.transition.finder import LIFT_HEIGHTS_M, lift_and_approach
from mcplan.planning.transition.knots import MAX_DEFICIT_M, Knots
from mcplan.planning.transition.segments import BodyShift, CheckedMotion, SegmentCache, SwingMotion
from mcplan.planning.transition.transition import Segment
from mcplan.robot.anatomy import HRP2_SCALE, RobotScale
from mcplan.robot.pose import base_orientation, heading_rotation, with_base
from mcplan.robot.robot import Robot
from mcplan.scene.allowed_pose import allowed_pose
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment
from mcplan.settings.control import ControlSettings

CHECKED_LIFT_HEIGHTS_M = LIFT_HEIGHTS_M[::2]
"""Lift heights in addition to the swing clearance that are checked at single points of a swing."""

CHECKED_SWING_SHARES = (0.5, 0.25, 0.75)
"""Points of a swing that are checked, as shares of its duration; the highest point comes first."""

MIN_BEND_RAD = 0.12
"""Smallest bend of limbs in contact; `search.improve.refine_postures` increases it where possible."""

MIN_COM_INSET_M = 0.006
"""Smallest distance of the centre of mass from the edges of its support region.

It excludes contacts along one line, whose region has no width.
"""

MAX_SWING_ERROR = 2e-3
"""Largest error of a patch at the checked points of a swing (m, rad)."""

MAX_REPAIRED_TORQUE = 0.05
"""Largest torque excess, as a share of the limit, that the search tries to remove by improving the posture."""

CALLS_PER_MOTION = 10
"""Number of posture generator calls that the check of a whole motion counts as in the budget."""

MIN_LOAD_N = 5.0
"""Smallest force of a patch that counts as loaded, for a robot of the mass of HRP-2.

Patches that the scenario requires must be loaded in some stance; patches that the goal lists are loaded in the last
stance if possible.
"""


class OutOfCalls(PlanningFailed):
    """The budget of posture generator calls is spent."""


@dataclass
class CallBudget:
    """Number of calls of the posture generator, and its limit."""

    calls: int = 0
    limit: int = 10**9

    def spend(self) -> None:
        """Count a call.

        Raises
        ------
        OutOfCalls
            When the budget is spent.
        """
        if self.calls >= self.limit:
            raise OutOfCalls(f"the budget of {self.limit} postures is spent")
        self.calls += 1


@dataclass
class MotionCheckCache:
    """Violations of the whole motions checked so far, and the kinds of motions of which one was blocked.

    Attributes
    ----------
    violations : violations of each motion, by its key; empty if the motion is feasible.
    blocked_kinds : kinds of which one motion was blocked; further motions of these kinds are checked as a whole.
    """

    violations: dict[tuple, tuple[Violation, ...]] = field(default_factory=dict)
    blocked_kinds: set[tuple] = field(default_factory=set)


class Feasibility:
    """Checks of one scene.

    Parameters
    ----------
    robot, environment : the scene.
    reference : (nq,) posture of the start.
    standing : names of the patches that the reference stands on.
    control : settings of the controller that will execute the plan; postures use the same friction and forces.
    failures : results of earlier checks in this scene.

    Attributes
    ----------
    min_load : smallest force of a loaded patch (N).
    """

    def __init__(
        self,
        robot: Robot,
        environment: Environment,
        reference: np.ndarray,
        standing: Sequence[str],
        control: ControlSettings,
        failures: MotionCheckCache | None = None,
    ):
        self.robot, self.environment, self.control = robot, environment, control
        self.min_load = MIN_LOAD_N * robot.scale.mass**3
        self.collisions = CollisionModel(robot, environment)
        self.budget = CallBudget()
        self.references = ReferencePostures(robot, reference, standing)
        self.postures = PostureFinder(self)
        self.motions = MotionChecker(self, failures or MotionCheckCache())
        self.occupancy = LinkOccupancy(robot, self.collisions, reference, control.avoidance.swing_clearance)

    def generator(self, settings: PostureSettings) -> PostureGenerator:
        """Return a posture generator for this robot's size and the margins of its controller."""
        scaled = settings.of(self.robot.scale).within(self.control)
        return PostureGenerator(self.robot, self.environment, scaled, self.collisions)


MISSING_PATCH_COST, START_BONUS = 0.6, 0.05
"""Score of a reference, relative to a patch that it shares with the contacts: cost of a patch that has no contact, and
bonus of the start, which decides between references that fit equally well."""


class ReferencePosture(NamedTuple):
    """A preferred posture q (nq,), the patches that it stands on, and whether it is that of the start."""

    patches: frozenset[str]
    q: np.ndarray
    is_start: bool


class ReferencePostures:
    """Preferred postures: that of the start, the robot's named ones, and their mirror images."""

    def __init__(self, robot: Robot, reference: np.ndarray, standing: Sequence[str]):
        self.robot = robot
        self.postures = [ReferencePosture(frozenset(standing), reference, True)]
        mirror = Mirror.of(robot)
        for name in robot.postures:
            q = robot.posture(name)
            ground = ground_patches(robot, q)
            self.postures.append(ReferencePosture(ground, q, False))
            if mirror is not None and (mirrored_ground := frozenset(mirror.patch[patch] for patch in ground)) != ground:
                self.postures.append(ReferencePosture(mirrored_ground, mirror.posture(q), False))

    def fits(self, names: set[str]) -> bool:
        """Whether one of the references stands on one of these patches."""
        return any(reference.patches & names for reference in self.postures)

    def guide(self, contacts: Sequence[Contact], q: np.ndarray) -> np.ndarray:
        """Return the reference posture whose patches fit the contacts best, moved onto them; ``q`` if none fits."""
        names = {contact.patch for contact in contacts}
        best_score, best = -np.inf, None
        for reference in self.postures:
            patches = reference.patches
            if not patches & names:
                continue
            bonus = START_BONUS if reference.is_start else 0.0
            score = len(patches & names) - MISSING_PATCH_COST * len(patches - names) + bonus
            if score > best_score + 1e-9:
                best_score, best = score, reference
        if best is None:
            return q
        placed = guide_posture(self.robot, best.q, sorted(best.patches), contacts)
        return q if placed is None else placed

    def offset(self, first: str, second: str) -> np.ndarray | None:
        """Return the offset (3,) of two patches in a reference that stands on both, in the base's heading frame."""
        for patches, q, _ in self.postures:
            if first in patches and second in patches:
                offset = self.robot.frame_pose(q, second)[:3, 3] - self.robot.frame_pose(q, first)[:3, 3]
                return heading_rotation(q).T @ offset
        return None


class PostureFinder:
    """Cache of the postures of stances.

    Attributes
    ----------
    generator : generator of final postures; the search uses a faster one, which does not reduce torques.
    continuity : checks whether postures are connected by a path on closed contacts.
    """

    def __init__(self, scene: Feasibility):
        self.robot, self.references, self.budget = scene.robot, scene.references, scene.budget
        ordinary = PostureSettings(bent=MIN_BEND_RAD)
        self.generator = scene.generator(ordinary)
        # reduced torques end at their limits, and such postures are bad starts for the next stances
        self._quick = scene.generator(replace(ordinary, torque_rounds=0))
        self.continuity = Continuity(scene.robot, scene.environment, self._quick)
        self.free_limbs = FreeLimbs(scene.robot, scene.collisions)
        self._found: dict[tuple, PostureResult] = {}
        self._connected: dict[tuple, PostureResult] = {}

    def find(
        self,
        contacts: Sequence[Contact],
        unloaded: Sequence[str],
        q: np.ndarray,
        free_coordinates: dict[str, Freedom] | None = None,
        held_contacts: Sequence[Contact] | None = None,
        near_previous: bool = False,
    ) -> PostureResult:
        """Return the posture of a stance; ``unloaded`` contacts are in place without force.

        The posture is close to the reference that fits the contacts. Limbs in the air that would have to cross an
        obstacle stay close to ``q``.

        Parameters
        ----------
        q : (nq,) previous posture.
        free_coordinates : free coordinates of the contacts, by patch.
        held_contacts : contacts that stay closed during the motion from ``q``; with these the posture is reachable from
            ``q``.
        near_previous : whether the posture is close to ``q`` instead of the reference.

        Raises
        ------
        OutOfCalls
            When the budget is spent.
        """
        contacts = tuple(sorted(contacts, key=lambda contact: contact.patch))
        # held patches without load are lifted next
        lifted_next = tuple(sorted({contact.patch for contact in held_contacts or ()}.intersection(unloaded)))
        free, guide = free_coordinates or {}, q if near_previous else None
        key, result = self._near_guide(contacts, unloaded, q, free, guide, lifted_next)
        touching = [contact.patch for contact in contacts]
        crossing_limbs = () if near_previous or not result.found else self.free_limbs.crossing(touching, q, result.q)
        if crossing_limbs:
            guide = self.free_limbs.keep_limbs(crossing_limbs, q, self.references.guide(contacts, q))
            adapted_key, adapted = self._near_guide(contacts, unloaded, q, free, guide, lifted_next)
            if adapted.found and not self.free_limbs.crossing(touching, q, adapted.q):
                key, result = adapted_key, adapted
        if held_contacts is None or not result.found:
            return result
        link = (key, tuple(contact_key(contact) for contact in held_contacts), q.tobytes())
        if link not in self._connected:
            self._connected[link] = self.continuity.make_reachable(held_contacts, result, q)
        return self._connected[link]

    def _near_guide(
        self,
        contacts: tuple[Contact, ...],
        unloaded: Sequence[str],
        q: np.ndarray,
        free: dict[str, Freedom],
        guide: np.ndarray | None,
        lifted_next: tuple[str, ...],
    ) -> tuple[tuple, PostureResult]:
        """Return the cache key and the posture of a stance near a guide; without a guide near the reference."""
        if guide is None and not self.references.fits({contact.patch for contact in contacts}):
            guide = q  # no reference fits: the result depends on the previous posture
        key = (
            tuple(contact_key(contact) for contact in contacts),
            tuple(sorted(unloaded)),
            tuple(sorted(free.items(), key=lambda item: item[0])),
            b"" if guide is None else guide.tobytes(),
            lifted_next,
        )
        if key not in self._found:
            self.budget.spend()
            loaded = [contact.patch for contact in contacts if contact.patch not in unloaded]
            guide = self.references.guide(contacts, q) if guide is None else guide
            found = self._quick.generate(contacts, loaded, guide, [q], free, leaving=lifted_next)
            if any(v.kind == "torque" and v.amount <= MAX_REPAIRED_TORQUE for v in found.violations):
                found = self.generator.generate(contacts, loaded, guide, [q], free, leaving=lifted_next)
            self._found[key] = with_com_inset(found, self.robot.scale)
        return key, self._found[key]


class LinkOccupancy:
    """Collision check of a link in contact.

    It needs no posture, since a contact with six constraints fixes the pose of the link; others are not checked.

    Parameters
    ----------
    q : (nq,) posture whose base is moved such that the link is at its contact.
    lift : height of a swing (m).
    """

    def __init__(self, robot: Robot, collisions: CollisionModel, q: np.ndarray, lift: float):
        self.robot, self.collisions, self.q, self.lift = robot, collisions, q, lift
        self._overlaps: dict[tuple, tuple[str, float] | None] = {}
        self._obstructed: dict[tuple, bool] = {}

    def overlap(self, contact: Contact, clearance: float = 0.0) -> tuple[str, float] | None:
        """Return the two bodies with the largest overlap if the link is at its contact, and its depth (m); or None.

        Parameters
        ----------
        clearance : required distance from all bodies except the support (m).
        """
        if len(contact.selection) < 6:
            return None
        key = (contact_key(contact), clearance)
        if key not in self._overlaps:
            self._overlaps[key] = self._deepest(contact, clearance)
        return self._overlaps[key]

    def landing_obstructed(self, contact: Contact) -> bool:
        """Whether an obstacle above the contact prevents the link from coming down along the normal."""
        key = contact_key(contact)
        if key not in self._obstructed:
            raised = (replace(contact, p=contact.p + share * self.lift * contact.normal) for share in (0.5, 1.0))
            self._obstructed[key] = any(self.overlap(above) is not None for above in raised)
        return self._obstructed[key]

    def _deepest(self, contact: Contact, clearance: float) -> tuple[str, float] | None:
        robot = self.robot
        body = robot.frame(contact.patch)[0]
        pairs = self.collisions.distances(base_moved_to_contact(robot, self.q, contact), clearance, [contact])
        deepest: tuple[str, float] | None = None
        for pair, distance in zip(pairs.pairs, pairs.distance, strict=True):
            a, b = pair[0], pair[1]
            if b in robot.link_names or robot.frame(a)[0] != body:
                continue
            depth = float(-distance) - ALLOWED_PENETRATION if pair.in_contact else clearance - float(distance)
            if depth > 0.0 and (deepest is None or depth > deepest[1]):
                deepest = (f"{a} and {b}", depth)
        return deepest


class MotionChecker:
    """Checks that motions between postures are collision-free and in static equilibrium.

    Attributes
    ----------
    segments : cache of the motions of the scene.
    failures : violations of blocked motions.
    """

    def __init__(self, scene: Feasibility, failures: MotionCheckCache):
        self.robot, self.budget, self.failures = scene.robot, scene.budget, failures
        self.segments = SegmentCache(scene.robot, scene.environment, scene.control, scene.collisions)
        self._swing_generator = scene.generator(PostureSettings(steps=15, collision_rounds=5, torque_rounds=0))
        self._swings: dict[tuple, tuple[Violation, ...]] = {}

    def clear_failures(self) -> None:
        """Clear the blocked kinds of motions; results of single motions are kept."""
        self.failures.blocked_kinds.clear()

    def swing(self, swing: SwingMotion) -> tuple[Violation, ...]:
        """Return the violations of a swing at the best lift height.

        The swing is checked at a few points, and as a whole if a motion of its kind was blocked.

        The orientation of a flat patch that moves from surface to surface is interpolated. That of edges, grasps, and
        patches that come from the air or replace another patch of their limb is free.
        """
        key = swing.key
        if key not in self._swings:
            self._swings[key] = self._check_points(swing)
        if self._swings[key] or swing.kind not in self.failures.blocked_kinds:
            return self._swings[key]
        return self._check_whole(swing)

    def shift(self, shift: BodyShift) -> tuple[Violation, ...]:
        """Return the violations of a body motion before a lift.

        It is checked only if a motion of its kind was blocked. Otherwise the check waits until the path is found.
        """
        return self._check_whole(shift) if shift.kind in self.failures.blocked_kinds else ()

    def violations(self, motion: CheckedMotion) -> tuple[Violation, ...]:
        """Return the violations along a whole motion; if there are any, its kind counts as blocked."""
        cache, key = self.failures.violations, motion.key
        if key not in cache:
            cache[key] = passage_violations(motion.probe(self.segments), motion.patch) or self._check_planned(motion)
            if cache[key]:
                self.failures.blocked_kinds.add(motion.kind)
        return cache[key]

    def collision_message(self, contacts: tuple[Contact, ...], q: np.ndarray, end: np.ndarray) -> str:
        """Return the first violation of a motion between postures on the same contacts as text, or an empty text."""
        found = self.violations(BodyShift(contacts, (), q, end))
        return str(found[0]) if found else ""

    def _check_whole(self, motion: SwingMotion | BodyShift) -> tuple[Violation, ...]:
        known_count = len(self.failures.violations)
        found = self.violations(motion)
        self.budget.calls += CALLS_PER_MOTION * (len(self.failures.violations) - known_count)
        return found

    def _check_planned(self, motion: CheckedMotion) -> tuple[Violation, ...]:
        """Return the violations of the motion as planned: collisions, or missing static equilibrium."""
        found = motion.segment(self.segments)
        if obstruction := passage_violations(found, motion.patch):
            return obstruction
        violation = self.segments.finder.durations.overload(found)
        if violation is None:
            return ()
        if violation.kind == "torque":
            return (Violation("torque", violation.name, violation.amount - 1.0),)
        # at both ends the same contacts balance the robot
        return (Violation("equilibrium", "com", violation.amount),)

    def _check_points(self, swing: SwingMotion) -> tuple[Violation, ...]:
        before, after, q0, q1 = swing.before, swing.after, swing.q0, swing.q1
        X = self.robot.frame_pose(q0, after.patch)
        start = (X[:3, :3], X[:3, 3]) if before is None else (before.R, before.p)
        end = (after.R, after.p)
        if after.radius:  # a ball rolls: its actual poses at both ends differ from the nominal ones
            start, X = (X[:3, :3], X[:3, 3]), self.robot.frame_pose(q1, after.patch)
            end = allowed_pose(after, (X[:3, :3], X[:3, 3]))
        is_free = before is None or after.kind == "grasp" or len(after.selection) < 6
        finder, swing_contact = self.segments.finder, _swing_contact(after, is_free)
        smallest: tuple[Violation, ...] = ()
        # try first the path of the patch alone, then also paths of the other patches of its limb: a shank that lifts
        # only its knee may press its toes into the floor
        other_patches = swing.added[1:] if before is not None else ()
        for extra_height, further_patches in [(h, ()) for h in CHECKED_LIFT_HEIGHTS_M] + [
            (h, other_patches) for h in CHECKED_LIFT_HEIGHTS_M if other_patches
        ]:
            height = finder.settings.avoidance.swing_clearance + self.robot.scale.leg * extra_height
            lift, approach = lift_and_approach(start[1], after, before, height)
            paths = [(swing_contact, LimbPath(start, end, lift, approach, finder.timing))]
            paths += [
                (_swing_contact(other, True), self._second_path(swing, other, height)) for other in further_patches
            ]
            found = self._check_paths(paths, swing)
            if not found:
                return ()
            if not smallest or found[0].amount < smallest[0].amount:
                smallest = found
        return smallest

    def _check_paths(self, paths: Sequence[tuple[Contact, LimbPath]], swing: SwingMotion) -> tuple[Violation, ...]:
        """Return the violations of postures with the patches at a few points of their paths."""
        q, names = swing.q0, [contact.patch for contact in swing.common]
        swinging_patches = tuple(swing_contact.patch for swing_contact, _ in paths)
        for share in CHECKED_SWING_SHARES:
            self.budget.spend()
            samples = [(swing_contact, path.sample(share * path.duration)) for swing_contact, path in paths]
            moving_contacts = [replace(swing_contact, R=pose.R, p=pose.p) for swing_contact, pose in samples]
            ends = [swing.q0, swing.q1] if share < 0.5 else [swing.q1, swing.q0]
            result = self._swing_generator.generate(
                (*swing.common, *moving_contacts), names, q, ends, passing=swinging_patches
            )
            if not result.found and not is_nearly_feasible(result):
                return result.violations
            q = result.q
        return ()

    def _second_path(self, swing: SwingMotion, other: Contact, height: float) -> LimbPath:
        """Return the path of another patch of the swing limb, with the same lift as the first one."""
        X = self.robot.frame_pose(swing.q0, other.patch)
        lift, approach = lift_and_approach(X[:3, 3], other, swing.before, height)
        start, end = (X[:3, :3], X[:3, 3]), (other.R, other.p)
        return LimbPath(start, end, lift, approach, self.segments.finder.timing)


def _swing_contact(contact: Contact, is_free: bool) -> Contact:
    """Return a contact that places a patch on its path in the air; with ``is_free`` only its position."""
    return replace(contact, selection=np.eye(6)[:3] if is_free else contact.selection, radius=0.0)


def passage_violations(found: Knots | Segment, patch: str) -> tuple[Violation, ...]:
    """Return the violation along a motion of ``patch``; empty if it is collision-free."""
    if found.missed <= MAX_DEFICIT_M:
        return ()
    return (Violation("passage", " and ".join(found.worst.bodies) or patch, found.missed),)


def base_moved_to_contact(robot: Robot, q: np.ndarray, contact: Contact) -> np.ndarray:
    """Return ``q`` (nq,) with the base moved rigidly so that the patch is at its contact."""
    X = robot.frame_pose(q, contact.patch)
    turn = contact.R @ X[:3, :3].T
    p = contact.p + turn @ (q[:3] - X[:3, 3])
    return with_base(q, p, Rotation.from_matrix(turn) * base_orientation(q))


def with_com_inset(result: PostureResult, scale: RobotScale = HRP2_SCALE) -> PostureResult:
    """Return the result; it becomes infeasible if the centre of mass is within `MIN_COM_INSET_M` of the edge."""
    inset = result.margins.get("com_inset", np.inf)
    least = scale.sole * MIN_COM_INSET_M
    if not result.found or inset >= least:
        return result
    return replace(result, stage="balance", violations=(Violation("equilibrium", "com", least - inset),))


def is_nearly_feasible(result: PostureResult) -> bool:
    """Whether a swing posture only has small errors of its patch position, which do not matter during a swing."""
    small = (v.kind == "reach" and v.amount < MAX_SWING_ERROR for v in result.violations)
    return result.stage == "balance" and all(small)
