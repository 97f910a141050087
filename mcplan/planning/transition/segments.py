"""Cache of segments in one scene, and the motions that the search proves: shifts, swings and retractions.

Each is found as the plan has it (``segment``), or faster (``look``), to tell whether a path exists.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from mcplan.collision.model import CollisionModel
from mcplan.planning.posture.support_cache import contact_key
from mcplan.planning.transition.body_motion import Departure
from mcplan.planning.transition.finder import TransitionFinder
from mcplan.planning.transition.knots import Knots
from mcplan.planning.transition.transition import Segment
from mcplan.robot.robot import Robot
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment
from mcplan.settings.control import ControlSettings

Found = TypeVar("Found")


class SegmentCache:
    """Segments in one scene, kept by value: what the search has proven is found at once when the plan is made.

    Parameters
    ----------
    robot, environment, settings, collisions : see `TransitionFinder`.
    """

    def __init__(
        self,
        robot: Robot,
        environment: Environment,
        settings: ControlSettings,
        collisions: CollisionModel | None = None,
    ):
        self.finder = TransitionFinder(robot, environment, settings, collisions)
        self._known: dict[tuple, Segment] = {}
        self._looks: dict[tuple, Knots] = {}
        self._retractions: dict[tuple, Segment] = {}

    def shift(self, begin: Departure, q: np.ndarray) -> Segment:
        """Return the motion of the body to posture q (nq,), see `TransitionFinder.shift`."""
        return self._kept(begin, q, (), lambda: self.finder.shift(begin, q), self._known)

    def swing(self, begin: Departure, q: np.ndarray, added: Sequence[Contact]) -> Segment:
        """Return the motion of a patch to a new contact, see `TransitionFinder.swing`: no lower than a look shows."""
        above = self.look(begin, q, added).above
        return self._kept(begin, q, added, lambda: self.finder.swing(begin, q, added, above), self._known)

    def retraction(self, begin: Departure, patch: str) -> Segment:
        """Return the lift of a patch that has nowhere to go yet, see `TransitionFinder.retraction`."""
        return self._kept(begin, begin.q, (), lambda: self.finder.retraction(begin, patch), self._retractions)

    def look(self, begin: Departure, q: np.ndarray, added: Sequence[Contact]) -> Knots:
        """Return knots of a swing, found more quickly, see `TransitionFinder.look`."""
        return self._kept(begin, q, added, lambda: self.finder.look(begin, q, added), self._looks)

    def _kept(
        self,
        begin: Departure,
        q: np.ndarray,
        added: Sequence[Contact],
        find: Callable[[], Found],
        known: dict[tuple, Found],
    ) -> Found:
        key = (
            tuple(sorted(contact_key(contact) for contact in begin.closed)),
            tuple(sorted(contact_key(contact) for contact in begin.rising.values())),
            tuple(contact_key(contact) for contact in added),
            begin.q.tobytes(),
            q.tobytes(),
        )
        if key not in known:
            known[key] = find()
        return known[key]


@dataclass(frozen=True, eq=False)
class SwingMotion:
    """A swing of a patch between two postures.

    Attributes
    ----------
    common : contacts that carry the robot meanwhile.
    before : the contact that the patch leaves, None where it comes from the air.
    added : where it leads: the first is the patch that swings, others of its limb go along.
    q0, q1 : (nq,) postures at the two ends.
    """

    common: tuple[Contact, ...]
    before: Contact | None
    added: tuple[Contact, ...]
    q0: np.ndarray
    q1: np.ndarray

    @property
    def after(self) -> Contact:
        """The contact that the patch comes to."""
        return self.added[0]

    @property
    def touching(self) -> tuple[Contact, ...]:
        """Contacts that its limb leaves or comes to."""
        return self.added if self.before is None else (self.before, *self.added)

    @property
    def length(self) -> float:
        """From place to place on one support (m); inf from one support to another, and from the air."""
        if self.before is None or self.before.support != self.after.support:
            return np.inf
        return float(np.linalg.norm(self.before.p - self.after.p))

    @property
    def key(self) -> tuple:
        """By value."""
        contacts = tuple(contact_key(contact) for contact in (*self.common, *self.touching))
        return (contacts, self.before is None, self.q0.tobytes(), self.q1.tobytes())

    @property
    def kind(self) -> tuple[str | None, ...]:
        """Patch and supports."""
        return self.after.patch, None if self.before is None else self.before.support, self.after.support

    @property
    def patch(self) -> str:
        """What moves."""
        return self.after.patch

    def look(self, segments: "SegmentCache") -> Knots | Segment:
        """Return knots of it, found quickly."""
        return segments.look(self._begin, self.q1, self.added)

    def segment(self, segments: "SegmentCache") -> Segment:
        """Return it as the plan has it."""
        return segments.swing(self._begin, self.q1, self.added)

    @property
    def _begin(self) -> Departure:
        return Departure(self.q0, self.common, {} if self.before is None else {self.patch: self.before})

    def __str__(self) -> str:
        origin = "the air" if self.before is None else self.before.support
        return f"{self.after.patch} from {origin} to {self.after.support}"


@dataclass(frozen=True, eq=False)
class BodyShift:
    """The motion of the body on all its contacts, after which some of them lift.

    Attributes
    ----------
    contacts : that stay closed meanwhile.
    leaving : those of them that lift then.
    q0, q1 : (nq,) postures at the two ends.
    """

    contacts: tuple[Contact, ...]
    leaving: tuple[Contact, ...]
    q0: np.ndarray
    q1: np.ndarray

    @property
    def key(self) -> tuple:
        """By value."""
        return (tuple(contact_key(contact) for contact in self.contacts), self.q0.tobytes(), self.q1.tobytes())

    @property
    def kind(self) -> tuple[str | None, ...]:
        """Patches and supports."""
        return tuple(name for contact in self.leaving for name in (contact.patch, contact.support))

    @property
    def patch(self) -> str:
        """What moves."""
        return "the body"

    def look(self, segments: "SegmentCache") -> Knots | Segment:
        """Return it: there is no faster look."""
        return self.segment(segments)

    def segment(self, segments: "SegmentCache") -> Segment:
        """Return it as the plan has it."""
        return segments.shift(Departure(self.q0, self.contacts), self.q1)

    def __str__(self) -> str:
        names = " and ".join(contact.patch for contact in self.leaving)
        return f"the body, before {names} {'lift' if len(self.leaving) > 1 else 'lifts'}"


@dataclass(frozen=True, eq=False)
class Retraction:
    """The lift of a patch that has been let go and has nowhere to go yet, clear of its support.

    Attributes
    ----------
    contacts : that carry the robot meanwhile.
    leaving : what the patch leaves.
    q0 : (nq,) posture in which it begins.
    """

    contacts: tuple[Contact, ...]
    leaving: Contact
    q0: np.ndarray

    @property
    def patch(self) -> str:
        """What moves."""
        return self.leaving.patch

    @property
    def key(self) -> tuple:
        """By value."""
        return (tuple(contact_key(contact) for contact in (*self.contacts, self.leaving)), self.q0.tobytes())

    @property
    def kind(self) -> tuple[str | None, ...]:
        """Patch and support."""
        return self.leaving.patch, self.leaving.support

    def look(self, segments: "SegmentCache") -> Knots | Segment:
        """Return it: there is no faster look."""
        return self.segment(segments)

    def segment(self, segments: "SegmentCache") -> Segment:
        """Return it as the plan has it."""
        return segments.retraction(Departure(self.q0, self.contacts, {self.patch: self.leaving}), self.patch)

    def __str__(self) -> str:
        return f"{self.patch} off {self.leaving.support}"


ProvenMotion = SwingMotion | BodyShift | Retraction
"""Motions between stances that a search proves."""
