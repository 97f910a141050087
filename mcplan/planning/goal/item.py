"""Goal items: deviations of a stance from them, the stances of a plan that meet them, and the contacts of a search.

Deviations by field; R, p and c are the rotation, position and centre of mass in the stance:

contacts   largest deviation of the specified coordinates; infinite if the patch is not on its support, or if kind,
               friction, largest force or freedoms differ from the specified ones
only       number of other contacts
base       |p - xyz|, and with rpy the angle of  R_goal' R
posture    largest  |q_j - posture_j|  over the specified joints; for a named posture of an item without contacts
               also the patches that it stands on, infinite for one without contact
com        |c - com|, horizontal only if no height is specified
objects    |p - xyz|, and the angle of  R_goal' R

Items are met in order. An item is met by the first stance that meets all its fields, starting with the stance that met
the previous item; the last item must be met by the last stance of the plan.
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
"""Tolerance of coordinates that the goal specifies (m, rad)."""

OBJECT_TOLERANCE_M, OBJECT_TOLERANCE_RAD = 1e-3, 2e-3
"""Tolerances of objects at their goal, for rounding only: plans place objects exactly."""


@dataclass(frozen=True)
class Measure:
    """Deviation from one requirement of an item.

    Attributes
    ----------
    field : key of the item.
    thing : name of the patch (with the option in which its contact differs), of the joint with the largest deviation,
        or of the object; empty if the field has only one requirement.
    amount : deviation from the goal, in ``unit``; inf if the contact is missing or has other options.
    allowed : tolerance, in ``unit``.
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
    def tolerance_multiple(self) -> float:
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
    contacts : contacts of the stance.
    q : (nq,) posture of the stance.
    objects : position and quaternion w x y z (7,) of the objects, by name.
    """
    by_patch = {contact.patch: contact for contact in contacts}
    measures = [
        Measure("contacts", *_contact_measure(spec, by_patch.get(spec.patch)), COORDINATE_TOLERANCE, "m, rad")
        for spec in item.contacts
    ]
    if item.only:
        listed = {spec.patch for spec in item.contacts}
        other_contacts = sum(contact.patch not in listed for contact in contacts)
        measures.append(Measure("only", "", float(other_contacts), 0.0, "contacts"))
    if item.base is not None:
        deviation = float(np.linalg.norm(q[:3] - item.base.xyz))
        measures.append(Measure("base", "", deviation, item.base.tolerance, "m"))
        if item.base.rpy is not None:
            rotation = Rotation.from_euler("xyz", item.base.rpy).inv() * base_orientation(q)
            measures.append(Measure("base", "turn", float(rotation.magnitude()), item.base.angle_tolerance, "rad"))
    if item.posture is not None:
        off_joints = np.nan_to_num(np.abs(q[7:] - item.posture.joint_targets(robot)), nan=0.0)
        worst = int(np.argmax(off_joints))
        joint, unit = robot.joint_names[worst], robot.joint_units[worst]
        measures.append(Measure("posture", joint, float(off_joints[worst]), item.posture_tolerance, unit))
        missing_patches = implied_contacts(item, robot) - {contact.patch for contact in contacts}
        measures += [Measure("posture", patch, np.inf, 0.0, "m") for patch in sorted(missing_patches)]
    if item.com is not None:
        com = np.array(item.com)
        deviation = float(np.linalg.norm(robot.com(q)[: len(com)] - com))
        measures.append(Measure("com", "", deviation, item.com_tolerance, "m"))
    for name, pose in item.objects.items():
        pose_now = objects.get(name)
        deviation = np.inf if pose_now is None else float(np.linalg.norm(pose_now[:3] - pose.p))
        measures.append(Measure("objects", name, deviation, OBJECT_TOLERANCE_M, "m"))
        if pose_now is not None:
            rotation = Rotation.from_matrix(pose.R).inv() * base_orientation(pose_now)
            measures.append(
                Measure("objects", f"{name} turn", float(rotation.magnitude()), OBJECT_TOLERANCE_RAD, "rad")
            )
    return tuple(measures)


def implied_contacts(item: GoalItem, robot: Robot) -> frozenset[str]:
    """Return the patches that the named posture of an item without contacts stands on; else an empty set."""
    if item.contacts or item.posture is None or item.posture.name is None:
        return frozenset()
    return ground_patches(robot, robot.posture(item.posture.name))


def describe_unmet(measures: Sequence[Measure]) -> str:
    """Describe the unmet requirements; empty if all are met."""
    return "; ".join(str(one) for one in measures if not one.met)


State = tuple[Sequence[Contact], np.ndarray, Mapping[str, np.ndarray]]
"""Contacts, posture (nq,) and poses (7,) of the objects."""


@dataclass(frozen=True)
class ItemReached:
    """Result of a goal item in a plan: the stance that meets it, and the deviations.

    Attributes
    ----------
    item : index of the item.
    stance : index of the stance that meets it; if none does, of the one with the smallest deviation.
    measures : deviations from its requirements.
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
        """The unmet requirements as text; empty if all are met."""
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
    begin, last = 0, len(stances) - 1
    for number, item in enumerate(goal):
        best: ItemReached | None = None
        smallest = np.inf
        for k in range(last if number == len(goal) - 1 else begin, last + 1):
            measures = measure(item, robot, *stances[k])
            largest = max((one.tolerance_multiple for one in measures), default=0.0)
            if largest < smallest:
                best, smallest = ItemReached(number, k, measures), largest
            if all(one.met for one in measures):
                best = ItemReached(number, k, measures)
                break
        assert best is not None
        found.append(best)
        begin = best.stance
    return tuple(found)


