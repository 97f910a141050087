"""Constraints of the closed contacts, and planned contact forces as references of the whole-body program.

Constraints are built once per contact and filled at each tick.

Limbs in closed chains, through the ground or an object, leave contact forces undetermined. The minimum-norm forces may
unload a sole almost completely, so that it lifts off when the body moves. The planned forces anticipate the motion.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mcplan.control.command import LoadedContact
from mcplan.control.handled import HandledObjects
from mcplan.control.motion import Motion
from mcplan.planning.plan import Plan
from mcplan.robot.pose import rotation_onto
from mcplan.robot.terms import Terms
from mcplan.scene.allowed_pose import allowed_pose, is_outdated
from mcplan.scene.contact import Contact
from mcplan.settings.control import ControlSettings
from mcplan.settings.margins import shrink_points, with_control_margins
from mcplan.whole_body.contact import MIN_INDEPENDENCE, ContactConstraint, count_unknowns, least_forces
from mcplan.whole_body.packed import is_unchanged
from mcplan.whole_body.tasks.task import damping

MAX_PRELOAD_SHARE = 0.9
"""Largest preload as a fraction of the force limit. It is high so that the preload fades with the limit when a contact
is unloaded, instead of dropping within a tick at the end."""

MIN_FORCE_LIMIT = 1e-3
"""Smallest force limit of a closed contact (N). A limit of zero, or one below the solver margin of the contact points,
makes the program infeasible."""

COMPLIANT_MIN_INDEPENDENCE = 3e-2
"""Compliant contacts: a tangential row is dropped if less than this fraction of it is independent of the other rows.
Example: a robot that kneels on both shanks can rock on its knees to correct its CoM only if these may slip by
millimetres. Rigid contacts and normal rows would drift: of these only redundant rows are dropped."""


@dataclass
class _ClosedContact:
    """Constraint of a closed contact.

    kp : its nominal stiffness.
    has_free_direction : whether the patch can move in some direction.
    final_inputs : the inputs for which its limits no longer change, once its force ramp has ended.
    """

    loaded: LoadedContact
    constraint: ContactConstraint
    kp: np.ndarray
    has_free_direction: bool
    final_inputs: tuple | None = None


class HeldContacts:
    """Constraints of the closed contacts in the whole-body program, one per contact.

    Parameters
    ----------
    settings : stiffness, friction and preload of contacts.
    objects : objects handled by the robot; contacts on them move with them.

    Attributes
    ----------
    stiffness_share : factor on the stiffness of all contacts.
    preload_share : factor on the preload of all contacts.
    is_settled : whether nothing but a share of preload or grip, or a contact, will change the constraints, unless a
        patch moves in a free direction; never with objects.
    rolling : constraints whose axes turn with the patch, with their contacts.
    free_bounds : first arguments of ``largest_free_motion``, for contacts with free directions.
    """

    def __init__(self, settings: ControlSettings, objects: HandledObjects):
        self.settings, self.objects = settings, objects
        self.stiffness_share, self.preload_share = 1.0, 0.0
        self._closed_contacts: dict[str, _ClosedContact] = {}
        self.is_settled = False
        self.rolling: list[tuple[ContactConstraint, Contact]] = []
        self._free: Sequence[_ClosedContact] = ()
        self.free_bounds = np.zeros((0, 6, 6)), np.zeros((0, 12)), np.zeros(0, np.int64)
        self._initial_constraints: dict[Contact, tuple[ContactConstraint, np.ndarray]] = {}
        """Constraints with their initial values, built before the run, because building takes longer than a tick."""

    def close(self, loaded: LoadedContact) -> ContactConstraint:
        """Return the constraint of a contact at its measured pose, with the usable friction coefficient."""
        contact = loaded.contact
        if contact not in self._initial_constraints:
            constraint = self._build(contact)
            self._initial_constraints[contact] = constraint, constraint.values.copy()
        constraint, values = self._initial_constraints[contact]
        constraint.values[:] = values
        constraint.friction = self.settings.contact.friction_fraction * min(contact.friction, loaded.friction)
        if loaded.place is not None:
            R, constraint.p = loaded.place
            if contact.radius:
                constraint.R, constraint.p = contact.R, constraint.p - contact.rolled(R)
            else:  # not on objects: these may have turned
                on_surface = contact.kind == "surface" and self.objects.frame(contact) is None
                constraint.R = align_with_support(R, constraint.contact) if on_surface else R
        return constraint

    def fill_all(self, t: float, motion: Motion, terms: Terms, grip_share: float) -> tuple[ContactConstraint, ...]:
        """Return the constraints of all closed contacts at time t (s), see `fill`."""
        constraints = tuple([self.fill(t, one, terms, grip_share) for one in motion.contacts.values()])
        entries = [self._closed_contacts[patch] for patch in motion.contacts]
        self.rolling = [(entry.constraint, entry.loaded.contact) for entry in entries if entry.loaded.contact.rolls]
        self.is_settled = not self.objects and all(
            entry.final_inputs is not None and not entry.loaded.is_lifted for entry in entries
        )
        if self.is_settled:
            self._bound_free_motion([entry for entry in entries if entry.has_free_direction], terms)
        return constraints

    def turn_axes(self, terms: Terms) -> None:
        """Turn the axes of rolling patches with them, as `fill` does; the kernel of a usual tick has its own."""
        for constraint, contact in self.rolling:
            constraint.axes = contact.axes_at(terms.frame(contact.patch).R)

    def _bound_free_motion(self, free: Sequence[_ClosedContact], terms: Terms) -> None:
        """Set the present poses of contacts with free directions, from which their motion is bounded."""
        if not is_unchanged(free, self._free):
            self._free = free
            index = [terms.frame_names.index(entry.loaded.contact.patch) for entry in free]
            projections = np.array([entry.loaded.contact.free for entry in free]).reshape(-1, 6, 6)
            self.free_bounds = projections, np.zeros((len(free), 12)), np.array(index, np.int64)
        for pose, entry in zip(self.free_bounds[1], free, strict=True):
            pose[:9], pose[9:] = entry.constraint.R.ravel(), entry.constraint.p

    def fill(self, t: float, loaded: LoadedContact, terms: Terms, grip_share: float) -> ContactConstraint:
        """Return the constraint of a contact at time t (s); ``grip_share`` is the usable share of grip force limits."""
        contact = loaded.contact
        entry = self._closed_contacts.get(contact.patch)
        if entry is None or entry.loaded is not loaded:
            constraint = self.close(loaded)
            has_free_direction = len(contact.selection) < 6 and not contact.radius
            entry = self._closed_contacts[contact.patch] = _ClosedContact(
                loaded, constraint, constraint.kp.copy(), has_free_direction
            )
            constraint.kp = self.stiffness_share * entry.kp
        constraint = entry.constraint
        if entry.has_free_direction:
            frame, pose = terms.frame(contact.patch), (constraint.R, constraint.p)
            if is_outdated(contact, pose, (frame.R, frame.p)):
                constraint.R, constraint.p = allowed_pose(contact, (frame.R, frame.p), pose)
            if contact.rolls:
                constraint.axes = contact.axes_at(frame.R)
        if loaded.is_lifted:
            self._lower(constraint, contact, terms)
        ramp = loaded.limit
        if (inputs := (ramp, self.preload_share, grip_share)) == entry.final_inputs:
            return constraint
        entry.final_inputs = inputs if t - ramp.start_time >= ramp.duration else None
        limit = ramp.value(t)
        constraint.max_force = max(limit, MIN_FORCE_LIMIT)
        constraint.preload = self._preload(loaded, limit)
        if contact.kind == "grasp":
            constraint.max_moment = grip_share * contact.max_moment * min(1.0, limit / loaded.full)
            constraint.max_force = min(limit, grip_share * contact.max_force)
        return constraint

    def scale_stiffness(self, share: float) -> None:
        """Set the stiffness of all closed contacts to ``share`` of their nominal one."""
        self.stiffness_share = share
        for entry in self._closed_contacts.values():
            entry.constraint.kp = share * entry.kp

    def _preload(self, loaded: LoadedContact, limit: float) -> float:
        """Return the preload (N) of a contact, at most ``MAX_PRELOAD_SHARE`` of its present force limit."""
        s = self.settings
        if not s.compliant or loaded.contact.kind == "grasp" or loaded.is_lifted or loaded.is_idle:
            return 0.0
        return self.preload_share * min(s.contact.preload_force, MAX_PRELOAD_SHARE * limit)

    def _lower(self, constraint: ContactConstraint, contact: Contact, terms: Terms) -> None:
        """Lower a patch that has lost its support, at the descent speed v: ``kp e = kd v``.

        The orientation is controlled, too: without contact force nothing else keeps the patch from turning.
        """
        s, p = self.settings, terms.frame(contact.patch).p
        kp = max(s.gains.contact_kp, 1.0)
        lead = s.timing.descent_speed * damping(s.gains.contact_kp, None) / kp
        constraint.kp[:] = kp
        constraint.p = constraint.p + (float((p - constraint.p) @ contact.normal) - lead) * contact.normal

    def _build(self, contact: Contact) -> ContactConstraint:
        """Build the constraint of a contact at its planned pose, with its points inside the pressure margin.

        The contact is stiff along its support; on an object in all directions. Its rotational stiffness aligns edges
        and faces with their supports, and a sole with the bar. Loaded contacts align by themselves, but lightly loaded
        ones do not (a foot stays on a corner for seconds while a hand reaches out), nor do edges in a closed chain
        (both shanks of a kneeling robot).
        """
        s = self.settings
        # the z axis of an edge patch is not the normal: each axis blends normal and tangential stiffness
        upright = (contact.axes[:, 2] @ contact.R) ** 2
        frame = self.objects.frame(contact)
        normal_kp = s.gains.contact_normal_kp if frame is None else s.gains.contact_kp
        tilt = np.zeros(3) if contact.kind == "surface" else 1.0 - upright
        if contact.rolls:  # free to roll about the bar
            bar = contact.points[1] - contact.points[0]
            tilt = bar**2 / (bar @ bar)
        kp = s.gains.contact_kp + (normal_kp - s.gains.contact_kp) * np.concatenate([upright, tilt])
        if contact.radius:  # a ball's rotation follows from its position; with compliant contacts it rolls freely
            kp[[0, 1, 3, 4, 5]] = 0.0 if s.compliant else s.gains.contact_kp
        if s.contact.pressure_margin > 0.0:
            contact = replace(contact, points=shrink_points(contact.points, s.contact.pressure_margin))
        kd = damping(s.gains.contact_kp, None)
        constraint = ContactConstraint(contact, kp, kd, faces=s.contact.friction_faces, frame=frame)
        if s.compliant and contact.kind != "grasp":
            constraint.min_independence[:3] += (COMPLIANT_MIN_INDEPENDENCE - MIN_INDEPENDENCE) * (1.0 - upright)
        return constraint


def align_with_support(R: np.ndarray, contact: Contact) -> np.ndarray:
    """Return the rotation (3,3) of a patch, turned by the least angle that aligns its edge or face with the support."""
    if len(contact.points) == 2:
        edge = R @ (contact.points[1] - contact.points[0])
        present, target = edge, edge - (edge @ contact.normal) * contact.normal
    else:
        present, target = R @ contact.R.T @ contact.normal, contact.normal
    return rotation_onto(present, target) @ R


FORCE_TIME_CONSTANT = 0.3
"""Time constant of the force references after a change of stance, equal to the default loading time of a foot (s)."""


class PlannedForces:
    """Planned contact forces as references for the force unknowns of the program.

    Parameters
    ----------
    plan : the plan, with the contact wrenches of its stances.
    dt : control period (s).
    settings : controller settings, with the pressure margin inside the edges of patches.

    Attributes
    ----------
    references : patch -> reference of its force unknowns after the last `follow`.
    gain : fraction of the distance to their targets that the references move in a tick.
    """

    def __init__(self, plan: Plan, dt: float, settings: ControlSettings):
        self.gain = min(1.0, dt / FORCE_TIME_CONSTANT)
        self._stances = [
            {
                contact.patch: least_forces(contact, np.asarray(stance.wrenches[contact.patch], dtype=float))
                for contact in (with_control_margins(each, settings) for each in stance.contacts)
                if contact.patch in stance.wrenches
            }
            for stance in plan.stances
        ]
        self.references: dict[str, np.ndarray] = {}
        self._stance = -1
        self._contacts: Sequence[Contact] = ()

    def follow(self, stance: int, contacts: Sequence[Contact]) -> dict[str, np.ndarray]:
        """Return the force references of the closed contacts in one tick of the motion to a stance.

        The reference of a new contact starts from zero; that of a contact absent from the stance decays to zero. The
        arrays change with the next call.
        """
        if stance != self._stance or contacts is not self._contacts:
            self._stance, self._contacts = stance, contacts
            self._set_targets(stance, contacts)
        self._flat += self.gain * (self._target - self._flat)
        return self.references

    def arranged(self, patches: Sequence[str], parts: Sequence[slice]) -> tuple[np.ndarray, np.ndarray]:
        """Return references and their targets as flat vectors with these parts by patch; zero where there are none."""
        flat, target = np.zeros((2, parts[-1].stop if parts else 0))
        for patch, part in zip(patches, parts, strict=True):
            if patch in self.references:
                flat[part], target[part] = self.references[patch], self._targets[patch]
        self._set_parts(flat, target, dict(zip(patches, parts, strict=True)))
        return flat, target

    def _set_parts(self, flat: np.ndarray, target: np.ndarray, parts: Mapping[str, slice]) -> None:
        """Set the flat vectors of references and targets, with their parts by patch."""
        self._flat, self._target = flat, target
        self.references, self._targets = ({patch: x[part] for patch, part in parts.items()} for x in (flat, target))

    def _set_targets(self, stance: int, contacts: Sequence[Contact]) -> None:
        """Set the flat vectors of references and their targets, for these contacts."""
        planned, parts, start = self._stances[stance], {}, 0
        references, targets = [np.zeros(0)], [np.zeros(0)]
        for contact in contacts:
            patch, zero = contact.patch, np.zeros(count_unknowns(contact))
            reference, target = self.references.get(patch, zero), planned.get(patch, zero)
            if len(reference) == len(target) == len(zero):  # the contact model may differ from the planned one
                references.append(reference)
                targets.append(target)
                parts[patch] = slice(start, start + len(zero))
                start += len(zero)
        self._set_parts(np.concatenate(references), np.concatenate(targets), parts)
