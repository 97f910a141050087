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
from mcplan.control.criteria import ROUNDING_S
from mcplan.control.motion import Motion
from mcplan.core.motion.balance import sliding_speeds
from mcplan.motion.limb_path import Pose
from mcplan.robot.pose import cross_matrix
from mcplan.robot.terms import FrameTerms, Terms
from mcplan.scene.contact import Contact
from mcplan.settings.control import ControlSettings

SLIP_SPEED_M_S = 0.03
"""Sliding speed above which a contact counts as slipping."""

MAX_FRICTION_FACTOR, MIN_FRICTION_FACTOR = 0.9, 0.2
"""After a slip the usable friction coefficient is at most the first factor times its former value, but at least the
second factor times the planned one."""

ZERO_WRENCH = np.zeros(6)
"""Wrench of a patch that has no measured wrench."""


class _CentreMap(NamedTuple):
    """Motion of the centre of a contact: its frame, and ``B``, ``normal`` and ``turns`` of `sliding_speeds`."""

    frame: str
    B: np.ndarray
    normal: np.ndarray
    turns: tuple[bool, bool]


class SlipDetector:
    """Slip detection of closed contacts.

    Parameters
    ----------
    settings : ``recovery.slip_time`` and the touch force.
    frame_of : returns the frame of a contact whose support moves; None for a fixed support.
    """

    def __init__(self, settings: ControlSettings, frame_of: Callable[[Contact], str | None] = lambda _: None):
        self.settings, self._frame_of = settings, frame_of
        self._since: dict[str, float] = {}
        self._sliding: list[str] = []
        self._speeds = np.zeros(0)
        self._maps: dict[Contact, _CentreMap] = {}
        self._arguments: tuple[np.ndarray, ...] = ()
        self._contacts: tuple[Contact, ...] | None = None

    def update(self, t: float, terms: Terms, motion: Motion, wrenches: Mapping[str, np.ndarray]) -> None:
        """Check all contacts at time t (s) with the measured wrenches (6,); grasps cannot slip."""
        if sliding_speeds(*self.arguments(motion.closed, terms)) < SLIP_SPEED_M_S and not self.slips:
            return
        self._since = {patch: start for patch, start in self._since.items() if patch in motion.contacts}
        for patch, speed in zip(self._sliding, self._speeds.tolist(), strict=True):
            if speed < SLIP_SPEED_M_S or patch not in motion.contacts:
                self._since.pop(patch, None)
                continue
            contact = motion.contacts[patch].contact
            force = np.asarray(wrenches.get(patch, ZERO_WRENCH))[:3]
            normal = _normal(contact, terms.frame(patch).R)
            normal_force = float(force @ normal)
            if normal_force < self.settings.contact.touch_force:
                self._since.pop(patch, None)
            elif t - self._since.setdefault(patch, t) >= self.settings.recovery.slip_time - ROUNDING_S:
                del self._since[patch]
                self._reduce_friction(t, terms, motion, patch, _tangential_norm(force, normal) / normal_force)

    @property
    def slips(self) -> bool:
        """Whether a contact has begun to slide."""
        return bool(self._since)

    def arguments(self, contacts: tuple[Contact, ...], terms: Terms) -> tuple[np.ndarray, ...]:
        """Return the arguments of ``sliding_speeds`` for closed contacts, of which grasps cannot slide."""
        if contacts is self._contacts:
            return self._arguments
        self._contacts = contacts
        sliding = [contact for contact in contacts if contact.kind != "grasp"]
        maps = [self.map_centre(contact) for contact in sliding]
        self._sliding, self._speeds = [contact.patch for contact in sliding], np.zeros(len(sliding))
        self._arguments = (
            terms.arrays[-1], np.array([terms.frame_names.index(centre.frame) for centre in maps], np.int64),
            np.array([centre.B for centre in maps]).reshape(-1, 3, 6),
            np.array([centre.normal for centre in maps]).reshape(-1, 3),
            np.array([centre.turns for centre in maps], np.int64).reshape(-1, 2), self._speeds,
        )  # fmt: skip
        return self._arguments

    def map_centre(self, contact: Contact) -> _CentreMap:
        """Return the velocity map of a contact; those of the plan are computed before the run."""
        if contact not in self._maps:
            self._maps[contact] = _centre_map(contact, self._frame_of(contact) or contact.patch)
        return self._maps[contact]

    def _reduce_friction(self, t: float, terms: Terms, motion: Motion, patch: str, measured: float) -> None:
        """Reduce the friction coefficient of a sliding contact, and hold the patch at its present pose."""
        loaded = motion.contacts[patch]
        planned = loaded.contact.friction
        usable = min(planned, loaded.friction)
        friction = max(min(measured, MAX_FRICTION_FACTOR * usable), MIN_FRICTION_FACTOR * planned)
        frame = terms.frame(patch)
        motion.contacts[patch] = replace(loaded, friction=friction, place=(frame.R.copy(), frame.p.copy()))
        if friction < usable:
            message = f"{patch} slides: friction coefficient reduced from {usable:.2f} to {friction:.2f}"
            motion.note(t, message, (patch,))


def _normal(contact: Contact, R: np.ndarray) -> np.ndarray:
    """Return the normal (3,) of a contact at the rotation R of its patch, with which it turns on bars and objects."""
    return (R @ contact.R.T @ contact.axes if contact.carrier is not None else contact.axes_at(R))[:, 2]


