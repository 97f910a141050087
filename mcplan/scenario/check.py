"""Consistency checks of a scenario: names exist, contacts fit their supports, stances differ by one contact.

Names are also checked in files with other problems, so that one call of ``mcplan check`` reports all of them.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from mcplan.document.document import Document
from mcplan.errors import InputError, Problem
from mcplan.robot.patch import MOUNT
from mcplan.scenario.schema import GoalItem, PostureSpec, ScenarioSpec, StanceItem
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment, Surface
from mcplan.scene.placement import PatchPose, bar_rotation, make_contact, surface_rotation
from mcplan.scene.spec import ContactSpec
from mcplan.settings.states import TRANSITION_TARGETS, VERBS, Joints, StateSpec, Until
from mcplan.settings.tasks import FORCE_KINDS, TaskSpec
from mcplan.settings.textbook import TextbookSpec
from mcplan.util.arguments import unknown_message

if TYPE_CHECKING:
    from mcplan.robot.robot import Robot


Key = tuple[str | int, ...]
NameReference = tuple[Key, str, str]
"""Key path of a reference, kind of the thing that it names, and the name."""


def name_problems(document: Document, robot: "Robot | None") -> list[Problem]:
    """Return problems of unknown and repeated names; ``robot`` None: names of patches, links, ... are not checked."""
    data = document.data if isinstance(document.data, dict) else {}
    supports, problems = [], []
    previous_names: set[str] = set()
    for key, kind, name in _named_things(data):
        if name in previous_names:
            problems.append(document.problem((*key, "name"), f"`{name}` is named already"))
        previous_names.add(name)
        supports += [name] if kind == "surface or bar" else []
    environment = data.get("environment")
    names_by_kind: dict[str, Iterable[str]] = {"surface or bar": supports}
    if not isinstance(environment, dict) or "mesh" in environment:  # the supports in a mesh are not known yet
        names_by_kind = {}
    if robot is not None:
        names_by_kind |= {"patch": robot.patches, "posture": robot.postures, "link": robot.link_names}
        names_by_kind |= {"joint": robot.joint_names, "link or patch": robot.frames}
    for key, kind, name in _name_references(data):
        if kind in names_by_kind and name not in names_by_kind[kind]:
            problems.append(document.problem(key, unknown_message(kind, name, names_by_kind[kind])))
    return problems


def _named_things(data: dict[str, Any]) -> Iterator[NameReference]:
    """Yield key path, kind and name of all named things in the environment."""
    for group in ("surfaces", "bars", "obstacles", "objects"):
        for key, item in _items_in(data, "environment", group):
            name = item.get("name")
            if isinstance(name, str):
                yield key, "surface or bar" if group in ("surfaces", "bars") else group, name
            for k, owned in enumerate(_as_list(item.get("surfaces"))):
                if isinstance(owned, dict) and isinstance(owned.get("name"), str):
                    yield (*key, "surfaces", k), "surface or bar", owned["name"]


def _name_references(data: dict[str, Any]) -> Iterator[NameReference]:
    """Yield all references to named things."""
    goal = data.get("goal")
    goals: list[tuple[Key, Any]] = [(("goal", k), item) for k, item in enumerate(_as_list(goal))]
    goals += [(("goal",), goal)] if isinstance(goal, dict) else []
    stances: list[tuple[Key, Any]] = [(("stances", k), item) for k, item in enumerate(_as_list(data.get("stances")))]
    for part_key, part in [(("start",), data.get("start")), *goals, *stances]:
        if not isinstance(part, dict):
            continue
        contacts: list[tuple[Key, Any]] = [
            ((*part_key, "contacts", k), item) for k, item in enumerate(_as_list(part.get("contacts")))
        ]
        for key, contact in [*contacts, ((*part_key, "add"), part.get("add"))]:
            if isinstance(contact, dict):
                yield from _reference((*key, "patch"), "patch", contact.get("patch"))
                yield from _reference((*key, "surface"), "surface or bar", contact.get("surface"))
        yield from _reference((*part_key, "remove"), "patch", part.get("remove"))
        posture = part.get("posture")
        yield from _reference((*part_key, "posture"), "posture", posture)
        if isinstance(posture, dict):
            yield from _reference((*part_key, "posture", "name"), "posture", posture.get("name"))
            joints = posture.get("joints")
            for joint in joints if isinstance(joints, dict) else ():
                yield (*part_key, "posture", "joints", joint), "joint", joint
    planner = data.get("planner")
    for k, name in enumerate(_as_list(planner.get("patches")) if isinstance(planner, dict) else ()):
        yield from _reference(("planner", "patches", k), "patch", name)
    for section, kind in (("pushes", "link or patch"), ("payloads", "link")):
        for key, item in _items_in(data, "simulation", section):
            yield from _reference((*key, "link"), kind, item.get("link"))


def _items_in(data: dict[str, Any], section: str, group: str) -> Iterator[tuple[Key, dict[str, Any]]]:
    section_data = data.get(section)
    for k, item in enumerate(_as_list(section_data.get(group)) if isinstance(section_data, dict) else ()):
        if isinstance(item, dict):
            yield (section, group, k), item


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _reference(key: Key, kind: str, value: Any) -> Iterator[NameReference]:
    if isinstance(value, str):
        yield key, kind, value


def unsupported_freedoms(
    robot: "Robot",
    start: tuple[ContactSpec, ...],
    goal: tuple[GoalItem, ...],
    stances: tuple[StanceItem, ...],
    single_goal: bool,
    physics: str,
) -> Iterator[tuple[Key, str]]:
    """Yield the key path and a message for each ``slide`` and ``hinge`` that a physics back end does not support.

    ``contact`` and ``mujoco`` detect contacts themselves, and Coulomb friction acts in all directions, also in those
    that the plan leaves free. Grasps are constrained as planned, but those in MuJoCo can neither slide nor rotate about
    two axes.

    Parameters
    ----------
    robot : the robot.
    start, goal, stances : contacts at the start, goal items, and contact sequence of the scenario.
    single_goal : whether the goal in the file is one item instead of a list.
    physics : ``contact`` or ``mujoco``.
    """
    contacts: list[tuple[Key, ContactSpec]] = [(("start", "contacts", k), contact) for k, contact in enumerate(start)]
    for g, item in enumerate(goal):
        key: Key = ("goal",) if single_goal else ("goal", g)
        contacts += [((*key, "contacts", k), contact) for k, contact in enumerate(item.contacts)]
    for s, stance in enumerate(stances):
        contacts += [(("stances", s, "contacts", k), contact) for k, contact in enumerate(stance.contacts or ())]
        contacts += [(("stances", s, "add"), stance.add)] if stance.add is not None else []
    for key, contact in contacts:
        patch = robot.patches.get(contact.patch)
        if patch is None:
            continue
        if (contact.kind or patch.kind) == "grasp":
            if physics == "mujoco" and (contact.slide or len(set(contact.hinge)) == 2):
                yield (
                    (*key, "slide" if contact.slide else "hinge"),
                    "a grasp in the physics mujoco holds, hinges about one axis or turns about its origin; use "
                    "simulation.physics contact or qp",
                )
            continue
        for name in ("slide", "hinge"):
            if getattr(contact, name):
                yield (
                    (*key, name),
                    f"the physics contact and mujoco know no {name} of a {contact.kind or patch.kind} contact: "
                    "friction holds it in all directions; use a grasp, or simulation.physics qp",
                )


class Checker:
    """Collects the problems of one scenario."""

    def __init__(self, document: Document, robot: "Robot", environment: Environment):
        self.document = document
        self.robot = robot
        self.environment = environment
        self.problems: list[Problem] = []

    def report(self, key: Key, message: str) -> None:
        """Add a problem."""
        self.problems.append(self.document.problem(key, message))

    def scenario(self, spec: ScenarioSpec) -> None:
        """Check all sections except ``start``, which is checked when it is resolved."""
        for g, goal in enumerate(spec.goal):
            key: Key = ("goal", g) if isinstance(self.document.data.get("goal"), list) else ("goal",)
            self._check_repeated((*key, "contacts"), [contact.patch for contact in goal.contacts])
            for k, contact in enumerate(goal.contacts):
                self.contact((*key, "contacts", k), contact)
            if goal.posture is not None:
                self.posture((*key, "posture"), goal.posture)
            objects = [thing.name for thing in self.environment.objects]
            for name in goal.objects:
                self._check_name((*key, "objects", name), "object", name, objects)
        for k, required in enumerate(spec.planner.require):
            for name in (required,) if isinstance(required, str) else required:
                self._check_name(("planner", "require", k), "patch", name, self.robot.patches)
        for k, name in enumerate(spec.planner.patches):
            self._check_name(("planner", "patches", k), "patch", name, self.robot.patches)
        for section, kind, names in (
            ("pushes", "link or patch", self.robot.frames),
            ("payloads", "link", self.robot.link_names),
        ):
            for k, item in enumerate(getattr(spec.simulation, section)):
                self._check_name(("simulation", section, k, "link"), kind, item.link, names)
        self._textbook(("control", "textbook"), spec.control.textbook)
        for k, task in enumerate(spec.control.tasks):
            self._task(("control", "tasks", k), task)
            for i, name in enumerate(task.during):
                self._check_state_name(("control", "tasks", k, "during", i), name, spec)
        last_priority = max([spec.control.posture_priority, *(task.priority for task in spec.control.tasks)])
        for k, task in enumerate(spec.control.tasks):
            if task.kinds[0] in FORCE_KINDS and task.priority != last_priority:
                message = f"tasks on forces and torques have the last priority, which is {last_priority} here"
                self.report(("control", "tasks", k, "priority"), message)
        for k, state in enumerate(spec.control.states):
            self._state(("control", "states", k), state, spec)
        if spec.simulation.physics != "qp" and spec.control.type == "whole_body":
            single_goal = not isinstance(self.document.data.get("goal"), list)
            for key_path, message in unsupported_freedoms(
                self.robot, spec.start.contacts, spec.goal, spec.stances, single_goal, spec.simulation.physics
            ):
                self.report(key_path, message)
        self._sequence(spec)

    def posture(self, key: Key, spec: PostureSpec) -> bool:
        """Check the name, the joints and their limits; return whether the posture can be applied."""
        is_valid = spec.name is None or self._check_name(key, "posture", spec.name, self.robot.postures)
        limits = self.robot.limits
        for joint, value in spec.joints.items():
            joint_key = (*key, "joints", joint)
            if not self._check_name(joint_key, "joint", joint, self.robot.joint_names):
                is_valid = False
                continue
            k = list(self.robot.joint_names).index(joint)
            if not limits.lower[k] <= value <= limits.upper[k]:
                self.report(
                    joint_key, f"{value:g} is outside the joint's range {limits.lower[k]:g} to {limits.upper[k]:g}"
                )
        return is_valid

    def contact(self, key: Key, spec: ContactSpec, start_pose: PatchPose | None = None) -> Contact | None:
        """Return the resolved contact; if it is invalid, add a problem and return None.

        Missing coordinates are those nearest to ``start_pose``, or to the first initial pose for which the patch fits.
        """
        if spec.patch not in self.robot.patches:
            self._check_name((*key, "patch"), "patch", spec.patch, self.robot.patches)
            return None
        if spec.patch == MOUNT:
            return make_contact(self.robot, self.environment, spec, start_pose) if spec.pose or start_pose else None
        if spec.surface not in self.environment.supports:
            self._check_name((*key, "surface"), "surface or bar", spec.surface, self.environment.supports)
            return None
        reason = ""
        for candidate in [start_pose] if start_pose is not None else self._initial_poses(spec):
            try:
                contact = make_contact(self.robot, self.environment, spec, candidate)
            except InputError as error:
                reason = str(error)  # the last one is reported: if the patch fits anywhere, it fits at the last pose
                continue
            self._check_pose(key, spec, contact)
            return contact
        self.report(key, reason)
        return None

    def _initial_poses(self, spec: ContactSpec) -> list[PatchPose | None]:
        """Return the initial poses from which a contact with missing coordinates is placed."""
        support = self.environment.supports[spec.surface]
        angles = np.arange(8) * np.pi / 4
        if spec.pose is not None:
            return [(spec.pose.R, spec.pose.p)]
        if isinstance(support, Surface):
            centre = support.corners.mean(axis=0)
            return [None, *((support.R @ surface_rotation(float(angle)), centre) for angle in angles)]
        return [None, (bar_rotation(support, 0.0, False), support.ends.mean(axis=0))]

    def _check_pose(self, key: Key, spec: ContactSpec, contact: Contact) -> None:
        if spec.pose is None:
            return
        distance = float(np.linalg.norm(contact.p - spec.pose.p))
        if distance > 1e-3:
            self.report((*key, "pose"), f"is {1000 * distance:.0f} mm away from the coordinates; leave one of them out")

    def _textbook(self, key: Key, spec: TextbookSpec) -> None:
        """Check the names in the settings of a textbook controller."""
        if spec.frame is not None:
            self._check_name((*key, "frame"), "link or patch", spec.frame, self.robot.frames)
        self._posture_or_joints((*key, "posture"), spec.posture)

    def _task(self, key: Key, spec: TaskSpec) -> None:
        """Check the names in an additional task."""
        (kind,) = spec.kinds
        section = getattr(spec, kind)
        for name in ("frame", "reference", "target_frame"):
            if (frame := getattr(section, name, None)) is not None:
                self._check_name((*key, kind, name), "link or patch", frame, self.robot.frames)
        if spec.contact_force is not None:
            self._check_name((*key, kind, "patch"), "patch", spec.contact_force.patch, self.robot.patches)

    def _posture_or_joints(self, key: Key, posture: str | Joints | None) -> None:
        if isinstance(posture, str):
            self._check_name(key, "posture", posture, self.robot.postures)
        elif posture is not None:
            self.posture(key, PostureSpec(joints=posture.joints))

    def _check_state_name(self, key: Key, name: str, scenario: ScenarioSpec) -> None:
        """Check that a state is defined in the file, or may occur in a plan; whether it occurs is checked later."""
        custom = [state.state for state in scenario.control.states if state.do is not None]
        verb, known = name.partition(" ")[0], [*VERBS, *custom]
        if name not in known and verb not in {known_name.partition(" ")[0] for known_name in known}:
            self.report(key, unknown_message("state", verb, known))

    def _state(self, key: Key, spec: StateSpec, scenario: ScenarioSpec) -> None:
        """Check the names in a state of the state machine."""
        for field_name in ("state", "after", "before"):
            if (name := getattr(spec, field_name)) is not None:
                self._check_state_name((*key, field_name), name, scenario)
        for label, jump in spec.jumps().items():
            if jump.state not in TRANSITION_TARGETS:
                self._check_state_name((*key, "next", label) if label else (*key, "next"), jump.state, scenario)
        if spec.until is not None:
            self._until((*key, "until"), spec.until)
        if spec.do is None:
            return
        for section, names in (("limbs", spec.do.limbs), ("forces", spec.do.forces)):
            for name in names:
                self._check_name((*key, "do", section, name), "patch", name, self.robot.patches)
        self._posture_or_joints((*key, "do", "posture"), spec.do.posture)

    def _until(self, key: Key, until: Until) -> None:
        for kind, special_names in (("error", ["com"]), ("speed", ["com", "joints"]), ("force", []), ("over", [])):
            name = getattr(until, kind)
            if name is not None:
                object_names = [thing.name for thing in self.environment.objects] if kind == "error" else []
                known = [*special_names, *self.robot.patches, *object_names]
                self._check_name((*key, kind), "task" if special_names else "patch", name, known)
        for kind in ("all", "any"):
            for k, condition in enumerate(getattr(until, kind) or ()):
                self._until((*key, kind, k), condition)

    def _sequence(self, spec: ScenarioSpec) -> None:
        current: dict[str, ContactSpec] = {contact.patch: contact for contact in spec.start.contacts}
        initial_environment, objects = self.environment, [thing.name for thing in spec.environment.objects]
        poses: dict[str, np.ndarray] = {}
        for k, item in enumerate(spec.stances):
            key: Key = ("stances", k)
            if k == 0 and item.contacts is None and not current and not self.robot.fixed:
                self.report(key, "`start.contacts`, or the first item, must give the contacts at the start")
            are_known = [self._check_name((*key, "objects", name), "object", name, objects) for name in item.objects]
            if item.objects and all(are_known):
                poses |= {name: pose.array for name, pose in item.objects.items()}
                self.environment = initial_environment.placed(poses)
            if k == 0 and current and item.contacts == spec.start.contacts:
                pass  # checked with the start
            elif item.contacts is not None:
                current = self._check_list(key, item, current, is_first=k == 0)
            elif item.add is not None:
                self.contact((*key, "add"), item.add)
                if item.add.patch in current:
                    self.report((*key, "add", "patch"), f"`{item.add.patch}` is in contact already; remove it first")
                current[item.add.patch] = item.add
            elif item.remove is not None and (current or item.remove == MOUNT):
                if item.remove == MOUNT:
                    self.report((*key, "remove"), f"{self.robot.name} has a fixed base: `{MOUNT}` cannot be removed")
                elif item.remove not in current:
                    known = ", ".join(current)
                    self.report((*key, "remove"), f"`{item.remove}` is not in contact here; in contact are: {known}")
                elif len(current) == 1 and not self.robot.fixed:
                    self.report((*key, "remove"), f"without `{item.remove}` nothing is left in contact")
                current.pop(item.remove, None)
            if item.posture is not None:
                self.posture((*key, "posture"), item.posture)
            self._check_plan_values(key, item, current)
        self.environment = initial_environment

    def _check_list(
        self, key: Key, item: StanceItem, previous: dict[str, ContactSpec], is_first: bool
    ) -> dict[str, ContactSpec]:
        contacts = item.contacts or ()
        names = [contact.patch for contact in contacts]
        self._check_repeated((*key, "contacts"), names)
        for j, contact in enumerate(contacts):
            self.contact((*key, "contacts", j), contact)
        if not contacts and not self.robot.fixed:
            self.report((*key, "contacts"), "a stance needs at least one contact")
        changed_patches = (set(names) ^ set(previous)) & set(self.robot.patches) - {MOUNT}
        if is_first and previous and changed_patches:
            self.report((*key, "contacts"), f"not those of start.contacts: {', '.join(sorted(changed_patches))} differ")
        if not is_first and len(changed_patches) > 1:
            self.report(
                (*key, "contacts"), f"more than one contact changes at once: {', '.join(sorted(changed_patches))}"
            )
        if is_first:  # start.contacts has priority over the list, which may omit coordinates
            return {contact.patch: previous.get(contact.patch, contact) for contact in contacts}
        return {contact.patch: contact for contact in contacts}

    def _check_plan_values(self, key: Key, item: StanceItem, patches: Iterable[str]) -> None:
        for name, values, size in (("q", item.q, self.robot.nq), ("tau", item.tau, self.robot.n)):
            if values is not None and len(values) != size:
                self.report((*key, name), f"expected {size} numbers for robot {self.robot.name}, got {len(values)}")
        if item.q is not None and len(item.q) == self.robot.nq:
            length = float(np.linalg.norm(item.q[3:7]))
            if abs(length - 1) > 1e-6:
                self.report((*key, "q"), f"the base quaternion q[3:7] has length {length:.9g}, expected 1")
        for name in item.wrenches or {}:
            self._check_name((*key, "wrenches", name), "patch", name, self.robot.patches)

    def _check_repeated(self, key: Key, names: list[str]) -> None:
        for k, name in enumerate(names):
            if name in names[:k]:
                self.report((*key, k, "patch"), f"`{name}` is listed twice")

    def _check_name(self, key: Key, kind: str, name: str, known: Iterable[str]) -> bool:
        known = list(known)
        if name in known:
            return True
        self.report(key, unknown_message(kind, name, known))
        return False
