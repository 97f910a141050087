"""Finds the motion from one stance to the next: knots, courses of patches in the air, and the time it takes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from mcplan.collision.model import CollisionModel
from mcplan.model.robot import Robot
from mcplan.motion.limb_path import LimbPath, Timing
from mcplan.motion.posture import PostureTrajectory
from mcplan.motion.posture_path import PosturePath
from mcplan.motion.quintic import minimum_jerk
from mcplan.motion.spline import PostureSpline, Spline
from mcplan.planning.posture.settings import PostureSettings
from mcplan.planning.transition.detour import Detour
from mcplan.planning.transition.knots import KnotFinder, Knots, Led, Steps
from mcplan.planning.transition.smoothing import straight_knots
from mcplan.planning.transition.time_law import PARTS, TimeLaw
from mcplan.planning.transition.transition import Course, Near, Segment
from mcplan.scene.allowed import allowed_pose
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment
from mcplan.scene.settings import ControlSettings

HIGHER = (0.0, 0.04, 0.08, 0.12, 0.16, 0.2, 0.25, 0.3)
"""m: how much higher than the clearance a limb is lifted in turn, until nothing is in its way."""

KNOTS, LOOK = 24, 16
"""Pieces of a segment, and of one that is looked at only."""

GOOD = 3e-3
"""m, rad: a motion that misses its distances or contacts by no more is taken as it is."""

BARRED = 5e-3
"""m, rad: one that misses by more is none: its bodies would touch."""

LOST = 0.03
"""m, rad: a motion that misses its contacts or distances by more is no better than the straight one."""

LED = 8e-3
"""m: a patch whose path the knots leave by more goes as they take it."""

FAST, ROUNDS = 1.02, 3
"""A motion is slowed down that would have to take so many times longer, and at most so often."""

STEADY, WIDE = 100.0, 1.5
"""Price of moving base and centre of mass off the straight way, relative to that of planned postures: where limbs alone
can do what is to be done, the body goes from one proven stance to the next as it would without. Where they cannot, or
take so many times longer, the body helps."""

LONG = 2.0
"""A motion that takes so many times longer is bent to part bodies that are close at both ends: they may stay so."""

LIFT = 8e-3
"""m: how far off the support that it leaves all of a patch is to be at least once; one that is not would drag."""

NONE = np.zeros(3)


@dataclass(frozen=True, eq=False)
class Departure:
    """From where a segment begins, at rest.

    Attributes
    ----------
    q : (nq,) posture.
    closed : contacts that stay closed.
    rising : by patch, contacts that have opened and that the patch has not moved away from yet.
    """

    q: np.ndarray
    closed: tuple[Contact, ...]
    rising: dict[str, Contact] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class _Motion:
    """Knots in time.

    Attributes
    ----------
    stretch : in how many times its time it would keep within speeds and accelerations; 1 where it does.
    """

    times: np.ndarray
    knots: Knots
    stretch: float
    held: bool

    @property
    def missed(self) -> float:
        return self.knots.missed

    @property
    def duration(self) -> float:
        return float(self.times[-1])

    @property
    def rank(self) -> tuple[bool, bool, float]:
        """By what motions are chosen: those that are free first, of them those that are held, of these the quickest."""
        free = self.missed <= GOOD
        return not free, not self.held, self.stretch if free else self.missed


class _Over(NamedTuple):
    """A motion in which a patch is lifted over what is in its way, and by how much (3,), (3,)."""

    motion: _Motion
    lift: np.ndarray
    approach: np.ndarray


Leads = Callable[[PostureTrajectory], dict[str, LimbPath | PosturePath]]
"""Makes the paths of led patches for a straight motion of the body."""


class TransitionFinder:
    """Finds segments of transitions in one scene.

    Parameters
    ----------
    robot, environment : the scene.
    settings : speeds, clearances, and what is counted on of contacts.
    collisions : of the same scene, where they are known.
    """

    def __init__(
        self,
        robot: Robot,
        environment: Environment,
        settings: ControlSettings,
        collisions: CollisionModel | None = None,
    ):
        self.robot, self.environment, self.settings = robot, environment, settings
        self.timing = Timing(settings.limb_speed, settings.limb_angular_speed)
        self.collisions = collisions or CollisionModel(robot, environment)
        plain = PostureSettings()
        weights = plain.weights
        steady = replace(
            weights,
            base_position=STEADY * weights.base_position,
            base_orientation=STEADY * weights.base_orientation,
            com=STEADY * weights.com,
        )
        self.knots = KnotFinder(robot, environment, plain, self.collisions)
        self._steady = KnotFinder(robot, environment, replace(plain, weights=steady), self.collisions)
        self.law = TimeLaw(robot, settings, self.knots)
        self._detours: dict[tuple, np.ndarray | None] = {}

    # -- what a segment does ----------------------------------------------------------------------------------------

    def shift(self, begin: Departure, q: np.ndarray) -> Steps[Segment]:
        """Search for the motion of the body to posture q (nq,), with all patches in the air.

        Limbs that still rest on an old support go off it along its normal, and on as the straight motion of the joints
        takes them; the body follows. Where that is barred they go as the body does.
        """
        lifts = {patch: self._lift_off(begin, patch, contact, q) for patch, contact in begin.rising.items()}

        def leads(straight: PostureTrajectory) -> dict[str, LimbPath | PosturePath]:
            return {
                patch: PosturePath(
                    self.robot, patch, straight, self._place(begin.q, patch)[1], None, lift, NONE, self.timing, 0.0,
                    (1.0, 0.0),
                )
                for patch, lift in lifts.items()
            }  # fmt: skip

        touching = tuple(begin.rising.values())
        motion = yield from self._with_body(begin, q, self.law.straight(begin.q, q, begin.closed), touching, leads)
        courses = tuple(Course(patch, "body", NONE, NONE, True) for patch in lifts)
        return self._segment(begin, q, motion, courses, touching)

    def swing(self, begin: Departure, q: np.ndarray, added: Sequence[Contact]) -> Steps[Segment]:
        """Search for the motion of a patch to a new contact, and of the body to the posture q (nq,) there.

        From one support to another the patch goes off along the old normal, over the higher of the two places and what
        is in between, and down along the new normal; from the air it goes as its posture does, and down along the new
        normal.

        Parameters
        ----------
        added : the contact that it comes to; then those that its limb makes next: at the posture q they are in place
            too.
        """
        contact, *coming = added
        touching = (*begin.rising.values(), *added)
        duration = self.law.straight(begin.q, q, begin.closed)
        if contact.patch in begin.rising:
            found = yield from self._step(begin, contact, q, duration, touching)
            assert found is not None
            motion, course = found
        else:
            motion, course = yield from self._reach_out(begin, contact, q, duration, touching)
        courses = [course]
        if motion.knots.unsmoothed <= LOST:
            # knee and toe of a shank come down together: left to itself, the foot would be in the way of the knee. The
            # knots take the knee where it is led, so the toes go as they do: the shank could not follow two paths
            courses += [Course(other.patch, "body", NONE, NONE, False, other, True) for other in coming]
        return self._segment(begin, q, motion, tuple(courses), touching)

    def look(self, begin: Departure, q: np.ndarray, added: Sequence[Contact]) -> Steps[Knots]:
        """Search for knots of a swing, quicker than `swing`: few heights, the body free to move, no time law.

        It tells whether there is a way at all; what more `swing` tries decides how, hardly whether.
        """
        contact, *_ = added
        patch, old, touching = contact.patch, begin.rising.get(contact.patch), (*begin.rising.values(), *added)
        duration = self.law.straight(begin.q, q, begin.closed)
        heights = HIGHER[::2]
        best: Knots | None = None
        least = 0.0
        for higher in (None, *heights) if old is None else (*heights, None):
            paths = {}
            if higher is not None:
                if higher < least:
                    continue
                lift, approach = lift_and_approach(
                    self._place(begin.q, patch)[1], contact, old, self.settings.clearance + higher
                )
                paths = {patch: self._swing_path(begin, contact, q, lift, approach, duration)}
            T = max([duration, *(path.duration for path in paths.values())])
            knots = yield from self._knots(self.knots, begin, q, T, touching, paths, LOOK)
            if best is None or knots.missed < best.missed:
                best = knots
            if best.missed <= BARRED:
                return best
            if higher is not None:
                least = higher + knots.missed - BARRED
        assert best is not None
        guides = yield from self._detour(begin, q, touching)
        around = best if guides is None else (yield from self.knots.find(guides, begin.closed, (), touching))
        return around if around.missed <= BARRED else best

    def retraction(self, begin: Departure, patch: str) -> Steps[Segment]:
        """Search for the lift of a patch that has nowhere to go yet clear of its support; the body moves along."""
        old = begin.rising[patch]
        place, height = self._place(begin.q, patch)[1], self.settings.clearance
        q = yield from self.knots.lifted(begin.q, begin.closed, patch, place, height * old.normal)
        duration = max(self.timing.duration(height), self.law.straight(begin.q, q, begin.closed))
        motion = yield from self._motion(begin, q, duration, (old,), {})
        motion = yield from self._slowed(motion, begin.closed)
        return self._segment(begin, q, motion, (Course(patch, "body", NONE, NONE, True),), (old,))

    def slide(
        self, begin: Departure, q: np.ndarray, contacts: tuple[Contact, ...], objects: dict[str, np.ndarray]
    ) -> Steps[Segment]:
        """Search for the motion of the body to q (nq,) while objects go straight and take contacts on them along.

        Parameters
        ----------
        contacts : those of the departure where they are at the end.
        objects : {name: (7,)} their poses at the end.
        """
        things = [thing for thing in self.environment.objects if thing.name in objects]
        way = max(float(np.linalg.norm(objects[thing.name][:3] - thing.p)) for thing in things)
        duration = max(self.law.straight(begin.q, q, begin.closed), 15 / 8 * way / self.settings.slide_speed)
        end, times = {contact.patch: contact for contact in contacts}, np.linspace(0.0, duration, KNOTS + 1)
        shares = [minimum_jerk(share)[0] for share in np.linspace(0.0, 1.0, KNOTS + 1)]
        along = [tuple(replace(c, p=c.p + share * (end[c.patch].p - c.p)) for c in begin.closed) for share in shares]
        beside = [pair for pair in self.collisions.pairs if pair.b in objects]
        guides = straight_knots(self.robot, begin.q, q, KNOTS)
        knots = yield from self.knots.find(guides, along, ignored=[(pair.a, pair.b) for pair in beside])
        motion = yield from self._timed(knots, times, begin.closed)
        slow = yield from self._slowed(motion, begin.closed)
        segment = self._segment(begin, q, slow, (), (), [(pair.a, pair.b) for pair in beside])
        return replace(segment, contacts=contacts, objects=objects)

    # -- how a patch gets there -------------------------------------------------------------------------------------

    def _step(
        self,
        begin: Departure,
        contact: Contact,
        q: np.ndarray,
        duration: float,
        touching: tuple[Contact, ...],
        bound: float = np.inf,
    ) -> Steps[tuple[_Motion, Course] | None]:
        """Search for the way from one support to another, as low as what is in between allows.

        From the air it goes off along the normal along which it will come down. Where no height will do a patch leaves
        its support as the body does, if that way is not barred either: a knee below its hip cannot go straight up
        without the body. None where it misses as much as ``bound`` (m).
        """
        patch, old = contact.patch, begin.rising.get(contact.patch)
        over = yield from self._over(begin, contact, q, duration, touching)
        free: _Motion | None = None
        if old is not None and (over.motion.missed > GOOD or not over.motion.held):
            free = yield from self._risen(begin, old, q, duration, touching)
            free = yield from self._around(free, begin, q, touching)
        if over.motion.missed >= bound:
            return None
        if free is not None and free.rank < over.motion.rank and free.missed <= BARRED:
            slow = yield from self._slowed(free, begin.closed)
            return slow, Course(patch, "body", NONE, NONE, True, contact)
        slow = yield from self._slowed(over.motion, begin.closed)
        if over.motion.knots.strayed > LED:  # the knots go around what is in its way
            return slow, Course(patch, "body", NONE, NONE, old is not None, contact)
        return slow, Course(patch, "own", over.lift, over.approach, old is not None, contact)

    def _risen(
        self, begin: Departure, old: Contact, q: np.ndarray, duration: float, touching: tuple[Contact, ...]
    ) -> Steps[_Motion]:
        """Search for the way of a patch off its support as the body takes it, which raises it halfway."""
        straight = straight_knots(self.robot, begin.q, q, KNOTS)
        halfway = straight[KNOTS // 2]
        place = self._place(halfway, old.patch)[1]
        place = place - ((place - old.p) @ old.normal) * old.normal
        top = yield from self.knots.lifted(
            halfway, begin.closed, old.patch, place, self.settings.clearance * old.normal
        )
        step, times = self.robot.difference(halfway, top), np.linspace(0.0, 1.0, KNOTS + 1)
        parts = [minimum_jerk(min(2.0 * t, 2.0 - 2.0 * t))[0] for t in times]
        raised = np.array([self.robot.integrate(q, step, part) for q, part in zip(straight, parts, strict=True)])
        best: _Motion | None = None
        for guides in (raised, straight):
            knots = yield from self.knots.find(guides, begin.closed, (), touching)
            motion = yield from self._timed(self._dragging(knots, old), duration * times, begin.closed)
            if best is None or motion.rank < best.rank:
                best = motion
            if best.missed <= GOOD:
                break
        assert best is not None
        return best

    def _dragging(self, knots: Knots, old: Contact | None) -> Knots:
        """Return the knots, as barred where they do not get all of a patch `LIFT` off its old support."""
        if old is None:
            return knots
        X = self.robot.frame_pose(knots.q, old.patch)
        corners = np.einsum("kij,cj->kci", X[:, :3, :3], self.robot.patches[old.patch].points) + X[:, None, :3, 3]
        risen = float(((corners - old.p) @ old.normal).min(axis=1).max())
        return knots if risen >= LIFT else replace(knots, missed=max(knots.missed, BARRED + LIFT - risen))

    def _over(
        self,
        begin: Departure,
        contact: Contact,
        q: np.ndarray,
        duration: float,
        touching: tuple[Contact, ...],
    ) -> Steps[_Over]:
        """Search for the way of a patch over what is in between, at the first height at which it is free.

        Heights are left out that make up for less than what is missing at a lower one.
        """
        start, old = self._place(begin.q, contact.patch)[1], begin.rising.get(contact.patch)
        best, least = None, 0.0
        for higher in HIGHER:
            if higher < least:
                continue
            lift, approach = lift_and_approach(start, contact, old, self.settings.clearance + higher)
            path = self._swing_path(begin, contact, q, lift, approach, duration)
            motion = yield from self._motion(begin, q, path.duration, touching, {contact.patch: path})
            if best is None or motion.rank < best.motion.rank:
                best = _Over(motion, lift, approach)
            if motion.missed <= GOOD:
                break
            least = higher + motion.missed - BARRED
        assert best is not None
        return best

    def _reach_out(
        self, begin: Departure, contact: Contact, q: np.ndarray, duration: float, touching: tuple[Contact, ...]
    ) -> Steps[tuple[_Motion, Course]]:
        """Search for the way from the air to a support: as its posture goes, or over what would then be in its way."""
        patch, (_, start) = contact.patch, self._place(begin.q, contact.patch)
        distance = float(np.linalg.norm(contact.p - start))
        # a patch that has come to its place with another one of its limb is not lifted first
        approach = min(self.settings.reach_clearance, distance) * contact.normal

        def leads(straight: PostureTrajectory) -> dict[str, LimbPath | PosturePath]:
            end = self._end(contact, q)
            return {
                patch: PosturePath(
                    self.robot, patch, straight, start, end, NONE, approach, self.timing, 0.0, (0.0, 1.0)
                )
            }

        least = max(duration, self.timing.duration(distance + float(np.linalg.norm(approach))))
        motion = yield from self._with_body(begin, q, least, touching, leads)
        if motion.missed > GOOD:
            over = yield from self._step(begin, contact, q, duration, touching, motion.missed)
            if over is not None:
                return over
        return motion, Course(patch, "body", NONE, NONE, False, contact)

    def _with_body(
        self, begin: Departure, q: np.ndarray, duration: float, touching: tuple[Contact, ...], leads: Leads
    ) -> Steps[_Motion]:
        """Search for a motion in which the body follows led patches, or goes on its own where that is barred."""
        for _ in range(2):  # what limbs are lifted by does not take longer when the body does: the way is another one
            paths = leads(PostureTrajectory(begin.q, q, duration))
            motion = yield from self._motion(begin, q, duration, touching, paths)
            if paths and motion.missed > GOOD:
                free = yield from self._motion(begin, q, duration, touching, {})
                if free.missed < motion.missed:
                    motion = free
            motion = yield from self._around(motion, begin, q, touching)
            if motion.stretch <= FAST:
                return motion
            duration *= motion.stretch
        return (yield from self._slowed(motion, begin.closed))

    def _around(
        self,
        barred: _Motion,
        begin: Departure,
        q: np.ndarray,
        touching: tuple[Contact, ...],
        old: Contact | None = None,
    ) -> Steps[_Motion]:
        """Search for a motion around what bars one; return that one where it is not barred, or none is found.

        Parameters
        ----------
        old : support that a patch is to get off on the way.
        """
        if barred.missed <= BARRED:
            return barred
        guides = yield from self._detour(begin, q, touching)
        if guides is None:
            return barred
        knots = yield from self.knots.find(guides, begin.closed, (), touching)
        times = np.linspace(0.0, barred.duration, KNOTS + 1)
        around = yield from self._timed(self._dragging(knots, old), times, begin.closed)
        return around if around.missed <= BARRED else barred

    def _detour(self, begin: Departure, q: np.ndarray, touching: tuple[Contact, ...]) -> Steps[np.ndarray | None]:
        """Return the knots of a detour, None where there is none; those found last are kept."""
        key = (begin.q.tobytes(), q.tobytes(), *(contact.patch for contact in (*begin.closed, *touching)))
        if key not in self._detours:
            self._detours = {key: (yield from Detour(self.knots, begin.q, q, begin.closed, touching).knots(KNOTS))}
        return self._detours[key]

    # -- knots in time ----------------------------------------------------------------------------------------------

    def _motion(
        self,
        begin: Departure,
        q: np.ndarray,
        duration: float,
        touching: tuple[Contact, ...],
        led: Mapping[str, LimbPath | PosturePath],
    ) -> Steps[_Motion]:
        """Search for knots, the body steady at first, then free to move, then free to keep bodies close that are."""
        times = np.linspace(0.0, duration, KNOTS + 1)
        best: _Motion | None = None
        for finder, modest, slow in ((self._steady, False, WIDE), (self.knots, False, LONG), (self.knots, True, 0.0)):
            knots = yield from self._knots(finder, begin, q, duration, touching, led, KNOTS, modest)
            motion = yield from self._timed(knots, times, begin.closed)
            if best is None or motion.rank < best.rank:
                best = motion
            if best.missed > LOST and finder is self.knots:  # to keep close what is close opens no way
                break
            if best.missed <= GOOD and best.held and best.stretch <= slow:
                break
        assert best is not None
        if best.knots.unsmoothed > LOST:
            best = replace(
                best, knots=replace(best.knots, q=straight_knots(self.robot, begin.q, q, KNOTS)), stretch=1.0
            )
        return best

    def _knots(
        self,
        finder: KnotFinder,
        begin: Departure,
        q: np.ndarray,
        duration: float,
        touching: tuple[Contact, ...],
        led: Mapping[str, LimbPath | PosturePath],
        count: int = KNOTS,
        modest: bool = False,
    ) -> Steps[Knots]:
        """Search for knots near the straight motion, with patches led along paths."""
        times = np.linspace(0.0, duration, count + 1)
        leads = []
        for patch, path in led.items():
            samples = [path.sample(t) for t in times]
            halves = np.array([path.sample(t).p for t in 0.5 * (times[1:] + times[:-1])])
            leads.append(Led(patch, np.array([x.p for x in samples]), (samples[0].R, samples[-1].R), halves))
        guides = straight_knots(self.robot, begin.q, q, count)
        return (yield from finder.find(guides, begin.closed, leads, touching, modest))

    def _timed(self, knots: Knots, times: np.ndarray, contacts: tuple[Contact, ...]) -> Steps[_Motion]:
        if knots.missed > BARRED:  # no time makes it free
            return _Motion(times, knots, 1.0, False)
        posture, com = PostureSpline(times, knots.q), Spline(times, self.robot.com(knots.q))
        yield
        looked = np.array([posture.sample(t).q for t in np.linspace(0.0, times[-1], PARTS + 1)])
        bears, held = yield from self.law.bears(looked, contacts)
        return _Motion(times, knots, self.law.stretch(com, posture, contacts, bears), held)

    def _slowed(self, motion: _Motion, contacts: tuple[Contact, ...]) -> Steps[_Motion]:
        """Search for the same motion in so much time that it keeps within speeds and accelerations."""
        for _ in range(ROUNDS):
            if motion.stretch <= FAST:
                break
            times = motion.stretch * motion.times
            motion = yield from self._timed(motion.knots, times, contacts)
        return motion

    def _segment(
        self,
        begin: Departure,
        end: np.ndarray,
        motion: _Motion,
        courses: tuple[Course, ...],
        touching: tuple[Contact, ...],
        ignore: Sequence[tuple[str, str]] = (),
    ) -> Segment:
        knots, near = motion.knots, Near(None, ())
        for q in knots.q:
            here = self.collisions.smallest(q, ignore, (*begin.closed, *touching))
            if here is not None and (near.distance is None or here.distance < near.distance):
                near = Near(float(here.distance), (here.pair.a, here.pair.b))
        com = self.robot.com(knots.q)
        knots.q[[0, -1]] = begin.q, end
        return Segment(
            begin.closed, motion.times, knots.q, com, courses, None, near, knots.missed, knots.worst, motion.held
        )

    # -- parts ------------------------------------------------------------------------------------------------------

    def _swing_path(
        self, begin: Departure, contact: Contact, q: np.ndarray, lift: np.ndarray, approach: np.ndarray, duration: float
    ) -> LimbPath:
        start, tight = self._place(begin.q, contact.patch), (float(contact.patch in begin.rising), 1.0)
        return LimbPath(start, self._end(contact, q), lift, approach, self.timing, 0.0, duration, tight)

    def _lift_off(self, begin: Departure, patch: str, old: Contact, q: np.ndarray) -> np.ndarray:
        """Return by what a patch leaves its support when its limb goes with the body (3,).

        Up: no higher than where it goes. Sideways: high enough not to graze the support. Below: over its edge.
        """
        clearance, step = self.settings.clearance, self._place(q, patch)[1] - self._place(begin.q, patch)[1]
        rise = float(step @ old.normal)
        height = clearance if rise <= 0.0 else float(np.clip(rise, 0.3 * clearance, clearance))
        return old.normal * (height if rise > -clearance else self.settings.reach_clearance)

    def _place(self, q: np.ndarray, patch: str) -> tuple[np.ndarray, np.ndarray]:
        X = self.robot.frame_pose(q, patch)
        return X[:3, :3], X[:3, 3]

    def _end(self, contact: Contact, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return where a patch comes to its contact, turned as the posture q has it."""
        return allowed_pose(contact, self._place(q, contact.patch))


def lift_and_approach(
    start: np.ndarray, contact: Contact, old: Contact | None, clearance: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return how far a patch that swings goes off its old support, and from how far it comes to its new one (3,), (3,).

    It keeps ``clearance`` (m) off both, and off the higher of the two along either normal. From the air it goes off
    along the normal along which it comes down.
    """
    step, normal = contact.p - start, (old or contact).normal
    lift = normal * max(clearance, clearance + float(step @ normal))
    return lift, contact.normal * max(clearance, clearance - float(step @ contact.normal))
