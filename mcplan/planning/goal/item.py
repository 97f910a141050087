"""Goal items: deviations of a stance from them, the stances of a plan that meet them, and the contacts of a search.

Measured deviations by field:

contacts   largest deviation of the specified coordinates; infinite if the patch is not on its support, or kind,
               friction, largest force or freedoms differ from the specified ones
only       number of other contacts
base       |p - xyz|, and with rpy the angle of  R_goal' R
posture    largest  |q_j - posture_j|  over the specified joints; for a named posture of an item without contacts
               also the patches that it stands on
com        |c - com|, horizontal only if no height is specified
objects    |p - xyz|, and the angle of  R_goal' R

Items are met in order. An item is met by the first stance, starting with that of the item before, that meets all its
fields; the last item by the last stance of the plan.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from mcplan.planning.posture.reference import ground_patches
from mcplan.robot.pose import base_orientation
from mcplan.robot.robot import Robot
from mcplan.scenario.schema import GoalItem
from mcplan.scene.contact import Contact
from mcplan.scene.spec import ContactSpec

COORDINATE_TOLERANCE = 1e-6
"""m, rad: tolerance of coordinates that the goal specifies."""

OBJECT_TOLERANCE_M, OBJECT_TOLERANCE_RAD = 1e-3, 2e-3
"""Tolerances of objects at their goal: plans place objects exactly."""


@dataclass(frozen=True)
class Measure:
    """Deviation from one requirement of an item.

    Attributes
    ----------
    field : key of the item.
    thing : the patch, with the option in which its contact differs; the joint with the largest deviation; the object;
        empty if the field has one requirement only.
    amount : deviation from the goal, in ``unit``; inf if there is nothing to compare (no such contact, or with other
        options).
    allowed : the tolerance.
    unit : ``m`` | ``rad`` | ``m, rad`` | ``contacts``.
    """

    field: str
    thing: str
    amount: float
    allowed: float
    unit: str

    @property
    def met(self) -> bool:
        """Whether the amount is within the tolerance."""
        return self.amount <= self.allowed

    @property
    def shortfall(self) -> float:
        """The amount as a multiple of the tolerance; large, but finite, for an infinite amount."""
        return min(self.amount / max(self.allowed, COORDINATE_TOLERANCE), 1e9)

    def __str__(self) -> str:
        name = f"{self.field} {self.thing}".strip()
        if self.field == "contacts" and self.met:
            return f"{self.thing} in place"
        if not np.isfinite(self.amount):
            return f"{name} is not there"
        if self.unit == "contacts":
            return f"{self.amount:.0f} other contacts" if self.amount else "no other contacts"
        return f"{name} off by {self.amount:.2g} {self.unit} ({self.allowed:.2g} allowed)"


def measure(
    item: GoalItem, robot: Robot, contacts: Sequence[Contact], q: np.ndarray, objects: Mapping[str, np.ndarray]
) -> tuple[Measure, ...]:
    """Return the deviations from all requirements of an item.

    Parameters
    ----------
    contacts : of the stance.
    q : (nq,) its posture.
    objects : position and quaternion w x y z (7,) of the objects, by name.
    """
    touching = {contact.patch: contact for contact in contacts}
    found = [
        Measure("contacts", *_contact_measure(spec, touching.get(spec.patch)), COORDINATE_TOLERANCE, "m, rad")
        for spec in item.contacts
    ]
    if item.only:
        listed = {spec.patch for spec in item.contacts}
        others = sum(contact.patch not in listed for contact in contacts)
        found.append(Measure("only", "", float(others), 0.0, "contacts"))
    if item.base is not None:
        off = float(np.linalg.norm(q[:3] - item.base.xyz))
        found.append(Measure("base", "", off, item.base.tolerance, "m"))
        if item.base.rpy is not None:
            turn = Rotation.from_euler("xyz", item.base.rpy).inv() * base_orientation(q)
            found.append(Measure("base", "turn", float(turn.magnitude()), item.base.angle_tolerance, "rad"))
    if item.posture is not None:
        off_joints = np.nan_to_num(np.abs(q[7:] - item.posture.joint_targets(robot)), nan=0.0)
        worst = int(np.argmax(off_joints))
        joint, unit = robot.joint_names[worst], robot.joint_units[worst]
        found.append(Measure("posture", joint, float(off_joints[worst]), item.posture_tolerance, unit))
        lifted = implied_contacts(item, robot) - {contact.patch for contact in contacts}
        found += [Measure("posture", patch, np.inf, 0.0, "m") for patch in sorted(lifted)]
    if item.com is not None:
        com = np.array(item.com)
        off = float(np.linalg.norm(robot.com(q)[: len(com)] - com))
        found.append(Measure("com", "", off, item.com_tolerance, "m"))
    for name, pose in item.objects.items():
        now = objects.get(name)
        off = np.inf if now is None else float(np.linalg.norm(now[:3] - pose.p))
        found.append(Measure("objects", name, off, OBJECT_TOLERANCE_M, "m"))
        if now is not None:
            turn = Rotation.from_matrix(pose.R).inv() * base_orientation(now)
            found.append(Measure("objects", f"{name} turn", float(turn.magnitude()), OBJECT_TOLERANCE_RAD, "rad"))
    return tuple(found)


def implied_contacts(item: GoalItem, robot: Robot) -> frozenset[str]:
    """Return the patches that the named posture of an item without contacts stands on; else an empty set."""
    if item.contacts or item.posture is None or item.posture.name is None:
        return frozenset()
    return ground_patches(robot, robot.posture(item.posture.name))


def describe_unmet(measures: Sequence[Measure]) -> str:
    """Describe the unmet parts of the goal; empty when all are met."""
    return "; ".join(str(one) for one in measures if not one.met)


State = tuple[Sequence[Contact], np.ndarray, Mapping[str, np.ndarray]]
"""Contacts, posture (nq,) and poses (7,) of the objects."""


@dataclass(frozen=True)
class ItemReached:
    """Result of a goal item in a plan: the stance that meets it, and the deviations.

    Attributes
    ----------
    item : its index.
    stance : index of the stance that meets it; if none does, of the one with the smallest deviation.
    measures : by field.
    """

    item: int
    stance: int
    measures: tuple[Measure, ...]

    @property
    def met(self) -> bool:
        """Whether all fields are met."""
        return all(one.met for one in self.measures)

    @property
    def missing(self) -> str:
        """The unmet parts of the goal as text; empty when all are met."""
        return describe_unmet(self.measures)

    def __str__(self) -> str:
        measures = "; ".join(str(one) for one in self.measures)
        return f"goal {self.item}: {'met' if self.met else 'NOT MET'} in stance {self.stance}: {measures}"

    def to_data(self) -> dict[str, Any]:
        """Return plain values; None where an amount is infinite."""
        return {
            "item": self.item,
            "stance": self.stance,
            "met": self.met,
            "fields": [
                {
                    "field": one.field,
                    "thing": one.thing,
                    "amount": one.amount if np.isfinite(one.amount) else None,
                    "allowed": one.allowed,
                    "unit": one.unit,
                }
                for one in self.measures
            ],
        }


def items_reached(goal: Sequence[GoalItem], robot: Robot, stances: Sequence[State]) -> tuple[ItemReached, ...]:
    """Return for each item of the goal the stance that meets it, and the deviations."""
    found: list[ItemReached] = []
    first, last = 0, len(stances) - 1
    for number, item in enumerate(goal):
        best: ItemReached | None = None
        least = np.inf
        for k in range(last if number == len(goal) - 1 else first, last + 1):
            measures = measure(item, robot, *stances[k])
            worst = max((one.shortfall for one in measures), default=0.0)
            if worst < least:
                best, least = ItemReached(number, k, measures), worst
            if all(one.met for one in measures):
                best = ItemReached(number, k, measures)
                break
        assert best is not None
        found.append(best)
        first = best.stance
    return tuple(found)


def deviation(spec: ContactSpec, support: str, coordinates: Mapping[str, object]) -> float:
    """Return the largest deviation (m, rad) of a place from the coordinates of a spec; inf on another support."""
    if spec.surface != support:
        return np.inf
    worst = 0.0
    for name, value in spec.given.items():
        if name not in coordinates:
            continue
        difference = float(coordinates[name]) - float(value)  # type: ignore[arg-type]
        if name in ("yaw", "angle"):
            difference = (difference + np.pi) % (2 * np.pi) - np.pi
        worst = max(worst, abs(difference))
    return worst


def contact_deviation(spec: ContactSpec, contact: Contact | None) -> float:
    """Return the deviation (m, rad) of a patch's contact from a spec; inf without contact, or with other options.

    Omitted coordinates and options are not compared; ``overhang`` is a permission only.
    """
    return _contact_measure(spec, contact)[1]


def _contact_measure(spec: ContactSpec, contact: Contact | None) -> tuple[str, float]:
    """Return the patch of a spec, with the first option in which its contact differs, and `contact_deviation`."""
    if contact is None or contact.support != spec.surface:
        return spec.patch, np.inf
    for name, stated in spec.options.items():
        if name in ("slide", "hinge"):
            same = set(contact.options.get(name, ())) == set(getattr(spec, name))  # type: ignore[call-overload]
        else:
            same = name == "overhang" or getattr(contact, name) == stated
        if not same:
            return f"{spec.patch} with {name} {stated}", np.inf
    return spec.patch, deviation(spec, contact.support, contact.coordinates)


@dataclass(frozen=True, eq=False)
class Goal:
    """A goal item, and the contacts of the search for it.

    Attributes
    ----------
    item : of the scenario file.
    specs : contacts to reach, by patch: those of the item, or those that the planner chose.
    chosen : whether the planner chose them, or their places; then contacts of other limbs do not help.
    stance : patches of the whole stance, if the planner chose it.
    """

    item: GoalItem
    specs: dict[str, ContactSpec]
    chosen: bool = False
    stance: frozenset[str] = frozenset()

    @classmethod
    def of(cls, item: GoalItem) -> "Goal":
        """Return the goal with the contacts that an item lists."""
        return cls(item, {spec.patch: spec for spec in item.contacts})

    @classmethod
    def by(cls, item: GoalItem, contacts: Sequence[Contact]) -> "Goal":
        """Return the goal of an item with contacts that the planner chose, in their places."""
        specs = {contact.patch: ContactSpec.model_validate(contact.to_data()) for contact in contacts}
        return cls(item, specs, True, frozenset(specs))

    @classmethod
    def roughly(cls, item: GoalItem, robot: Robot, contacts: Sequence[Contact], com: np.ndarray) -> "Goal":
        """Return the goal of an item with one contact per limb, anywhere on the supports of the given contacts.

        Of each limb it is the contact horizontally closest to the centre of mass ``com`` (3,): the knee of a kneeling
        leg, not its toe.
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
    def suits_posture(self) -> bool:
        """Whether the item has a posture and contacts without specified places: the places have to suit the posture."""
        return self.item.posture is not None and not all(
            {"x", "y"} <= set(spec.given) or "along" in spec.given for spec in self.specs.values()
        )

    def is_met_by(self, contact: Contact) -> bool:
        """Whether a contact meets the spec of its patch."""
        spec = self.specs.get(contact.patch)
        return spec is not None and contact_deviation(spec, contact) <= COORDINATE_TOLERANCE

    def reached(self, contacts: tuple[Contact, ...]) -> bool:
        """Whether a stance has all contacts of the goal, and no others if the item has ``only``."""
        met_patches = {contact.patch for contact in contacts if self.is_met_by(contact)}
        if not met_patches >= set(self.specs):
            return False
        return not self.item.only or len(contacts) == len(self.specs)

    def limbs(self, robot: Robot) -> dict[str, tuple[str, ...]]:
        """Return the patches of the goal by limb."""
        found: dict[str, tuple[str, ...]] = {}
        for patch in self.specs:
            limb = robot.patches[patch].limb
            found[limb] = (*found.get(limb, ()), patch)
        return found
