"""Contacts that slide although they should hold: seen in measured velocities and forces, and counted on for less.

A contact that slides bears exactly its friction: the ratio of the measured forces along the support and across it is
the coefficient ``mu = |f_t| / f_n``, whatever was believed of it. The program then counts on no more than that, so that
it presses harder or pulls less, and holds the patch where it slid to instead of dragging it back.

Contacts that lift off: what carries nothing, although it is asked to or has risen, is set down again.

Where contacts give, nothing holds a patch to its support but its load: stiffness along the normal would fight the give.
A contact with little load may so be lifted by the errors of a millisecond, and creep away unnoticed while the program
goes on counting on its force.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from mcplan.control.command import LoadedContact
from mcplan.control.motion import Motion
from mcplan.motion.limb_path import Pose
from mcplan.robot.pose import cross_matrix
from mcplan.robot.terms import FrameTerms, Terms
from mcplan.scene.contact import Contact
from mcplan.settings.control import ControlSettings

SLIP_SPEED_M_S = 0.03
"""A contact that slides faster has slipped, where forces are measured."""

LESS, LEAST = 0.9, 0.2
"""A slide takes at least so much off the friction that is counted on; never below the second part of the planned."""

NOTHING = np.zeros(6)
"""Wrench of a patch of which none is measured."""


class _Middle(NamedTuple):
    """What is known of the middle of a contact: the frame that moves it, B, and ``|B|``."""

    contact: Contact
    frame: str
    B: np.ndarray
    most: float


class SlipWatch:
    """Watches closed contacts for slides that last.

    Parameters
    ----------
    settings : ``recovery.slip_time`` and the force from which on a patch touches.
    frame_of : names the frame of a contact whose support moves; None for one that stands still.
    """

    def __init__(self, settings: ControlSettings, frame_of: Callable[[Contact], str | None] = lambda _: None):
        self.settings, self._frame_of = settings, frame_of
        self._slow = SLIP_SPEED_M_S
        self._since: dict[str, float] = {}
        self._middles: dict[str, _Middle] = {}

    def look(self, t: float, terms: Terms, motion: Motion, wrenches: Mapping[str, np.ndarray]) -> None:
        """Look at all contacts at time t (s), with the wrenches (6,) measured; grips hold in every direction."""
        self._since = {patch: since for patch, since in self._since.items() if patch in motion.contacts}
        for patch, loaded in tuple(motion.contacts.items()):
            contact = loaded.contact
            if contact.kind == "grasp":
                continue
            if not self._slides(terms, contact):
                if patch in self._since:
                    del self._since[patch]
                continue
            force = np.asarray(wrenches.get(patch, NOTHING))[:3]
            normal = _normal(contact, terms.frame(patch).R)
            across = float(force @ normal)
            if across < self.settings.contact.touch_force:
                self._since.pop(patch, None)
            elif t - self._since.setdefault(patch, t) >= self.settings.recovery.slip_time - 5e-10:
                del self._since[patch]
                self._react(t, terms, motion, patch, _size_along(force, normal) / across)

    def _slides(self, terms: Terms, contact: Contact) -> bool:
        """Say whether the middle of a contact moves along its support, in the directions that it is to hold.

        Its velocity is ``v_c = R B (R'v, R'w)``, less the part along the normal; B is that of ``_middle_map``. Most
        contacts stand still, which ``|v_c| <= |B| |(v, w)|`` shows at once.
        """
        known = self._middles.get(contact.patch)
        if known is None or known.contact is not contact:
            B = _middle_map(contact)
            name = self._frame_of(contact) or contact.patch
            known = self._middles[contact.patch] = _Middle(contact, name, B, float(np.linalg.norm(B, 2)))
        frame = terms.frame(known.frame)
        velocity = frame.velocity
        if known.most * math.hypot(*velocity.tolist()) < self._slow:
            return False
        R = contact.turned(frame.R)
        V = (velocity.reshape(2, 3) @ R).ravel()
        return _size_along(R @ (known.B @ V), _normal(contact, frame.R)) >= self._slow

    def _react(self, t: float, terms: Terms, motion: Motion, patch: str, shown: float) -> None:
        loaded = motion.contacts[patch]
        planned = loaded.contact.friction
        counted = min(planned, loaded.friction)
        friction = max(min(shown, LESS * counted), LEAST * planned)
        frame = terms.frame(patch)
        motion.contacts[patch] = replace(loaded, friction=friction, place=(frame.R.copy(), frame.p.copy()))
        if friction < counted:
            said = f"{patch} slides: it is trusted with a friction of {friction:.2f} instead of {counted:.2f}"
            motion.note(t, said, (patch,))


def _normal(contact: Contact, R: np.ndarray) -> np.ndarray:
    """Return the normal (3,) where a patch has the rotation R: on a bar, and on an object, it turns with the patch."""
    return (R @ contact.R.T @ contact.axes if contact.carrier is not None else contact.axes_at(R))[:, 2]


def _size_along(vector: np.ndarray, normal: np.ndarray) -> float:
    """Return the size of a vector's part along a support."""
    along = vector - (vector @ normal) * normal
    return math.sqrt(along @ along)


def _middle_map(contact: Contact) -> np.ndarray:
    """Return B (3, 6): velocity of a contact's middle c in the directions that it is to hold, ``B = [1 -[c]] S'S``.

    It is applied to the velocity (linear, angular) of the patch, and both are in patch axes.
    """
    S = contact.selection
    return np.hstack([np.eye(3), -cross_matrix(contact.points.mean(axis=0))]) @ S.T @ S


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
    settings : ``recovery.lift_time`` and the force from which on a patch touches.
    """

    def __init__(self, settings: ControlSettings):
        self.settings = settings
        self._some = FELT * settings.contact.touch_force if settings.compliant else 0.0
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
            elif t - self._since.setdefault(patch, t) >= self.settings.recovery.lift_time - 5e-10:
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
