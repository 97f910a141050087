"""Phases of a plan: action at the start of each, action at its end, and termination criterion."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mcplan.control.command import Ramp
from mcplan.control.contact_detectors import TOUCH_FRACTION
from mcplan.control.motion import Motion
from mcplan.errors import InputError, SimulationFailed
from mcplan.motion.limb_path import LimbPath, Pose
from mcplan.motion.spline import PostureSpline, Spline
from mcplan.motion.time_parameterization import TimedPath, TimeParameterization
from mcplan.planning.chain import following_contacts
from mcplan.planning.plan import Plan
from mcplan.planning.transition.transition import Segment
from mcplan.scene.allowed_pose import allowed_pose
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment
from mcplan.scene.resting import resting_contact, slides
from mcplan.settings.control import ControlSettings
from mcplan.settings.states import Joints, LimbMove, StateAction, Until

COM_REST_SPEED_M_S, JOINT_REST_SPEED_RAD_S = 0.02, 0.02
"""Speeds of centre of mass and joints below which they are at rest: a motion ends with the first, the run with both."""

TOUCH_ERROR_M = {"rigid": 5e-4, "compliant": 4e-3}
"""Position error below which a patch counts as touching without a measured force, by contact model."""

TOUCH_SPEED_M_S = {"rigid": 5e-3, "compliant": 0.02}
"""Speed below which a patch counts as touching without a measured force, by contact model."""

TOUCH_TIME_S = 3e-3
"""Total time with the touch force measured after which a patch counts as touching a compliant support."""

SEPARATION_TIME_S = 0.1
"""Time for a link to separate from a compliant support while its limb rests on another patch, at the pace ``slow``."""

MISS_DISTANCE_M = 0.01
"""A patch that is farther from its contact than this plus its search depth has missed it (m)."""

MAX_START_OFFSET = 0.05
"""A planned motion whose start is farther than this from the references is replanned (rad or m)."""

SLIDE_ERROR_M = {"rigid": 2e-3, "compliant": 0.01}
"""Position error below which an object that is pushed or pulled has arrived, by contact model."""


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
        """Return the force limit (N) that just permits the present load of a contact."""
        ...


class Phase:
    """A phase of a plan: changes references and contacts when it begins and ends, and has a termination criterion.

    Attributes
    ----------
    stance : index of the stance of the plan that the phase leads to.
    verb : first word of its name.
    effect : description of its action, for listings.
    subjects : names of the patches or objects of the phase.
    """

    verb = ""
    effect = ""
    stance: int

    @property
    def subjects(self) -> tuple[str, ...]:
        """Names of the patches or objects of the phase."""
        return ()

    @property
    def name(self) -> str:
        """Verb and subjects, as shown and recorded."""
        return " ".join((self.verb, *self.subjects))

    def replan(self, motion: Motion, t: float, measured: MeasuredState) -> None:
        """Replan the motion of the phase if the robot is too far from its beginning."""

    def enter(self, motion: Motion, t: float, measured: MeasuredState) -> float:
        """Start references or ramps, and return their duration (s)."""
        return 0.0

    def until(self, settings: ControlSettings) -> Until:
        """Return the criterion that ends the phase: by default the end of its references."""
        return Until(finished=0.0)

    def leave(self, motion: Motion, t: float, measured: MeasuredState) -> None:
        """Change the contacts when the phase has ended."""


class PatchPhase(Phase):
    """A phase of one patch."""

    patch: str

    @property
    def subjects(self) -> tuple[str, ...]:
        """The patch."""
        return (self.patch,)


class ContactPhase(Phase):
    """A phase of the patch of one contact."""

    contact: Contact

    @property
    def subjects(self) -> tuple[str, ...]:
        """The patch of the contact."""
        return (self.contact.patch,)


class ObjectPhase(Phase):
    """A phase of objects."""

    objects: tuple[str, ...]

    @property
    def subjects(self) -> tuple[str, ...]:
        """The objects."""
        return self.objects


class PlannedMotion(Phase):
    """A phase that follows a motion of the plan, and replans it if the robot is too far from its beginning."""

    segment: Segment

    def replan(self, motion: Motion, t: float, measured: MeasuredState) -> None:
        """Replan the motion from the references if they are far from its beginning. Simulated time stands still.

        A motion that passes a stance without rest is not replanned: a new one would begin and end at rest.
        """
        if self.segment.passes:
            return
        motion.advance_reference(t, measured.q, measured.joint_rates)
        distance = motion.distance_to(self.segment, t)
        if distance > MAX_START_OFFSET:
            self.segment = self.replanned_segment(motion, t)
            motion.note_replanning(t, self.segment, distance)

    def replanned_segment(self, motion: Motion, t: float) -> Segment:
        """Return the motion that starts from the references at t (s)."""
        raise NotImplementedError


def height_over(contact: Contact, p: np.ndarray) -> float:
    """Return the distance of p (3,) from a contact along its normal (m); infinite if p is not over the contact."""
    offset = p - contact.p
    height = float(offset @ contact.normal)
    return abs(height) if np.linalg.norm(offset - height * contact.normal) <= MISS_DISTANCE_M else np.inf


def all_of(*criteria: Until) -> Until:
    """Return the conjunction of criteria."""
    return Until(all=criteria)


def com_arrived(s: ControlSettings) -> Until:
    """Return the criterion: the references have ended, and the centre of mass has arrived and is slow."""
    in_place = Until(error="com", below=s.timing.com_tolerance)
    return all_of(Until(finished=0.0), in_place, Until(speed="com", below=COM_REST_SPEED_M_S))


def remaining_time(motion: Motion, t: float) -> float:
    """Return the remaining time of a time-parameterized motion at time t (s); 0 for others."""
    return motion.posture.end_time - t if isinstance(motion.posture, TimedPath) else 0.0


def separation_time(s: ControlSettings) -> float:
    """Return the time for a link to separate from its support while its limb rests on another patch (s)."""
    if not s.compliant:
        return 0.0
    return SEPARATION_TIME_S if s.pace is None else 0.5 * s.pace.ramp


def with_timeout(criterion: Until, s: ControlSettings) -> Until:
    """Return the criterion, with a timeout after ``phase_timeout``."""
    return Until(any=(criterion, Until(timeout=s.timing.phase_timeout)))


@dataclass
class Stand(Phase):
    """Hold the first posture, so that the run begins at rest."""

    stance: int
    verb = "stand"
    effect = "holds the first posture"

    def until(self, settings: ControlSettings) -> Until:
        """Wait for ``start_time``."""
        return Until(elapsed=settings.timing.start_time)


@dataclass
class Shift(PlannedMotion):
    """Move CoM, posture and free limbs to those of a stance, on the contacts that are closed."""

    stance: int
    segment: Segment
    overlaps_unloading: bool = False
    """Whether a contact is unloaded during the last part of the motion, which brakes on the other contacts."""
    verb = "shift"
    effect = "moves centre of mass, posture and free limbs to those of the stance"

    def enter(self, motion: Motion, t: float, measured: MeasuredState) -> float:
        """Start the references."""
        motion.follow(self.segment, t, measured.pose)
        return motion.end_time - t - (motion.settings.timing.unload_time if self.overlaps_unloading else 0.0)

    def replanned_segment(self, motion: Motion, t: float) -> Segment:
        """Return the motion of the body to the same posture."""
        return motion.finder.shift(motion.departure(t), self.segment.q[-1])

    def until(self, settings: ControlSettings) -> Until:
        """Wait until the references have ended and the CoM has arrived and is slow, or for the timeout."""
        return with_timeout(Until(finished=0.0) if self.overlaps_unloading else com_arrived(settings), settings)


@dataclass
class Unload(PatchPhase):
    """Ramp the force limit of a contact to zero, then open it."""

    stance: int
    patch: str
    ends_shift: bool = False
    """Whether a quick shift, which began before, ends during this phase."""
    kept: float | None = None
    """Fraction of its margins that the next motion, without the contact, keeps; None: no time parameterization."""
    passing: bool = False
    """Whether the robot continues without rest: then the contact opens on time, even under load."""
    verb = "unload"
    effect = "ramps the contact force to zero; then opens the contact"

    def enter(self, motion: Motion, t: float, measured: MeasuredState) -> float:
        """Start the ramp from the present load. A quick motion continues to its end."""
        motion.unload(self.patch, t, motion.settings.timing.unload_time, measured.load(self.patch))
        motion.set_force_reserve(self.kept, t)
        return max(motion.settings.timing.unload_time, remaining_time(motion, t) if self.ends_shift else 0.0)

    def until(self, settings: ControlSettings) -> Until:
        """Wait until the load is below ``release_force``, and the centre of mass has arrived."""
        if self.passing:
            return Until(finished=0.0)
        is_unloaded = Until(force=self.patch, below=settings.contact.release_force)
        return with_timeout(
            all_of(com_arrived(settings) if self.ends_shift else Until(finished=0.0), is_unloaded), settings
        )

    def leave(self, motion: Motion, t: float, measured: MeasuredState) -> None:
        """Open the contact."""
        place, contact = measured.pose(self.patch), motion.contacts[self.patch].contact
        motion.open(self.patch, t, place if motion.settings.compliant else allowed_pose(contact, place))


@dataclass
class Retract(PatchPhase, PlannedMotion):
    """Lift a released patch that has no next contact yet clear of its support."""

    stance: int
    patch: str
    segment: Segment | None  # type: ignore[assignment]
    verb = "retract"
    effect = "lifts the patch clear of its support"

    def enter(self, motion: Motion, t: float, measured: MeasuredState) -> float:
        """Start the lift along the normal."""
        if self.segment is None or self.patch not in motion.released:
            # its limb rests on another patch; collision avoidance separates the link from the support
            return separation_time(motion.settings)
        motion.follow(self.segment, t, measured.pose)
        return motion.limbs[self.patch].end_time - t

    def replan(self, motion: Motion, t: float, measured: MeasuredState) -> None:
        """Replan the lift if the references are far from its beginning."""
        if self.segment is not None and self.patch in motion.released:
            super().replan(motion, t, measured)

    def replanned_segment(self, motion: Motion, t: float) -> Segment:
        """Return the lift that starts from the references."""
        return motion.finder.retraction(motion.departure(t), self.patch)


@dataclass
class Lift(ContactPhase, PlannedMotion):
    """Start the motion to a new contact: lift off the old one. The body moves to the posture of the new stance."""

    stance: int
    contact: Contact
    segment: Segment
    next_contacts: tuple[Contact, ...] = ()
    """Contacts that the limb closes next; at the end of the segment their patches are in place, too."""
    verb = "lift"
    effect = "lifts the patch off, and moves the body to the posture of the stance"

    def enter(self, motion: Motion, t: float, measured: MeasuredState) -> float:
        """Start the references of limb and body; the slower one sets the duration."""
        motion.follow(self.segment, t, measured.pose)
        return motion.limbs[self.contact.patch].swing_time - t

    def replanned_segment(self, motion: Motion, t: float) -> Segment:
        """Return the motion from the references to the same contacts."""
        return motion.finder.swing(motion.departure(t), self.segment.q[-1], (self.contact, *self.next_contacts))


@dataclass
class Swing(ContactPhase):
    """Swing to above the new contact."""

    stance: int
    contact: Contact
    verb = "swing"
    effect = "swings to above the new contact"

    def enter(self, motion: Motion, t: float, measured: MeasuredState) -> float:
        """Return the time until the path descends along the normal (s)."""
        return motion.limbs[self.contact.patch].approach_time - t

    def until(self, settings: ControlSettings) -> Until:
        """Wait for the end of the swing, or for an early touchdown."""
        s, patch, end = settings, self.contact.patch, Until(finished=0.0)
        if not s.compliant or self.contact.kind == "grasp":
            return end
        is_low = Until(over=patch, below=s.avoidance.swing_clearance)
        touch = all_of(Until(force=patch, above=s.contact.touch_force), is_low)
        return Until(any=(end, touch.model_copy(update={"altogether": TOUCH_TIME_S})))


@dataclass
class Approach(ContactPhase):
    """Descend along the normal and touch."""

    stance: int
    contact: Contact
    passing: bool = False
    """Whether the robot continues without rest."""
    verb = "approach"
    effect = "descends along the normal; then closes the contact"

    def enter(self, motion: Motion, t: float, measured: MeasuredState) -> float:
        """Switch touch detection on."""
        if motion.detects_touch(self.contact):
            motion.descending_patches.add(self.contact.patch)
        return max(motion.limbs[self.contact.patch].end_time - t, 0.0)

    def until(self, settings: ControlSettings) -> Until:
        """Wait for the touch: a force if touch is detected, else the patch in place and at rest.

        A patch in place and at rest needs less force to count, because another patch of its link may bear the load.
        """
        s, patch = settings, self.contact.patch
        at_rest = Until(finished=0.0), Until(speed=patch, below=TOUCH_SPEED_M_S[s.contact.model])
        max_error = TOUCH_ERROR_M[s.contact.model]
        if s.compliant and self.contact.kind != "grasp":
            force_felt = Until(force=patch, above=s.contact.touch_force)
            is_low = Until(over=patch, below=max_error)
            light_touch = all_of(*at_rest, is_low, Until(force=patch, above=TOUCH_FRACTION * s.contact.touch_force))
            touch = Until(any=(force_felt, light_touch), altogether=TOUCH_TIME_S)
        elif self.passing:
            touch = all_of(Until(finished=0.0), Until(error=patch, below=max_error))
        else:
            touch = all_of(*at_rest, Until(error=patch, below=max_error))
        return with_timeout(touch, s)

    def leave(self, motion: Motion, t: float, measured: MeasuredState) -> None:
        """Close the contact; its force limit rises within ``load_time``.

        A compliant contact closes at its measured pose, and starts from its measured force.

        Raises
        ------
        SimulationFailed
            The patch is far from its contact after the timeout: a contact closed there would carry nothing.
        """
        s, patch = motion.settings, self.contact.patch
        pose = measured.pose(patch)
        distance = float(np.linalg.norm(pose[1] - allowed_pose(self.contact, pose)[1]))
        if distance > s.contact.touch_depth + MISS_DISTANCE_M:
            raise SimulationFailed(
                f"{self.name} of stance {self.stance} at t = {t:g} s: no contact, {distance:.3f} m from its place",
                "no contact",
            )
        if s.compliant:
            motion.close(self.contact, t, s.timing.load_time, measured.normal_force(patch), measured.pose(patch))
        else:
            motion.close(self.contact, t, s.timing.load_time)


@dataclass
class Load(PatchPhase):
    """Load the new contact."""

    stance: int
    patch: str
    precedes_shift: bool = False
    """Whether a quick shift follows: it accelerates on the other contacts, and does not wait for the ramp."""
    verb = "load"
    effect = "loads the contact"

    def enter(self, motion: Motion, t: float, measured: MeasuredState) -> float:
        """Change nothing: the touchdown has started the ramp.

        A quick motion continues to its end, the posture of the stance, from which the next motion begins.
        """
        return max(0.0 if self.precedes_shift else motion.settings.timing.load_time, remaining_time(motion, t))


@dataclass
class Settle(Phase):
    """Come to rest at the end."""

    stance: int
    verb = "settle"
    effect = "comes to rest"

    def enter(self, motion: Motion, t: float, measured: MeasuredState) -> float:
        """Change nothing."""
        return motion.settings.timing.settle_time

    def until(self, settings: ControlSettings) -> Until:
        """Wait until CoM and joints are slow, and the CoM is in place."""
        s = settings
        at_rest = all_of(
            Until(finished=0.0),
            Until(error="com", below=s.timing.com_tolerance),
            Until(speed="com", below=COM_REST_SPEED_M_S),
            Until(speed="joints", below=JOINT_REST_SPEED_RAD_S),
        )
        return with_timeout(at_rest, s)


class SegmentObjectsPhase(ObjectPhase):
    """A phase of the objects that a segment moves."""

    segment: Segment

    @property
    def objects(self) -> tuple[str, ...]:  # type: ignore[override]
        """The objects that the segment moves."""
        return tuple(self.segment.objects or {})


@dataclass
class Take(ObjectPhase):
    """Unload the supports of objects until the robot alone bears them."""

    stance: int
    objects: tuple[str, ...]
    verb = "take"
    effect = "unloads the supports of objects"

    def enter(self, motion: Motion, t: float, measured: MeasuredState) -> float:
        """Start the ramps from the present loads of their supports."""
        for name in self.objects:
            motion.take(name, t, motion.settings.timing.unload_time, measured.load(name))
        return motion.settings.timing.unload_time


@dataclass
class Press(SegmentObjectsPhase):
    """Push objects with rising force until static friction is overcome."""

    stance: int
    segment: Segment
    verb = "press"
    effect = "pushes against objects until they slide"

    def enter(self, motion: Motion, t: float, measured: MeasuredState) -> float:
        """Start the object references after ``load_time``."""
        motion.press(t, self.segment, {name: measured.pose(name) for name in self.objects})
        return motion.settings.timing.load_time


@dataclass
class Transport(SegmentObjectsPhase):
    """Move objects by the contacts on them, and the body to the posture of the stance."""

    stance: int
    segment: Segment
    environment: Environment
    lifted: tuple[str, ...]
    """Objects that leave their supports."""
    verb: str
    effect = "moves objects and the body"

    def enter(self, motion: Motion, t: float, measured: MeasuredState) -> float:
        """Start the references."""
        motion.transport(t, self.segment, {name: measured.pose(name) for name in self.objects}, self.lifted)
        return motion.end_time - t

    def until(self, settings: ControlSettings) -> Until:
        """Wait until the references have ended, CoM and objects have arrived and the CoM is slow; or for a timeout."""
        s = settings
        has_arrived = all_of(
            Until(finished=0.0),
            Until(error="com", below=s.timing.com_tolerance),
            Until(speed="com", below=COM_REST_SPEED_M_S),
            *(Until(error=name, below=SLIDE_ERROR_M[s.contact.model]) for name in self.objects),
        )
        return with_timeout(has_arrived, s)

    def leave(self, motion: Motion, t: float, measured: MeasuredState) -> None:
        """Hand the objects over to their supports; contacts on the objects are those of the stance."""
        motion.settle_objects(self.environment, self.segment.contacts, t)


@dataclass
class Put(ObjectPhase):
    """Load the supports on which objects were put down."""

    stance: int
    objects: tuple[str, ...]
    verb = "put"
    effect = "loads the supports of objects"

    def enter(self, motion: Motion, t: float, measured: MeasuredState) -> float:
        """Change nothing: the end of the transport has started the ramps."""
        return motion.settings.timing.load_time

    def leave(self, motion: Motion, t: float, measured: MeasuredState) -> None:
        """Release the objects: from now on contacts on them are as on any support."""
        motion.held_objects.difference_update(self.objects)


@dataclass
class CustomPhase(Phase):
    """A state of the scenario: references of CoM, posture and free limbs, and force limits, on the present contacts.

    Parameters
    ----------
    stance : index of the stance with the present contacts.
    title : name of the state.
    action : references and force limits of the state.
    criterion : termination criterion.
    """

    stance: int
    title: str
    action: StateAction
    criterion: Until
    effect = "custom state"

    @property
    def name(self) -> str:
        """Name in the scenario."""
        return self.title

    def enter(self, motion: Motion, t: float, measured: MeasuredState) -> float:
        """Start the references, each from its present value.

        Raises
        ------
        SimulationFailed
            A patch with a motion is in contact, or a patch with a force limit is not.
        """
        action, T = self.action, self.action.over
        misplaced = sorted(set(action.limbs) & set(motion.contacts)) + sorted(set(action.forces) - set(motion.contacts))
        if misplaced:
            state = "is" if misplaced[0] in motion.contacts else "is not"
            raise SimulationFailed(f"state {self.name} at t = {t:g} s: {misplaced[0]} {state} in contact")
        if action.com is not None:
            x = motion.com.sample(t)
            motion.com = Spline.to_rest(x.value, np.array(action.com), T, x.velocity, x.acceleration, t)
        if action.posture is not None:
            y = motion.posture.sample(t)
            motion.posture = PostureSpline.to_rest(y.q, _with_joints(motion, y.q, action.posture), T, y.v, y.vd, t)
        for patch, move in action.limbs.items():
            if patch in motion.limbs:
                sample = motion.limbs[patch].sample(t)
                start = sample.R, sample.p
            else:
                start = measured.pose(patch)
            motion.released.pop(patch, None)
            motion.limbs[patch] = LimbPath(start, _end_pose(start, move), np.zeros(3), np.zeros(3), motion.timing, t, T)
        for patch, max_force in action.forces.items():
            loaded = motion.contacts[patch]
            loaded.limit = Ramp(min(measured.load(patch), loaded.full), min(max_force, loaded.full), t, T)
        return max([T, *(motion.limbs[patch].end_time - t for patch in action.limbs)])

    def until(self, settings: ControlSettings) -> Until:
        """Return the criterion of the scenario."""
        return self.criterion


def _with_joints(motion: Motion, q: np.ndarray, posture: str | Joints) -> np.ndarray:
    """Return q (7+n,) with the joints of a posture; the base is left to contacts and centre of mass."""
    q, robot = np.array(q), motion.robot
    if isinstance(posture, str):
        q[7:] = robot.posture(posture)[7:]
        return q
    for joint, value in posture.joints.items():
        q[7 + robot.joint_names.index(joint)] = value
    return q


def _end_pose(start: Pose, move: LimbMove) -> Pose:
    """Return the pose to which a custom state moves a limb."""
    if move.to is not None:
        return move.to.R, move.to.p
    return start[0], start[1] + np.array(move.by)


def phases_of(plan: Plan) -> list[Phase]:
    """Return the phases that execute a plan, from standing on its first stance to rest on its last."""
    phases: list[Phase] = [Stand(0)]
    for k, stance in enumerate(plan.stances[1:], start=1):
        if stance.transition is None:
            raise InputError(f"stance {k} of the plan has no transition; mcplan.plan and load_plan find them")
        segment = stance.transition.segments[0]
        if segment.objects:
            poses = [plan.scenario.environment.placed(plan.stances[i].objects) for i in (k - 1, k)]
            phases += phases_of_transport(k, segment, poses[0], poses[1])
            continue
        phases += _phases_of_stance(k, plan, following_contacts(plan.scenario.robot, plan.stances, k))
    return [*phases, Settle(len(plan.stances) - 1)]


def _phases_of_stance(k: int, plan: Plan, next_contacts: tuple[Contact, ...]) -> list[Phase]:
    """Return the phases that lead to stance k; ``next_contacts`` are those that its limb closes next."""
    stance = plan.stances[k]
    assert stance.transition is not None
    patch, segments = stance.moved, stance.transition.segments
    if patch is None:
        return [Shift(k, segments[0])]
    if stance.change == "add":
        contact = stance.contact(patch)
        load, passing = Load(k, patch, _shifts_quickly(plan, k)), stance.passing is not None
        return [Lift(k, contact, segments[0], next_contacts), Swing(k, contact), Approach(k, contact, passing), load]
    is_quick, next_law = segments[0].law is not None, _law_of(plan, k, segments[1:])
    unload = Unload(k, patch, is_quick, None if next_law is None else next_law.kept, stance.passing is not None)
    phases: list[Phase] = [Shift(k, segments[0], is_quick), unload]
    if stance.transition.parts:
        phases.append(Retract(k, patch, segments[1] if len(segments) > 1 else None))
    return phases


def _shifts_quickly(plan: Plan, k: int) -> bool:
    """Whether a time-parameterized shift of the body follows stance k."""
    return k + 1 < len(plan.stances) and plan.stances[k + 1].change != "add" and _law_of(plan, k) is not None


def _law_of(plan: Plan, k: int, segments: Sequence[Segment] = ()) -> TimeParameterization | None:
    """Return the time parameterization of the next motion: of the remaining segments, else after stance k."""
    if not segments and k + 1 < len(plan.stances):
        transition = plan.stances[k + 1].transition
        segments = () if transition is None else transition.segments
    return segments[0].law if segments else None


def phases_of_transport(stance: int, segment: Segment, before: Environment, after: Environment) -> list[Phase]:
    """Return the phases of a segment that moves objects.

    Parameters
    ----------
    stance : index of the stance at its end.
    before, after : the scene with the objects as they are at its two ends.
    """
    names = tuple(segment.objects or {})
    ends = {name: (_support_contact(name, before), _support_contact(name, after)) for name in names}
    carried = tuple(name for name in names if not slides(*ends[name], after))
    lifted = tuple(name for name in carried if ends[name][0] is not None)
    lowered = tuple(name for name in carried if ends[name][1] is not None)
    phases: list[Phase] = [Take(stance, lifted)] if lifted else []
    if not carried:
        phases.append(Press(stance, segment))
    phases.append(Transport(stance, segment, after, lifted, "carry" if carried else "slide"))
    return [*phases, Put(stance, lowered)] if lowered else phases


def _support_contact(name: str, scene: Environment) -> Contact | None:
    """Return the contact of an object with its support; None if it is held in the air."""
    return resting_contact(next(thing for thing in scene.objects if thing.name == name), scene)