def deviation(spec: ContactSpec, support: str, coordinates: Mapping[str, object]) -> float:
    """Return the largest deviation (m, rad) of coordinates from those of a spec; inf on another support."""
    if spec.surface != support:
        return np.inf
    largest = 0.0
    for name, value in spec.given.items():
        if name not in coordinates:
            continue
        difference = float(coordinates[name]) - float(value)  # type: ignore[arg-type]
        if name in ("yaw", "angle"):
            difference = (difference + np.pi) % (2 * np.pi) - np.pi
        largest = max(largest, abs(difference))
    return largest


def contact_deviation(spec: ContactSpec, contact: Contact | None) -> float:
    """Return the deviation (m, rad) of a patch's contact from a spec; inf without contact, or with other options.

    Omitted coordinates and options are not compared, nor is ``overhang``, which only permits an overhang.
    """
    return _contact_measure(spec, contact)[1]


def _contact_measure(spec: ContactSpec, contact: Contact | None) -> tuple[str, float]:
    """Return the patch of a spec (with the first option in which its contact differs), and the deviation."""
    if contact is None or contact.support != spec.surface:
        return spec.patch, np.inf
    for name, expected in spec.options.items():
        if name in ("slide", "hinge"):
            same = set(contact.options.get(name, ())) == set(getattr(spec, name))  # type: ignore[call-overload]
        else:
            same = name == "overhang" or getattr(contact, name) == expected
        if not same:
            return f"{spec.patch} with {name} {expected}", np.inf
    return spec.patch, deviation(spec, contact.support, contact.coordinates)


@dataclass(frozen=True, eq=False)
class Goal:
    """A goal item, and the contacts of the search for it.

    Attributes
    ----------
    item : goal item of the scenario file.
    specs : contacts to reach, by patch: those of the item, or those that the planner chose.
    chosen : whether the planner chose the contacts or their coordinates; then other limbs make no helping contacts.
    stance : patches of all contacts of the goal stance, if the planner chose it; else empty.
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
    def with_contacts(cls, item: GoalItem, contacts: Sequence[Contact]) -> "Goal":
        """Return the goal of an item with contacts that the planner chose, at their coordinates."""
        specs = {contact.patch: ContactSpec.model_validate(contact.to_data()) for contact in contacts}
        return cls(item, specs, True, frozenset(specs))

    @classmethod
    def on_supports(cls, item: GoalItem, robot: Robot, contacts: Sequence[Contact], com: np.ndarray) -> "Goal":
        """Return the goal of an item with one contact per limb, anywhere on the supports of the given contacts.

        This is the contact of the limb that is horizontally closest to the centre of mass ``com`` (3,), such as the
        knee of a kneeling leg, not its toe.
        """
        closest: dict[str, Contact] = {}
        for contact in sorted(contacts, key=lambda one: float(np.hypot(*(one.p - com)[:2]))):
            closest.setdefault(robot.patches[contact.patch].limb, contact)
        specs = {
            contact.patch: ContactSpec.model_validate(
                {"patch": contact.patch, "surface": contact.support, **contact.options}
            )
            for contact in closest.values()
        }
        return cls(item, specs, True, frozenset(contact.patch for contact in contacts))

    @property
    def suits_posture(self) -> bool:
        """Whether the item has a posture, and contacts whose free coordinates have to suit this posture."""
        return self.item.posture is not None and not all(
            {"x", "y"} <= set(spec.given) or "along" in spec.given for spec in self.specs.values()
        )

    def is_met_by(self, contact: Contact) -> bool:
        """Whether a contact meets the spec of its patch."""
        spec = self.specs.get(contact.patch)
        return spec is not None and contact_deviation(spec, contact) <= COORDINATE_TOLERANCE

    def reached(self, contacts: tuple[Contact, ...]) -> bool:
        """Whether a stance has all contacts of the goal, and no other ones if the item has ``only``."""
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
