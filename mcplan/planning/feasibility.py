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
from mcplan.scene.allowed import allowed_pose
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment
from mcplan.settings.control import ControlSettings

CHECKED_LIFTS_M = LIFT_HEIGHTS_M[::2]
"""How much higher than the clearance a patch is lifted in the postures that are checked first."""

CHECKED_SHARES = (0.5, 0.25, 0.75)
"""Shares of the time of a swing that are checked first, the highest point before the others."""

MIN_BEND_RAD = 0.12
"""How far limbs that touch are bent at least; `search.refine_postures` asks more of postures where it can be had."""

MIN_COM_INSET_M = 0.006
"""Room of the centre of mass inside its region, on all sides; a line of contacts offers none."""

SWING_TOLERANCE = 2e-3
"""m, rad: a swing passes its points within this."""

MAX_REPAIRED_TORQUE = 0.05
"""Share of a joint's torque by which a posture of the search may miss it and still be improved until it does not."""

CALLS_PER_MOTION = 10
"""Calls of the posture generator that the check of a whole motion counts as."""

MIN_LOAD_N = 5.0
"""A patch that the scenario requires carries more than this in some stance, one that the goal names at its end if it
can; for a robot of the mass of HRP-2."""


class OutOfCalls(PlanningFailed):
    """The budget of posture generator calls is spent."""


@dataclass
class CallBudget:
    """Calls of the posture generator so far, and how many there may be."""

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
    """Motions that were checked as a whole, and kinds of motions of which one is blocked.

    Attributes
    ----------
    violations : what blocks a motion, by its key; empty where nothing does.
    doubted : kinds; others of a doubted kind are checked as a whole.
    """

    violations: dict[tuple, tuple[Violation, ...]] = field(default_factory=dict)
    doubted: set[tuple] = field(default_factory=set)


class Feasibility:
    """Checks of one scene.

    Parameters
    ----------
    robot, environment : the scene.
    reference : (nq,) posture of the start; ``bearing`` names the patches that it stands on.
    control : settings of the controller that will execute the plan: postures count on no more of contacts than it does.
    failures : known from earlier checks in this scene.

    Attributes
    ----------
    min_load : force that a patch which carries bears at least (N).
    """

    def __init__(
        self,
        robot: Robot,
        environment: Environment,
        reference: np.ndarray,
        bearing: Sequence[str],
        control: ControlSettings,
        failures: FailureCache | None = None,
    ):
        self.robot, self.environment, self.control = robot, environment, control
        self.min_load = MIN_LOAD_N * robot.scale.mass**3
        self.collisions = CollisionModel(robot, environment)
        self.budget = CallBudget()
        self.references = ReferencePostures(robot, reference, bearing)
        self.postures = PostureFinder(self)
        self.motions = MotionChecker(self, failures or FailureCache())
        self.occupancy = LinkOccupancy(robot, self.collisions, reference, control.avoidance.swing_clearance)

    def generator(self, settings: PostureSettings) -> PostureGenerator:
        """Return a posture generator for this robot's size, within what its controller counts on."""
        scaled = settings.of(self.robot.scale).within(self.control)
        return PostureGenerator(self.robot, self.environment, scaled, self.collisions)


class ReferencePostures:
    """Postures that others are drawn to: that of the start, the robot's named ones, and their mirror images."""

    def __init__(self, robot: Robot, reference: np.ndarray, bearing: Sequence[str]):
        self.robot = robot
        self.all = [(frozenset(bearing), reference, True)]
        mirror = Mirror.of(robot)
        for name in robot.postures:
            q = robot.posture(name)
            ground = ground_patches(robot, q)
            self.all.append((ground, q, False))
            if mirror is not None and (twin := frozenset(mirror.patch[patch] for patch in ground)) != ground:
                self.all.append((twin, mirror.posture(q), False))

    def fits(self, names: set[str]) -> bool:
        """Whether a reference stands on one of these patches."""
        return any(bearing & names for bearing, *_ in self.all)

    def guide(self, contacts: Sequence[Contact], q: np.ndarray) -> np.ndarray:
        """Return the reference posture whose patches fit the contacts best, set down on them; ``q`` where none fits."""
        names = {contact.patch for contact in contacts}
        best, choice = -np.inf, None
        for bearing, reference, start in self.all:
            if not bearing & names:
                continue
            score = len(bearing & names) - 0.6 * len(bearing - names) + (0.05 if start else 0.0)
            if score > best + 1e-9:
                best, choice = score, (bearing, reference)
        if choice is None:
            return q
        placed = guide_posture(self.robot, choice[1], sorted(choice[0]), contacts)
        return q if placed is None else placed

    def offset(self, first: str, second: str) -> np.ndarray | None:
        """Return the offset (3,) of two patches where a posture rests on both, in the base's heading frame."""
        for bearing, q, _ in self.all:
            if first in bearing and second in bearing:
                offset = self.robot.frame_pose(q, second)[:3, 3] - self.robot.frame_pose(q, first)[:3, 3]
                return heading_rotation(q).T @ offset
        return None


