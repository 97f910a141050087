"""Feasibility of stances and of the motions between them in one scene, cached by value, within a budget.

Three parts that share a scene and a budget: `PostureFinder` (a posture per stance), `MotionChecker` (swings and shifts
between postures), `LinkOccupancy` (whether a link fits at its contact). `FailureCache` holds the blocked motions.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

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
from mcplan.planning.transition.segments import BodyShift, ProvenMotion, SegmentCache, SwingMotion
from mcplan.planning.transition.transition import Segment
from mcplan.robot.anatomy import HRP2_SCALE, RobotScale
from mcplan.robot.pose import base_orientation, heading_rotation, with_base
from mcplan.robot.robot import Robot
from mcplan.scene.allowed_pose import allowed_pose
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment
from mcplan.settings.control import ControlSettings

CHECKED_LIFTS_M = LIFT_HEIGHTS_M[::2]
"""Lift heights beyond the clearance that are checked first."""

CHECKED_SHARES = (0.5, 0.25, 0.75)
"""Shares of the duration of a swing that are checked first; the highest point comes before the others."""

MIN_BEND_RAD = 0.12
"""Smallest bend of limbs that touch; `search.refine_postures` increases it where possible."""

MIN_COM_INSET_M = 0.006
"""Smallest distance of the centre of mass to the edges of its support region; zero for contacts along one line."""

SWING_TOLERANCE = 2e-3
"""m, rad: tolerance of the checked points of a swing."""

MAX_REPAIRED_TORQUE = 0.05
"""Largest torque excess, as a share of the limit, that the search tries to remove by improving the posture."""

CALLS_PER_MOTION = 10
"""The check of a whole motion costs as much of the budget as this many calls of the posture generator."""

MIN_LOAD_N = 5.0
"""Smallest force of a patch that the scenario requires (in some stance) or that the goal names (in the last stance, if
possible), for a robot of the mass of HRP-2."""


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
class FailureCache:
    """Results of checks of whole motions, and the kinds of motions that contain a blocked one.

    Attributes
    ----------
    violations : of each motion, by its key; empty if it is feasible.
    doubted : kinds with a blocked motion; further motions of these kinds are checked along their whole length.
    """

    violations: dict[tuple, tuple[Violation, ...]] = field(default_factory=dict)
    doubted: set[tuple] = field(default_factory=set)


class Feasibility:
    """Checks of one scene.

    Parameters
    ----------
    robot, environment : the scene.
    reference : (nq,) posture of the start; ``standing`` names the patches that it stands on.
    control : settings of the controller that will execute the plan: postures use the same friction and forces.
    failures : of earlier checks in this scene.

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
        failures: FailureCache | None = None,
    ):
        self.robot, self.environment, self.control = robot, environment, control
        self.min_load = MIN_LOAD_N * robot.scale.mass**3
        self.collisions = CollisionModel(robot, environment)
        self.budget = CallBudget()
        self.references = ReferencePostures(robot, reference, standing)
        self.postures = PostureFinder(self)
        self.motions = MotionChecker(self, failures or FailureCache())
        self.occupancy = LinkOccupancy(robot, self.collisions, reference, control.avoidance.swing_clearance)

    def generator(self, settings: PostureSettings) -> PostureGenerator:
        """Return a posture generator for this robot's size and the margins of its controller."""
        scaled = settings.of(self.robot.scale).within(self.control)
        return PostureGenerator(self.robot, self.environment, scaled, self.collisions)


