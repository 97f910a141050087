"""One item of the goal as the search sees it: which contacts, whether others may remain, and where they are."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mcplan.model.robot import Robot
from mcplan.planning.goal.measure import EXACT, off_contact
from mcplan.scene.contact import Contact
from mcplan.scene.schema import GoalItem
from mcplan.scene.spec import ContactSpec


@dataclass(frozen=True, eq=False)
class Goal:
    """A goal item, and the contacts by which it is to be reached.

    Attributes
    ----------
    item : what the file says.
    specs : the contacts that the search goes for, by patch: the item's own, or those that the planner chose.
    chosen : whether the planner chose them, or their places; then no other limb is drawn to supports.
    stance : patches of the whole stance that is meant, where the planner chose it.
    """

    item: GoalItem
    specs: dict[str, ContactSpec]
    chosen: bool = False
    stance: frozenset[str] = frozenset()

    @classmethod
    def of(cls, item: GoalItem) -> "Goal":
        """Return the goal of an item by the contacts that it lists."""
        return cls(item, {spec.patch: spec for spec in item.contacts})

    @classmethod
    def by(cls, item: GoalItem, contacts: Sequence[Contact]) -> "Goal":
        """Return the goal of an item by contacts that the planner chose, in their places."""
        specs = {contact.patch: ContactSpec.model_validate(contact.to_data()) for contact in contacts}
        return cls(item, specs, True, frozenset(specs))

    @classmethod
    def roughly(cls, item: GoalItem, robot: Robot, contacts: Sequence[Contact], com: np.ndarray) -> "Goal":
        """Return the goal of an item by the supports of such contacts, anywhere: one of each limb leads there.

        It is the one nearest to below the centre of mass ``com`` (3,): of a leg that kneels the knee, and not the toe.
        """
        leading: dict[str, Contact] = {}
        for contact in sorted(contacts, key=lambda one: float(np.hypot(*(one.p - com)[:2]))):
            leading.setdefault(robot.patches[contact.patch].limb, contact)
        specs = {
            contact.patch: ContactSpec.model_validate(
                {"patch": contact.patch, "surface": contact.support, **contact.options}
            )
            for contact in leading.values()
        }
        return cls(item, specs, True, frozenset(contact.patch for contact in contacts))

    @property
    def posed(self) -> bool:
        """Whether a posture is asked for on contacts whose places are open: these have to fit together."""
        return self.item.posture is not None and not all(
            {"x", "y"} <= set(spec.given) or "along" in spec.given for spec in self.specs.values()
        )

    def hit(self, contact: Contact) -> bool:
        """Whether a contact is one that the goal asks for."""
        spec = self.specs.get(contact.patch)
        return spec is not None and off_contact(spec, contact) <= EXACT

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
