"""One item of the goal as the search sees it: which contacts, whether others may remain, and where they are."""

from dataclasses import dataclass

import numpy as np

from mcplan.model.robot import Robot
from mcplan.scene.contact import Contact
from mcplan.scene.schema import GoalItem
from mcplan.scene.spec import ContactSpec

EXACT = 1e-6
"""m, rad: a coordinate that the goal gives is met within this."""


@dataclass(frozen=True, eq=False)
class Goal:
    """A goal item.

    Attributes
    ----------
    item : what the file says.
    specs : its contacts by patch.
    """

    item: GoalItem
    specs: dict[str, ContactSpec]

    @classmethod
    def of(cls, item: GoalItem) -> "Goal":
        """Return the goal of an item."""
        return cls(item, {spec.patch: spec for spec in item.contacts})

    def hit(self, contact: Contact) -> bool:
        """Whether a contact is one that the goal asks for."""
        spec = self.specs.get(contact.patch)
        return spec is not None and self.meets(spec, contact.support, contact.coordinates)

    @staticmethod
    def meets(spec: ContactSpec, support: str, coordinates: dict) -> bool:
        """Whether a place meets what a spec gives."""
        if spec.surface != support:
            return False
        for name, value in spec.given.items():
            if name not in coordinates:
                continue
            difference = float(coordinates[name]) - float(value)
            if name in ("yaw", "angle"):
                difference = (difference + np.pi) % (2 * np.pi) - np.pi
            if abs(difference) > EXACT:
                return False
        return True

    def reached(self, contacts: tuple[Contact, ...]) -> bool:
        """Whether a stance has all the contacts of the goal, and no others where it says so."""
        hits = {contact.patch for contact in contacts if self.hit(contact)}
        if not hits >= set(self.specs):
            return False
        return not self.item.only or len(contacts) == len(self.specs)

    def limbs(self, robot: Robot) -> dict[str, tuple[str, ...]]:
        """Return the patches of the goal by limb."""
        found: dict[str, tuple[str, ...]] = {}
        for patch in self.specs:
            limb = robot.patches[patch].limb
            found[limb] = (*found.get(limb, ()), patch)
        return found
