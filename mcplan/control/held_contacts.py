"""The constraints by which closed contacts hold: made once for each contact, filled at each tick.

The forces of a plan's contacts, to which the program is drawn.

Where limbs form closed chains, through the ground or an object, many forces do for the same motion. The smallest ones
may leave a sole beside a hand and another sole with next to nothing, and it lifts off when the body moves: the plan has
looked ahead, and its contacts bear something.
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
"""Of what a contact may bear, the part that is asked for as its preload: if it were less a contact that is let go would
lose the rest of it within a tick."""

LEAST = 1e-3
"""N: what a closed contact may always bear. Where that is nothing, or its points' inner margin, nothing solves it."""

GIVING = 3e-2
"""Part of a row along a support below which it is left out where contacts give: a robot that kneels on both shanks
cannot rock on its knees but for millimetres that these slip, and where its centre of mass is off its course it has to.
Where they do not give, and across supports, what is left out drifts: there only what contacts say twice is."""


class _Held(NamedTuple):
    """The constraint of a closed contact, its stiffness, and whether this leaves the patch free in some direction."""

    loaded: LoadedContact
    constraint: ContactConstraint
    kp: np.ndarray
    free: bool


class HeldContacts:
    """What closed contacts are asked for in the whole-body program, by one constraint for each of them.

    Parameters
    ----------
    settings : stiffness, friction and preload that are counted on.
    objects : that the robot handles: contacts on them go along.

    Attributes
    ----------
    stiff : share of their stiffness that contacts have.
    bearing : share of their preload that they are asked for.
    """

    def __init__(self, settings: ControlSettings, objects: HandledObjects):
        self.settings, self.objects = settings, objects
        self.stiff, self.bearing = 1.0, 0.0
        self._held: dict[str, _Held] = {}
        self._made: dict[Contact, tuple[ContactConstraint, np.ndarray]] = {}
        """With their numbers as they were made: before the run, no tick has the time for it."""

    def close(self, loaded: LoadedContact) -> ContactConstraint:
        """Return the constraint of a contact as it has been closed, with what is counted on of its cone."""
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
        """Return the constraint of a contact at time t (s); of their largest forces grips may bear a part."""
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
        """Let closed contacts have a share of their stiffness."""
        self.stiff = share
        for held in self._held.values():
            held.constraint.kp = share * held.kp

    def _preload(self, loaded: LoadedContact, limit: float) -> float:
        """Return what a contact bears at least: most of what it may while that rises or sinks."""
        s = self.settings
        if not s.compliant or loaded.contact.kind == "grasp" or loaded.lifted or loaded.idle:
            return 0.0
        return self.bearing * min(s.contact.preload_force, MOST * limit)

    def _set_down(self, known: ContactConstraint, contact: Contact, terms: Terms) -> None:
        """Draw a contact that has lost its support back to it, at the speed of a descent: ``kp e = kd v``.

        It is held flat: nothing else keeps it from turning while it bears nothing.
        """
        s, p = self.settings, terms.frame(contact.patch).p
        kp = max(s.gains.contact_kp, 1.0)
        ahead = s.timing.descent_speed * damping(s.gains.contact_kp, None) / kp
        known.kp[:] = kp
        known.p = known.p + (float((p - known.p) @ contact.normal) - ahead) * contact.normal

    def _make(self, contact: Contact) -> ContactConstraint:
        """Make the constraint of a contact in its place: stiff along its support, with what is counted on of its patch.

        On an object it is stiff in all directions. Edges and faces are drawn flat onto their supports, from however
        they touched: weight presses them flat, but not what bears little (a foot beside another one stands up on a
        corner while a hand reaches out for seconds), nor an edge of a closed chain, such as both shanks of a robot that
        kneels. A sole on a bar is drawn flat along the bar.
        """
        s = self.settings
        # of an edge the patch's z is not the normal: each axis takes its part of both stiffnesses
        upright = (contact.axes[:, 2] @ contact.R) ** 2
        frame = self.objects.frame(contact)
        normal_kp = s.gains.contact_normal_kp if frame is None else s.gains.contact_kp
        lies = contact.kind == "surface"
        tilt = np.zeros(3) if lies else 1.0 - upright
        if contact.rolls:  # about the bar it is free
            bar = contact.points[1] - contact.points[0]
            tilt = bar**2 / (bar @ bar)
        kp = s.gains.contact_kp + (normal_kp - s.gains.contact_kp) * np.concatenate([upright, tilt])
        if contact.radius:  # what it rolls belongs to its place along the support; where contacts give it rolls truly
            kp[[0, 1, 3, 4, 5]] = 0.0 if s.compliant else s.gains.contact_kp
        if s.contact.pressure_margin > 0.0:
            contact = replace(contact, points=shrunk(contact.points, s.contact.pressure_margin))
        kd = damping(s.gains.contact_kp, None)
        constraint = ContactConstraint(contact, kp, kd, faces=s.contact.friction_faces, frame=frame)
        if s.compliant and contact.kind != "grasp":
            constraint.dependent[:3] += (GIVING - DEPENDENT) * (1.0 - upright)
        return constraint


def levelled(R: np.ndarray, contact: Contact) -> np.ndarray:
    """Return a rotation (3,3) of a patch turned by the least angle that lays it, edge or face, onto its support."""
    if len(contact.points) == 2:
        line = R @ (contact.points[1] - contact.points[0])
        lies, goal = line, line - (line @ contact.normal) * contact.normal
    else:
        lies, goal = R @ contact.R.T @ contact.normal, contact.normal
    return Rotation.align_vectors(goal[None], lies[None])[0].as_matrix() @ R


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
