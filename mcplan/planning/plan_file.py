"""Plan files: the scenario's document with complete ``stances``, to be read, edited and simulated again.

Each contact has its place on the support, which counts, and its world pose, for the reader. ``plan`` says how far each
item of the goal is met; this is measured again when the file is read. Floats have the digits that give the same
double back, so reading and writing a plan changes nothing. Each stance but the first holds the motion that leads there.
A file without motions, or with other speeds in its ``control:``, gets them when it is read.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from mcplan.document.document import dump_document, read_document
from mcplan.document.file_kind import is_plan
from mcplan.errors import InputError, ScenarioError
from mcplan.planning.chain import displaced_objects, paced, with_transitions
from mcplan.planning.plan import Plan, PlannedStance
from mcplan.planning.posture.support_cache import contact_key
from mcplan.planning.transition.transition import BoundaryState, Transition
from mcplan.planning.transition.transition_file import (
    changed_pace_settings,
    pace_settings,
    path_settings,
    transition_data,
    transition_of,
)
from mcplan.robot.pose import quat_from_rotation
from mcplan.scenario.load import find_scenario, load_scenario
from mcplan.scenario.scenario import Scenario
from mcplan.scenario.schema import StanceItem
from mcplan.scene.contact import Contact
from mcplan.scene.placement import make_contact
from mcplan.util.arguments import file_path
from mcplan.util.files import write_text

KEYS = ("change", "q", "wrenches", "tau", "margins")
"""What each item of a plan holds beside its contacts."""


def plan_document(plan: Plan, directory: str | os.PathLike[str] = ".") -> dict[str, Any]:
    """Return the plan as plain values.

    Parameters
    ----------
    directory : where the file will be; paths in it are relative to there.
    """
    data = plan.scenario.data(directory)
    record = data.pop("plan", None) or {}
    record = {key: value for key, value in record.items() if key not in ("notices", "goal", "made_with", "paced_with")}
    data["mcplan"] = 2
    if data.get("stances") and not data.get("goal") and not is_plan(plan.scenario.document):
        # the request: the planned stances take the place of the hand-written ones
        record["sequence"] = data["stances"]
    if plan.notices:
        record["notices"] = list(plan.notices)
    if plan.goals:
        record["goal"] = [item.to_data() for item in plan.goals]
    if any(stance.transition is not None for stance in plan.stances):
        record["made_with"] = path_settings(plan.scenario.transition_settings)
        record["paced_with"] = pace_settings(plan.scenario.transition_settings)
    items = data.pop("stances", None) or ()  # both stand at the end, in one order, however often a plan is written
    walks = any(stance.passing is not None for stance in plan.stances)  # its steps are not those of the file
    asked = items if len(items) == len(plan.stances) and not walks else [{} for _ in plan.stances]
    stances = {"stances": [_stance_data(*each) for each in zip(plan.stances, asked, strict=True)]}
    return data | ({"plan": record} if record else {}) | stances


def save_plan(plan: Plan, path: str | os.PathLike[str]) -> None:
    """Write a plan file; an existing one is replaced as a whole.

    Parameters
    ----------
    plan : to be written.
    path : of the file.
    """
    path = file_path("save_plan", path)
    write_text(path, dump_document(plan_document(plan, path.parent)))


def is_plan_file(path: str | os.PathLike[str]) -> bool:
    """Whether a file (or a bundled scenario's name) is a plan: every item of its ``stances`` has a posture."""
    return is_plan(read_document(find_scenario(path), ScenarioError))


def load_plan(path: str | os.PathLike[str], overrides: Mapping[str, Any] | None = None) -> Plan:
    """Read a plan file.

    Parameters
    ----------
    path : of the file; or the name of a bundled scenario whose stances are those of a plan.
    overrides : from a key path to a value, as for `mcplan.load_scenario`.

    Raises
    ------
    ScenarioError
        When the file is no plan, or something in it is wrong.
    """
    return plan_of(load_scenario(file_path("load_plan", path), overrides))


def plan_of(scenario: Scenario) -> Plan:
    """Return the plan that a scenario's document is, see `load_plan`."""
    if not scenario.stances:
        raise ScenarioError(f"{scenario.path}: no stances, so it is a scenario and not a plan; plan it first")
    stances = _stances(scenario)
    record = scenario.document.data.get("plan") or {}
    notices = record.get("notices") or ()
    if not isinstance(notices, (list, tuple)) or not all(isinstance(notice, str) for notice in notices):
        raise ScenarioError(scenario.document.problem(("plan", "notices"), "expected a list of texts"))
    # paths and times in the file are valid for the settings that they were made with
    known, pace = path_settings(scenario.transition_settings), pace_settings(scenario.transition_settings)
    before, pace_before = record.get("made_with") or known, record.get("paced_with") or pace
    for name, settings in (("made_with", before), ("paced_with", pace_before)):
        if not isinstance(settings, dict):
            raise ScenarioError(scenario.document.problem(("plan", name), "expected settings by name"))
    new_paths = sorted(f"control.{name}" for name in known if before.get(name) != known[name])
    new_times = changed_pace_settings(pace_before, pace)
    moving = [k for k, stance in enumerate(stances) if stance.passing is not None]
    if moving and (new_paths or new_times):
        names = ", ".join([*new_paths, *new_times])
        text = f"is passed in motion, which was planned with other values of {names}; plan the scenario again"
        raise ScenarioError(scenario.document.problem(("stances", moving[0]), text))
    if new_paths or any(item.transition is None for item in scenario.stances[1:]):
        if new_paths:
            notices = (*notices, f"the motions between stances were planned again: {', '.join(new_paths)} changed")
        return Plan(scenario, with_transitions(scenario, stances), notices=tuple(notices))
    stances = _with_motions(scenario, stances)
    if scenario.control.pace is not None and "walking" in pace and "walking" not in pace_before:
        text = "the plan comes to rest on each foot; plan the scenario again"
        raise ScenarioError(scenario.document.problem(("control", "walking"), text))
    if new_times:
        stances = list(paced(scenario, stances))
        notices = (*notices, f"the times of motions were computed again: {', '.join(new_times)} changed")
    return Plan(scenario, tuple(stances), notices=tuple(notices))


def _stances(scenario: Scenario) -> list[PlannedStance]:
    """Return the stances of a file without their motions; the first that is wrong is the last that is read."""
    stances: list[PlannedStance] = []
    for k, item in enumerate(scenario.stances):
        try:
            stances.append(_stance(scenario, item, stances[-1] if stances else None))
        except InputError as error:
            raise ScenarioError(
                *(scenario.document.problem(("stances", k), p.message) for p in error.problems)
            ) from None
    return stances


def _with_motions(scenario: Scenario, stances: list[PlannedStance]) -> list[PlannedStance]:
    """Return the stances with their motions from the file."""
    found, problems = list(stances), []
    for k, item in enumerate(scenario.stances[1:], start=1):
        try:
            found[k] = replace(stances[k], transition=_transition(scenario, item, stances, k))
        except InputError as error:
            problems += [scenario.document.problem(("stances", k), p.message) for p in error.problems]
    if problems:
        raise ScenarioError(*problems)
    return found


def _transition(scenario: Scenario, item: StanceItem, stances: list[PlannedStance], k: int) -> Transition:
    assert item.transition is not None
    before, stance = stances[k - 1], stances[k]
    objects = displaced_objects(scenario.environment, before, stance) or None
    ahead = [later.contact(later.moved) for later in stances[k:] if later.change == "add" and later.moved]
    closed = [stance.contacts if objects else before.contacts]
    if stance.change == "remove":
        closed.append(stance.contacts)
    passing = before.passing, stance.passing
    return transition_of(item.transition, scenario.robot, stance.moved, closed, ahead, objects, passing)


def _stance_data(stance: PlannedStance, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return an item of a plan; ``posture`` and ``com`` of the item ``asked`` for stay, for planning again."""
    objects = {name: _pose(pose[:3], pose[3:]) for name, pose in stance.objects.items()}
    motion = None if stance.transition is None else transition_data(stance.transition)
    return (
        {
            "change": stance.change,
            "moved": stance.moved,
            "contacts": [c.to_data() | {"pose": _pose(c.p, quat_from_rotation(c.R))} for c in stance.contacts],
            **{key: asked[key] for key in ("posture", "com") if asked.get(key) is not None},
            "q": stance.q.tolist(),
            "wrenches": {patch: wrench.tolist() for patch, wrench in stance.wrenches.items()},
            "tau": stance.tau.tolist(),
            "margins": dict(stance.margins),
        }
        | ({} if stance.passing is None else {"v": stance.passing.v.tolist(), "vd": stance.passing.vd.tolist()})
        | ({"objects": objects} if objects else {})
        | ({"transition": motion} if motion else {})
    )


def _pose(p: np.ndarray, quat_wxyz: np.ndarray) -> dict[str, Any]:
    return {"xyz": p.tolist(), "quat_wxyz": quat_wxyz.tolist()}


def _stance(scenario: Scenario, item: StanceItem, before: PlannedStance | None) -> PlannedStance:
    robot = scenario.robot
    missing = [key for key in KEYS if getattr(item, key) is None]
    if item.contacts is None or missing:
        raise InputError(
            f"{', '.join(missing or ['contacts'])} missing: not an item of a plan; plan the scenario first"
        )
    objects = {name: pose.array for name, pose in item.objects.items()}
    environment = scenario.environment.placed(objects)
    known = {} if before is None else {contact_key(contact): contact for contact in before.contacts}
    made = [make_contact(robot, environment, spec) for spec in item.contacts]
    contacts = tuple(_as_before(contact, known.get(contact_key(contact))) for contact in made)
    q, tau = np.array(item.q, dtype=float), np.array(item.tau, dtype=float)
    if q.shape != (robot.nq,) or tau.shape != (robot.n,):
        raise InputError(f"q has {len(q)} and tau {len(tau)} numbers; {robot.name} has {robot.nq} and {robot.n}")
    if abs(np.linalg.norm(q[3:7]) - 1.0) > 1e-6:
        raise InputError(
            f"q[3:7], the base quaternion w x y z, has the length {np.linalg.norm(q[3:7]):.9g}, expected 1"
        )
    wrenches = {patch: np.array(wrench) for patch, wrench in (item.wrenches or {}).items()}
    change, passing = str(item.change), _passing(scenario, item, q)
    stance = PlannedStance(
        contacts, change, item.moved, q, wrenches, tau, dict(item.margins or {}), objects, passing=passing
    )
    carried = {contact.carrier.name for contact in contacts if contact.carrier is not None}
    moved = displaced_objects(scenario.environment, before or replace(stance, objects={}), stance)
    if left := sorted(moved.keys() - carried):
        raise InputError(f"objects: pose of {left[0]} changed without a contact that could move it")
    names, old = {c.patch for c in contacts}, set() if before is None else set(before.patches)
    expected = {
        "start": before is None and item.moved is None,
        "add": item.moved is not None and names == old | {item.moved} and item.moved not in old,
        "remove": item.moved is not None and old == names | {item.moved} and item.moved not in names,
        "shift": names == old and item.moved is None,
    }
    if not expected[change]:
        raise InputError(f"`{change} {item.moved or ''}` does not lead from contacts {sorted(old)} to {sorted(names)}")
    return stance


def _as_before(contact: Contact, known: Contact | None) -> Contact:
    """Return a contact, as the same object where it stays: caches of contacts use these as keys."""
    return contact if known is None or known.to_data() != contact.to_data() else known


def _passing(scenario: Scenario, item: StanceItem, q: np.ndarray) -> BoundaryState | None:
    if item.v is None and item.vd is None:
        return None
    robot = scenario.robot
    for name, rates in (("v", item.v), ("vd", item.vd)):
        if rates is None or len(rates) != robot.nv or not np.isfinite(rates).all():
            given = "missing" if rates is None else f"{len(rates)} numbers"
            raise InputError(
                f"{name}: {given}, expected {robot.nv} finite ones: a stance passed in motion has v and vd"
            )
    return BoundaryState.at(robot, q, np.array(item.v), np.array(item.vd))
