"""Whole-body references over time, and the closed contacts with their force limits.

The state machine sets them, the controller tracks them. A planned motion starts from the present references: their
offset from its first posture is blended out along it. Its angular momentum about the centre of mass is a reference too.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

import numpy as np

from mcplan.control.arrival import Arrivals, descent_ramp, detects_touch
from mcplan.control.command import LoadedContact, Notice, Ramp
from mcplan.core.rigid_body.manifold import difference, integrate
from mcplan.core.rigid_body.tree import GRAVITY
from mcplan.motion.descent import Descent
from mcplan.motion.limb_path import (
    UNLIMITED_TIMING,
    HeldPose,
    LimbPath,
    PatchOrientation,
    Pose,
    PosturePath,
    StepPath,
    Timing,
)
from mcplan.motion.pendulum import Pendulum
from mcplan.motion.spline import PostureSample, PostureSpline, Rates, ReferenceSample, Spline, minimum_jerk
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
from mcplan.settings.pace import used_fraction
from mcplan.util.text import format_length_or_angle

START_TOLERANCE = 1e-12
"""References that differ by less than this from the start of a planned motion count as equal to it (rad, m, per s)."""

MIN_KNOT_GAP = 0.3
"""Smallest time between the start of a motion that begins late and its next knot, as a fraction of the knot spacing.
Nearer knots are dropped, because a spline through nearly coincident knots is not smooth."""


Curves = tuple[PostureSpline, Spline]
"""Curves of posture and centre of mass."""


def blended_curves(
    segment: Segment, curves: Curves, begin: PostureSample, com: ReferenceSample, t: float, late: float = 0.0
) -> Curves:
    """Return posture and CoM curves along a segment that start from the references at time t (s).

    The offset of the references from the start of the segment is blended out. The parameter of the curves is the time
    from t on; with a time parameterization it is the path parameter, from 0 on.

    Parameters
    ----------
    curves : those of the segment, from the parameter 0 on; they are returned if they start from the references at 0.
    begin, com : the references at t.
    late : delay of the start (s); the curves begin at the path parameter of the motion after this time.
    """
    timing, times, q, centre = segment.law, segment.times, segment.q, segment.com
    start = t if timing is None else 0.0
    if timing is not None and late > 0.0:
        s0 = timing.at(late)[0]
        remaining = times > s0 + MIN_KNOT_GAP * times[-1] / (len(times) - 1)
        remaining[-1] = True
        times = np.append(s0, times[remaining])
        q = np.vstack([curves[0].sample(s0).q, q[remaining]])
        centre = np.vstack([curves[1].sample(s0).value, centre[remaining]])
    posture_offset, com_offset = np.empty_like(begin.v), com.value - centre[0]
    difference(q[0], begin.q, posture_offset)
    v, vd, velocity, acceleration = begin.v, begin.vd, com.velocity, com.acceleration
    if np.abs(np.concatenate((v, vd, velocity, acceleration, posture_offset, com_offset))).max() <= START_TOLERANCE:
        return (curves[0].starting_at(start), curves[1].starting_at(start)) if start else curves
    if timing is not None:
        (v, vd), (velocity, acceleration) = timing.slopes(v, vd, late), timing.slopes(velocity, acceleration, late)
    shares = _remaining_shares(len(times))
    knots = np.empty_like(q)
    for knot, share, moved in zip(q, shares, knots, strict=True):
        integrate(knot, posture_offset, share, moved)
    end = segment.finish
    path = Spline(times + start, centre + np.outer(shares, com_offset), (velocity, acceleration), end and end.centre)
    return PostureSpline(times + start, knots, (v, vd), end and end.posture), path


@lru_cache
def _remaining_shares(count: int) -> tuple[float, ...]:
    """Return the fraction of an initial offset that remains at each of ``count`` knots."""
    return tuple(1.0 - minimum_jerk(share)[0] for share in np.linspace(0.0, 1.0, count))


DIFFERENCE_STEP = 1e-3
"""Step of finite differences at the ends of a motion, as a fraction of its duration."""


def angular_momentum_along(robot: Robot, segment: Segment) -> Spline:
    """Return the angular momentum about the centre of mass along a segment, per unit of path rate.

    At rest it is zero, and so are its derivatives.
    """
    h = DIFFERENCE_STEP * segment.duration
    begin = None if segment.begin is None else _end_rates(_angular_momentum_at(robot, segment, h * np.arange(3)), h)
    finish = None
    if segment.finish is not None:
        finish = _end_rates(_angular_momentum_at(robot, segment, segment.duration - h * np.arange(3)), -h)
    return Spline(segment.times, _angular_momentum_at(robot, segment, segment.times), begin, finish)


def _angular_momentum_at(robot: Robot, segment: Segment, s: np.ndarray) -> np.ndarray:
    """Return the angular momentum (k, 3) of a segment at path parameters s (k,), per unit of path rate."""
    samples = [segment.posture.sample(at) for at in s.tolist()]
    maps = robot.centroidal_momentum_matrix(np.array([x.q for x in samples]))[:, 3:]
    return np.einsum("kij,kj->ki", maps, np.array([x.v for x in samples]))


def _end_rates(y: np.ndarray, h: float) -> Rates:
    """Return first and second derivative of a curve at the first of three samples, h apart."""
    return (-1.5 * y[0] + 2.0 * y[1] - 0.5 * y[2]) / h, (y[0] - 2.0 * y[1] + y[2]) / h**2


BLOCKED_ERROR = 0.1
"""Joint error (rad or m) beyond which a limb counts as blocked."""

BLOCKED_SPEED = 0.3
"""Joint speed (rad/s or m/s) above which a limb does not count as blocked."""

FEEDBACK_RESERVE = 0.25
"""Fraction of a grip's force and moment limits unused by the plan that the program may use for feedback. With compliant
contacts a grip bears up to 1.5 times the commanded force when the load changes quickly."""

MAX_SKIPPED_SHARE = 0.5
"""Largest fraction of its time that a motion skips when it begins late."""

Path = HeldPose | LimbPath | PosturePath | TimedPath | Descent | StepPath
"""The reference of a limb."""

AnyPosture = PostureSpline | TimedPath
"""Reference of the whole posture."""

ZERO = np.zeros(3)
"""Zero displacement."""


class Motion:
    """References of CoM, posture and free limbs, and the closed contacts.

    Every new reference continues the previous one with its velocity and acceleration: no reference jumps.

    Parameters
    ----------
    robot, environment, settings : robot, environment and controller settings of the run.
    q : (nq,) posture at the beginning.
    planning_settings : settings with which motions are replanned; None: ``settings``.
    object_mass : mass of the objects that the robot handles (kg), which contacts may bear in addition to the robot.

    Attributes
    ----------
    com : CoM reference (m).
    posture : whole-body posture reference; its base orientation is the reference of the trunk.
    limbs : patch that swings or is held in the air -> reference of its frame.
    contacts : patch -> its closed contact, in the order of the robot's patches.
    closed, patches : the closed contacts and their patches; the same tuples until they change.
    released : patch in ``limbs`` that has not moved since its contact opened -> this contact.
    targets : patch in ``limbs`` -> the contact to which it moves.
    waiting_patches : patches in ``targets`` that must not touch before another patch of their limb does.
    objects : object that moves or is held in the air -> its reference.
    object_supports : object -> the contact with its support.
    held_objects : names of the objects that only the robot's contacts hold.
    clock : reference clock; slows time-parameterized motions down while the robot lags behind.
    passing : whether the motion begins or ends without rest; then the reference clock must not slow down.
    angular_momentum : reference of a time-parameterized motion; None: angular momentum is damped.
    descending_patches : patches that descend along the normal until they touch their support.
    notices : events that the plan did not foresee.
    """

    def __init__(
        self,
        robot: Robot,
        environment: Environment,
        settings: ControlSettings,
        q: np.ndarray,
        planning_settings: ControlSettings | None = None,
        object_mass: float = 0.0,
    ):
        self.robot, self.settings, self.environment = robot, settings, environment
        self._planning_settings = planning_settings or settings
        self.timing = Timing(settings.timing.limb_speed, LIMB_ANGULAR_SPEED_RAD_S, share=settings.timing.swing_blend)
        self.com: Spline | TimedPath | Pendulum = Spline.to_rest(robot.com(q), robot.com(q), 1.0)
        self.posture: AnyPosture = PostureSpline.to_rest(q, q, 1.0)
        self.angular_momentum: TimedRate | None = None
        self._grip_ramp = Ramp(settings.contact.force_fraction, settings.contact.force_fraction, 0.0, 0.0)
        self._preload_ramp = Ramp(0.0, 0.0, 0.0, 0.0)
        self.clock, self.passing = ReferenceClock(), False
        self._momentum_curves: dict[Segment, Spline] = {}
        self._curves: dict[Segment, Curves] = {}
        self._orientations: dict[SwingSpec, PatchOrientation] = {}
        self._arrivals = Arrivals(robot, settings)
        self._finder: TransitionFinder | None = None
        self._joints = {patch.limb: limb_joints(robot, patch.limb) for patch in robot.patches.values()}
        self.limbs: dict[str, Path] = {}
        self.contacts: dict[str, LoadedContact] = {}
        self.released: dict[str, Contact] = {}
        self.targets: dict[str, Contact] = {}
        self.objects: dict[str, HeldPose | LimbPath] = {}
        self.object_supports: dict[str, LoadedContact] = {}
        self.held_objects: set[str] = set()
        self.waiting_patches: set[str] = set()
        self.descending_patches: set[str] = set()
        self.notices: list[Notice] = []
        self.closed: tuple[Contact, ...] = ()
        self.patches: tuple[str, ...] = ()
        self.full_load = 2.0 * (robot.mass + object_mass) * GRAVITY

    def note(self, t: float, text: str, bodies: tuple[str, ...] = (), amount: float | None = None) -> None:
        """Record an event at time t (s) as a `Notice`."""
        self.notices.append(Notice(t, text, bodies, amount))

    def close(self, contact: Contact, t: float, duration: float, force: float = 0.0, place: Pose | None = None) -> None:
        """Close a contact at ``place``; its force limit rises from ``force`` (N) within ``duration`` s."""
        # a fixed base bears every force that the robot exerts elsewhere, too: no limit
        max_force = np.inf if contact.patch == MOUNT else self.full_load
        full = min(max_force, self.settings.contact.force_fraction * contact.max_force)
        self.contacts[contact.patch] = LoadedContact(contact, Ramp(min(force, full), full, t, duration), full, place)
        self.contacts = {name: self.contacts[name] for name in self.robot.patches if name in self.contacts}
        self._list_closed()
        for table in (self.limbs, self.released, self.targets):
            table.pop(contact.patch, None)
        self.descending_patches.discard(contact.patch)
        self.waiting_patches.discard(contact.patch)
        self._unload_edges(t, duration)

    def unload(self, patch: str, t: float, duration: float, force: float) -> None:
        """Ramp the force limit of a contact from ``force`` (N), its present load, down to zero."""
        self.contacts[patch].is_unloading = True
        self._unload_edges(t, duration)
        self.contacts[patch].limit = Ramp(force, 0.0, t, duration)

    def reload(self, t: float, duration: float) -> None:
        """Restore the force limits of contacts that were being unloaded."""
        for loaded in (loaded for loaded in self.contacts.values() if loaded.is_unloading):
            loaded.is_unloading, loaded.limit = False, Ramp(loaded.limit.value(t), loaded.full, t, duration)
        self._unload_edges(t, duration)

    def _unload_edges(self, t: float, duration: float) -> None:
        """Set the force limit of an edge to zero while a face of the same link is in contact; restore it afterwards."""
        staying = [loaded for loaded in self.contacts.values() if not loaded.is_unloading]
        active = {contact.patch for contact in largest_per_link(self.robot, [loaded.contact for loaded in staying])}
        for loaded in staying:
            if (is_idle := loaded.contact.patch not in active) != loaded.is_idle:
                loaded.is_idle = is_idle
                loaded.limit = Ramp(loaded.limit.value(t), 0.0 if is_idle else loaded.full, t, duration)

    def open(self, patch: str, t: float, place: Pose | None = None) -> None:
        """Open a contact and hold the patch in place (at ``place``, or at the planned pose)."""
        contact = self.contacts.pop(patch).contact
        self._list_closed()
        if self._is_last_of_limb(patch):
            self.limbs[patch] = HeldPose(place or (contact.R, contact.p), t)
            self.released[patch] = contact

    def advance_reference(self, t: float, q: np.ndarray, speed: np.ndarray) -> None:
        """Reset the posture reference of blocked limbs in the air to the measured configuration q (7+n,).

        Otherwise the next motion would start beyond the obstacle that blocks the limb, and lead through it. Limbs with
        moving joints are not blocked; ``speed`` (n,) are the joint speeds.
        """
        reference = self.posture.sample(t)
        if max(map(abs, (q[7:] - reference.q[7:]).tolist()), default=0.0) <= BLOCKED_ERROR:
            return
        start, v, vd = (x.copy() for x in reference)
        guided_limbs = {self.robot.patches[patch].limb for patch in (*self.contacts, *self.limbs)}
        for limb, joints in self._joints.items():
            if limb in guided_limbs or np.max(np.abs(speed[joints - 7]), initial=0.0) > BLOCKED_SPEED:
                continue
            if np.max(np.abs(q[joints] - start[joints]), initial=0.0) > BLOCKED_ERROR:
                start[joints], v[joints - 1], vd[joints - 1] = q[joints], 0.0, 0.0
                self.posture = PostureSpline.to_rest(start, start, 1.0, v, vd, t)

    # -- motions of the plan ----------------------------------------------------------------------------------------

    @property
    def finder(self) -> TransitionFinder:
        """Planner of transitions that start from the present references."""
        if self._finder is None:
            self._finder = TransitionFinder(self.robot, self.environment, self._planning_settings)
        return self._finder

    def departure(self, t: float) -> Departure:
        """Return the start state of a replanned motion."""
        return Departure(self.posture.sample(t).q, self.closed, dict(self.released))

    def distance_to(self, segment: Segment, t: float) -> float:
        """Return the largest offset of the posture reference from the start of a planned motion (m, rad)."""
        reference = self.posture.sample(t)
        offset = np.empty_like(reference.v)
        difference(segment.q[0], reference.q, offset)
        return float(np.abs(offset).max())

    def follow(self, segment: Segment, t: float, place: Callable[[str], Pose]) -> None:
        """Follow a planned motion from time t (s) on.

        The offset of the references from its beginning is blended out. ``place`` gives the pose of a patch that has no
        reference yet. A motion without rest before it does not wait for a foot that lands late: its first part is
        skipped.
        """
        timing, late = segment.law, 0.0
        self.passing = segment.passes
        self.set_force_reserve(None if timing is None else timing.kept, t)
        if segment.begin is not None:
            late = min(max(t - self.posture.end_time, 0.0), MAX_SKIPPED_SHARE * segment.time)
        posture, centre = blended_curves(
            segment, self.curves(segment), self.posture.sample(t), self.com.sample(t), t, late
        )
        t -= late
        self.posture = posture if timing is None else TimedPath(posture, timing, t, self.clock)
        self.com = centre if timing is None else TimedPath(centre, timing, t, self.clock)
        self.angular_momentum = (
            None if timing is None else TimedRate(self.momentum_curve(segment), timing, t, self.clock)
        )
        reaching = {self.robot.patches[course.patch].limb for course in segment.courses if course.target is not None}
        samples = {name: path.sample(t) for name, path in self.limbs.items()}
        limbs: dict[str, Path] = {}
        for name, sample in samples.items():
            if segment.course(name) is None and self.robot.patches[name].limb not in reaching:
                path = PosturePath(
                    self.robot, name, posture, sample.p, None, ZERO, ZERO, self.timing, posture.start_time,
                    (sample.tightness, 0.0),
                )  # fmt: skip
                limbs[name] = path if timing is None else TimedPath(path, timing, t, self.clock)
        for course in segment.courses:
            present = samples.get(course.patch)
            R, p = place(course.patch) if present is None else (present.R, present.p)
            tightness = 0.0 if present is None else present.tightness
            limbs[course.patch] = self._path(course, segment, posture, t, (R, p), tightness)
            if course.target is not None:
                self.targets[course.patch] = course.target
                (self.waiting_patches.add if course.hold else self.waiting_patches.discard)(course.patch)
        self.limbs = limbs
        for name in limbs:
            self.released.pop(name, None)

    def rehearse(self, segment: Segment) -> None:
        """Compute the curves of a planned motion before the run: they are cached, and their kernels loaded."""
        if segment.law is not None:
            self.momentum_curve(segment)
        curves = self.curves(segment)
        blended_curves(segment, curves, self.posture.sample(0.0), self.com.sample(0.0), 0.0)
        for course in segment.courses:
            self._path(course, segment, curves[0], 0.0, (np.eye(3), ZERO), 0.0).sample(0.0)

    def set_force_reserve(self, kept: float | None, t: float) -> None:
        """Adapt grip limits and preloads from time t (s) on to a motion that keeps a fraction ``kept`` of its margins.

        Grip limits sink within ``load_time``. Other contacts get the fraction ``kept`` of their preload. None: a motion
        without time parameterization, with full grip limits and no preloads.
        """
        load_time = self.settings.timing.load_time
        self._preload_ramp = Ramp(self._preload_ramp.value(t), kept or 0.0, t, load_time)
        pace, max_share = self.settings.pace, self.settings.contact.force_fraction
        if kept is not None and pace is not None:
            share = used_fraction(pace.force, max_share, kept)
            max_share = share + FEEDBACK_RESERVE * (max_share - share)
        now = self._grip_ramp.value(t)
        self._grip_ramp = Ramp(max(now, max_share), max_share, t, load_time)

    def grip_share(self, t: float) -> float:
        """Return the fraction of a grip's force and moment limits that the program may use at time t (s)."""
        return self._grip_ramp.value(t)

    @property
    def shares_end_time(self) -> float:
        """Time from which `grip_share` and `preload_share` are constant (s)."""
        return max(self._grip_ramp.end_time, self._preload_ramp.end_time)

    def preload_share(self, t: float) -> float:
        """Return the fraction of the contact preloads that is commanded at time t (s)."""
        return self._preload_ramp.value(t)

    def curves(self, segment: Segment) -> Curves:
        """Return the cached curves of a segment, from the parameter 0 on."""
        if segment not in self._curves:  # own ones: a sample writes into their workspace
            self._curves[segment] = segment.posture.starting_at(0.0), segment.centre.starting_at(0.0)
        return self._curves[segment]

    def momentum_curve(self, segment: Segment) -> Spline:
        """Return the cached `angular_momentum_along` of a segment."""
        if segment not in self._momentum_curves:
            self._momentum_curves[segment] = angular_momentum_along(self.robot, segment)
        return self._momentum_curves[segment]

    def _path(
        self, course: SwingSpec, segment: Segment, posture: PostureSpline, t: float, start: Pose, tightness: float
    ) -> Path:
        """Return the reference path of a swinging patch."""
        contact, end, approach = course.target, None, course.approach
        if contact is not None:
            end, approach, height, speed = self._arrivals.get(course, contact, segment)
        ends = (tightness, 0.0 if contact is None else 1.0)
        path: LimbPath | PosturePath | TimedPath
        begin, timing = posture.start_time, segment.law
        if course.lead == "own":
            assert end is not None
            orientation = self._orientations.get(course)
            if orientation is None or orientation.posture is not posture:
                orientation = self._orientations[course] = PatchOrientation(self.robot, course.patch, posture)
            orientation.start_from(start[0])
            path = LimbPath(start, end, course.lift, approach, self.timing, begin, segment.duration, ends, orientation)
        else:
            path = PosturePath(self.robot, course.patch, posture, start[1], end, ZERO, ZERO, self.timing, begin, ends)
        if timing is not None:
            path = TimedPath(path, timing, t, self.clock)
        if contact is None or course.hold or not self.detects_touch(contact):
            return path
        s = self.settings
        return Descent(path, contact.normal, speed, height + s.contact.touch_depth, descent_ramp(s))

    @property
    def end_time(self) -> float:
        """Time at which the references of body, limbs and objects have ended (s)."""
        return max(path.end_time for path in (self.posture, *self.limbs.values(), *self.objects.values()))

    def _list_closed(self) -> None:
        """List the closed contacts after a change of them."""
        self.closed, self.patches = tuple([one.contact for one in self.contacts.values()]), tuple(self.contacts)

    def note_replanning(self, t: float, segment: Segment, distance: float) -> None:
        """Record that a motion was replanned, and its largest collision violation if any."""
        text = format_length_or_angle(distance)
        self.note(t, f"references were {text} from the plan: its motion was replanned, simulated time stood still")
        if segment.missed > MAX_DEFICIT_M:
            self.note(t, f"no collision-free motion found: {segment.shortfall}", segment.worst.bodies, segment.missed)

    # -- objects ----------------------------------------------------------------------------------------------------

    def handle(self, thing: FreeObject) -> None:
        """Register an object: at rest on its support, or held in the air."""
        rest = resting_contact(thing, self.environment)
        if rest is None:
            self.objects[thing.name] = HeldPose((thing.R, thing.p), 0.0)
            self.held_objects.add(thing.name)
        else:
            self.object_supports[thing.name] = LoadedContact(rest, Ramp(np.inf, np.inf, 0.0, 0.0), np.inf)

    def take(self, name: str, t: float, duration: float, force: float) -> None:
        """Ramp the force of an object's support from ``force`` (N), its present load, down to zero."""
        self.object_supports[name].limit = Ramp(force, 0.0, t, duration)
        self.held_objects.add(name)

    def transport(self, t: float, segment: Segment, starts: Mapping[str, Pose], lifted: Iterable[str]) -> None:
        """Move objects along straight lines to their poses at the end of a segment; ``lifted`` ones leave supports."""
        self.follow(segment, t, lambda patch: (np.eye(3), ZERO))
        self._start_object_paths(t, segment, starts)
        for name in lifted:
            del self.object_supports[name]

    def press(self, t: float, segment: Segment, starts: Mapping[str, Pose]) -> None:
        """Push the objects that a segment slides; they start to move after ``load_time``, when friction is overcome."""
        self._start_object_paths(t + self.settings.timing.load_time, segment, starts)

    def _start_object_paths(self, t: float, segment: Segment, starts: Mapping[str, Pose]) -> None:
        """Start object references at time t (s), from the present references or the measured poses ``starts``."""
        for name, end in (segment.objects or {}).items():
            start, path = starts[name], self.objects.get(name)
            if path is not None:
                sample = path.sample(t)
                start = sample.R, sample.p
            goal = rotation_from_quat(end[3:]), end[:3]
            self.objects[name] = LimbPath(start, goal, ZERO, ZERO, UNLIMITED_TIMING, t, segment.duration)

    def settle_objects(self, environment: Environment, contacts: Iterable[Contact], t: float) -> None:
        """Hand objects that were put down over to their supports, whose force limits ramp up.

        ``contacts`` are those of the robot, with the objects in their new poses.
        """
        for contact in contacts:
            self.contacts[contact.patch].contact = contact
        self._list_closed()
        self.environment, self._finder = environment, None
        for thing in environment.objects:
            rest = resting_contact(thing, environment) if thing.name in self.objects else None
            if rest is None:
                continue
            del self.objects[thing.name]
            loaded = self.object_supports.get(thing.name)
            limit = Ramp(0.0, self.full_load, t, self.settings.timing.load_time) if loaded is None else loaded.limit
            self.object_supports[thing.name] = LoadedContact(rest, limit, np.inf)

    def detects_touch(self, contact: Contact) -> bool:
        """Whether a patch descends until its touch is detected; a grip closes at its planned pose."""
        return detects_touch(contact, self.settings)

    def _is_last_of_limb(self, patch: str) -> bool:
        """Whether no other patch of the same limb is in contact."""
        limb = self.robot.patches[patch].limb
        return all(self.robot.patches[name].limb != limb for name in self.contacts)
