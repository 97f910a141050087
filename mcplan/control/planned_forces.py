"""The forces of a plan's contacts, to which the program is drawn.

Where limbs form closed chains, through the ground or an object, many forces do for the same motion. The smallest ones
may leave a sole beside a hand and another sole with next to nothing, and it lifts off when the body moves: the plan has
looked ahead, and its contacts bear something.
"""

from collections.abc import Mapping

import numpy as np

from mcplan.control.loaded_contact import LoadedContact
from mcplan.planning.plan import Plan
from mcplan.scene.counted import counted_on
from mcplan.scene.settings import ControlSettings
from mcplan.whole_body.contact import count_unknowns, least_forces

CHANGE = 0.3
"""s: within such a time forces follow from one stance to the next; it is that in which a foot is loaded by default."""


class PlannedForces:
    """What each contact is to bear, as unknowns of the program.

    Parameters
    ----------
    plan : whose stances have the wrenches of their contacts.
    dt : time from one tick to the next (s).
    settings : say how far inside the edges of patches the program keeps forces.
    """

    def __init__(self, plan: Plan, dt: float, settings: ControlSettings):
        self._part = min(1.0, dt / CHANGE)
        self._stances = [
            {
                contact.patch: least_forces(contact, np.asarray(stance.wrenches[contact.patch], dtype=float))
                for contact in (counted_on(each, settings) for each in stance.contacts)
                if contact.patch in stance.wrenches
            }
            for stance in plan.stances
        ]
        self._now: dict[str, np.ndarray] = {}

    def follow(self, stance: int, contacts: Mapping[str, LoadedContact]) -> dict[str, np.ndarray]:
        """Return the forces of closed contacts in a tick on the way to a stance.

        A contact that closes begins with none; one that the stance does not have bears less and less.
        """
        goal, now = self._stances[stance], {}
        for patch, loaded in contacts.items():
            none = np.zeros(count_unknowns(loaded.contact))
            force, wanted = (forces.get(patch, none) for forces in (self._now, goal))
            if len(force) == len(wanted) == len(none):  # it may be held in another way than planned
                now[patch] = force + self._part * (wanted - force)
        self._now = now
        return now
