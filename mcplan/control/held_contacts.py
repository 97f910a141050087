"""Constraints of the closed contacts, and their planned forces as references of the whole-body program.

Constraints are built once per contact and filled at each tick.

Limbs in closed chains, through the ground or an object, leave contact forces undetermined. The smallest forces may
unload a sole almost completely, and it lifts off when the body moves. The plan looks ahead, so its forces are used.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from mcplan.control.command import LoadedContact
from mcplan.control.handled import HandledObjects
from mcplan.planning.plan import Plan
from mcplan.robot.terms import Terms
from mcplan.scene.allowed import allowed_pose, lags
from mcplan.scene.contact import Contact
from mcplan.settings.control import ControlSettings
from mcplan.settings.margins import counted_on, shrunk
from mcplan.whole_body.contact import DEPENDENT, ContactConstraint, count_unknowns, least_forces
from mcplan.whole_body.tasks.task import damping

MOST = 0.9
"""Largest preload as a fraction of the force limit. High, so that the preload fades with the limit when a contact is
unloaded, instead of dropping within a tick at the end."""

LEAST = 1e-3
"""N: smallest force limit of a closed contact. With zero, or the inner margin of its points, the program is
infeasible."""

GIVING = 3e-2
"""Tangential contact rows of which less than this fraction is independent of the others are dropped, with compliant
contacts. Example: a robot that kneels on both shanks can rock on its knees, to correct its CoM, only if these may slip
by millimetres. Rigid contacts and normal rows would drift: there only redundant rows are dropped."""


class _Held(NamedTuple):
    """Constraint of a closed contact, its stiffness, and whether the patch is free to move in some direction."""

    loaded: LoadedContact
    constraint: ContactConstraint
    kp: np.ndarray
    free: bool


class HeldContacts:
    """Constraints of the closed contacts in the whole-body program, one per contact.

    Parameters
    ----------
    settings : stiffness, friction and preload of contacts.
    objects : handled by the robot: contacts on them move along.

    Attributes
    ----------
    stiff : factor on the stiffness of all contacts.
    bearing : factor on the preload of all contacts.
    """

    def __init__(self, settings: ControlSettings, objects: HandledObjects):
        self.settings, self.objects = settings, objects
        self.stiff, self.bearing = 1.0, 0.0
        self._held: dict[str, _Held] = {}
        self._made: dict[Contact, tuple[ContactConstraint, np.ndarray]] = {}
        """Constraints with their initial values, built before the run: too slow for a tick."""

    def close(self, loaded: LoadedContact) -> ContactConstraint:
        """Return the constraint of a contact at its measured pose, with the friction coefficient that may be used."""
        contact = loaded.contact
        if contact not in self._made:
            made = self._make(contact)
            self._made[contact] = made, made.values.copy()
        constraint, values = self._made[contact]
        constraint.values[:] = values
        constraint.friction = self.settings.contact.friction_fraction * min(contact.friction, loaded.friction)
        if loaded.place is not None:
            R, constraint.p = loaded.place
            if contact.radius:
                constraint.R, constraint.p = contact.R, constraint.p - contact.rolled(R)
            else:  # an object may have turned
                lies = contact.kind == "surface" and self.objects.frame(contact) is None
                constraint.R = levelled(R, constraint.contact) if lies else R
        return constraint

    def fill(self, t: float, loaded: LoadedContact, terms: Terms, grips: float) -> ContactConstraint:
        """Return the constraint of a contact at time t (s); ``grips`` is the usable fraction of grip force limits."""
        contact = loaded.contact
        held = self._held.get(contact.patch)
        if held is None or held.loaded is not loaded:
            made = self.close(loaded)
            free = len(contact.selection) < 6 and not contact.radius
            held = self._held[contact.patch] = _Held(loaded, made, made.kp.copy(), free)
            made.kp = self.stiff * held.kp
        known = held.constraint
        if held.free:
            frame, place = terms.frame(contact.patch), (known.R, known.p)
            if lags(contact, place, (frame.R, frame.p)):
                known.R, known.p = allowed_pose(contact, (frame.R, frame.p), place)
            if contact.rolls:
                known.axes = contact.axes_at(frame.R)
        if loaded.lifted:
            self._set_down(known, contact, terms)
        limit = loaded.limit.value(t)
        known.max_force = max(limit, LEAST)
        known.preload = self._preload(loaded, limit)
        if contact.kind == "grasp":
            known.max_moment = grips * contact.max_moment * min(1.0, limit / loaded.full)
            known.max_force = min(limit, grips * contact.max_force)
        return known

    def stiffen(self, share: float) -> None:
        """Scale the stiffness of all closed contacts by ``share``."""
        self.stiff = share
        for held in self._held.values():
            held.constraint.kp = share * held.kp

    def _preload(self, loaded: LoadedContact, limit: float) -> float:
        """Return the preload (N) of a contact: bounded by most of its force limit while that rises or sinks."""
        s = self.settings
        if not s.compliant or loaded.contact.kind == "grasp" or loaded.lifted or loaded.idle:
            return 0.0
        return self.bearing * min(s.contact.preload_force, MOST * limit)

    def _set_down(self, known: ContactConstraint, contact: Contact, terms: Terms) -> None:
        """Lower a contact that has lost its support at the descent speed v: ``kp e = kd v``.

        Its orientation is held, too: nothing else keeps it from turning while it bears no force.
        """
        s, p = self.settings, terms.frame(contact.patch).p
        kp = max(s.gains.contact_kp, 1.0)
        ahead = s.timing.descent_speed * damping(s.gains.contact_kp, None) / kp
        known.kp[:] = kp
        known.p = known.p + (float((p - known.p) @ contact.normal) - ahead) * contact.normal

    def _make(self, contact: Contact) -> ContactConstraint:
        """Build the constraint of a contact at its planned pose, with its points inside the pressure margin.

        It is stiff along its support; on an object in all directions. Edges and faces are turned flat onto their
        supports. Weight does the same, except for lightly loaded contacts (a foot stands up on a corner while a hand
        reaches out for seconds) and for edges in a closed chain (both shanks of a robot that kneels). A sole on a bar
        is turned flat along the bar.
        """
        s = self.settings
        # the z axis of an edge patch is not the normal: each axis blends normal and tangential stiffness
        upright = (contact.axes[:, 2] @ contact.R) ** 2
        frame = self.objects.frame(contact)
        normal_kp = s.gains.contact_normal_kp if frame is None else s.gains.contact_kp
        lies = contact.kind == "surface"
        tilt = np.zeros(3) if lies else 1.0 - upright
        if contact.rolls:  # free to roll about the bar
            bar = contact.points[1] - contact.points[0]
            tilt = bar**2 / (bar @ bar)
        kp = s.gains.contact_kp + (normal_kp - s.gains.contact_kp) * np.concatenate([upright, tilt])
        if (
            contact.radius
        ):  # ball: its rotation is tied to its position along the support; with compliant contacts it rolls freely
            kp[[0, 1, 3, 4, 5]] = 0.0 if s.compliant else s.gains.contact_kp
        if s.contact.pressure_margin > 0.0:
            contact = replace(contact, points=shrunk(contact.points, s.contact.pressure_margin))
        kd = damping(s.gains.contact_kp, None)
        constraint = ContactConstraint(contact, kp, kd, faces=s.contact.friction_faces, frame=frame)
        if s.compliant and contact.kind != "grasp":
            constraint.dependent[:3] += (GIVING - DEPENDENT) * (1.0 - upright)
        return constraint


def levelled(R: np.ndarray, contact: Contact) -> np.ndarray:
    """Return the rotation (3,3) of a patch after the smallest turn that lays its edge or face flat on the support."""
    if len(contact.points) == 2:
        line = R @ (contact.points[1] - contact.points[0])
        lies, goal = line, line - (line @ contact.normal) * contact.normal
    else:
        lies, goal = R @ contact.R.T @ contact.normal, contact.normal
    return Rotation.align_vectors(goal[None], lies[None])[0].as_matrix() @ R


CHANGE = 0.3
"""s: time constant with which planned forces change from stance to stance: the default loading time of a foot."""


class PlannedForces:
    """Planned force of each contact, as references for the force unknowns of the program.

    Parameters
    ----------
    plan : its stances contain the wrenches of their contacts.
    dt : control period (s).
    settings : with the margin of contact pressures inside the edges of patches.
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
        """Return the force references of the closed contacts in one tick of the motion to a stance.

        The force of a new contact starts from zero; that of a contact absent from the stance decays to zero.
        """
        goal, now = self._stances[stance], {}
        for patch, loaded in contacts.items():
            none = np.zeros(count_unknowns(loaded.contact))
            force, wanted = (forces.get(patch, none) for forces in (self._now, goal))
            if len(force) == len(wanted) == len(none):  # it may be held with another model than planned
                now[patch] = force + self._part * (wanted - force)
        self._now = now
        return now
