"""The phases of a plan: what each starts when it is entered, does when it is left, and on which criterion it ends."""

from dataclasses import dataclass

import numpy as np

from mcplan.control.motion import Motion
from mcplan.control.phase import Now
from mcplan.control.watches import FELT
from mcplan.errors import SimulationFailed
from mcplan.motion.time_parameterization import TimedPath
from mcplan.planning.transition.transition import Segment
from mcplan.scene.allowed import allowed_pose
from mcplan.scene.contact import Contact
from mcplan.settings.settings import ControlSettings
from mcplan.settings.states import Until

TOO_FAR = 0.01
"""m: a patch that is farther from its place, beyond the depth to which it searches, has missed it."""

FAR = 0.05
"""rad or m: references that are farther from where a planned motion begins do not follow it: it is replanned."""


class Body:
    """A phase that leaves the contacts as they are."""

    verb = ""
    stance: int

    @property
    def name(self) -> str:
        """The verb."""
        return self.verb

    def replan(self, motion: Motion, t: float, now: Now) -> None:
        """Change nothing."""

    def leave(self, motion: Motion, t: float, now: Now) -> None:
        """Change nothing."""


class OfPatch(Body):
    """A phase about one patch."""

    patch: str

    @property
    def name(self) -> str:
        """Verb and patch."""
        return f"{self.verb} {self.patch}"


class OfContact(Body):
    """A phase about the patch of one contact."""

    contact: Contact

    @property
    def name(self) -> str:
        """Verb and patch."""
        return f"{self.verb} {self.contact.patch}"


class _Moving(Body):
    """A phase that follows a motion of the plan, replanned where the robot is too far from its beginning."""

    segment: Segment

    def replan(self, motion: Motion, t: float, now: Now) -> None:
        """Plan the motion again from the references, if they are far from where it begins. Simulated time stands still.

        A motion that passes a stance without rest is kept: a replanned one begins and ends at rest.
        """
        if self.segment.passes:
            return
        motion.catch_up(t, now.q, now.joint_rates)
        away = motion.away(self.segment, t)
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
    return all_of(
        Until(finished=0.0), Until(error="com", below=s.com_error), Until(speed="com", below=s.com_rest_speed)
    )


def left_of(motion: Motion, t: float) -> float:
    """Return how long a quick motion still takes at time t (s)."""
    return motion.posture.end_time - t if isinstance(motion.posture, TimedPath) else 0.0


def or_timeout(criterion: Until, s: ControlSettings) -> Until:
    """Return the criterion that one is met, or has not been for too long."""
    return Until(any=(criterion, Until(timeout=s.patience)))


@dataclass
class Stand(Body):
    """Hold the first posture, so that the run begins at rest."""

    stance: int
    verb = "stand"

    def enter(self, motion: Motion, t: float, now: Now) -> float:
        """Change nothing."""
        return 0.0

    def until(self, settings: ControlSettings) -> Until:
        """Wait for ``start_time``."""
        return Until(elapsed=settings.start_time)


@dataclass
class Shift(_Moving):
    """Move CoM, posture and free limbs to those of a stance, on the contacts that are closed."""

    stance: int
    segment: Segment
    unloads: bool = False
    """Whether a contact is unloaded while its last part is gone: there a quick motion slows down, by the others."""
    verb = "shift"

    def enter(self, motion: Motion, t: float, now: Now) -> float:
        """Start the references."""
        motion.follow(self.segment, t, now.pose)
        return motion.end_time - t - (motion.settings.unload_time if self.unloads else 0.0)

    def replanned(self, motion: Motion, t: float) -> Segment:
        """Return the motion of the body to the same posture."""
        return motion.finder.shift(motion.departure(t), self.segment.q[-1])

    def until(self, settings: ControlSettings) -> Until:
        """Wait until the references have run, the CoM follows and is slow; or it takes far too long."""
        return or_timeout(Until(finished=0.0) if self.unloads else arrived(settings), settings)


@dataclass
class Unload(OfPatch):
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

    def enter(self, motion: Motion, t: float, now: Now) -> float:
        """Start the ramp from the force carried now. What a quick motion has left it goes on with."""
        motion.unload(self.patch, t, motion.settings.unload_time, now.load(self.patch))
        motion.rely(self.kept, t)
        return max(motion.settings.unload_time, left_of(motion, t) if self.arriving else 0.0)

    def until(self, settings: ControlSettings) -> Until:
        """Wait until the contact carries next to nothing, and the centre of mass has arrived."""
        if self.passing:
            return Until(finished=0.0)
        light = Until(force=self.patch, below=settings.release_force)
        return or_timeout(all_of(arrived(settings) if self.arriving else Until(finished=0.0), light), settings)

    def leave(self, motion: Motion, t: float, now: Now) -> None:
        """Open the contact."""
        place, contact = now.pose(self.patch), motion.contacts[self.patch].contact
        motion.open(self.patch, t, place if motion.settings.compliant else allowed_pose(contact, place))


