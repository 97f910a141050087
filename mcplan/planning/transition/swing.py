"""The swing of a limb from one place to another, as it is proven."""

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
    def kind(self) -> tuple[str, str | None, str]:
        """Patch and supports."""
        return self.after.patch, None if self.before is None else self.before.support, self.after.support
