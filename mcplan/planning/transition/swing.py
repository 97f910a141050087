"""Motions that are to be proven: the swing of a limb from one place to another, and the shift before it lifts."""

from dataclasses import dataclass

import numpy as np

from mcplan.planning.posture.contact_region import contact_key
from mcplan.scene.contact import Contact


@dataclass(frozen=True, eq=False)
class Swing:
    """What swings, between which postures.

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

    def __str__(self) -> str:
        names = " and ".join(contact.patch for contact in self.leaving)
        return f"the body, before {names} {'lift' if len(self.leaving) > 1 else 'lifts'}"