@dataclass
class Retract(OfPatch, _Moving):
    """Lift a patch that was released and has nowhere to go yet clear of its support."""

    stance: int
    patch: str
    segment: Segment | None  # type: ignore[assignment]
    verb = "retract"

    def enter(self, motion: Motion, t: float, now: Now) -> float:
        """Start the lift along the normal."""
        if self.segment is None or self.patch not in motion.released:
            # its limb rests on another patch; collision avoidance parts the link from the support
            return motion.settings.part_time if motion.settings.compliant else 0.0
        motion.follow(self.segment, t, now.pose)
        return motion.limbs[self.patch].end_time - t

    def replan(self, motion: Motion, t: float, now: Now) -> None:
        """Plan the lift again, where the references are far from where the planned one begins."""
        if self.segment is not None and self.patch in motion.released:
            super().replan(motion, t, now)

    def replanned(self, motion: Motion, t: float) -> Segment:
        """Return the lift from where the references are."""
        return motion.finder.retraction(motion.departure(t), self.patch)

    def until(self, settings: ControlSettings) -> Until:
        """Wait until it is up."""
        return Until(finished=0.0)


@dataclass
class Lift(OfContact, _Moving):
    """Begin the way to a new contact: off the old one. The body moves along to the posture of the new stance."""

    stance: int
    contact: Contact
    segment: Segment
    coming: tuple[Contact, ...] = ()
    """Contacts that the limb makes next: at the end of the segment they are in place too."""
    verb = "lift"

    def enter(self, motion: Motion, t: float, now: Now) -> float:
        """Start limb and body together; the slower of the two sets the time."""
        motion.follow(self.segment, t, now.pose)
        return motion.limbs[self.contact.patch].swing_time - t

    def replanned(self, motion: Motion, t: float) -> Segment:
        """Return the motion from where the references are to the same contacts."""
        return motion.finder.swing(motion.departure(t), self.segment.q[-1], (self.contact, *self.coming))

    def until(self, settings: ControlSettings) -> Until:
        """Wait until it is up."""
        return Until(finished=0.0)


@dataclass
class Swing(OfContact):
    """Cross over to the new place."""

    stance: int
    contact: Contact
    verb = "swing"

    def enter(self, motion: Motion, t: float, now: Now) -> float:
        """Return how long it takes until the path comes down along the normal."""
        return motion.limbs[self.contact.patch].approach_time - t

    def until(self, settings: ControlSettings) -> Until:
        """Wait for the end of the crossing, or meet the support before."""
        s, patch, across = settings, self.contact.patch, Until(finished=0.0)
        if not s.compliant or self.contact.kind == "grasp":
            return across
        touch = all_of(Until(force=patch, above=s.touch_force), Until(over=patch, below=s.clearance))
        return Until(any=(across, touch.model_copy(update={"altogether": s.touch_time or None})))


@dataclass
class Approach(OfContact):
    """Come down along the normal and touch."""

    stance: int
    contact: Contact
    passing: bool = False
    """Whether the robot goes on without coming to rest."""
    verb = "approach"

    def enter(self, motion: Motion, t: float, now: Now) -> float:
        """Let the patch feel for its support."""
        if motion.feels(self.contact):
            motion.sought.add(self.contact.patch)
        return max(motion.limbs[self.contact.patch].end_time - t, 0.0)

    def until(self, settings: ControlSettings) -> Until:
        """Wait for the touch: a force where touch is felt, else the patch in place and at rest.

        What lies in its place with less force does not get more by waiting: another patch of its link bears it.
        """
        s, patch = settings, self.contact.patch
        rest = Until(finished=0.0), Until(speed=patch, below=s.touch_speed)
        if s.compliant and self.contact.kind != "grasp":
            felt = Until(force=patch, above=s.touch_force)
            lies = all_of(
                *rest, Until(over=patch, below=s.touch_error), Until(force=patch, above=FELT * s.touch_force)
            )
            touch = Until(any=(felt, lies), altogether=s.touch_time or None)
        elif self.passing:
            touch = all_of(Until(finished=0.0), Until(error=patch, below=s.touch_error))
        else:
            touch = all_of(*rest, Until(error=patch, below=s.touch_error))
        return or_timeout(touch, s)

    def leave(self, motion: Motion, t: float, now: Now) -> None:
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
        if away > s.touch_depth + TOO_FAR:
            raise SimulationFailed(
                f"{self.name} of stance {self.stance} at t = {t:g} s: no contact, {away:.3f} m from its place",
                "no contact",
            )
        if s.compliant:
            motion.close(self.contact, t, s.load_time, now.normal_force(patch), now.pose(patch))
        else:
            motion.close(self.contact, t, s.load_time)


@dataclass
class Load(OfPatch):
    """Let the new contact take its share."""

    stance: int
    patch: str
    shifts: bool = False
    """Whether a quick shift follows, which speeds up on the other contacts: it does not wait for the ramp."""
    verb = "load"

    def enter(self, motion: Motion, t: float, now: Now) -> float:
        """Change nothing: the touch has started the ramp. What a quick motion has left when it touches it goes on with.

        Its law leads to the posture of the stance, from which the next motion begins.
        """
        return max(0.0 if self.shifts else motion.settings.load_time, left_of(motion, t))

    def until(self, settings: ControlSettings) -> Until:
        """Wait for both."""
        return Until(finished=0.0)


@dataclass
class Settle(Body):
    """Come to rest at the end."""

    stance: int
    verb = "settle"

    def enter(self, motion: Motion, t: float, now: Now) -> float:
        """Change nothing."""
        return motion.settings.settle_time

    def until(self, settings: ControlSettings) -> Until:
        """Wait until everything is slow and in place."""
        s = settings
        rest = all_of(
            Until(finished=0.0),
            Until(error="com", below=s.com_error),
            Until(speed="com", below=s.com_rest_speed),
            Until(speed="joints", below=s.joint_rest_speed),
        )
        return or_timeout(rest, s)
