"""What the state machine commands and the controller carries out: references in time, and contacts with their load.

A planned motion that begins where the references are: what they differ from its beginning fades on the way.

The angular momentum that a planned motion has about its centre of mass.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

import numpy as np

from mcplan.control.arrival import Arrivals, descent_ramp, feels
from mcplan.control.command import LoadedContact, Notice, Ramp
from mcplan.core.rigid_body.tree import GRAVITY
from mcplan.motion.descent import Descent
from mcplan.motion.limb_path import UNLIMITED_TIMING, LimbPath, PatchTurn, Pose, PosturePath, StepPath, Timing
from mcplan.motion.pendulum import Pendulum
from mcplan.motion.posture import PostureSample, PostureTrajectory
from mcplan.motion.quintic import Quintic, ReferenceSample, minimum_jerk
from mcplan.motion.spline import PostureSpline, Rates, Spline
from mcplan.motion.time_parameterization import ReferenceClock, TimedPath, TimedRate
from mcplan.planning.transition.body_motion import Departure
from mcplan.planning.transition.finder import TransitionFinder
from mcplan.planning.transition.knots import MAX_DEFICIT_M
from mcplan.planning.transition.transition import Segment, SwingSpec
from mcplan.robot.anatomy import limb_joints
from mcplan.robot.patch import MOUNT
from mcplan.robot.pose import rotation_from_quat
from mcplan.robot.robot import Robot
from mcplan.scene.contact import Contact, largest_per_link
from mcplan.scene.environment import Environment, FreeObject
from mcplan.scene.resting import resting_contact
from mcplan.settings.control import LIMB_ANGULAR_SPEED_RAD_S, ControlSettings
from mcplan.settings.pace import used
from mcplan.util.text import format_length_or_angle

SAME = 1e-12
"""rad, m, and their rates: references that differ by less are where a planned motion begins."""

AHEAD = 0.3
"""Part of the time between two knots within which a knot is left out where a motion begins late: through places that
are next to each other in time no curve is smooth."""


def faded(
    robot: Robot, segment: Segment, begin: PostureSample, com: ReferenceSample, t: float, late: float = 0.0
) -> tuple[PostureSpline, Spline]:
    """Return posture and centre of mass along a segment, begun as their references are at time t (s).

    They count from t on, or from 0 where a law says when they are where.

    Parameters
    ----------
    begin, com : the references at t.
    late : s, for how long the law has run by then: what lies behind is left out.
    """
    law, times, q, centre = segment.law, segment.times, segment.q, segment.com
    start = t if law is None else 0.0
    if law is not None and late > 0.0:
        here = law.at(late)[0]
        ahead = times > here + AHEAD * times[-1] / (len(times) - 1)
        ahead[-1] = True
        times = np.append(here, times[ahead])
        q = np.vstack([segment.posture.sample(here).q, q[ahead]])
        centre = np.vstack([segment.centre.sample(here).value, centre[ahead]])
    off, drift = robot.difference(q[0], begin.q), com.value - centre[0]
    v, vd, velocity, acceleration = begin.v, begin.vd, com.velocity, com.acceleration
    if np.abs(np.concatenate((v, vd, velocity, acceleration, off, drift))).max() <= SAME:
        return segment.posture.begun(start), segment.centre.begun(start)
    if law is not None:
        (v, vd), (velocity, acceleration) = law.slopes(v, vd, late), law.slopes(velocity, acceleration, late)
    left = _left(len(times))
    q = np.array([robot.integrate(knot, off, part) for knot, part in zip(q, left, strict=True)])
    end = segment.finish
    path = Spline(times + start, centre + np.outer(left, drift), (velocity, acceleration), end and end.centre)
    return PostureSpline(times + start, q, (v, vd), end and end.posture), path


@lru_cache
def _left(count: int) -> tuple[float, ...]:
    """Return which part of a difference is left at each of so many knots."""
    return tuple(1.0 - minimum_jerk(share)[0] for share in np.linspace(0.0, 1.0, count))


STEP = 1e-3
"""Part of its time within which a motion that does not begin or end at rest is looked at for the derivatives there."""


def spin_along(robot: Robot, segment: Segment) -> Spline:
    """Return the angular momentum about the centre of mass along a segment, per unit of its rate.

    It is zero at rest, and so are its derivatives there.
    """
    h = STEP * segment.duration
    begin = None if segment.begin is None else _rates(_spin(robot, segment, h * np.arange(3)), h)
    finish = None
    if segment.finish is not None:
        finish = _rates(_spin(robot, segment, segment.duration - h * np.arange(3)), -h)
    return Spline(segment.times, _spin(robot, segment, segment.times), begin, finish)


def _spin(robot: Robot, segment: Segment, s: np.ndarray) -> np.ndarray:
    samples = [segment.posture.sample(at) for at in s.tolist()]
    maps = robot.centroidal_momentum_matrix(np.array([x.q for x in samples]))[:, 3:]
    return np.einsum("kij,kj->ki", maps, np.array([x.v for x in samples]))


def _rates(y: np.ndarray, h: float) -> Rates:
    """Return the derivatives of a curve at the first of three places h apart."""
    return (-1.5 * y[0] + 2.0 * y[1] - 0.5 * y[2]) / h, (y[0] - 2.0 * y[1] + y[2]) / h**2


STRAYED = 0.1
"""rad or m: a limb whose joints are farther from their references is held up by something."""

STILL = 0.3
"""rad/s or m/s: a limb whose joints move faster is not held up."""

FEEDBACK = 0.25
"""Part of what a quick motion leaves of the limits of a grip that the program may use to follow it. Where contacts
give, a grip bears up to one and a half times what it is asked for when the load changes quickly."""

LATEST = 0.5
"""Part of a motion that is skipped at most where it begins late."""

Path = LimbPath | PosturePath | TimedPath | Descent | StepPath
"""The reference of a limb."""

AnyPosture = PostureTrajectory | PostureSpline | TimedPath

NONE = np.zeros(3)


class Motion:
    """References of CoM, posture and free limbs, and the closed contacts.

    Every new reference continues the one before with its velocity and acceleration, so no target ever steps.

    Parameters
    ----------
    robot, environment, settings : of the run.
    q : (nq,) posture at the beginning.
    found_with : settings with which motions are found anew: those of the plan; None: ``settings``.
    handled : mass of the objects that the robot handles, kg: contacts may bear it besides.

    Attributes
    ----------
    com : CoM reference (m).
    posture : whole posture; its base orientation is the reference of the trunk.
    limbs : by patch, the reference of a patch frame that moves or is held in the air.
    contacts : by patch, in the order of the robot's patches.
    released : by patch, the contact that a patch in ``limbs`` was released from and has not moved away from yet.
    targets : by patch, the contact that a patch in ``limbs`` is on its way to.
    waiting : patches among the targets that do not touch before another patch of their limb does.
    objects : by name, the reference of an object that moves, or that is held in the air.
    rests : by name of an object, its contact with what it lies on.
    held : names of the objects that the robot has taken: what it has on them holds them.
    stretch : slows motions with a law down while the robot is behind them.
    passing : whether the motion does not begin and end at rest: time cannot be stretched where rest is no way out.
    spin : angular momentum about the centre of mass that a quick motion has; None: it is damped.
    sought : patches that come down along the normal and feel for their support.
    notices : what happened that the plan did not foresee.
    """

    def __init__(
        self,
        robot: Robot,
        environment: Environment,
        settings: ControlSettings,
        q: np.ndarray,
        found_with: ControlSettings | None = None,
        handled: float = 0.0,
    ):
        self.robot, self.settings, self.environment = robot, settings, environment
        self._found_with = found_with or settings
        self.timing = Timing(settings.timing.limb_speed, LIMB_ANGULAR_SPEED_RAD_S, share=settings.timing.swing_blend)
        self.com: Quintic | Spline | TimedPath | Pendulum = Quintic(robot.com(q), robot.com(q), 1.0)
        self.posture: AnyPosture = PostureTrajectory(q, q, 1.0)
        self.spin: TimedRate | None = None
        self._grips = Ramp(settings.contact.force_fraction, settings.contact.force_fraction, 0.0, 0.0)
        self._reserve = Ramp(0.0, 0.0, 0.0, 0.0)
        self.stretch, self.passing = ReferenceClock(), False
        self._spins: dict[Segment, Spline] = {}
        self._arrivals = Arrivals(robot, settings)
        self._finder: TransitionFinder | None = None
        self._joints = {patch.limb: limb_joints(robot, patch.limb) for patch in robot.patches.values()}
        self.limbs: dict[str, Path] = {}
        self.contacts: dict[str, LoadedContact] = {}
        self.released: dict[str, Contact] = {}
        self.targets: dict[str, Contact] = {}
        self.objects: dict[str, LimbPath] = {}
        self.rests: dict[str, LoadedContact] = {}
        self.held: set[str] = set()
        self.waiting: set[str] = set()
        self.sought: set[str] = set()
        self.notices: list[Notice] = []
        self.full_load = 2.0 * (robot.mass + handled) * GRAVITY

    def note(self, t: float, text: str, bodies: tuple[str, ...] = (), amount: float | None = None) -> None:
        """Keep what happened at time t (s), as a `Notice` has it."""
        self.notices.append(Notice(t, text, bodies, amount))

    def close(self, contact: Contact, t: float, duration: float, force: float = 0.0, place: Pose | None = None) -> None:
        """Close a contact, at ``place``; what it may carry rises from ``force`` (N) within ``duration`` s."""
        # a fixed base bears all that the robot presses against, too
        most = np.inf if contact.patch == MOUNT else self.full_load
        full = min(most, self.settings.contact.force_fraction * contact.max_force)
        self.contacts[contact.patch] = LoadedContact(contact, Ramp(min(force, full), full, t, duration), full, place)
        self.contacts = {name: self.contacts[name] for name in self.robot.patches if name in self.contacts}
        for table in (self.limbs, self.released, self.targets):
            table.pop(contact.patch, None)
        self.sought.discard(contact.patch)
        self.waiting.discard(contact.patch)
        self._spare_rims(t, duration)

    def unload(self, patch: str, t: float, duration: float, force: float) -> None:
        """Let what a contact may carry sink from ``force`` (N), what it carries now, to nothing."""
        self.contacts[patch].leaving = True
        self._spare_rims(t, duration)
        self.contacts[patch].limit = Ramp(force, 0.0, t, duration)

    def reload(self, t: float, duration: float) -> None:
        """Let contacts that were on their way off bear again what they may."""
        for loaded in (one for one in self.contacts.values() if one.leaving):
            loaded.leaving, loaded.limit = False, Ramp(loaded.limit.value(t), loaded.full, t, duration)
        self._spare_rims(t, duration)

    def _spare_rims(self, t: float, duration: float) -> None:
        """Let edges of links that lie on a face bear nothing, and again what they may when that is on its way off."""
        staying = [loaded for loaded in self.contacts.values() if not loaded.leaving]
        bearing = {contact.patch for contact in largest_per_link(self.robot, [loaded.contact for loaded in staying])}
        for loaded in staying:
            if (idle := loaded.contact.patch not in bearing) != loaded.idle:
                loaded.idle = idle
                loaded.limit = Ramp(loaded.limit.value(t), 0.0 if idle else loaded.full, t, duration)

    def open(self, patch: str, t: float, place: Pose | None = None) -> None:
        """Open a contact; the patch is held where it is (``place``, or where it was planned)."""
        contact = self.contacts.pop(patch).contact
        if self._alone(patch):
            self.limbs[patch] = self._hold(place or (contact.R, contact.p), t)
            self.released[patch] = contact

    def advance_reference(self, t: float, q: np.ndarray, speed: np.ndarray) -> None:
        """Let the next way begin where limbs in the air are that something holds up, at the configuration q (7+n,).

        Those whose joints move, at ``speed`` (n,), are on their way to their references. A reference that went on
        without its limb may be beyond what stopped that: a way from there would lead through it.
        """
        reference = self.posture.sample(t)
        if np.max(np.abs(q[7:] - reference.q[7:]), initial=0.0) <= STRAYED:
            return
        start, v, vd = (x.copy() for x in reference)
        guided = {self.robot.patches[patch].limb for patch in (*self.contacts, *self.limbs)}
        for limb, joints in self._joints.items():
            if limb in guided or np.max(np.abs(speed[joints - 7]), initial=0.0) > STILL:
                continue
            if np.max(np.abs(q[joints] - start[joints]), initial=0.0) > STRAYED:
                start[joints], v[joints - 1], vd[joints - 1] = q[joints], 0.0, 0.0
                self.posture = PostureTrajectory(start, start, 1.0, v, vd, t)

    # -- motions of the plan ----------------------------------------------------------------------------------------

    @property
    def finder(self) -> TransitionFinder:
        """Finds motions anew, from where the references are now."""
        if self._finder is None:
            self._finder = TransitionFinder(self.robot, self.environment, self._found_with)
        return self._finder

    def departure(self, t: float) -> Departure:
        """Return where a motion that is found anew begins."""
        return Departure(self.posture.sample(t).q, self.closed, dict(self.released))

    def distance_to(self, segment: Segment, t: float) -> float:
        """Return how far the reference of the posture is from where a planned motion begins (m, rad)."""
        return float(np.max(np.abs(self.robot.difference(segment.q[0], self.posture.sample(t).q))))

    def follow(self, segment: Segment, t: float, place: Callable[[str], Pose]) -> None:
        """Follow a planned motion from time t (s) on.

        What the references differ from its beginning fades on the way. ``place`` gives the pose of a patch that has no
        reference yet. Where the robot does not rest in between, a motion has begun already when a foot comes down late.
        """
        law, late = segment.law, 0.0
        self.passing = segment.passes
        self.rely(None if law is None else law.kept, t)
        if segment.begin is not None:
            late = min(max(t - self.posture.end_time, 0.0), LATEST * segment.time)
        posture, centre = faded(self.robot, segment, self.posture.sample(t), self.com.sample(t), t, late)
        t -= late
        self.posture = posture if law is None else TimedPath(posture, law, t, self.stretch)
        self.com = centre if law is None else TimedPath(centre, law, t, self.stretch)
        self.spin = None if law is None else TimedRate(self.spin_of(segment), law, t, self.stretch)
        reaching = {self.robot.patches[course.patch].limb for course in segment.courses if course.target is not None}
        old = {name: path.sample(t) for name, path in self.limbs.items()}
        limbs: dict[str, Path] = {}
        for name, sample in old.items():
            if segment.course(name) is None and self.robot.patches[name].limb not in reaching:
                path = PosturePath(
                    self.robot, name, posture, sample.p, None, NONE, NONE, self.timing, posture.start_time,
                    (sample.tightness, 0.0),
                )  # fmt: skip
                limbs[name] = path if law is None else TimedPath(path, law, t, self.stretch)
        for course in segment.courses:
            known = old.get(course.patch)
            R, p = place(course.patch) if known is None else (known.R, known.p)
            tightness = 0.0 if known is None else known.tightness
            limbs[course.patch] = self._path(course, segment, posture, t, (R, p), tightness)
            if course.target is not None:
                self.targets[course.patch] = course.target
                (self.waiting.add if course.hold else self.waiting.discard)(course.patch)
        self.limbs = limbs
        for name in limbs:
            self.released.pop(name, None)

    def rehearse(self, segment: Segment) -> None:
        """Make the curves of a planned motion, which stay, and its references once: their code is loaded then."""
        if segment.law is not None:
            self.spin_of(segment)
        posture, _ = faded(self.robot, segment, self.posture.sample(0.0), self.com.sample(0.0), 0.0)
        for course in segment.courses:
            self._path(course, segment, posture, 0.0, (np.eye(3), NONE), 0.0).sample(posture.start_time)

    def rely(self, kept: float | None, t: float) -> None:
        """Rely on contacts from t (s) on as far as a motion does that keeps a part of its reserve; None: it keeps none.

        What grips may bear sinks gradually; as much of the preload of the others is asked for as the motion keeps.
        """
        load_time = self.settings.timing.load_time
        self._reserve = Ramp(self._reserve.value(t), kept or 0.0, t, load_time)
        pace, most = self.settings.pace, self.settings.contact.force_fraction
        if kept is not None and pace is not None:
            share = used(pace.force, most, kept)
            most = share + FEEDBACK * (most - share)
        now = self._grips.value(t)
        self._grips = Ramp(max(now, most), most, t, load_time)

    def grips(self, t: float) -> float:
        """Return the part of the largest force and moment of a grip that the program may ask for at time t (s)."""
        return self._grips.value(t)

    def reserve(self, t: float) -> float:
        """Return the part of the preload of contacts that is asked for at time t (s)."""
        return self._reserve.value(t)

    def spin_of(self, segment: Segment) -> Spline:
        """Return the angular momentum about the centre of mass along a segment, per unit of its rate."""
        if segment not in self._spins:
            self._spins[segment] = spin_along(self.robot, segment)
        return self._spins[segment]

    def _path(
        self, course: SwingSpec, segment: Segment, posture: PostureSpline, t: float, start: Pose, tightness: float
    ) -> Path:
        """Return the reference of a patch along its course."""
        contact, end, approach = course.target, None, course.approach
        if contact is not None:
            end, approach, height, speed = self._arrivals.of(course, contact, segment)
        ends = (tightness, 0.0 if contact is None else 1.0)
        path: LimbPath | PosturePath | TimedPath
        begin, law = posture.start_time, segment.law
        if course.lead == "own":
            assert end is not None
            turn = PatchTurn(self.robot, course.patch, posture, start[0])
            path = LimbPath(start, end, course.lift, approach, self.timing, begin, segment.duration, ends, turn)
        else:
            path = PosturePath(self.robot, course.patch, posture, start[1], end, NONE, NONE, self.timing, begin, ends)
        if law is not None:
            path = TimedPath(path, law, t, self.stretch)
        if contact is None or course.hold or not self.feels(contact):
            return path
        s = self.settings
        return Descent(path, contact.normal, speed, height + s.contact.touch_depth, descent_ramp(s))

    @property
    def end_time(self) -> float:
        """When the body, all limbs and all objects have arrived (s)."""
        return max(path.end_time for path in (self.posture, *self.limbs.values(), *self.objects.values()))

    @property
    def closed(self) -> tuple[Contact, ...]:
        """What is in contact."""
        return tuple(loaded.contact for loaded in self.contacts.values())

    def note_replanning(self, t: float, segment: Segment, away: float) -> None:
        """Note that a motion was replanned, and what it lacks where it is not collision-free."""
        off = format_length_or_angle(away)
        self.note(t, f"references were {off} from the plan: its motion was replanned, simulated time stood still")
        if segment.missed > MAX_DEFICIT_M:
            self.note(t, f"no collision-free motion found: {segment.shortfall}", segment.worst.bodies, segment.missed)

    # -- objects ----------------------------------------------------------------------------------------------------

    def handle(self, thing: FreeObject) -> None:
        """Let an object be as it is: at rest on what it lies on, or held in the air."""
        rest = resting_contact(thing, self.environment)
        if rest is None:
            self.objects[thing.name] = self._hold((thing.R, thing.p), 0.0)
            self.held.add(thing.name)
        else:
            self.rests[thing.name] = LoadedContact(rest, Ramp(np.inf, np.inf, 0.0, 0.0), np.inf)

    def take(self, name: str, t: float, duration: float, force: float) -> None:
        """Let what an object lies on bear less and less of it, from ``force`` (N), what it bears now, to nothing."""
        self.rests[name].limit = Ramp(force, 0.0, t, duration)
        self.held.add(name)

    def transport(self, t: float, segment: Segment, starts: Mapping[str, Pose], lifted: Iterable[str]) -> None:
        """Move objects straight to where a segment takes them, with the body; those ``lifted`` lie on nothing then."""
        self.follow(segment, t, lambda patch: (np.eye(3), NONE))
        self._send(t, segment, starts)
        for name in lifted:
            del self.rests[name]

    def press(self, t: float, segment: Segment, starts: Mapping[str, Pose]) -> None:
        """Push the objects that a segment moves, which stay where they are until they have been pushed enough."""
        self._send(t + self.settings.timing.load_time, segment, starts)

    def _send(self, t: float, segment: Segment, starts: Mapping[str, Pose]) -> None:
        """Give objects their references from t (s) on, from where they are or where their references are then."""
        for name, end in (segment.objects or {}).items():
            start, known = starts[name], self.objects.get(name)
            if known is not None:
                sample = known.sample(t)
                start = sample.R, sample.p
            goal = rotation_from_quat(end[3:]), end[:3]
            self.objects[name] = LimbPath(start, goal, NONE, NONE, UNLIMITED_TIMING, t, segment.duration)

    def settle_objects(self, environment: Environment, contacts: Iterable[Contact], t: float) -> None:
        """Let the objects that have come to lie on something rest there; the contacts on them are those given.

        What bears an object that was put down bears more and more of it.
        """
        for contact in contacts:
            self.contacts[contact.patch].contact = contact
        self.environment, self._finder = environment, None
        for thing in environment.objects:
            rest = resting_contact(thing, environment) if thing.name in self.objects else None
            if rest is None:
                continue
            del self.objects[thing.name]
            known = self.rests.get(thing.name)
            limit = Ramp(0.0, self.full_load, t, self.settings.timing.load_time) if known is None else known.limit
            self.rests[thing.name] = LoadedContact(rest, limit, np.inf)

    def feels(self, contact: Contact) -> bool:
        """Say whether a patch comes down until it feels its support; a grip closes where it is."""
        return feels(contact, self.settings)

    def _hold(self, pose: Pose, t: float) -> LimbPath:
        return LimbPath(pose, pose, np.zeros(3), np.zeros(3), self.timing, t)

    def _alone(self, patch: str) -> bool:
        """Say whether no other patch of the same limb is in contact."""
        limb = self.robot.patches[patch].limb
        return all(self.robot.patches[name].limb != limb for name in self.contacts)
