"""Plans from hand-written sequences of stances: omitted coordinates, postures, forces and margins are completed.

Each item changes at most one contact. The posture that links it to the previous stance has the contacts of the larger
stance in place, and is balanced by the contacts that both share. It stays near a guide: the start posture, moved onto
the contacts, with the joints of the posture that the item names, if any.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from mcplan.errors import InputError, PlanningFailed, ScenarioError
from mcplan.planning.chain import raise_if_blocked, with_transitions
from mcplan.planning.linking import Linker
from mcplan.planning.plan import Change, Plan, PlannedStance
from mcplan.robot.patch import MOUNT
from mcplan.scenario.scenario import Scenario
from mcplan.scenario.schema import StanceItem
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment
from mcplan.scene.placement import make_contact
from mcplan.scene.resting import resting_contact, slides
from mcplan.scene.spec import ContactSpec
from mcplan.util.progress import report_progress

Result = TypeVar("Result")


def complete_sequence(scenario: Scenario) -> Plan:
    """Return the plan of a scenario whose ``stances`` are written by hand.

    Raises
    ------
    ScenarioError
        When an item does not fit to the previous one, for example because it removes a patch that is not in contact.
    PlanningFailed
        When there is no feasible posture near a guide; the message has the item and the violated constraint.
    """
    sequence = _item(scenario, 0, StanceSequence, scenario)
    for k, item in enumerate(scenario.stances[1:], start=1):
        report_progress("finding posture", k, len(scenario.stances) - 1)
        _item(scenario, k, sequence.add, item)
    return sequence.plan()


class StanceSequence:
    """Stances of a sequence, added item by item.

    Parameters
    ----------
    scenario : the scenario, whose start is the first stance.

    Attributes
    ----------
    stances : stances so far.
    linker : solver of the next stance, with objects at their current poses.
    """

    def __init__(self, scenario: Scenario):
        robot, start = scenario.robot, scenario.start
        self.scenario = scenario
        self.linker = Linker(robot, scenario.environment, start.q, scenario.transition_settings)
        contacts = tuple(make_contact(robot, scenario.environment, contact.to_data()) for contact in start.contacts)
        self.stances: list[PlannedStance] = [self.linker.start(contacts)]
        self._lifted: dict[str, Contact] = {}

    def add(self, item: StanceItem) -> None:
        """Add the stance of an item.

        Raises
        ------
        InputError
            The item does not fit to the previous stance.
        PlanningFailed
            There is no feasible posture near its guide.
        """
        robot, linker, before = self.scenario.robot, self.linker, self.stances[-1]
        object_poses = before.objects | {name: pose.array for name, pose in item.objects.items()}
        previous_environment = linker.environment
        if item.objects:
            linker.use_environment(self.scenario.environment.placed(object_poses))
        joints = None if item.posture is None else item.posture.apply(robot, linker.reference)[7:]
        if item.objects:
            change, held = _displacement(linker, item, before, previous_environment)
        else:
            change, held = _change(linker, item, before, joints), None
        com = None if item.com is None else np.array(item.com)
        stance = linker.link(change, before, tuple(self._lifted.values()), joints, com, held)
        self.stances.append(replace(stance, objects=object_poses))
        if change.change == "remove" and change.moved is not None:
            self._lifted[change.moved] = before.contact(change.moved)
        elif change.change == "add" and change.moved is not None:
            limb = robot.patches[change.moved].limb
            self._lifted = {patch: c for patch, c in self._lifted.items() if robot.patches[patch].limb != limb}

    def try_items(self, items: Iterable[StanceItem]) -> str:
        """Add the stances of all items or of none; return the reason if one is infeasible, else an empty text."""
        count, lifted_before, environment = len(self.stances), dict(self._lifted), self.linker.environment
        try:
            for item in items:
                self.add(item)
        except (PlanningFailed, InputError) as error:
            del self.stances[count:]
            self._lifted = lifted_before
            self.linker.use_environment(environment)
            return str(error)
        return ""

    def plan(self) -> Plan:
        """Return the plan of these stances.

        Raises
        ------
        PlanningFailed
            There is no collision-free motion from one to the next.
        """
        stances = with_transitions(self.scenario, self.stances)
        raise_if_blocked(stances)
        return Plan(self.scenario, stances, notices=self.linker.notices)


def _item(scenario: Scenario, k: int, make: Callable[..., Result], *arguments: object) -> Result:
    """Call ``make`` and name the item of the sequence in its exceptions."""
    try:
        return make(*arguments)
    except PlanningFailed as failure:
        key = scenario.document.problem(("stances", k), "").key  # a file may leave out the first item
        raise PlanningFailed(f"{key}: {failure}") from failure
    except InputError as error:
        raise ScenarioError(*(scenario.document.problem(("stances", k), p.message) for p in error.problems)) from error


def _change(linker: Linker, item: StanceItem, before: PlannedStance, joints: np.ndarray | None) -> Change:
    """Return the change of an item; omitted coordinates are those nearest to the guide with the joints ``joints``."""
    robot, environment = linker.robot, linker.environment
    contacts = before.contacts
    if item.remove is not None:
        if item.remove not in before.patches:
            touching = ", ".join(before.patches)
            raise InputError(f"{item.remove} is not in contact before this item; in contact: {touching}")
        return Change.remove(contacts, item.remove)
    added = item.add
    if item.contacts is not None:
        names = [spec.patch for spec in item.contacts] + [MOUNT] * robot.fixed
        removed = [patch for patch in before.patches if patch not in names]
        new = [spec for spec in item.contacts if spec.patch not in before.patches]
        if len(removed) + len(new) > 1:
            raise InputError(
                f"{len(removed)} contacts go and {len(new)} come; a stance differs from the one before by one contact"
            )
        _check_closed_contacts(linker, item.contacts, before)
        if removed:
            return Change.remove(contacts, removed[0])
        added = new[0] if new else None
    if added is None:
        return Change.shift(contacts)
    if added.patch in before.patches:
        raise InputError(f"{added.patch} is in contact already; remove it first")
    X = robot.frame_pose(linker.guide(contacts, before.q, joints), added.patch)
    resolved = make_contact(robot, environment, added, (X[:3, :3], X[:3, 3]))
    # rebuilt from the data of the plan file, so that the file reads back as the same contact, bit for bit
    return Change.add(contacts, make_contact(robot, environment, resolved.to_data()))


def _displacement(
    linker: Linker, item: StanceItem, before: PlannedStance, previous_environment: Environment
) -> tuple[Change, tuple[Contact, ...]]:
    """Return the change that shifts the contacts on moved objects, and the contacts as they carry load.

    An object that rests on a support slides or is lifted off. A carried object moves freely, and is put down if it
    rests on a support at the end.
    """
    environment = linker.environment
    if item.add is not None or item.remove is not None or item.contacts is not None:
        raise InputError("objects: moves the contacts on the objects and changes none of them; use a separate item")
    supports_by_object = {
        name: (_resting_contact(previous_environment, name), _resting_contact(environment, name))
        for name in item.objects
    }
    for name, pair in supports_by_object.items():
        if not any(environment.owners.get(contact.support) == name for contact in before.contacts):
            raise InputError(f"nothing is in contact with {name} that could move it")
        if pair[0] and pair[1] and not slides(*pair, environment):
            raise InputError(
                f"{name} rests on {pair[0].support} before and on {pair[1].support} after, and cannot slide between "
                "these places: a slide is straight, without rotation, and always on the first support. Lift it in a "
                "separate item"
            )
    contacts = tuple(make_contact(linker.robot, environment, contact.to_data()) for contact in before.contacts)
    # the robot still carries an object that is just put down, until its support takes over
    put_down = [name for name, pair in supports_by_object.items() if not slides(*pair, environment)]
    return Change.shift(contacts), tuple(_without_support(contact, put_down) for contact in contacts)


def _without_support(contact: Contact, objects: Sequence[str]) -> Contact:
    """Return the contact; if it is on one of these objects, the object has no other support."""
    carrier = contact.carrier
    if carrier is None or carrier.name not in objects:
        return contact
    return replace(contact, carrier=replace(carrier, rest=None))


def _resting_contact(scene: Environment, name: str) -> Contact | None:
    return resting_contact(next(thing for thing in scene.objects if thing.name == name), scene)


def _check_closed_contacts(linker: Linker, specs: Sequence[ContactSpec], before: PlannedStance) -> None:
    """Raise an error if a listed contact stays closed but changes its place."""
    for spec in specs:
        if spec.patch in before.patches:
            old = before.contact(spec.patch)
            new = make_contact(linker.robot, linker.environment, spec, (old.R, old.p))
            if not old.same_place(new):
                raise InputError(f"{spec.patch} moves while it is in contact; remove it and add it again")