class ReferencePostures:
    """Preferred postures: that of the start, the robot's named ones, and their mirror images."""

    def __init__(self, robot: Robot, reference: np.ndarray, standing: Sequence[str]):
        self.robot = robot
        self.all = [(frozenset(standing), reference, True)]
        mirror = Mirror.of(robot)
        for name in robot.postures:
            q = robot.posture(name)
            ground = ground_patches(robot, q)
            self.all.append((ground, q, False))
            if mirror is not None and (twin := frozenset(mirror.patch[patch] for patch in ground)) != ground:
                self.all.append((twin, mirror.posture(q), False))

    def fits(self, names: set[str]) -> bool:
        """Whether a reference stands on one of these patches."""
        return any(standing & names for standing, *_ in self.all)

    def guide(self, contacts: Sequence[Contact], q: np.ndarray) -> np.ndarray:
        """Return the reference posture whose patches fit the contacts best, moved onto them; ``q`` if none fits."""
        names = {contact.patch for contact in contacts}
        best, choice = -np.inf, None
        for standing, reference, start in self.all:
            if not standing & names:
                continue
            score = len(standing & names) - 0.6 * len(standing - names) + (0.05 if start else 0.0)
            if score > best + 1e-9:
                best, choice = score, (standing, reference)
        if choice is None:
            return q
        placed = guide_posture(self.robot, choice[1], sorted(choice[0]), contacts)
        return q if placed is None else placed

    def offset(self, first: str, second: str) -> np.ndarray | None:
        """Return the offset (3,) of two patches in a reference that stands on both, in the base's heading frame."""
        for standing, q, _ in self.all:
            if first in standing and second in standing:
                offset = self.robot.frame_pose(q, second)[:3, 3] - self.robot.frame_pose(q, first)[:3, 3]
                return heading_rotation(q).T @ offset
        return None


class PostureFinder:
    """Postures of stances, each found once.

    Attributes
    ----------
    generator : of final postures; the search uses a quicker one, which does not reduce torques.
    continuity : checks whether postures are connected by a path on closed contacts.
    """

    def __init__(self, scene: Feasibility):
        self.robot, self.references, self.budget = scene.robot, scene.references, scene.budget
        ordinary = PostureSettings(bent=MIN_BEND_RAD)
        self.generator = scene.generator(ordinary)
        # postures near the torque limits are bad starts for the next stances, so torques are not reduced to the limit
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
        free: dict[str, Freedom] | None = None,
        held: Sequence[Contact] | None = None,
        near: bool = False,
    ) -> PostureResult:
        """Return the posture of a stance; ``unloaded`` contacts are in place without force.

        The posture is close to the reference that fits the contacts, or with ``near`` to the previous posture ``q``.
        Limbs in the air that would have to cross an obstacle stay close to ``q``.

        With ``held``, the contacts that stay closed during the motion from ``q``, the posture is reachable from ``q``.

        Raises
        ------
        OutOfCalls
            When the budget is spent.
        """
        contacts = tuple(sorted(contacts, key=lambda contact: contact.patch))
        leaving = tuple(sorted({contact.patch for contact in held or ()}.intersection(unloaded)))
        key, result = self._near_guide(contacts, unloaded, q, free or {}, q if near else None, leaving)
        touching = [contact.patch for contact in contacts]
        limbs = () if near or not result.found else self.free_limbs.crossing(touching, q, result.q)
        if limbs:
            guide = self.free_limbs.keep_limbs(limbs, q, self.references.guide(contacts, q))
            other_key, other = self._near_guide(contacts, unloaded, q, free or {}, guide, leaving)
            if other.found and not self.free_limbs.crossing(touching, q, other.q):
                key, result = other_key, other
        if held is None or not result.found:
            return result
        link = (key, tuple(contact_key(contact) for contact in held), q.tobytes())
        if link not in self._connected:
            self._connected[link] = self.continuity.make_reachable(held, result, q)
        return self._connected[link]

    def _near_guide(
        self,
        contacts: tuple[Contact, ...],
        unloaded: Sequence[str],
        q: np.ndarray,
        free: dict[str, Freedom],
        guide: np.ndarray | None,
        leaving: tuple[str, ...],
    ) -> tuple[tuple, PostureResult]:
        """Return the cache key and the posture of a stance near a guide; without a guide near the reference."""
        if guide is None and not self.references.fits({contact.patch for contact in contacts}):
            guide = q  # no reference fits: the result depends on the previous posture
        key = (
            tuple(contact_key(contact) for contact in contacts),
            tuple(sorted(unloaded)),
            tuple(sorted(free.items(), key=lambda item: item[0])),
            b"" if guide is None else guide.tobytes(),
            leaving,
        )
        if key not in self._found:
            self.budget.spend()
            loaded = [contact.patch for contact in contacts if contact.patch not in unloaded]
            guide = self.references.guide(contacts, q) if guide is None else guide
            found = self._quick.generate(contacts, loaded, guide, [q], free, leaving=leaving)
            if any(v.kind == "torque" and v.amount <= MAX_REPAIRED_TORQUE for v in found.violations):
                found = self.generator.generate(contacts, loaded, guide, [q], free, leaving=leaving)
            self._found[key] = with_com_inset(found, self.robot.scale)
        return key, self._found[key]