class PostureFinder:
    """Postures of stances, each found once.

    Attributes
    ----------
    generator : of final postures; the search uses a quicker one, which does not improve torques.
    continuity : whether postures are connected on contacts that stay.
    """

    def __init__(self, scene: Feasibility):
        self.robot, self.references, self.budget = scene.robot, scene.references, scene.budget
        ordinary = PostureSettings(bent=MIN_BEND_RAD)
        self.generator = scene.generator(ordinary)
        # a search goes on from what it finds: better elsewhere than from postures at the edge of their torques
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
        """Return the posture of a stance with some contacts in place that carry nothing.

        It is like the reference that fits the contacts, or where it is to be ``near`` like the one before; so are limbs
        in the air that would have to go through something.

        With ``held``, the contacts that stay closed while the robot moves from ``q``, it can be reached from there.

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
            guide = self.free_limbs.kept(limbs, q, self.references.guide(contacts, q))
            other_key, other = self._near_guide(contacts, unloaded, q, free or {}, guide, leaving)
            if other.found and not self.free_limbs.crossing(touching, q, other.q):
                key, result = other_key, other
        if held is None or not result.found:
            return result
        link = (key, tuple(contact_key(contact) for contact in held), q.tobytes())
        if link not in self._connected:
            self._connected[link] = self.continuity.linked(held, result, q)
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
        """Return the posture of a stance near a guide, None for the reference; with its key in the cache."""
        if guide is None and not self.references.fits({contact.patch for contact in contacts}):
            guide = q  # no reference fits: each posture before leads to another result
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
            if any(lacks.kind == "torque" and lacks.amount <= MAX_REPAIRED_TORQUE for lacks in found.violations):
                found = self.generator.generate(contacts, loaded, guide, [q], free, leaving=leaving)
            self._found[key] = with_com_inset(found, self.robot.scale)
        return key, self._found[key]


class LinkOccupancy:
    """Whether the link of a full contact fits at its place: there its pose is the same whatever the posture.

    Parameters
    ----------
    q : (nq,) posture that is set on contacts.
    lift : height of a swing (m).
    """

    def __init__(self, robot: Robot, collisions: CollisionModel, q: np.ndarray, lift: float):
        self.robot, self.collisions, self.q, self.lift = robot, collisions, q, lift
        self._overlaps: dict[tuple, tuple[str, float] | None] = {}
        self._obstructed: dict[tuple, bool] = {}

    def overlap(self, contact: Contact, clearance: float = 0.0) -> tuple[str, float] | None:
        """Return the bodies that overlap when the link is at its contact, and how deep; None if nothing.

        Parameters
        ----------
        clearance : m that the link is to keep from all but its support.
        """
        if len(contact.selection) < 6:
            return None
        key = (contact_key(contact), clearance)
        if key not in self._overlaps:
            self._overlaps[key] = self._deepest(contact, clearance)
        return self._overlaps[key]

    def landing_obstructed(self, contact: Contact) -> bool:
        """Whether something is above the link of a contact, so that it cannot come down along the normal."""
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
    """Whether motions between postures are collision-free and the contacts hold the robot meanwhile.

    Attributes
    ----------
    segments : motions of the scene, each found once.
    failures : which motions are blocked.
    """

    def __init__(self, scene: Feasibility, failures: FailureCache):
        self.robot, self.budget, self.failures = scene.robot, scene.budget, failures
        self.segments = SegmentCache(scene.robot, scene.environment, scene.control, scene.collisions)
        self._passing = scene.generator(PostureSettings(steps=15, collision_rounds=5, torque_rounds=0))
        self._swings: dict[tuple, tuple[Violation, ...]] = {}

    def clear_failures(self) -> None:
        """Forget which kinds of motions are doubted; a motion known to be blocked stays so."""
        self.failures.doubted.clear()

    def swing(self, swing: SwingMotion) -> tuple[Violation, ...]:
        """Check a swing at a few points; return what blocks the best lift, or nothing.

        A flat patch that goes from surface to surface turns evenly; an edge, a grasp, and a patch that came from the
        air, or because another patch of its limb left, turn freely. Of a doubted kind the whole motion is checked.
        """
        key = swing.key
        if key not in self._swings:
            self._swings[key] = self._check_points(swing)
        if self._swings[key] or swing.kind not in self.failures.doubted:
            return self._swings[key]
        return self._counted(swing)

    def shift(self, shift: BodyShift) -> tuple[Violation, ...]:
        """Return what blocks the motion of the body before a limb lifts, where one of its kind is doubted.

        Others are checked once they are part of a path.
        """
        return self._counted(shift) if shift.kind in self.failures.doubted else ()

    def violations(self, motion: ProvenMotion) -> tuple[Violation, ...]:
        """Return what blocks a motion anywhere, or nothing; from then on others of its kind are doubted."""
        known, key = self.failures.violations, motion.key
        if key not in known:
            known[key] = shortfall(motion.look(self.segments), motion.patch) or self._as_planned(motion)
            if known[key]:
                self.failures.doubted.add(motion.kind)
        return known[key]

    def collision_message(self, contacts: tuple[Contact, ...], q: np.ndarray, end: np.ndarray) -> str:
        """Return what blocks the motion from one posture to another on the same contacts; empty if nothing."""
        found = self.violations(BodyShift(contacts, (), q, end))
        return str(found[0]) if found else ""

    def _counted(self, motion: SwingMotion | BodyShift) -> tuple[Violation, ...]:
        known = len(self.failures.violations)
        found = self.violations(motion)
        self.budget.calls += CALLS_PER_MOTION * (len(self.failures.violations) - known)
        return found

    def _as_planned(self, motion: ProvenMotion) -> tuple[Violation, ...]:
        """Return what blocks the motion as the plan has it: bodies that collide, or contacts that do not hold."""
        found = motion.segment(self.segments)
        if missed := shortfall(found, motion.patch):
            return missed
        lacks = self.segments.finder.law.overload(found)
        if lacks is None:
            return ()
        if lacks.kind == "torque":
            return (Violation("torque", lacks.name, lacks.amount - 1.0),)
        # the same contacts hold the robot at its ends
        return (Violation("equilibrium", "com", lacks.amount),)

    def _check_points(self, swing: SwingMotion) -> tuple[Violation, ...]:
        before, after, q0, q1 = swing.before, swing.after, swing.q0, swing.q1
        X = self.robot.frame_pose(q0, after.patch)
        start = (X[:3, :3], X[:3, 3]) if before is None else (before.R, before.p)
        end = (after.R, after.p)
        if after.radius:  # it has rolled to where it is, and comes to where it will have
            start, X = (X[:3, :3], X[:3, 3]), self.robot.frame_pose(q1, after.patch)
            end = allowed_pose(after, (X[:3, :3], X[:3, 3]))
        turns = before is None or after.kind == "grasp" or len(after.selection) < 6
        finder, hand = self.segments.finder, _in_the_air(after, turns)
        least: tuple[Violation, ...] = ()
        # of a shank the knee alone at first; lifted alone it may press the foot into the floor: then the toes as well
        others = swing.added[1:] if before is not None else ()
        for higher, along in [(m, ()) for m in CHECKED_LIFTS_M] + [(m, others) for m in CHECKED_LIFTS_M if others]:
            height = finder.settings.avoidance.swing_clearance + self.robot.scale.leg * higher
            lift, approach = lift_and_approach(start[1], after, before, height)
            paths = [(hand, LimbPath(start, end, lift, approach, finder.timing))]
            paths += [(_in_the_air(other, True), self._path_along(swing, other, height)) for other in along]
            found = self._check_paths(paths, swing)
            if not found:
                return ()
            if not least or found[0].amount < least[0].amount:
                least = found
        return least

    def _check_paths(self, paths: Sequence[tuple[Contact, LimbPath]], swing: SwingMotion) -> tuple[Violation, ...]:
        """Return what keeps postures from holding patches at a few shares of their paths, or nothing."""
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
        """Return the path of another patch of the limb that swings, lifted as the first one is."""
        X = self.robot.frame_pose(swing.q0, other.patch)
        lift, approach = lift_and_approach(X[:3, 3], other, swing.before, height)
        start, end = (X[:3, :3], X[:3, 3]), (other.R, other.p)
        return LimbPath(start, end, lift, approach, self.segments.finder.timing)


def _in_the_air(contact: Contact, turns: bool) -> Contact:
    """Return a contact that follows a path in the air: its place alone where it may turn."""
    return replace(contact, selection=np.eye(6)[:3] if turns else contact.selection, radius=0.0)


def shortfall(found: Knots | Segment, patch: str) -> tuple[Violation, ...]:
    """Return what blocks a motion, in which ``patch`` moves; nothing where it is free."""
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
    """Return the result, infeasible if the centre of mass has no room in its region: contacts along one line."""
    room = result.margins.get("com_inset", np.inf)
    least = scale.sole * MIN_COM_INSET_M
    if not result.found or room >= least:
        return result
    return replace(result, stage="balance", violations=(Violation("equilibrium", "com", least - room),))


def passes_nearly(result: PostureResult) -> bool:
    """Whether a posture of a swing misses nothing but its exact place, which matters only at its end."""
    small = (lacks.kind == "reach" and lacks.amount < SWING_TOLERANCE for lacks in result.violations)
    return result.stage == "balance" and all(small)
