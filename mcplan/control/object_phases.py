"""The phases in which objects move: taken off what they lie on, slid or carried, put down."""

from dataclasses import dataclass

import numpy as np

from mcplan.control.motion import Motion
from mcplan.control.phase import Now, Phase
from mcplan.control.phases import Body, all_of, or_timeout
from mcplan.planning.transition.transition import Segment
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment
from mcplan.scene.resting import resting_contact, slides
from mcplan.settings.settings import ControlSettings
from mcplan.settings.states import Until


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


@dataclass
class Take(Body):
    """Let what objects lie on bear less and less of them, until the robot bears them alone."""

    stance: int
    objects: tuple[str, ...]
    verb = "take"

    @property
    def name(self) -> str:
        """Verb and objects."""
        return f"{self.verb} {' '.join(self.objects)}"

    def enter(self, motion: Motion, t: float, now: Now) -> float:
        """Start the ramps from what their supports bear now."""
        for name in self.objects:
            motion.take(name, t, motion.settings.unload_time, now.load(name))
        return motion.settings.unload_time

    def until(self, settings: ControlSettings) -> Until:
        """Wait for the ramps."""
        return Until(finished=0.0)


@dataclass
class Press(Body):
    """Push objects that are to slide more and more, until friction holds them no longer."""

    stance: int
    segment: Segment
    verb = "press"

    @property
    def name(self) -> str:
        """Verb and objects."""
        return f"{self.verb} {' '.join(self.segment.objects or {})}"

    def enter(self, motion: Motion, t: float, now: Now) -> float:
        """Say where they are to go, after the time in which a contact is loaded."""
        motion.press(t, self.segment, {name: now.pose(name) for name in self.segment.objects or {}})
        return motion.settings.load_time

    def until(self, settings: ControlSettings) -> Until:
        """Wait until they are pushed as they are while they slide."""
        return Until(finished=0.0)


@dataclass
class Transport(Body):
    """Move objects with the contacts that are on them, and the body to the posture of the stance where they are."""

    stance: int
    segment: Segment
    environment: Environment
    lifted: tuple[str, ...]
    """Objects that are off what they have lain on from now on."""
    verb: str

    @property
    def poses(self) -> dict[str, np.ndarray]:
        """Poses (7,) of the objects at the end."""
        return self.segment.objects or {}

    @property
    def name(self) -> str:
        """Verb and objects."""
        return f"{self.verb} {' '.join(self.poses)}"

    def enter(self, motion: Motion, t: float, now: Now) -> float:
        """Start the references."""
        motion.transport(t, self.segment, {name: now.pose(name) for name in self.poses}, self.lifted)
        return motion.end_time - t

    def until(self, settings: ControlSettings) -> Until:
        """Wait until the references have run, CoM and objects follow, the CoM is slow; or it takes far too long."""
        s = settings
        near = all_of(
            Until(finished=0.0),
            Until(error="com", below=s.com_error),
            Until(speed="com", below=s.com_rest_speed),
            *(Until(error=name, below=s.slide_error) for name in self.poses),
        )
        return or_timeout(near, s)

    def leave(self, motion: Motion, t: float, now: Now) -> None:
        """Let the objects that lie on something rest; what is on them is where the stance has it."""
        motion.settle_objects(self.environment, self.segment.contacts, t)


@dataclass
class Put(Body):
    """Let what objects have been put on bear more and more of them."""

    stance: int
    objects: tuple[str, ...]
    verb = "put"

    @property
    def name(self) -> str:
        """Verb and objects."""
        return f"{self.verb} {' '.join(self.objects)}"

    def enter(self, motion: Motion, t: float, now: Now) -> float:
        """Change nothing: coming to rest has started the ramps."""
        return motion.settings.load_time

    def until(self, settings: ControlSettings) -> Until:
        """Wait for the ramps."""
        return Until(finished=0.0)

    def leave(self, motion: Motion, t: float, now: Now) -> None:
        """Hold them no more: contacts on them are as on any support."""
        motion.held.difference_update(self.objects)


def _rest(name: str, scene: Environment) -> Contact | None:
    return resting_contact(next(thing for thing in scene.objects if thing.name == name), scene)