class LinkOccupancy:
    """Collision check of a link at a full contact, where its pose does not depend on the posture.

    Parameters
    ----------
    q : (nq,) posture that is moved onto contacts.
    lift : height of a swing (m).
    """

    def __init__(self, robot: Robot, collisions: CollisionModel, q: np.ndarray, lift: float):
        self.robot, self.collisions, self.q, self.lift = robot, collisions, q, lift
        self._overlaps: dict[tuple, tuple[str, float] | None] = {}
        self._obstructed: dict[tuple, bool] = {}

    def overlap(self, contact: Contact, clearance: float = 0.0) -> tuple[str, float] | None:
        """Return the bodies with the largest overlap when the link is at its contact, and its depth (m), or None.

        Parameters
        ----------
        clearance : m, from all bodies but the support.
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
        near = self.collisions.distances(moved_onto(robot, self.q, contact), clearance, [contact])
        worst: tuple[str, float] | None = None
        for pair, distance in zip(near.pairs, near.distance, strict=True):
            a, b = pair[0], pair[1]
            if b in robot.link_names or robot.frame(a)[0] != body:
                continue
            depth = float(-distance) - ALLOWED_PENETRATION if pair.in_contact else clearance - float(distance)
            if depth > 0.0 and (worst is None or depth > worst[1]):
                worst = (f"{a} and {b}", depth)
        return worst


class MotionChecker:
    """Checks that motions between postures are collision-free and in static equilibrium.

    Attributes
    ----------
    segments : cache of the motions of the scene.
    failures : violations of blocked motions.
    """

    def __init__(self, scene: Feasibility, failures: FailureCache):
        self.robot, self.budget, self.failures = scene.robot, scene.budget, failures
        self.segments = SegmentCache(scene.robot, scene.environment, scene.control, scene.collisions)
        self._passing = scene.generator(PostureSettings(steps=15, collision_rounds=5, torque_rounds=0))
        self._swings: dict[tuple, tuple[Violation, ...]] = {}

    def clear_failures(self) -> None:
        """Clear the doubted kinds; results of single motions are kept."""
        self.failures.doubted.clear()

    def swing(self, swing: SwingMotion) -> tuple[Violation, ...]:
        """Check a swing at a few points, or as a whole if its kind is doubted; return the violations of the best lift.

        A flat patch that moves from surface to surface rotates evenly. Edges, grasps, and patches that come from the
        air or replace another patch of their limb rotate freely.
        """
        key = swing.key
        if key not in self._swings:
            self._swings[key] = self._check_points(swing)
        if self._swings[key] or swing.kind not in self.failures.doubted:
            return self._swings[key]
        return self._check_whole(swing)

    def shift(self, shift: BodyShift) -> tuple[Violation, ...]:
        """Return the violations of the body motion before a lift, if its kind is doubted.

        Other shifts are checked when they are part of a path.
        """
        return self._check_whole(shift) if shift.kind in self.failures.doubted else ()

    def violations(self, motion: ProvenMotion) -> tuple[Violation, ...]:
        """Return the violations along a whole motion; if there are any, its kind is doubted from then on."""
        known, key = self.failures.violations, motion.key
        if key not in known:
            known[key] = shortfall(motion.look(self.segments), motion.patch) or self._check_planned(motion)
            if known[key]:
                self.failures.doubted.add(motion.kind)
        return known[key]

    def collision_message(self, contacts: tuple[Contact, ...], q: np.ndarray, end: np.ndarray) -> str:
        """Return the first violation of a motion between postures on the same contacts as text, or an empty text."""
        found = self.violations(BodyShift(contacts, (), q, end))
        return str(found[0]) if found else ""

    def _check_whole(self, motion: SwingMotion | BodyShift) -> tuple[Violation, ...]:
        known = len(self.failures.violations)
        found = self.violations(motion)
        self.budget.calls += CALLS_PER_MOTION * (len(self.failures.violations) - known)
        return found

    def _check_planned(self, motion: ProvenMotion) -> tuple[Violation, ...]:
        """Return the violations of the motion as planned: collisions, or missing static equilibrium."""
        found = motion.segment(self.segments)
        if obstruction := shortfall(found, motion.patch):
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
        turns = before is None or after.kind == "grasp" or len(after.selection) < 6
        finder, hand = self.segments.finder, _swing_contact(after, turns)
        least: tuple[Violation, ...] = ()
        # a shank lifts its knee only; if that presses the foot into the floor, its toes are lifted, too
        others = swing.added[1:] if before is not None else ()
        for higher, along in [(m, ()) for m in CHECKED_LIFTS_M] + [(m, others) for m in CHECKED_LIFTS_M if others]:
            height = finder.settings.avoidance.swing_clearance + self.robot.scale.leg * higher
            lift, approach = lift_and_approach(start[1], after, before, height)
            paths = [(hand, LimbPath(start, end, lift, approach, finder.timing))]
            paths += [(_swing_contact(other, True), self._path_along(swing, other, height)) for other in along]
            found = self._check_paths(paths, swing)
            if not found:
                return ()
            if not least or found[0].amount < least[0].amount:
                least = found
        return least

    def _check_paths(self, paths: Sequence[tuple[Contact, LimbPath]], swing: SwingMotion) -> tuple[Violation, ...]:
        """Return the violations of postures with the patches at a few shares of their paths."""
        q, names = swing.q0, [contact.patch for contact in swing.common]
        passing = tuple(hand.patch for hand, _ in paths)
        for share in CHECKED_SHARES:
            self.budget.spend()
            samples = [(hand, path.sample(share * path.duration)) for hand, path in paths]
            hands = [replace(hand, R=at.R, p=at.p) for hand, at in samples]
            ends = [swing.q0, swing.q1] if share < 0.5 else [swing.q1, swing.q0]
            result = self._passing.generate((*swing.common, *hands), names, q, ends, passing=passing)
            if not result.found and not passes_nearly(result):
                return result.violations
            q = result.q
        return ()

    def _path_along(self, swing: SwingMotion, other: Contact, height: float) -> LimbPath:
        """Return the path of another patch of the swing limb, with the same lift as the first one."""
        X = self.robot.frame_pose(swing.q0, other.patch)
        lift, approach = lift_and_approach(X[:3, 3], other, swing.before, height)
        start, end = (X[:3, :3], X[:3, 3]), (other.R, other.p)
        return LimbPath(start, end, lift, approach, self.segments.finder.timing)


def _swing_contact(contact: Contact, turns: bool) -> Contact:
    """Return a contact for a patch on a path in the air; with ``turns`` it constrains only the position."""
    return replace(contact, selection=np.eye(6)[:3] if turns else contact.selection, radius=0.0)


def shortfall(found: Knots | Segment, patch: str) -> tuple[Violation, ...]:
    """Return the violation of a motion of ``patch``, or nothing if it is collision-free."""
    if found.missed <= MAX_DEFICIT_M:
        return ()
    return (Violation("passage", " and ".join(found.worst.bodies) or patch, found.missed),)


def moved_onto(robot: Robot, q: np.ndarray, contact: Contact) -> np.ndarray:
    """Return ``q`` (nq,) with the base moved rigidly so that the patch is at its contact."""
    X = robot.frame_pose(q, contact.patch)
    turn = contact.R @ X[:3, :3].T
    p = contact.p + turn @ (q[:3] - X[:3, 3])
    return with_base(q, p, Rotation.from_matrix(turn) * base_orientation(q))


def with_com_inset(result: PostureResult, scale: RobotScale = HRP2_SCALE) -> PostureResult:
    """Return the result, infeasible if the centre of mass is too close to the edge, as for contacts along one line."""
    inset = result.margins.get("com_inset", np.inf)
    least = scale.sole * MIN_COM_INSET_M
    if not result.found or inset >= least:
        return result
    return replace(result, stage="balance", violations=(Violation("equilibrium", "com", least - inset),))


def passes_nearly(result: PostureResult) -> bool:
    """Whether a swing posture violates only its exact place, and by little: that matters only at the end of a swing."""
    small = (v.kind == "reach" and v.amount < SWING_TOLERANCE for v in result.violations)
    return result.stage == "balance" and all(small)
