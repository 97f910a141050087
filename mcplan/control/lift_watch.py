"""Contacts that lift off: what carries nothing, although it is asked to or has risen, is set down again.

Where contacts give, nothing holds a patch to its support but its load: stiffness along the normal would fight the give.
A contact with little load may so be lifted by the errors of a millisecond, and creep away unnoticed while the program
goes on counting on its force.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from mcplan.control.loaded_contact import LoadedContact
from mcplan.control.motion import Motion
from mcplan.model.terms import FrameTerms, Terms
from mcplan.motion.path import Pose
from mcplan.scene.contact import Contact
from mcplan.scene.settings import ControlSettings

NOTHING = np.zeros(6)
"""Wrench of a patch of which none is measured."""

FELT = 0.25
"""Part of the force with which a patch touches: a contact that is asked for more and bears less than a fifth of that
has lifted; one that bears as much again has been set down."""

RISEN = 2e-3
"""m: a contact that bears nothing and is so far above where it touched has lifted, whether or not it is asked to bear:
nothing else keeps it from creeping away."""


class LiftWatch:
    """Watches closed contacts for loads that are asked for and not felt, and for patches that rise without load.

    Parameters
    ----------
    settings : ``lift_time``, and the force from which on a patch touches.
    """

    def __init__(self, settings: ControlSettings):
        self.settings = settings
        self._some = FELT * settings.touch_force if settings.compliant else 0.0
        self._since: dict[str, float] = {}

    def look(
        self,
        t: float,
        terms: Terms,
        motion: Motion,
        asked: Mapping[str, np.ndarray],
        felt: Mapping[str, np.ndarray],
    ) -> None:
        """Look at all contacts at time t (s), with the wrenches (6,) that were asked for and those measured.

        A grip that lets go is not set down: it cannot close from elsewhere. Nor is what rests on an object that moves.
        On rigid contacts touch is not felt.
        """
        if self._some == 0.0:
            return
        self._since = {patch: since for patch, since in self._since.items() if patch in motion.contacts}
        for patch, loaded in tuple(motion.contacts.items()):
            contact = loaded.contact
            if contact.kind == "grasp" or contact.carrier is not None:
                continue
            force = _across(contact, felt)
            if loaded.lifted:
                if force >= self._some:
                    motion.contacts[patch] = replace(loaded, lifted=False, place=_place(loaded, terms.frame(patch)))
            elif force > 0.2 * self._some or (
                _across(contact, asked) < self._some and _risen(loaded, terms.frame(patch).p) < RISEN
            ):
                self._since.pop(patch, None)
            elif t - self._since.setdefault(patch, t) >= self.settings.lift_time - 5e-10:
                del self._since[patch]
                motion.contacts[patch] = replace(loaded, lifted=True)
                motion.note(t, f"{patch} carries nothing: it is set down again", (patch,))


def _across(contact: Contact, wrenches: Mapping[str, np.ndarray]) -> float:
    """Return the normal force (N) of a contact."""
    return float(np.asarray(wrenches.get(contact.patch, NOTHING))[:3] @ contact.normal)


def _place(loaded: LoadedContact, frame: FrameTerms) -> Pose:
    """Return the place of a contact that has been set down: where it was along its support, else it would wander.

    A ball has rolled to where it is.
    """
    if loaded.contact.radius:
        return frame.R.copy(), frame.p.copy()
    R, p = loaded.place or (loaded.contact.R, loaded.contact.p)
    normal = loaded.contact.normal
    return R, p + float((frame.p - p) @ normal) * normal


def _risen(loaded: LoadedContact, p: np.ndarray) -> float:
    """Return how far a patch at p (3,) is above where it touched (m)."""
    place = loaded.contact.p if loaded.place is None else loaded.place[1]
    return float((p - place) @ loaded.contact.normal)
