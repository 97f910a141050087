"""Proofs of the search: postures of stances, by the posture generator, kept by value, counted and limited."""

from collections.abc import Sequence
from dataclasses import replace

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

LIFTS = LIFT_HEIGHTS_M[::2]
"""m: how much higher than the clearance a patch is lifted in the postures that are looked at first."""

SHARES = (0.5, 0.25, 0.75)
"""Parts of the time of a swing that are looked at first, the highest point before the others."""

BENT = 0.12
"""rad: how far limbs that touch are bent at least; more is asked of postures where it can be had (`search.refine`)."""

STEADY = 0.006
"""m: room of the centre of mass inside its region, on all sides; a line of contacts offers none."""

PASSING = 2e-3
"""m, rad: a swing passes its points within this."""

EASED = 0.05
"""Part of a joint's torque by which a posture of the search may miss it to be moved until it does not."""

WAY = 10
"""Calls of the posture generator that a look at a whole swing is counted as."""

CARRIES = 5.0
"""N: a patch that the scenario requires carries more than this in some stance, one that the goal names at its end if it
can; for a robot of the mass of HRP-2."""


class OutOfCalls(PlanningFailed):
    """The budget of posture generator calls is spent."""


class Prover:
    """Proves postures in one scene.

    Parameters
    ----------
    robot, environment : the scene.
    reference : (nq,) posture of the start; ``bearing`` names the patches that it stands on.
    settings : of the controller that will carry the motion out: postures count on no more of contacts than it does.
    """

    def __init__(
        self,
        robot: Robot,
        environment: Environment,
        reference: np.ndarray,
        bearing: Sequence[str],
        settings: ControlSettings,
    ):
        self.robot, self.environment = robot, environment
        self.carries = CARRIES * robot.scale.mass**3
        """What a patch that carries bears at least, N."""
        self.collisions = CollisionModel(robot, environment)
        self.control = settings
        ordinary = self.asked(PostureSettings(bent=BENT))
        self.generator = PostureGenerator(robot, environment, ordinary, self.collisions)
        quick = replace(ordinary, torque_rounds=0)
        # a search goes on from what it finds: better elsewhere than from postures at the edge of their torques
        self._searching = PostureGenerator(robot, environment, quick, self.collisions)
        self.continuity = Continuity(robot, environment, self._searching)
        self.free_limbs = FreeLimbs(robot, self.collisions)
        self.segments = SegmentCache(robot, environment, settings, self.collisions)
        self._lift = settings.avoidance.swing_clearance
        passing = self.asked(PostureSettings(steps=15, collision_rounds=5, torque_rounds=0))
        self._passer = PostureGenerator(robot, environment, passing, self.collisions)
        self.references = [(frozenset(bearing), reference, True)]
        mirror = Mirror.of(robot)
        for name in robot.postures:
            q = robot.posture(name)
            ground = ground_patches(robot, q)
            self.references.append((ground, q, False))
            if mirror is not None and (twin := frozenset(mirror.patch[patch] for patch in ground)) != ground:
                self.references.append((twin, mirror.posture(q), False))
        self.calls = 0
        self.limit = 10**9
        self._memo: dict[tuple, PostureResult] = {}
        self._hits: dict[tuple, tuple[str, float] | None] = {}
        self._covered: dict[tuple, bool] = {}
        self._linked: dict[tuple, PostureResult] = {}
        self._swings: dict[tuple, tuple[Violation, ...]] = {}
        self._barred: dict[tuple, tuple[Violation, ...]] = {}
        self._doubted: set[tuple] = set()

    def asked(self, settings: PostureSettings) -> PostureSettings:
        """Return what is asked of postures of this robot, which its controller is to hold."""
        return settings.of(self.robot.scale).within(self.control)

    def trust(self) -> None:
        """Doubt no kind of motion any more because one of it is barred; that one is still known to be."""
        self._doubted.clear()

    def guide(self, contacts: Sequence[Contact], q: np.ndarray) -> np.ndarray:
        """Return the reference posture whose patches fit the contacts best, set down on them; ``q`` where none fits."""
        names = {contact.patch for contact in contacts}
        best, choice = -np.inf, None
        for bearing, reference, start in self.references:
            if not bearing & names:
                continue
            score = len(bearing & names) - 0.6 * len(bearing - names) + (0.05 if start else 0.0)
            if score > best + 1e-9:
                best, choice = score, (bearing, reference)
        if choice is None:
            return q
        placed = guide_posture(self.robot, choice[1], sorted(choice[0]), contacts)
        return q if placed is None else placed

    def between(self, first: str, second: str) -> np.ndarray | None:
        """Return the way (3,) from one patch to another where a posture rests on both, in the base's heading frame."""
        for bearing, q, _ in self.references:
            if first in bearing and second in bearing:
                way = self.robot.frame_pose(q, second)[:3, 3] - self.robot.frame_pose(q, first)[:3, 3]
                return heading_rotation(q).T @ way
        return None

    def prove(
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

        With ``held``, the contacts that stay closed on the way from ``q``, it is one that can be reached from there.

        Raises
        ------
        OutOfCalls
            When the budget is spent.
        """
        contacts = tuple(sorted(contacts, key=lambda contact: contact.patch))
        leaving = tuple(sorted({contact.patch for contact in held or ()}.intersection(unloaded)))
        key, result = self._posture(contacts, unloaded, q, free or {}, q if near else None, leaving)
        touching = [contact.patch for contact in contacts]
        limbs = () if near or not result.found else self.free_limbs.crossing(touching, q, result.q)
        if limbs:
            guide = self.free_limbs.kept(limbs, q, self.guide(contacts, q))
            other_key, other = self._posture(contacts, unloaded, q, free or {}, guide, leaving)
            if other.found and not self.free_limbs.crossing(touching, q, other.q):
                key, result = other_key, other
        if held is None or not result.found:
            return result
        link = (key, tuple(contact_key(contact) for contact in held), q.tobytes())
        if link not in self._linked:
            self._linked[link] = self.continuity.linked(held, result, q)
        return self._linked[link]

    def _posture(
        self,
        contacts: tuple[Contact, ...],
        unloaded: Sequence[str],
        q: np.ndarray,
        free: dict[str, Freedom],
        guide: np.ndarray | None,
        leaving: tuple[str, ...],
    ) -> tuple[tuple, PostureResult]:
        """Return the posture of a stance near a guide, None for the reference; with what it is kept by."""
        names = {contact.patch for contact in contacts}
        if guide is None and not any(bearing & names for bearing, *_ in self.references):
            guide = q  # no reference fits: each posture before leads to one of its own
        key = (
            tuple(contact_key(contact) for contact in contacts),
            tuple(sorted(unloaded)),
            tuple(sorted(free.items(), key=lambda item: item[0])),
            b"" if guide is None else guide.tobytes(),
            leaving,
        )
        if key not in self._memo:
            if self.calls >= self.limit:
                raise OutOfCalls("the budget of postures is spent")
            self.calls += 1
            loaded = [contact.patch for contact in contacts if contact.patch not in unloaded]
            guide = self.guide(contacts, q) if guide is None else guide
            found = self._searching.generate(contacts, loaded, guide, [q], free, leaving=leaving)
            if any(lacks.kind == "torque" and lacks.amount <= EASED for lacks in found.violations):
                found = self.generator.generate(contacts, loaded, guide, [q], free, leaving=leaving)
            self._memo[key] = steady(found, self.robot.scale)
        return key, self._memo[key]

    def blocked(self, contact: Contact, clearance: float = 0.0) -> tuple[str, float] | None:
        """Return what the link of a contact would hit at its place, and how deep; None if nothing.

        A full contact fixes the pose of its link whatever the posture.

        Parameters
        ----------
        clearance : m that the link is to keep from all but its support.
        """
        if len(contact.selection) < 6:
            return None
        key = (contact_key(contact), clearance)
        if key not in self._hits:
            self._hits[key] = self._hit(contact, clearance)
        return self._hits[key]

    def covered(self, contact: Contact) -> bool:
        """Whether something is above the link of a contact, in the way of going off along the normal."""
        key = contact_key(contact)
        if key not in self._covered:
            raised = (replace(contact, p=contact.p + share * self._lift * contact.normal) for share in (0.5, 1.0))
            self._covered[key] = any(self.blocked(above) is not None for above in raised)
        return self._covered[key]

    def _hit(self, contact: Contact, clearance: float) -> tuple[str, float] | None:
        robot = self.robot
        q = moved_onto(robot, self.references[0][1], contact)
        body = robot.frame(contact.patch)[0]
        near = self.collisions.distances(q, clearance, [contact])
        worst: tuple[str, float] | None = None
        for pair, distance in zip(near.pairs, near.distance, strict=True):
            a, b = pair[0], pair[1]
            if b in robot.link_names or robot.frame(a)[0] != body:
                continue
            depth = float(-distance) - ALLOWED_PENETRATION if pair.in_contact else clearance - float(distance)
            if depth > 0.0 and (worst is None or depth > worst[1]):
                worst = (f"{a} and {b}", depth)
        return worst

    def swing(self, swing: SwingMotion) -> tuple[Violation, ...]:
        """Check a swing at a few points; return what is in the way of the best lift, or nothing.

        A flat patch that goes from surface to surface turns evenly on the way; an edge, a grasp, and a patch that came
        from the air, or because another patch of its limb left, turn as they like. Where one of its kind was found
        barred, all of its way is looked at.
        """
        key = swing.key
        if key not in self._swings:
            self._swings[key] = self._swing(swing)
        if self._swings[key] or swing.kind not in self._doubted:
            return self._swings[key]
        return self._counted(swing)

    def shift(self, shift: BodyShift) -> tuple[Violation, ...]:
        """Return what bars the motion of the body before a limb lifts, where one of its kind was found barred before.

        Others are looked at once they are part of a path.
        """
        if shift.kind not in self._doubted:
            return ()
        return self._counted(shift)

    def _counted(self, motion: SwingMotion | BodyShift) -> tuple[Violation, ...]:
        known, found = len(self._barred), self.barred(motion)
        self.calls += WAY * (len(self._barred) - known)
        return found

    def barred(self, motion: ProvenMotion) -> tuple[Violation, ...]:
        """Return what bars a motion anywhere on its way, or nothing.

        When it is barred, others of its kind are looked at as closely from then on.
        """
        key = motion.key
        if key not in self._barred:
            self._barred[key] = shortfall(motion.look(self.segments), motion.patch) or self._on_the_way(motion)
            if self._barred[key]:
                self._doubted.add(motion.kind)
        return self._barred[key]

    def _on_the_way(self, motion: ProvenMotion) -> tuple[Violation, ...]:
        """Return what bars the motion as the plan has it: bodies in its way, or contacts that do not hold the robot."""
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

    def in_the_way(self, contacts: tuple[Contact, ...], q: np.ndarray, end: np.ndarray) -> str:
        """Return in words what bars the way from one posture to another on the same contacts; empty if nothing."""
        barred = self.barred(BodyShift(contacts, (), q, end))
        return str(barred[0]) if barred else ""

    def _swing(self, swing: SwingMotion) -> tuple[Violation, ...]:
        before, after, q0, q1 = swing.before, swing.after, swing.q0, swing.q1
        X = self.robot.frame_pose(q0, after.patch)
        start = (X[:3, :3], X[:3, 3]) if before is None else (before.R, before.p)
        end = (after.R, after.p)
        if after.radius:  # it has rolled to where it is, and comes to where it will have
            start, X = (X[:3, :3], X[:3, 3]), self.robot.frame_pose(q1, after.patch)
            end = allowed_pose(after, (X[:3, :3], X[:3, 3]))
        turns = before is None or after.kind == "grasp" or len(after.selection) < 6
        finder, hand = self.segments.finder, _led(after, turns)
        least: tuple[Violation, ...] = ()
        # of a shank the knee alone at first; lifted alone it may press the foot into the floor: then the toes as well
        others = swing.added[1:] if before is not None else ()
        for higher, along in [(higher, ()) for higher in LIFTS] + [(higher, others) for higher in LIFTS if others]:
            height = finder.settings.avoidance.swing_clearance + self.robot.scale.leg * higher
            lift, approach = lift_and_approach(start[1], after, before, height)
            ways = [(hand, LimbPath(start, end, lift, approach, finder.timing))]
            ways += [(_led(other, True), self._way_along(swing, other, height)) for other in along]
            barred = self._barred_on(ways, swing)
            if not barred:
                return ()
            if not least or barred[0].amount < least[0].amount:
                least = barred
        return least

    def _barred_on(self, ways: Sequence[tuple[Contact, LimbPath]], swing: SwingMotion) -> tuple[Violation, ...]:
        """Return what keeps a posture from holding patches where they are at a few shares of their ways, or nothing."""
        q, names = swing.q0, [contact.patch for contact in swing.common]
        passing = tuple(hand.patch for hand, _ in ways)
        for share in SHARES:
            if self.calls >= self.limit:
                raise OutOfCalls("the budget of postures is spent")
            self.calls += 1
            samples = [(hand, way.sample(share * way.duration)) for hand, way in ways]
            hands = [replace(hand, R=at.R, p=at.p) for hand, at in samples]
            ends = [swing.q0, swing.q1] if share < 0.5 else [swing.q1, swing.q0]
            result = self._passer.generate((*swing.common, *hands), names, q, ends, passing=passing)
            if not result.found and not _near(result):
                return result.violations
            q = result.q
        return ()

    def _way_along(self, swing: SwingMotion, other: Contact, height: float) -> LimbPath:
        """Return the way of another patch of the limb that swings, lifted as the first one is."""
        X = self.robot.frame_pose(swing.q0, other.patch)
        lift, approach = lift_and_approach(X[:3, 3], other, swing.before, height)
        start, end = (X[:3, :3], X[:3, 3]), (other.R, other.p)
        return LimbPath(start, end, lift, approach, self.segments.finder.timing)


def _led(contact: Contact, turns: bool) -> Contact:
    """Return a contact that is led through the air: its place alone where it may turn."""
    return replace(contact, selection=np.eye(6)[:3] if turns else contact.selection, radius=0.0)


def shortfall(found: Knots | Segment, patch: str) -> tuple[Violation, ...]:
    """Return what bars a motion, in which ``patch`` moves; nothing where it is free."""
    if found.missed <= MAX_DEFICIT_M:
        return ()
    return (Violation("passage", " and ".join(found.worst.bodies) or patch, found.missed),)


def moved_onto(robot: Robot, q: np.ndarray, contact: Contact) -> np.ndarray:
    """Return ``q`` (nq,) with the base moved rigidly so that the patch is at its contact."""
    X = robot.frame_pose(q, contact.patch)
    turn = contact.R @ X[:3, :3].T
    p = contact.p + turn @ (q[:3] - X[:3, 3])
    return with_base(q, p, Rotation.from_matrix(turn) * base_orientation(q))


def steady(result: PostureResult, scale: RobotScale = HRP2_SCALE) -> PostureResult:
    """Return the result, refused if the centre of mass has no room in its region: contacts along one line."""
    room = result.margins.get("com_inset", np.inf)
    least = scale.sole * STEADY
    if not result.found or room >= least:
        return result
    return replace(result, stage="balance", violations=(Violation("equilibrium", "com", least - room),))


def _near(result: PostureResult) -> bool:
    """Whether a posture on the way misses nothing but its exact place, which nothing asks for there."""
    return result.stage == "balance" and all(v.kind == "reach" and v.amount < PASSING for v in result.violations)
