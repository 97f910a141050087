"""Plan files: the scenario's document with complete ``stances``, which can be edited and simulated.

Each contact has its coordinates on the support, and for information its world pose, which is not read. ``plan`` has the
deviations from each goal item; they are measured again when the file is read. Floats have all digits, so reading and
writing a plan changes nothing. Each stance except the first has the motion that leads to it. If motions are missing, or
speeds in ``control:`` were changed, motions are computed when the file is read.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from mcplan.document.document import dump_document, read_document
from mcplan.document.file_kind import is_plan
from mcplan.errors import InputError, ScenarioError
from mcplan.planning.chain import displaced_objects, with_timing, with_transitions
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
"""Required keys of each stance of a plan, in addition to ``contacts``."""


def plan_document(plan: Plan, directory: str | os.PathLike[str] = ".") -> dict[str, Any]:
    """Return the plan as plain values.

    Parameters
    ----------
    directory : directory of the file; paths in the file are relative to it.
    """
    data = plan.scenario.data(directory)
    record = data.pop("plan", None) or {}
    record = {key: value for key, value in record.items() if key not in ("notices", "goal", "made_with", "paced_with")}
    data["mcplan"] = 2
    if data.get("stances") and not data.get("goal") and not is_plan(plan.scenario.document):
        # keep the request: the planned stances replace the hand-written ones
        record["sequence"] = data["stances"]
    if plan.notices:
        record["notices"] = list(plan.notices)
    if plan.goals:
        record["goal"] = [item.to_data() for item in plan.goals]
    if any(stance.transition is not None for stance in plan.stances):
        record["made_with"] = path_settings(plan.scenario.transition_settings)
        record["paced_with"] = pace_settings(plan.scenario.transition_settings)
    items = data.pop("stances", None) or ()  # at the end of the file, after ``plan``
    walks = any(stance.passing is not None for stance in plan.stances)  # the steps of a walk are not those of the file
    requests = items if len(items) == len(plan.stances) and not walks else [{} for _ in plan.stances]
    stances = {"stances": [_stance_data(*each) for each in zip(plan.stances, requests, strict=True)]}
    return data | ({"plan": record} if record else {}) | stances


def save_plan(plan: Plan, path: str | os.PathLike[str]) -> None:
    """Write a plan file; an existing file is replaced.

    Parameters
    ----------
    plan : plan to write.
    path : path of the file.
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
    path : path of the file, or the name of a bundled scenario that is a plan.
    overrides : values by key path, as for `mcplan.load_scenario`.

    Raises
    ------
    ScenarioError
        When the file is no plan, or something in it is wrong.
    """
    return plan_of(load_scenario(file_path("load_plan", path), overrides))


def plan_of(scenario: Scenario) -> Plan:
    """Return the plan in a scenario's document, see `load_plan`."""
    if not scenario.stances:
        raise ScenarioError(f"{scenario.path}: no stances, so it is a scenario and not a plan; plan it first")
    stances = _stances(scenario)
    record = scenario.document.data.get("plan") or {}
    notices = record.get("notices") or ()
    if not isinstance(notices, (list, tuple)) or not all(isinstance(notice, str) for notice in notices):
        raise ScenarioError(scenario.document.problem(("plan", "notices"), "expected a list of texts"))
    # paths and times in the file are valid only for the settings that they were computed with
    current, pace = path_settings(scenario.transition_settings), pace_settings(scenario.transition_settings)
    old_paths, old_pace = record.get("made_with") or current, record.get("paced_with") or pace
    for name, settings in (("made_with", old_paths), ("paced_with", old_pace)):
        if not isinstance(settings, dict):
            raise ScenarioError(scenario.document.problem(("plan", name), "expected settings by name"))
    new_paths = sorted(f"control.{name}" for name in current if old_paths.get(name) != current[name])
    new_times = changed_pace_settings(old_pace, pace)
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
    if scenario.control.pace is not None and "walking" in pace and "walking" not in old_pace:
        text = "the plan comes to rest on each foot; plan the scenario again"
        raise ScenarioError(scenario.document.problem(("control", "walking"), text))
    if new_times:
        stances = list(with_timing(scenario, stances))
        notices = (*notices, f"the times of motions were computed again: {', '.join(new_times)} changed")
    return Plan(scenario, tuple(stances), notices=tuple(notices))


def _stances(scenario: Scenario) -> list[PlannedStance]:
    """Return the stances of a file without their motions; reading stops at the first error."""
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
    later_contacts = [later.contact(later.moved) for later in stances[k:] if later.change == "add" and later.moved]
    closed = [stance.contacts if objects else before.contacts]
    if stance.change == "remove":
        closed.append(stance.contacts)
    passing = before.passing, stance.passing
    return transition_of(item.transition, scenario.robot, stance.moved, closed, later_contacts, objects, passing)


def _stance_data(stance: PlannedStance, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return an item of a plan; it keeps ``posture`` and ``com`` of the request, to plan the file again."""
    objects = {name: _pose(pose[:3], pose[3:]) for name, pose in stance.objects.items()}
    motion = None if stance.transition is None else transition_data(stance.transition)
    return (
        {
            "change": stance.change,
            "moved": stance.moved,
            "contacts": [c.to_data() | {"pose": _pose(c.p, quat_from_rotation(c.R))} for c in stance.contacts],
            **{key: request[key] for key in ("posture", "com") if request.get(key) is not None},
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
    earlier = {} if before is None else {contact_key(contact): contact for contact in before.contacts}
    new_contacts = [make_contact(robot, environment, spec) for spec in item.contacts]
    contacts = tuple(_reuse_equal(contact, earlier.get(contact_key(contact))) for contact in new_contacts)
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
    if uncarried := sorted(moved.keys() - carried):
        raise InputError(f"objects: pose of {uncarried[0]} changed without a contact that could move it")
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


def _reuse_equal(contact: Contact, earlier: Contact | None) -> Contact:
    """Return the contact, or the equal one of the previous stance: caches use the identity of contacts as keys."""
    return contact if earlier is None or earlier.to_data() != contact.to_data() else earlier


def _passing(scenario: Scenario, item: StanceItem, q: np.ndarray) -> BoundaryState | None:
    if item.v is None and item.vd is None:
        return None
    robot = scenario.robot
    for name, rates in (("v", item.v), ("vd", item.vd)):
        if rates is None or len(rates) != robot.nv or not np.isfinite(rates).all():
            found = "missing" if rates is None else f"{len(rates)} numbers"
            raise InputError(
                f"{name}: {found}, expected {robot.nv} finite ones: a stance passed in motion has v and vd"
            )
    return BoundaryState.at(robot, q, np.array(item.v), np.array(item.vd))
