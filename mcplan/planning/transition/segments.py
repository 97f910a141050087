"""Cache of segments in one scene, and the motions that the search checks: shifts, swings and retractions.

``segment`` computes a motion as in the plan; ``probe`` only finds out whether a path exists, which is faster.
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
    """Segments in one scene, cached by contacts and postures: the plan reuses the motions that the search has checked.

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
        self._segments: dict[tuple, Segment] = {}
        self._probed_knots: dict[tuple, Knots] = {}
        self._retractions: dict[tuple, Segment] = {}

    def shift(self, departure: Departure, q: np.ndarray) -> Segment:
        """Return the motion of the body to posture q (nq,), see `TransitionFinder.shift`."""
        return self._cached(departure, q, (), lambda: self.finder.shift(departure, q), self._segments)

    def swing(self, departure: Departure, q: np.ndarray, added: Sequence[Contact]) -> Segment:
        """Return the swing of a patch to a new contact, see `TransitionFinder.swing`; `probe` bounds its height."""
        min_extra_lift = self.probe(departure, q, added).min_extra_lift
        return self._cached(
            departure, q, added, lambda: self.finder.swing(departure, q, added, min_extra_lift), self._segments
        )

    def retraction(self, departure: Departure, patch: str) -> Segment:
        """Return the lift of a patch without a next contact, see `TransitionFinder.retraction`."""
        return self._cached(
            departure, departure.q, (), lambda: self.finder.retraction(departure, patch), self._retractions
        )

    def probe(self, departure: Departure, q: np.ndarray, added: Sequence[Contact]) -> Knots:
        """Return knots of a swing, computed faster than `swing`, see `TransitionFinder.probe`."""
        return self._cached(departure, q, added, lambda: self.finder.probe(departure, q, added), self._probed_knots)

    def _cached(
        self,
        departure: Departure,
        q: np.ndarray,
        added: Sequence[Contact],
        find: Callable[[], Found],
        cache: dict[tuple, Found],
    ) -> Found:
        """Return the cached result of ``find``, which the other arguments determine."""
        key = (
            tuple(sorted(contact_key(contact) for contact in departure.closed)),
            tuple(sorted(contact_key(contact) for contact in departure.resting.values())),
            tuple(contact_key(contact) for contact in added),
            departure.q.tobytes(),
            q.tobytes(),
        )
        if key not in cache:
            cache[key] = find()
        return cache[key]


@dataclass(frozen=True, eq=False)
class SwingMotion:
    """A swing of a patch between two postures.

    Attributes
    ----------
    common : closed contacts during the swing.
    before : the contact that the patch leaves; None if the patch is in the air.
    added : new contacts: first that of the swinging patch, then those of patches of the limb that move with it.
    q0, q1 : (nq,) postures at the two ends.
    """

    common: tuple[Contact, ...]
    before: Contact | None
    added: tuple[Contact, ...]
    q0: np.ndarray
    q1: np.ndarray

    @property
    def after(self) -> Contact:
        """The new contact of the patch."""
        return self.added[0]

    @property
    def touching(self) -> tuple[Contact, ...]:
        """Contacts that the limb leaves or reaches."""
        return self.added if self.before is None else (self.before, *self.added)

    @property
    def length(self) -> float:
        """Distance of the two contacts on one support (m); inf from one support to another, and from the air."""
        if self.before is None or self.before.support != self.after.support:
            return np.inf
        return float(np.linalg.norm(self.before.p - self.after.p))

    @property
    def key(self) -> tuple:
        """Hashable value of contacts and postures."""
        contacts = tuple(contact_key(contact) for contact in (*self.common, *self.touching))
        return (contacts, self.before is None, self.q0.tobytes(), self.q1.tobytes())

    @property
    def kind(self) -> tuple[str | None, ...]:
        """Patch and supports."""
        return self.after.patch, None if self.before is None else self.before.support, self.after.support

    @property
    def patch(self) -> str:
        """Name of what moves, for messages."""
        return self.after.patch

    def probe(self, segments: "SegmentCache") -> Knots | Segment:
        """Return its knots, computed faster than `segment`."""
        return segments.probe(self._departure, self.q1, self.added)

    def segment(self, segments: "SegmentCache") -> Segment:
        """Return its segment as in the plan."""
        return segments.swing(self._departure, self.q1, self.added)

    @property
    def _departure(self) -> Departure:
        return Departure(self.q0, self.common, {} if self.before is None else {self.patch: self.before})

    def __str__(self) -> str:
        origin = "the air" if self.before is None else self.before.support
        return f"{self.after.patch} from {origin} to {self.after.support}"


@dataclass(frozen=True, eq=False)
class BodyShift:
    """The motion of the body on all its contacts, before some of them open.

    Attributes
    ----------
    contacts : closed contacts during the motion.
    leaving : those that open after it.
    q0, q1 : (nq,) postures at the two ends.
    """

    contacts: tuple[Contact, ...]
    leaving: tuple[Contact, ...]
    q0: np.ndarray
    q1: np.ndarray

    @property
    def key(self) -> tuple:
        """Hashable value of contacts and postures."""
        return (tuple(contact_key(contact) for contact in self.contacts), self.q0.tobytes(), self.q1.tobytes())

    @property
    def kind(self) -> tuple[str | None, ...]:
        """Patches and supports."""
        return tuple(name for contact in self.leaving for name in (contact.patch, contact.support))

    @property
    def patch(self) -> str:
        """Name of what moves, for messages."""
        return "the body"

    def probe(self, segments: "SegmentCache") -> Knots | Segment:
        """Return its segment: there is no faster test."""
        return self.segment(segments)

    def segment(self, segments: "SegmentCache") -> Segment:
        """Return its segment as in the plan."""
        return segments.shift(Departure(self.q0, self.contacts), self.q1)

    def __str__(self) -> str:
        names = " and ".join(contact.patch for contact in self.leaving)
        return f"the body, before {names} {'lift' if len(self.leaving) > 1 else 'lifts'}"


@dataclass(frozen=True, eq=False)
class Retraction:
    """The lift of a patch without a next contact, clear of its support.

    Attributes
    ----------
    contacts : closed contacts during the motion.
    leaving : opened contact of the patch.
    q0 : (nq,) posture at the beginning.
    """

    contacts: tuple[Contact, ...]
    leaving: Contact
    q0: np.ndarray

    @property
    def patch(self) -> str:
        """Name of what moves, for messages."""
        return self.leaving.patch

    @property
    def key(self) -> tuple:
        """Hashable value of contacts and postures."""
        return (tuple(contact_key(contact) for contact in (*self.contacts, self.leaving)), self.q0.tobytes())

    @property
    def kind(self) -> tuple[str | None, ...]:
        """Patch and support."""
        return self.leaving.patch, self.leaving.support

    def probe(self, segments: "SegmentCache") -> Knots | Segment:
        """Return its segment: there is no faster test."""
        return self.segment(segments)

    def segment(self, segments: "SegmentCache") -> Segment:
        """Return its segment as in the plan."""
        return segments.retraction(Departure(self.q0, self.contacts, {self.patch: self.leaving}), self.patch)

    def __str__(self) -> str:
        return f"{self.patch} off {self.leaving.support}"


CheckedMotion = SwingMotion | BodyShift | Retraction
"""Motions between stances that the search checks."""
