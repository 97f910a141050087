"""Consistency checks of a scenario: names exist, contacts fit, items of a sequence follow each other.

Names are also checked in files that cannot become a scenario, so that one call of ``mcplan check`` reports everything.
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
"""Key of the reference, kind of the named thing, and the name."""


def name_problems(document: Document, robot: "Robot | None") -> list[Problem]:
    """Return problems of unknown and repeated names; without a robot its names are not checked."""
    data = document.data if isinstance(document.data, dict) else {}
    supports, problems = [], []
    seen: set[str] = set()
    for key, kind, name in _things(data):
        if name in seen:
            problems.append(document.problem((*key, "name"), f"`{name}` is named already"))
        seen.add(name)
        supports += [name] if kind == "surface or bar" else []
    environment = data.get("environment")
    known: dict[str, Iterable[str]] = {"surface or bar": supports}
    if not isinstance(environment, dict) or "mesh" in environment:  # supports of a mesh are unknown here
        known = {}
    if robot is not None:
        known |= {"patch": robot.patches, "posture": robot.postures, "link": robot.link_names}
        known |= {"joint": robot.joint_names, "link or patch": robot.frames}
    for key, kind, name in _name_references(data):
        if kind in known and name not in known[kind]:
            problems.append(document.problem(key, unknown_message(kind, name, known[kind])))
    return problems


def _things(data: dict[str, Any]) -> Iterator[NameReference]:
    """Yield all named things of the environment."""
    for group in ("surfaces", "bars", "obstacles", "objects"):
        for key, item in _items_in(data, "environment", group):
            name = item.get("name")
            if isinstance(name, str):
                yield key, "surface or bar" if group in ("surfaces", "bars") else group, name
            for k, owned in enumerate(_as_list(item.get("surfaces"))):
                if isinstance(owned, dict) and isinstance(owned.get("name"), str):
                    yield (*key, "surfaces", k), "surface or bar", owned["name"]


def _name_references(data: dict[str, Any]) -> Iterator[NameReference]:
    """Yield every reference to a name."""
    goal = data.get("goal")
    goals: list[tuple[Key, Any]] = [(("goal", k), item) for k, item in enumerate(_as_list(goal))]
    goals += [(("goal",), goal)] if isinstance(goal, dict) else []
    stances: list[tuple[Key, Any]] = [(("stances", k), item) for k, item in enumerate(_as_list(data.get("stances")))]
    for place, part in [(("start",), data.get("start")), *goals, *stances]:
        if not isinstance(part, dict):
            continue
        contacts: list[tuple[Key, Any]] = [
            ((*place, "contacts", k), item) for k, item in enumerate(_as_list(part.get("contacts")))
        ]
        for key, contact in [*contacts, ((*place, "add"), part.get("add"))]:
            if isinstance(contact, dict):
                yield from _reference((*key, "patch"), "patch", contact.get("patch"))
                yield from _reference((*key, "surface"), "surface or bar", contact.get("surface"))
        yield from _reference((*place, "remove"), "patch", part.get("remove"))
        posture = part.get("posture")
        yield from _reference((*place, "posture"), "posture", posture)
        if isinstance(posture, dict):
            yield from _reference((*place, "posture", "name"), "posture", posture.get("name"))
            joints = posture.get("joints")
            for joint in joints if isinstance(joints, dict) else ():
                yield (*place, "posture", "joints", joint), "joint", joint
    planner = data.get("planner")
    for k, name in enumerate(_as_list(planner.get("patches")) if isinstance(planner, dict) else ()):
        yield from _reference(("planner", "patches", k), "patch", name)
    for section, kind in (("pushes", "link or patch"), ("payloads", "link")):
        for key, item in _items_in(data, "simulation", section):
            yield from _reference((*key, "link"), kind, item.get("link"))


def _items_in(data: dict[str, Any], section: str, group: str) -> Iterator[tuple[Key, dict[str, Any]]]:
    part = data.get(section)
    for k, item in enumerate(_as_list(part.get(group)) if isinstance(part, dict) else ()):
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
    """Yield the key and a message for each ``slide`` and ``hinge`` that a physics does not support.

    The physics ``contact`` and ``mujoco`` detect contacts themselves: Coulomb friction then also acts in the directions
    that the plan leaves free, and soles have no wheels or hinges. Grasps are constrained as planned, but those of
    MuJoCo can neither slide nor turn about two axes.

    Parameters
    ----------
    single_goal : whether the goal in the file is one item instead of a list.
    physics : ``contact`` or ``mujoco``.
    """
    contacts: list[tuple[Key, ContactSpec]] = [(("start", "contacts", k), spec) for k, spec in enumerate(start)]
    for g, item in enumerate(goal):
        key: Key = ("goal",) if single_goal else ("goal", g)
        contacts += [((*key, "contacts", k), spec) for k, spec in enumerate(item.contacts)]
    for s, stance in enumerate(stances):
        contacts += [(("stances", s, "contacts", k), spec) for k, spec in enumerate(stance.contacts or ())]
        contacts += [(("stances", s, "add"), stance.add)] if stance.add is not None else []
    for key, spec in contacts:
        patch = robot.patches.get(spec.patch)
        if patch is None:
            continue
        if (spec.kind or patch.kind) == "grasp":
            if physics == "mujoco" and (spec.slide or len(set(spec.hinge)) == 2):
                yield (
                    (*key, "slide" if spec.slide else "hinge"),
                    "a grasp in the physics mujoco holds, hinges about one axis or turns about its origin; use "
                    "simulation.physics contact or qp",
                )
            continue
        for name in ("slide", "hinge"):
            if getattr(spec, name):
                yield (
                    (*key, name),
                    f"the physics contact and mujoco know no {name} of a {spec.kind or patch.kind} contact: friction "
                    "holds it in all directions; use a grasp, or simulation.physics qp",
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
        """Check the goal, the planner's names and the sequence; the start is checked when it is built."""
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
        for k, wanted in enumerate(spec.planner.require):
            for name in (wanted,) if isinstance(wanted, str) else wanted:
                self._check_name(("planner", "require", k), "patch", name, self.robot.patches)
        for k, name in enumerate(spec.planner.patches):
            self._check_name(("planner", "patches", k), "patch", name, self.robot.patches)
        for section, kind, known in (
            ("pushes", "link or patch", self.robot.frames),
            ("payloads", "link", self.robot.link_names),
        ):
            for k, item in enumerate(getattr(spec.simulation, section)):
                self._check_name(("simulation", section, k, "link"), kind, item.link, known)
        self._textbook(("control", "textbook"), spec.control.textbook)
        for k, task in enumerate(spec.control.tasks):
            self._task(("control", "tasks", k), task)
            for i, name in enumerate(task.during):
                self._check_state_name(("control", "tasks", k, "during", i), name, spec)
        last = max([spec.control.posture_priority, *(task.priority for task in spec.control.tasks)])
        for k, task in enumerate(spec.control.tasks):
            if task.kinds[0] in FORCE_KINDS and task.priority != last:
                message = f"tasks on forces and torques have the last priority, which is {last} here"
                self.report(("control", "tasks", k, "priority"), message)
        for k, state in enumerate(spec.control.states):
            self._state(("control", "states", k), state, spec)
        if spec.simulation.physics != "qp" and spec.control.type == "whole_body":
            single_goal = not isinstance(self.document.data.get("goal"), list)
            for place, message in unsupported_freedoms(
                self.robot, spec.start.contacts, spec.goal, spec.stances, single_goal, spec.simulation.physics
            ):
                self.report(place, message)
        self._sequence(spec)

    def posture(self, key: Key, spec: PostureSpec) -> bool:
        """Check the name, the joints and their limits; return whether the posture can be applied."""
        valid = spec.name is None or self._check_name(key, "posture", spec.name, self.robot.postures)
        limits = self.robot.limits
        for joint, value in spec.joints.items():
            place = (*key, "joints", joint)
            if not self._check_name(place, "joint", joint, self.robot.joint_names):
                valid = False
                continue
            k = list(self.robot.joint_names).index(joint)
            if not limits.lower[k] <= value <= limits.upper[k]:
                self.report(place, f"{value:g} is outside the joint's range {limits.lower[k]:g} to {limits.upper[k]:g}")
        return valid

    def contact(self, key: Key, spec: ContactSpec, near: PatchPose | None = None) -> Contact | None:
        """Return the contact; without ``near`` at the first place where it fits; None, with a problem, if invalid."""
        if spec.patch not in self.robot.patches:
            self._check_name((*key, "patch"), "patch", spec.patch, self.robot.patches)
            return None
        if spec.patch == MOUNT:
            return make_contact(self.robot, self.environment, spec, near) if spec.pose or near else None
        if spec.surface not in self.environment.supports:
            self._check_name((*key, "surface"), "surface or bar", spec.surface, self.environment.supports)
            return None
        reason = ""
        for place in [near] if near is not None else self._places(spec):
            try:
                contact = make_contact(self.robot, self.environment, spec, place)
            except InputError as error:
                reason = str(error)  # of the last place, where the patch fits if it fits anywhere
                continue
            self._check_pose(key, spec, contact)
            return contact
        self.report(key, reason)
        return None

    def _places(self, spec: ContactSpec) -> list[PatchPose | None]:
        """Return initial poses for placing a contact with missing coordinates."""
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
        """Check that a state is in the file, or possible in a plan; whether this plan has it is checked later."""
        custom = [state.state for state in scenario.control.states if state.do is not None]
        verb, known = name.partition(" ")[0], [*VERBS, *custom]
        if name not in known and verb not in {each.partition(" ")[0] for each in known}:
            self.report(key, unknown_message("state", verb, known))

    def _state(self, key: Key, spec: StateSpec, scenario: ScenarioSpec) -> None:
        """Check the names in a state of the machine."""
        for place in ("state", "after", "before"):
            if (name := getattr(spec, place)) is not None:
                self._check_state_name((*key, place), name, scenario)
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
        for kind, other_names in (("error", ["com"]), ("speed", ["com", "joints"]), ("force", []), ("over", [])):
            name = getattr(until, kind)
            if name is not None:
                things = [thing.name for thing in self.environment.objects] if kind == "error" else []
                known = [*other_names, *self.robot.patches, *things]
                self._check_name((*key, kind), "task" if other_names else "patch", name, known)
        for kind in ("all", "any"):
            for k, each in enumerate(getattr(until, kind) or ()):
                self._until((*key, kind, k), each)

    def _sequence(self, spec: ScenarioSpec) -> None:
        present: dict[str, ContactSpec] = {contact.patch: contact for contact in spec.start.contacts}
        initial_environment, objects = self.environment, [thing.name for thing in spec.environment.objects]
        poses: dict[str, np.ndarray] = {}
        for k, item in enumerate(spec.stances):
            key: Key = ("stances", k)
            if k == 0 and item.contacts is None and not present and not self.robot.fixed:
                self.report(key, "`start.contacts`, or the first item, must give the contacts at the start")
            exist = [self._check_name((*key, "objects", name), "object", name, objects) for name in item.objects]
            if item.objects and all(exist):
                poses |= {name: pose.array for name, pose in item.objects.items()}
                self.environment = initial_environment.placed(poses)
            if k == 0 and present and item.contacts == spec.start.contacts:
                pass  # checked with the start
            elif item.contacts is not None:
                present = self._check_list(key, item, present, first=k == 0)
            elif item.add is not None:
                self.contact((*key, "add"), item.add)
                if item.add.patch in present:
                    self.report((*key, "add", "patch"), f"`{item.add.patch}` is in contact already; remove it first")
                present[item.add.patch] = item.add
            elif item.remove is not None and (present or item.remove == MOUNT):
                if item.remove == MOUNT:
                    self.report((*key, "remove"), f"{self.robot.name} has a fixed base: `{MOUNT}` cannot be removed")
                elif item.remove not in present:
                    known = ", ".join(present)
                    self.report((*key, "remove"), f"`{item.remove}` is not in contact here; in contact are: {known}")
                elif len(present) == 1 and not self.robot.fixed:
                    self.report((*key, "remove"), f"without `{item.remove}` nothing is left in contact")
                present.pop(item.remove, None)
            if item.posture is not None:
                self.posture((*key, "posture"), item.posture)
            self._check_plan_values(key, item, present)
        self.environment = initial_environment

    def _check_list(
        self, key: Key, item: StanceItem, present: dict[str, ContactSpec], first: bool
    ) -> dict[str, ContactSpec]:
        contacts = item.contacts or ()
        names = [contact.patch for contact in contacts]
        self._check_repeated((*key, "contacts"), names)
        for j, contact in enumerate(contacts):
            self.contact((*key, "contacts", j), contact)
        if not contacts and not self.robot.fixed:
            self.report((*key, "contacts"), "a stance needs at least one contact")
        changed = (set(names) ^ set(present)) & set(self.robot.patches) - {MOUNT}
        if first and present and changed:
            self.report((*key, "contacts"), f"not those of start.contacts: {', '.join(sorted(changed))} differ")
        if not first and len(changed) > 1:
            self.report((*key, "contacts"), f"more than one contact changes at once: {', '.join(sorted(changed))}")
        if first:  # start.contacts has priority over the list, which may omit coordinates
            return {contact.patch: present.get(contact.patch, contact) for contact in contacts}
        return {contact.patch: contact for contact in contacts}

    def _check_plan_values(self, key: Key, item: StanceItem, present: Iterable[str]) -> None:
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

    def _check_name(self, key: Key, what: str, name: str, known: Iterable[str]) -> bool:
        known = list(known)
        if name in known:
            return True
        self.report(key, unknown_message(what, name, known))
        return False