def _tangential_norm(vector: np.ndarray, normal: np.ndarray) -> float:
    """Return the norm of the tangential part of a vector."""
    tangential = vector - (vector @ normal) * normal
    return math.sqrt(tangential @ tangential)


def _centre_map(contact: Contact, frame: str) -> _CentreMap:
    """Return the motion of the centre c of a contact in the constrained directions, ``B = [1 -[c]] S'S``.

    Of a ball its axes do not turn; the normal turns with a moving support, and of a patch on a bar with the patch.
    """
    S = contact.selection
    B = np.hstack([np.eye(3), -cross_matrix(contact.points.mean(axis=0))]) @ S.T @ S
    if contact.radius:
        B = contact.R @ B @ np.kron(np.eye(2), contact.R.T)
    normal_turns = contact.carrier is not None or contact.rolls
    normal = contact.R.T @ contact.axes[:, 2] if normal_turns else contact.axes[:, 2]
    return _CentreMap(frame, B, normal, (not contact.radius, normal_turns))


TOUCH_FRACTION = 0.25
"""Fraction of the touch force, from which on a lifted contact has touched down again."""

LIFT_OFF_FRACTION = 0.2
"""Fraction of the touchdown force below which a contact has lifted off, if its commanded force exceeds the touchdown
force, which is `TOUCH_FRACTION` of the touch force."""

LIFT_OFF_HEIGHT_M = 2e-3
"""A contact without force that is this far above its touchdown (m) has lifted off, even if no force is commanded.
Otherwise it would creep away."""


class LiftOffDetector:
    """Lift-off detection of closed contacts: commanded forces that are not measured, and patches that rise.

    Parameters
    ----------
    settings : ``recovery.lift_time`` and the touch force.
    """

    def __init__(self, settings: ControlSettings):
        self.settings = settings
        self._min_force = TOUCH_FRACTION * settings.contact.touch_force if settings.compliant else 0.0
        self._since: dict[str, float] = {}
        self._contacts: tuple[Contact, ...] | None = None
        self._is_suspicious = False

    def update(
        self,
        t: float,
        terms: Terms,
        motion: Motion,
        commanded: Mapping[str, np.ndarray],
        measured: Mapping[str, np.ndarray],
    ) -> None:
        """Check all contacts at time t (s) with the commanded and the measured wrenches (6,).

        Excluded are grasps, which cannot close again, contacts on moving objects, and rigid contacts, which have no
        touch detection.
        """
        if self._min_force == 0.0:
            return
        if motion.closed is not self._contacts:
            self._contacts, self._is_suspicious = motion.closed, True
            watched = [contact for contact in motion.closed if contact.kind != "grasp" and contact.carrier is None]
            self._watched = {contact.patch: contact.normal.tolist() for contact in watched}
        bound = LIFT_OFF_FRACTION * self._min_force
        # one pass over the measured forces suffices while all contacts bear load
        if not (self._is_suspicious or self._since) and all(
            [_normal_force(normal, measured.get(patch)) > bound for patch, normal in self._watched.items()]
        ):
            return
        self._since = {patch: start for patch, start in self._since.items() if patch in motion.contacts}
        self._is_suspicious = False
        for patch, normal in self._watched.items():
            loaded, force = motion.contacts[patch], _normal_force(normal, measured.get(patch))
            if loaded.is_lifted:
                self._is_suspicious = True
                if force >= self._min_force:
                    motion.contacts[patch] = replace(
                        loaded, is_lifted=False, place=_touchdown_pose(loaded, terms.frame(patch))
                    )
            elif force > bound or (
                _normal_force(normal, commanded.get(patch)) < self._min_force
                and _height_above_touchdown(loaded, terms.frame(patch).p) < LIFT_OFF_HEIGHT_M
            ):
                self._since.pop(patch, None)
            elif t - self._since.setdefault(patch, t) >= self.settings.recovery.lift_time - ROUNDING_S:
                del self._since[patch]
                self._is_suspicious = True
                motion.contacts[patch] = replace(loaded, is_lifted=True)
                motion.note(t, f"{patch} carries no load: it is lowered again", (patch,))


def _normal_force(normal: list[float], wrench: np.ndarray | None) -> float:
    """Return the component of a wrench's force along a normal (3,), N; of no wrench zero."""
    if wrench is None:
        return 0.0
    force = wrench.tolist()  # Python floats: of three numbers NumPy's overhead is ten times the product
    return normal[0] * force[0] + normal[1] * force[1] + normal[2] * force[2]


def _touchdown_pose(loaded: LoadedContact, frame: FrameTerms) -> Pose:
    """Return the pose of a contact after touchdown: only the height is measured, so that the contact does not drift.

    A ball may have rolled, so for a ball the whole measured pose is taken.
    """
    if loaded.contact.radius:
        return frame.R.copy(), frame.p.copy()
    R, p = loaded.place or (loaded.contact.R, loaded.contact.p)
    normal = loaded.contact.normal
    return R, p + float((frame.p - p) @ normal) * normal


def _height_above_touchdown(loaded: LoadedContact, p: np.ndarray) -> float:
    """Return the height of a patch at p (3,) above its touchdown (m)."""
    place = loaded.contact.p if loaded.place is None else loaded.place[1]
    return float((p - place) @ loaded.contact.normal)
