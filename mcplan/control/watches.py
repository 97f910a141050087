"""Slip and lift-off detection of closed contacts.

Slip: a sliding contact bears exactly its friction, so the measured tangential and normal forces give the friction
coefficient ``mu = |f_t| / f_n``. From then on the program uses at most that coefficient, and holds the patch at its new
position instead of dragging it back.

Lift-off: a contact without force, although a force is commanded or the patch has risen, is lowered again. Compliant
contacts have no stiffness along the normal, which would oppose their compression: only load keeps a patch on its
support. Errors within a millisecond may lift a lightly loaded patch, and the program would go on using its force.
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
"""Sliding speed above which a contact counts as slipping."""

LESS, LEAST = 0.9, 0.2
"""A slip reduces the friction coefficient to at most `LESS` of its value, but not below `LEAST` of the planned one."""

NOTHING = np.zeros(6)
"""Wrench of a patch without measurement."""


class _Middle(NamedTuple):
    """Velocity map of the centre of a contact: the frame that moves it, B, and ``|B|``."""

    contact: Contact
    frame: str
    B: np.ndarray
    most: float


class SlipWatch:
    """Slip detection of closed contacts.

    Parameters
    ----------
    settings : ``recovery.slip_time`` and the touch force.
    frame_of : returns the frame of a contact whose support moves; None for a fixed support.
    """

    def __init__(self, settings: ControlSettings, frame_of: Callable[[Contact], str | None] = lambda _: None):
        self.settings, self._frame_of = settings, frame_of
        self._slow = SLIP_SPEED_M_S
        self._since: dict[str, float] = {}
        self._middles: dict[str, _Middle] = {}

    def look(self, t: float, terms: Terms, motion: Motion, wrenches: Mapping[str, np.ndarray]) -> None:
        """Check all contacts at time t (s) with the measured wrenches (6,); grasps cannot slip."""
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
        """Whether the centre of a contact moves along its support, in the directions that the contact constrains.

        Its velocity is ``v_c = R B (R'v, R'w)`` without the normal part; B is that of ``_middle_map``. Most contacts
        stand still: the bound ``|v_c| <= |B| |(v, w)|`` settles that cheaply.
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
            message = f"{patch} slides: friction coefficient reduced from {counted:.2f} to {friction:.2f}"
            motion.note(t, message, (patch,))


def _normal(contact: Contact, R: np.ndarray) -> np.ndarray:
    """Return the normal (3,) of a contact at the rotation R of its patch, with which it turns on bars and objects."""
    return (R @ contact.R.T @ contact.axes if contact.carrier is not None else contact.axes_at(R))[:, 2]


def _size_along(vector: np.ndarray, normal: np.ndarray) -> float:
    """Return the norm of the tangential part of a vector."""
    along = vector - (vector @ normal) * normal
    return math.sqrt(along @ along)


def _middle_map(contact: Contact) -> np.ndarray:
    """Return ``B = [1 -[c]] S'S`` (3, 6): velocity of the centre c of a contact in the constrained directions.

    It is applied to the velocity (linear, angular) of the patch; both are in patch axes.
    """
    S = contact.selection
    return np.hstack([np.eye(3), -cross_matrix(contact.points.mean(axis=0))]) @ S.T @ S


FELT = 0.25
"""Fraction of the touch force. A contact with a larger commanded force that bears less than a fifth of this has lifted
off; once it bears this much it has touched down again."""

RISEN = 2e-3
"""m: a contact without force that is so far above its touchdown has lifted off, even if no force is commanded: else it
would creep away."""


class LiftWatch:
    """Lift-off detection of closed contacts: commanded forces that are not measured, and patches that rise.

    Parameters
    ----------
    settings : ``recovery.lift_time`` and the touch force.
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
        """Check all contacts at time t (s) with the commanded and the measured wrenches (6,).

        Not for grasps, which cannot close again, nor for contacts on moving objects, nor with rigid contacts, which
        have no touch detection.
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
                motion.note(t, f"{patch} carries no load: it is lowered again", (patch,))


def _across(contact: Contact, wrenches: Mapping[str, np.ndarray]) -> float:
    """Return the normal force (N) of a contact."""
    return float(np.asarray(wrenches.get(contact.patch, NOTHING))[:3] @ contact.normal)


def _place(loaded: LoadedContact, frame: FrameTerms) -> Pose:
    """Return the pose of a contact after touchdown: its tangential position is kept, else it would wander.

    A ball has rolled: its measured pose counts.
    """
    if loaded.contact.radius:
        return frame.R.copy(), frame.p.copy()
    R, p = loaded.place or (loaded.contact.R, loaded.contact.p)
    normal = loaded.contact.normal
    return R, p + float((frame.p - p) @ normal) * normal


def _risen(loaded: LoadedContact, p: np.ndarray) -> float:
    """Return the height of a patch at p (3,) above its touchdown (m)."""
    place = loaded.contact.p if loaded.place is None else loaded.place[1]
    return float((p - place) @ loaded.contact.normal)
