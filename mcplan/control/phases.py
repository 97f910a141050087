"""Phases of a plan: what each changes when it begins and ends, and the criterion that ends it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mcplan.control.command import Ramp
from mcplan.control.motion import Motion
from mcplan.control.watches import FELT
from mcplan.errors import InputError, SimulationFailed
from mcplan.motion.limb_path import LimbPath, Pose
from mcplan.motion.posture import PostureTrajectory
from mcplan.motion.quintic import Quintic
from mcplan.motion.time_parameterization import TimedPath, TimeParameterization
from mcplan.planning.chain import coming
from mcplan.planning.plan import Plan
from mcplan.planning.transition.transition import Segment
from mcplan.scene.allowed import allowed_pose
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment
from mcplan.scene.resting import resting_contact, slides
from mcplan.settings.control import ControlSettings
from mcplan.settings.states import Joints, LimbMove, StateAction, Until

COM_REST_SPEED_M_S, JOINT_REST_SPEED_RAD_S = 0.02, 0.02
"""A motion of the body ends with a slower centre of mass, the run with slower joints, too."""

TOUCH_ERROR_M = {"rigid": 5e-4, "compliant": 4e-3}
TOUCH_SPEED_M_S = {"rigid": 5e-3, "compliant": 0.02}
"""A patch that does not measure a force touches when it is so near to its place and so slow."""

TOUCH_TIME_S = 3e-3
"""A patch touches a compliant support when it has measured the touch force for so long in total."""

SEPARATION_TIME_S = 0.1
"""Time in which a link parts from a compliant support while its limb rests on another patch, at the pace ``slow``."""

TOO_FAR = 0.01
"""m: a patch that is farther from its place, beyond the depth to which it searches, has missed it."""

FAR = 0.05
"""rad or m: references that are farther from where a planned motion begins do not follow it: it is replanned."""


SLIDE_ERROR_M = {"rigid": 2e-3, "compliant": 0.01}
"""An object that is pushed or pulled has arrived when it is so near to its place."""


class MeasuredState(Protocol):
    """Measured state of robot and contacts."""

    @property
    def q(self) -> np.ndarray:
        """Configuration of the robot (7+n,)."""
        ...

    @property
    def joint_rates(self) -> np.ndarray:
        """Velocities of the joints (n,)."""
        ...

    def pose(self, frame: str) -> Pose:
        """Return R (3,3) and p (3,) of a patch frame."""
        ...

    def normal_force(self, patch: str) -> float:
        """Return the normal force that a contact carries (N); a grasp: the magnitude of its force."""
        ...

    def load(self, patch: str) -> float:
        """Return the force limit (N) under which a contact still carries what it carries now."""
        ...


class Phase:
    """A phase of a plan: changes references and contacts when it begins and ends, and has a termination criterion.

    Attributes
    ----------
    stance : index of the stance of the plan that the phase leads to.
    verb : first word of its name.
    does : its effect, for listings.
    subjects : patches or objects that it is about.
    """

    verb = ""
    does = ""
    stance: int

    @property
    def subjects(self) -> tuple[str, ...]:
        """Patches or objects that the phase is about."""
        return ()

    @property
    def name(self) -> str:
        """Verb and subjects, as shown and recorded."""
        return " ".join((self.verb, *self.subjects))

    def replan(self, motion: Motion, t: float, now: MeasuredState) -> None:
        """Plan the motion of the phase again where the robot is too far from the plan."""

    def enter(self, motion: Motion, t: float, now: MeasuredState) -> float:
        """Start references or ramps, and return their duration (s)."""
        return 0.0

    def until(self, settings: ControlSettings) -> Until:
        """Return the criterion that ends the phase: by default the end of its references."""
        return Until(finished=0.0)

    def leave(self, motion: Motion, t: float, now: MeasuredState) -> None:
        """Change the contacts when the phase has ended."""


class PatchPhase(Phase):
    """A phase about one patch."""

    patch: str

    @property
    def subjects(self) -> tuple[str, ...]:
        """The patch."""
        return (self.patch,)


class ContactPhase(Phase):
    """A phase about the patch of one contact."""

    contact: Contact

    @property
    def subjects(self) -> tuple[str, ...]:
        """The patch of the contact."""
        return (self.contact.patch,)


class ObjectPhase(Phase):
    """A phase about objects."""

    objects: tuple[str, ...]

    @property
    def subjects(self) -> tuple[str, ...]:
        """The objects."""
        return self.objects


class PlannedMotion(Phase):
    """A phase that follows a motion of the plan, replanned where the robot is too far from its beginning."""

    segment: Segment

    def replan(self, motion: Motion, t: float, now: MeasuredState) -> None:
        """Plan the motion again from the references, if they are far from where it begins. Simulated time stands still.

        A motion that passes a stance without rest is kept: a replanned one begins and ends at rest.
        """
        if self.segment.passes:
            return
        motion.advance_reference(t, now.q, now.joint_rates)
        away = motion.distance_to(self.segment, t)
        if away > FAR:
            self.segment = self.replanned(motion, t)
            motion.note_replanning(t, self.segment, away)

    def replanned(self, motion: Motion, t: float) -> Segment:
        """Return the motion from where the references are at t (s)."""
        raise NotImplementedError


def height_over(contact: Contact, p: np.ndarray) -> float:
    """Return how far p (3,) is from the place of a contact along its normal (m); infinite if it is not over it."""
    step = p - contact.p
    up = float(step @ contact.normal)
    return abs(up) if np.linalg.norm(step - up * contact.normal) <= TOO_FAR else np.inf


def all_of(*criteria: Until) -> Until:
    """Return the criterion that all of some are met."""
    return Until(all=criteria)


def arrived(s: ControlSettings) -> Until:
    """Return the criterion that the references have run, and the centre of mass has followed them and is slow."""
    near = Until(error="com", below=s.timing.com_tolerance)
    return all_of(Until(finished=0.0), near, Until(speed="com", below=COM_REST_SPEED_M_S))


def left_of(motion: Motion, t: float) -> float:
    """Return how long a quick motion still takes at time t (s)."""
    return motion.posture.end_time - t if isinstance(motion.posture, TimedPath) else 0.0


def separation_time(s: ControlSettings) -> float:
    """Return the time in which a link parts from its support while its limb rests on another patch (s)."""
    if not s.compliant:
        return 0.0
    return SEPARATION_TIME_S if s.pace is None else 0.5 * s.pace.ramp


def or_timeout(criterion: Until, s: ControlSettings) -> Until:
    """Return the criterion that one is met, or has not been for too long."""
    return Until(any=(criterion, Until(timeout=s.timing.phase_timeout)))


@dataclass
class Stand(Phase):
    """Hold the first posture, so that the run begins at rest."""

    stance: int
    verb = "stand"
    does = "holds the first posture"

    def until(self, settings: ControlSettings) -> Until:
        """Wait for ``start_time``."""
        return Until(elapsed=settings.timing.start_time)


@dataclass
class Shift(PlannedMotion):
    """Move CoM, posture and free limbs to those of a stance, on the contacts that are closed."""

    stance: int
    segment: Segment
    unloads: bool = False
    """Whether a contact is unloaded while its last part is gone: there a quick motion slows down, by the others."""
    verb = "shift"
    does = "moves centre of mass, posture and free limbs to those of the stance"

    def enter(self, motion: Motion, t: float, now: MeasuredState) -> float:
        """Start the references."""
        motion.follow(self.segment, t, now.pose)
        return motion.end_time - t - (motion.settings.timing.unload_time if self.unloads else 0.0)

    def replanned(self, motion: Motion, t: float) -> Segment:
        """Return the motion of the body to the same posture."""
        return motion.finder.shift(motion.departure(t), self.segment.q[-1])

    def until(self, settings: ControlSettings) -> Until:
        """Wait until the references have run, the CoM follows and is slow; or it takes far too long."""
        return or_timeout(Until(finished=0.0) if self.unloads else arrived(settings), settings)


@dataclass
class Unload(PatchPhase):
    """Let the force of a contact sink to nothing, then open it."""

    stance: int
    patch: str
    arriving: bool = False
    """Whether what a quick shift has left is gone meanwhile."""
    kept: float | None = None
    """Part of its reserve that the quick motion keeps which is next, without the contact."""
    passing: bool = False
    """Whether the robot goes on without coming to rest: then the contact opens in time, whatever it still bears."""
    verb = "unload"
    does = "lets the contact's force sink to nothing; then opens it"

    def enter(self, motion: Motion, t: float, now: MeasuredState) -> float:
        """Start the ramp from the force carried now. What a quick motion has left it goes on with."""
        motion.unload(self.patch, t, motion.settings.timing.unload_time, now.load(self.patch))
        motion.rely(self.kept, t)
        return max(motion.settings.timing.unload_time, left_of(motion, t) if self.arriving else 0.0)

    def until(self, settings: ControlSettings) -> Until:
        """Wait until the contact carries next to nothing, and the centre of mass has arrived."""
        if self.passing:
            return Until(finished=0.0)
        light = Until(force=self.patch, below=settings.contact.release_force)
        return or_timeout(all_of(arrived(settings) if self.arriving else Until(finished=0.0), light), settings)

    def leave(self, motion: Motion, t: float, now: MeasuredState) -> None:
        """Open the contact."""
        place, contact = now.pose(self.patch), motion.contacts[self.patch].contact
        motion.open(self.patch, t, place if motion.settings.compliant else allowed_pose(contact, place))


@dataclass
class Retract(PatchPhase, PlannedMotion):
    """Lift a patch that was released and has nowhere to go yet clear of its support."""

    stance: int
    patch: str
    segment: Segment | None  # type: ignore[assignment]
    verb = "retract"
    does = "lifts the patch clear of its support"

    def enter(self, motion: Motion, t: float, now: MeasuredState) -> float:
        """Start the lift along the normal."""
        if self.segment is None or self.patch not in motion.released:
            # its limb rests on another patch; collision avoidance parts the link from the support
            return separation_time(motion.settings)
        motion.follow(self.segment, t, now.pose)
        return motion.limbs[self.patch].end_time - t

    def replan(self, motion: Motion, t: float, now: MeasuredState) -> None:
        """Plan the lift again, where the references are far from where the planned one begins."""
        if self.segment is not None and self.patch in motion.released:
            super().replan(motion, t, now)

    def replanned(self, motion: Motion, t: float) -> Segment:
        """Return the lift from where the references are."""
        return motion.finder.retraction(motion.departure(t), self.patch)


@dataclass
class Lift(ContactPhase, PlannedMotion):
    """Begin the way to a new contact: off the old one. The body moves along to the posture of the new stance."""

    stance: int
    contact: Contact
    segment: Segment
    coming: tuple[Contact, ...] = ()
    """Contacts that the limb makes next: at the end of the segment they are in place too."""
    verb = "lift"
    does = "takes the patch off, and the body along to the posture of the stance"

    def enter(self, motion: Motion, t: float, now: MeasuredState) -> float:
        """Start limb and body together; the slower of the two sets the time."""
        motion.follow(self.segment, t, now.pose)
        return motion.limbs[self.contact.patch].swing_time - t

    def replanned(self, motion: Motion, t: float) -> Segment:
        """Return the motion from where the references are to the same contacts."""
        return motion.finder.swing(motion.departure(t), self.segment.q[-1], (self.contact, *self.coming))


@dataclass
class Swing(ContactPhase):
    """Cross over to the new place."""

    stance: int
    contact: Contact
    verb = "swing"
    does = "crosses over to the new place"

    def enter(self, motion: Motion, t: float, now: MeasuredState) -> float:
        """Return how long it takes until the path comes down along the normal."""
        return motion.limbs[self.contact.patch].approach_time - t

    def until(self, settings: ControlSettings) -> Until:
        """Wait for the end of the crossing, or meet the support before."""
        s, patch, across = settings, self.contact.patch, Until(finished=0.0)
        if not s.compliant or self.contact.kind == "grasp":
            return across
        low = Until(over=patch, below=s.avoidance.swing_clearance)
        touch = all_of(Until(force=patch, above=s.contact.touch_force), low)
        return Until(any=(across, touch.model_copy(update={"altogether": TOUCH_TIME_S})))


@dataclass
class Approach(ContactPhase):
    """Come down along the normal and touch."""

    stance: int
    contact: Contact
    passing: bool = False
    """Whether the robot goes on without coming to rest."""
    verb = "approach"
    does = "comes down along the normal; then closes the contact"

    def enter(self, motion: Motion, t: float, now: MeasuredState) -> float:
        """Let the patch feel for its support."""
        if motion.feels(self.contact):
            motion.sought.add(self.contact.patch)
        return max(motion.limbs[self.contact.patch].end_time - t, 0.0)

    def until(self, settings: ControlSettings) -> Until:
        """Wait for the touch: a force where touch is felt, else the patch in place and at rest.

        What lies in its place with less force does not get more by waiting: another patch of its link bears it.
        """
        s, patch = settings, self.contact.patch
        rest = Until(finished=0.0), Until(speed=patch, below=TOUCH_SPEED_M_S[s.contact.model])
        near = TOUCH_ERROR_M[s.contact.model]
        if s.compliant and self.contact.kind != "grasp":
            felt = Until(force=patch, above=s.contact.touch_force)
            low = Until(over=patch, below=near)
            lies = all_of(*rest, low, Until(force=patch, above=FELT * s.contact.touch_force))
            touch = Until(any=(felt, lies), altogether=TOUCH_TIME_S)
        elif self.passing:
            touch = all_of(Until(finished=0.0), Until(error=patch, below=near))
        else:
            touch = all_of(*rest, Until(error=patch, below=near))
        return or_timeout(touch, s)

    def leave(self, motion: Motion, t: float, now: MeasuredState) -> None:
        """Close the contact; it may carry more and more during ``load_time``.

        Where contacts give it is kept where it happened, and begins with the force that it has.

        Raises
        ------
        SimulationFailed
            It has run out of time far from its place: a contact that closed there would carry nothing.
        """
        s, patch = motion.settings, self.contact.patch
        pose = now.pose(patch)
        away = float(np.linalg.norm(pose[1] - allowed_pose(self.contact, pose)[1]))
        if away > s.contact.touch_depth + TOO_FAR:
            raise SimulationFailed(
                f"{self.name} of stance {self.stance} at t = {t:g} s: no contact, {away:.3f} m from its place",
                "no contact",
            )
        if s.compliant:
            motion.close(self.contact, t, s.timing.load_time, now.normal_force(patch), now.pose(patch))
        else:
            motion.close(self.contact, t, s.timing.load_time)


@dataclass
class Load(PatchPhase):
    """Let the new contact take its share."""

    stance: int
    patch: str
    shifts: bool = False
    """Whether a quick shift follows, which speeds up on the other contacts: it does not wait for the ramp."""
    verb = "load"
    does = "lets the contact take its share"

    def enter(self, motion: Motion, t: float, now: MeasuredState) -> float:
        """Change nothing: the touch has started the ramp. What a quick motion has left when it touches it goes on with.

        Its law leads to the posture of the stance, from which the next motion begins.
        """
        return max(0.0 if self.shifts else motion.settings.timing.load_time, left_of(motion, t))


@dataclass
class Settle(Phase):
    """Come to rest at the end."""

    stance: int
    verb = "settle"
    does = "comes to rest"

    def enter(self, motion: Motion, t: float, now: MeasuredState) -> float:
        """Change nothing."""
        return motion.settings.timing.settle_time

    def until(self, settings: ControlSettings) -> Until:
        """Wait until everything is slow and in place."""
        s = settings
        rest = all_of(
            Until(finished=0.0),
            Until(error="com", below=s.timing.com_tolerance),
            Until(speed="com", below=COM_REST_SPEED_M_S),
            Until(speed="joints", below=JOINT_REST_SPEED_RAD_S),
        )
        return or_timeout(rest, s)


class SegmentObjectsPhase(ObjectPhase):
    """A phase about the objects that a segment moves."""

    segment: Segment

    @property
    def objects(self) -> tuple[str, ...]:  # type: ignore[override]
        """The objects that the segment moves."""
        return tuple(self.segment.objects or {})


@dataclass
class Take(ObjectPhase):
    """Let what objects lie on bear less and less of them, until the robot bears them alone."""

    stance: int
    objects: tuple[str, ...]
    verb = "take"
    does = "lifts objects off what bears them"

    def enter(self, motion: Motion, t: float, now: MeasuredState) -> float:
        """Start the ramps from what their supports bear now."""
        for name in self.objects:
            motion.take(name, t, motion.settings.timing.unload_time, now.load(name))
        return motion.settings.timing.unload_time


@dataclass
class Press(SegmentObjectsPhase):
    """Push objects that are to slide more and more, until friction holds them no longer."""

    stance: int
    segment: Segment
    verb = "press"
    does = "presses against objects until they have been moved enough"

    def enter(self, motion: Motion, t: float, now: MeasuredState) -> float:
        """Say where they are to go, after the time in which a contact is loaded."""
        motion.press(t, self.segment, {name: now.pose(name) for name in self.objects})
        return motion.settings.timing.load_time


@dataclass
class Transport(SegmentObjectsPhase):
    """Move objects with the contacts that are on them, and the body to the posture of the stance where they are."""

    stance: int
    segment: Segment
    environment: Environment
    lifted: tuple[str, ...]
    """Objects that are off what they have lain on from now on."""
    verb: str
    does = "moves objects, and the body with them"

    def enter(self, motion: Motion, t: float, now: MeasuredState) -> float:
        """Start the references."""
        motion.transport(t, self.segment, {name: now.pose(name) for name in self.objects}, self.lifted)
        return motion.end_time - t

    def until(self, settings: ControlSettings) -> Until:
        """Wait until the references have run, CoM and objects follow, the CoM is slow; or it takes far too long."""
        s = settings
        near = all_of(
            Until(finished=0.0),
            Until(error="com", below=s.timing.com_tolerance),
            Until(speed="com", below=COM_REST_SPEED_M_S),
            *(Until(error=name, below=SLIDE_ERROR_M[s.contact.model]) for name in self.objects),
        )
        return or_timeout(near, s)

    def leave(self, motion: Motion, t: float, now: MeasuredState) -> None:
        """Let the objects that lie on something rest; what is on them is where the stance has it."""
        motion.settle_objects(self.environment, self.segment.contacts, t)


@dataclass
class Put(ObjectPhase):
    """Let what objects have been put on bear more and more of them."""

    stance: int
    objects: tuple[str, ...]
    verb = "put"
    does = "lets what is below bear objects"

    def enter(self, motion: Motion, t: float, now: MeasuredState) -> float:
        """Change nothing: coming to rest has started the ramps."""
        return motion.settings.timing.load_time

    def leave(self, motion: Motion, t: float, now: MeasuredState) -> None:
        """Hold them no more: contacts on them are as on any support."""
        motion.held.difference_update(self.objects)


@dataclass
class CustomPhase(Phase):
    """A state of the scenario: centre of mass, posture, free limbs and force limits, on the contacts that there are.

    Parameters
    ----------
    stance : index of the stance whose contacts are there.
    title : name of the state.
    action : its references and force limits.
    criterion : that ends it.
    """

    stance: int
    title: str
    action: StateAction
    criterion: Until
    does = "your own"

    @property
    def name(self) -> str:
        """The name that the scenario gives."""
        return self.title

    def enter(self, motion: Motion, t: float, now: MeasuredState) -> float:
        """Start the references, each from what it is now.

        Raises
        ------
        SimulationFailed
            A patch that should move is in contact, or one whose force is limited is not.
        """
        action, T = self.action, self.action.over
        wrong = sorted(set(action.limbs) & set(motion.contacts)) + sorted(set(action.forces) - set(motion.contacts))
        if wrong:
            state = "is" if wrong[0] in motion.contacts else "is not"
            raise SimulationFailed(f"state {self.name} at t = {t:g} s: {wrong[0]} {state} in contact")
        if action.com is not None:
            x = motion.com.sample(t)
            motion.com = Quintic(x.value, np.array(action.com), T, x.velocity, x.acceleration, t)
        if action.posture is not None:
            y = motion.posture.sample(t)
            motion.posture = PostureTrajectory(y.q, _with_joints(motion, y.q, action.posture), T, y.v, y.vd, t)
        for patch, move in action.limbs.items():
            if patch in motion.limbs:
                sample = motion.limbs[patch].sample(t)
                start = sample.R, sample.p
            else:
                start = now.pose(patch)
            motion.released.pop(patch, None)
            motion.limbs[patch] = LimbPath(start, _goal(start, move), np.zeros(3), np.zeros(3), motion.timing, t, T)
        for patch, most in action.forces.items():
            loaded = motion.contacts[patch]
            loaded.limit = Ramp(min(now.load(patch), loaded.full), min(most, loaded.full), t, T)
        return max([T, *(motion.limbs[patch].end_time - t for patch in action.limbs)])

    def until(self, settings: ControlSettings) -> Until:
        """Return the criterion of the scenario."""
        return self.criterion


def _with_joints(motion: Motion, q: np.ndarray, posture: str | Joints) -> np.ndarray:
    """Return q (7+n,) with the joints of a posture; the base stays, as contacts and centre of mass say where it is."""
    q, robot = np.array(q), motion.robot
    if isinstance(posture, str):
        q[7:] = robot.posture(posture)[7:]
        return q
    for joint, value in posture.joints.items():
        q[7 + robot.joint_names.index(joint)] = value
    return q


def _goal(start: Pose, move: LimbMove) -> Pose:
    if move.to is not None:
        return move.to.R, move.to.p
    return start[0], start[1] + np.array(move.by)


def phases_of(plan: Plan) -> list[Phase]:
    """Return the phases that carry out a plan, from standing on its first stance to rest on its last."""
    phases: list[Phase] = [Stand(0)]
    for k, stance in enumerate(plan.stances[1:], start=1):
        if stance.transition is None:
            raise InputError(f"stance {k} of the plan has no transition; mcplan.plan and load_plan find them")
        segment = stance.transition.segments[0]
        if segment.objects:
            poses = [plan.scenario.environment.placed(plan.stances[i].objects) for i in (k - 1, k)]
            phases += phases_of_transport(k, segment, poses[0], poses[1])
            continue
        phases += _phases_of_stance(k, plan, coming(plan.scenario.robot, plan.stances, k))
    return [*phases, Settle(len(plan.stances) - 1)]


def _phases_of_stance(k: int, plan: Plan, coming: tuple[Contact, ...]) -> list[Phase]:
    stance = plan.stances[k]
    assert stance.transition is not None
    patch, segments = stance.moved, stance.transition.segments
    if patch is None:
        return [Shift(k, segments[0])]
    if stance.change == "add":
        contact = stance.contact(patch)
        load, passing = Load(k, patch, _shifts_quickly(plan, k)), stance.passing is not None
        return [Lift(k, contact, segments[0], coming), Swing(k, contact), Approach(k, contact, passing), load]
    quick, onward = segments[0].law is not None, _law_of(plan, k, segments[1:])
    unload = Unload(k, patch, quick, None if onward is None else onward.kept, stance.passing is not None)
    phases: list[Phase] = [Shift(k, segments[0], quick), unload]
    if stance.transition.parts:
        phases.append(Retract(k, patch, segments[1] if len(segments) > 1 else None))
    return phases


def _shifts_quickly(plan: Plan, k: int) -> bool:
    """Say whether a shift of the body by a law comes after stance k."""
    return k + 1 < len(plan.stances) and plan.stances[k + 1].change != "add" and _law_of(plan, k) is not None


def _law_of(plan: Plan, k: int, segments: Sequence[Segment] = ()) -> TimeParameterization | None:
    """Return the law of what comes next: of the segments that are left, else of those that lead on from stance k."""
    if not segments and k + 1 < len(plan.stances):
        transition = plan.stances[k + 1].transition
        segments = () if transition is None else transition.segments
    return segments[0].law if segments else None


def phases_of_transport(stance: int, segment: Segment, before: Environment, after: Environment) -> list[Phase]:
    """Return the phases of a segment that moves objects.

    Parameters
    ----------
    stance : that it leads to.
    before, after : the scene with the objects where they are at its two ends.
    """
    names = tuple(segment.objects or {})
    ends = {name: (_rest(name, before), _rest(name, after)) for name in names}
    carried = tuple(name for name in names if not slides(*ends[name], after))
    lifted = tuple(name for name in carried if ends[name][0] is not None)
    put = tuple(name for name in carried if ends[name][1] is not None)
    phases: list[Phase] = [Take(stance, lifted)] if lifted else []
    if not carried:
        phases.append(Press(stance, segment))
    phases.append(Transport(stance, segment, after, lifted, "carry" if carried else "slide"))
    return [*phases, Put(stance, put)] if put else phases


def _rest(name: str, scene: Environment) -> Contact | None:
    return resting_contact(next(thing for thing in scene.objects if thing.name == name), scene)
