"""The states of the machine: what each starts when it is entered, and on which criterion it ends."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mcplan.control.allowed import allowed_pose
from mcplan.control.criteria import (
    AllOf,
    AnyOf,
    Criterion,
    Elapsed,
    ErrorBelow,
    ForceAbove,
    ForceBelow,
    Measurement,
    SpeedBelow,
    Sustained,
    Timeout,
)
from mcplan.control.motion import Motion
from mcplan.errors import SimulationFailed
from mcplan.scene.contact import Contact

TOO_FAR = 0.01
"""m: a patch that is farther from its place, beyond the depth to which it searches, has missed it."""


class Phase(Protocol):
    """A state of the machine. ``stance`` is the index of the stance of the plan that it leads to."""

    stance: int

    @property
    def name(self) -> str:
        """What is shown and recorded: the verb, and the patch that it is about."""
        ...

    def enter(self, motion: Motion, t: float, now: "Now") -> Criterion:
        """Start references or ramps, and return the criterion that ends the phase."""
        ...

    def leave(self, motion: Motion, t: float, now: "Now") -> None:
        """Change the contacts when the phase has ended."""
        ...


class Now(Protocol):
    """What a phase may ask of the present state."""

    def pose(self, frame: str) -> tuple[np.ndarray, np.ndarray]:
        """Return R (3,3) and p (3,) of a patch frame."""
        ...

    def normal_force(self, patch: str) -> float:
        """Return the normal force that a contact carries (N); a grasp: the magnitude of its force."""
        ...

    def load(self, patch: str) -> float:
        """Return the force limit (N) under which a contact still carries what it carries now."""
        ...


class _Body:
    """A phase that leaves the contacts as they are."""

    verb = ""
    stance: int

    @property
    def name(self) -> str:
        return self.verb

    def leave(self, motion: Motion, t: float, now: Now) -> None:
        """Change nothing."""


def _arrived(motion: Motion, duration: float) -> Criterion:
    """Return: the references have run, the CoM follows and is slow; or it takes far too long."""
    s = motion.settings
    near = AllOf(Elapsed(duration), ErrorBelow("com", s.com_error), SpeedBelow("com", s.com_rest_speed))
    return AnyOf(near, Timeout(duration + s.patience))


@dataclass
class Stand(_Body):
    """Hold the first posture, so that the run begins at rest."""

    stance: int
    verb = "stand"

    def enter(self, motion: Motion, t: float, now: Now) -> Criterion:
        """Wait for ``start_time``."""
        return Elapsed(motion.settings.start_time)


@dataclass
class Shift(_Body):
    """Move CoM, posture and free limbs to those of a stance, on the contacts that are closed."""

    stance: int
    q: np.ndarray
    verb = "shift"

    def enter(self, motion: Motion, t: float, now: Now) -> Criterion:
        """Start the references."""
        end = motion.move_body(t, self.q, motion.body_duration(t, self.q))
        return _arrived(motion, end - t)


@dataclass
class Unload(_Body):
    """Let the force of a contact sink to nothing, then open it."""

    stance: int
    patch: str
    verb = "unload"

    @property
    def name(self) -> str:
        """Verb and patch."""
        return f"{self.verb} {self.patch}"

    def enter(self, motion: Motion, t: float, now: Now) -> Criterion:
        """Start the ramp from the force carried now."""
        s = motion.settings
        motion.unload(self.patch, t, s.unload_time, now.load(self.patch))
        light = AllOf(Elapsed(s.unload_time), ForceBelow(self.patch, s.release_force))
        return AnyOf(light, Timeout(s.unload_time + s.patience))

    def leave(self, motion: Motion, t: float, now: Now) -> None:
        """Open the contact."""
        place, contact = now.pose(self.patch), motion.contacts[self.patch].contact
        motion.open(self.patch, t, place if motion.settings.touch_force > 0.0 else allowed_pose(contact, place))


@dataclass
class Retract(_Body):
    """Lift a patch that was released and has nowhere to go yet clear of its support."""

    stance: int
    patch: str
    verb = "retract"

    @property
    def name(self) -> str:
        """Verb and patch."""
        return f"{self.verb} {self.patch}"

    def enter(self, motion: Motion, t: float, now: Now) -> Criterion:
        """Start the lift along the normal."""
        if self.patch not in motion.released:
            # its limb rests on another patch; collision avoidance parts the link from the support
            return Elapsed(motion.settings.part_time if motion.settings.touch_force > 0.0 else 0.0)
        return Elapsed(motion.raise_limb(t, self.patch, motion.settings.clearance) - t)


@dataclass
class Lift(_Body):
    """Begin the way to a new contact: off the old one. The body moves along to the posture of the new stance."""

    stance: int
    contact: Contact
    q: np.ndarray
    coming: tuple[Contact, ...] = ()
    """Contacts that the limb makes next: at the posture ``q`` they are in place too."""
    verb = "lift"

    @property
    def name(self) -> str:
        """Verb and patch."""
        return f"{self.verb} {self.contact.patch}"

    def enter(self, motion: Motion, t: float, now: Now) -> Criterion:
        """Start limb and body together; the slower of the two sets the time."""
        path = motion.reach(t, self.contact, now.pose(self.contact.patch), self.q)
        for contact in self.coming:
            motion.accompany(t, contact, now.pose(contact.patch))
        return Elapsed(path.swing_time - t)


@dataclass(frozen=True)
class _Above:
    """A patch is over its place, no higher than ``height`` (m): what it meets there is its support."""

    contact: Contact
    now: Now
    height: float

    def met(self, measurement: Measurement) -> str:
        """Return ``above NAME`` when it is."""
        step, n = self.now.pose(self.contact.patch)[1] - self.contact.p, self.contact.normal
        up = float(step @ n)
        near = np.linalg.norm(step - up * n) <= TOO_FAR and abs(up) <= self.height
        return f"above {self.contact.patch}" if near else ""


@dataclass
class Swing(_Body):
    """Cross over to the new place."""

    stance: int
    patch: str
    verb = "swing"

    @property
    def name(self) -> str:
        """Verb and patch."""
        return f"{self.verb} {self.patch}"

    def enter(self, motion: Motion, t: float, now: Now) -> Criterion:
        """Wait until the path comes down along the normal, or the support is met before."""
        s, across = motion.settings, Elapsed(motion.limbs[self.patch].approach_time - t)
        contact = motion.targets[self.patch]
        if not motion.feels(contact):
            return across
        touch = AllOf(ForceAbove(self.patch, s.touch_force), _Above(contact, now, s.clearance))
        return AnyOf(across, Sustained(touch, s.touch_time))


@dataclass
class Approach(_Body):
    """Come down along the normal and touch."""

    stance: int
    contact: Contact
    verb = "approach"

    @property
    def name(self) -> str:
        """Verb and patch."""
        return f"{self.verb} {self.contact.patch}"

    def enter(self, motion: Motion, t: float, now: Now) -> Criterion:
        """Wait for the touch: the patch is in place and at rest."""
        s, patch = motion.settings, self.contact.patch
        rest = motion.limbs[patch].end_time - t
        touch: Criterion = AllOf(Elapsed(rest), ErrorBelow(patch, s.touch_error), SpeedBelow(patch, s.touch_speed))
        if motion.feels(self.contact):
            motion.sought.add(patch)
            touch = Sustained(ForceAbove(patch, s.touch_force), s.touch_time)
        return AnyOf(touch, Timeout(rest + s.patience))

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
                f"{self.name} of stance {self.stance} at t = {t:g} s: no contact, {away:.3f} m from its place"
            )
        if s.touch_force > 0.0:
            motion.close(self.contact, t, s.load_time, now.normal_force(patch), now.pose(patch))
        else:
            motion.close(self.contact, t, s.load_time)


@dataclass
class Load(_Body):
    """Let the new contact take its share."""

    stance: int
    patch: str
    verb = "load"

    @property
    def name(self) -> str:
        """Verb and patch."""
        return f"{self.verb} {self.patch}"

    def enter(self, motion: Motion, t: float, now: Now) -> Criterion:
        """Wait for the ramp that the touch has started."""
        return Elapsed(motion.settings.load_time)


@dataclass
class Settle(_Body):
    """Come to rest at the end."""

    stance: int
    verb = "settle"

    def enter(self, motion: Motion, t: float, now: Now) -> Criterion:
        """Wait until everything is slow and in place."""
        s = motion.settings
        rest = AllOf(
            Elapsed(s.settle_time),
            ErrorBelow("com", s.com_error),
            SpeedBelow("com", s.com_rest_speed),
            SpeedBelow("joints", s.joint_rest_speed),
        )
        return AnyOf(rest, Timeout(s.settle_time + s.patience))
