"""Import of step lists of MultiContactController (mc_rtc) as a scenario with a contact sequence.

    states:
      MCC::ConfigMotion_:
        configs:
          stepCommandList:
            - {limb: LeftFoot, type: Add, startTime: 2.0, endTime: 3.0, pose: {translation: [0.2, 0.1, 0]},
               constraint: {type: Surface, fricCoeff: 0.5}}
            - {limb: RightHand, type: Remove, startTime: 29.0, endTime: 31.0}

Only the order of the steps is taken from the times; durations follow from the limits of the robot.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from mcplan.contrib.contact_frame import ContactFrame, number, pose_of, surfaces_for
from mcplan.document.document import Document, read_document
from mcplan.errors import InputError, Problem
from mcplan.robot.robot import Robot
from mcplan.scenario.scenario import Scenario
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Bar, Environment
from mcplan.util.arguments import check_each, check_instance, describe, file_path

PATCHES = {
    "LeftFoot": "left_sole", "RightFoot": "right_sole", "LeftHand": "left_hand", "RightHand": "right_hand",
}  # fmt: skip
"""Default patch of each limb, by the name of the limb in the file."""

GRIPS = {"LeftHand": "left_grip", "RightHand": "right_grip"}
"""Default patch of each limb for a grasp."""

HALF_BAR_LENGTH = 0.15
"""m: half length of a bar created for a grasp."""

BAR_RADIUS = 0.02
"""m: radius of a bar created for a grasp; the file does not specify one."""

DEFAULT_FRICTION = 0.7
"""Friction coefficient of steps that do not specify one."""

Key = tuple[str | int, ...]


def read_step_list(
    path: str | os.PathLike[str],
    robot: Robot,
    start: Sequence[Contact],
    environment: Environment,
    patches: Mapping[str, str] | None = None,
    **settings: Any,
) -> Scenario:
    """Read a step list of MultiContactController and return a scenario with that contact sequence.

    Parameters
    ----------
    path : YAML file of the controller, or one that has only a ``stepCommandList``.
    robot : robot whose patches make the contacts.
    start, environment : contacts at the start, and the environment; the file has neither. Surfaces for the steps, and
        bars for grasps, are created at the poses of the steps.
    patches : patch by name of the limb; these override ``PATCHES`` and ``GRIPS``.
    settings : further arguments of `Scenario`: ``name``, ``control``, ``simulation``.

    Raises
    ------
    InputError
        The file is missing or has no steps, a step has no pose or an unknown limb, or two feet are in the air at once.
    """
    where = "read_step_list"
    file = file_path(where, path)
    check_instance(where, "robot", robot, Robot)
    start = check_each(where, "start", start, Contact)
    check_instance(where, "environment", environment, Environment)
    document = read_document(file)
    steps = sorted(_steps(document), key=lambda step: step[1])
    if not steps:
        raise InputError(Problem(str(file), None, "", "has no stepCommandList"))
    _reject_jumps(document, steps)
    used_names = {item.name for item in environment.things}
    frames: list[ContactFrame] = []
    bars: list[Bar] = []
    stances: list[dict[str, Any]] = []
    in_contact = [contact.patch for contact in start]
    names, grips = PATCHES | dict(patches or {}), GRIPS | dict(patches or {})
    for key, _, _, item in steps:
        limb, kind, adds, constraint = _step_fields(document, key, item)
        table = grips if kind == "Grasp" else names
        if limb not in table or table[limb] not in robot.patches:
            message = f"`{limb}` is not assigned to a patch of {robot.name}; assign one: patches={{{limb!r}: ...}}"
            raise InputError(document.problem((*key, "limb"), message))
        closed = [patch for patch in in_contact if patch in (names.get(limb), grips.get(limb))]
        for patch in closed:
            stances.append({"remove": patch})
            in_contact.remove(patch)
        if not adds:
            continue
        R, p = _pose(document, key, item)
        if kind == "Grasp":
            bars.append(
                Bar(
                    _unused_name(f"bar{len(bars)}", used_names),
                    [p - HALF_BAR_LENGTH * R[:, 0], p + HALF_BAR_LENGTH * R[:, 0]],
                    BAR_RADIUS,
                )
            )
            stances.append({"add": {"patch": table[limb], "surface": bars[-1].name, "along": HALF_BAR_LENGTH}})
        else:
            stances.append({"add": len(frames)})
            frames.append(ContactFrame(table[limb], R, p, _friction(document, key, constraint)))
        in_contact.append(table[limb])
    surfaces, contacts = surfaces_for(frames, robot, environment.surfaces, used_names)
    stances = [{"add": contacts[s["add"]]} if isinstance(s.get("add"), int) else s for s in stances]
    full_environment = Environment([*environment.things, *surfaces, *bars])
    start_item = {"contacts": [contact.to_data() for contact in start]}
    return Scenario(robot, full_environment, start=start, stances=[start_item, *stances], **settings)


def _steps(document: Document) -> Iterator[tuple[Key, float, float, dict[str, Any]]]:
    """Yield key, start (s), end (s) and content of each step; times of a state count from the previous one's end."""
    offset = 0.0
    for list_key in _step_lists(document.data, ()):
        end = offset
        for k, item in enumerate(_value_at(document.data, list_key)):
            key = (*list_key, k)
            if not isinstance(item, dict):
                raise InputError(document.problem(key, "expected a step: limb, type, startTime, endTime, pose"))
            times = item.get("swingCommand", item)
            start_and_end = (
                [times.get(name) for name in ("startTime", "endTime")] if isinstance(times, dict) else [times]
            )
            begin, end_time = (number(value) for value in start_and_end) if len(start_and_end) == 2 else (None, None)
            if begin is None or end_time is None:
                message = f"expected startTime and endTime, in s, not {' and '.join(map(describe, start_and_end))}"
                raise InputError(document.problem(key, message))
            yield key, offset + begin, offset + end_time, item
            end = max(end, offset + end_time)
        offset = end


def _step_lists(data: Any, key: Key) -> Iterator[Key]:
    """Yield the keys of all step lists in nested dictionaries."""
    if isinstance(data, dict):
        for name, item in data.items():
            if name == "stepCommandList" and isinstance(item, list):
                yield (*key, name)
            else:
                yield from _step_lists(item, (*key, name))


def _value_at(data: Any, key: Key) -> Any:
    for step in key:
        data = data[step]
    return data


def _step_fields(document: Document, key: Key, item: dict[str, Any]) -> tuple[str, str, bool, dict[str, Any]]:
    """Return the limb of a step, its kind of contact, whether the contact is added, and its constraint."""
    limb, kind = item.get("limb"), item.get("swingCommand", item).get("type")  # a mapping, as it has times
    if not isinstance(limb, str):
        raise InputError(document.problem(key, "limb is missing: LeftFoot, RightFoot, LeftHand, RightHand"))
    if kind not in ("Add", "Remove"):
        raise InputError(document.problem((*key, "type"), f"expected Add or Remove, got {kind!r}"))
    constraint, commands = item.get("constraint") or {}, item.get("contactCommandList") or []
    if not isinstance(commands, list):
        message = f"expected a list of commands with constraints, not {describe(commands)}"
        raise InputError(document.problem((*key, "contactCommandList"), message))
    for candidate_key, candidate in [((*key, "constraint"), constraint), *_constraints(key, commands)]:
        if not isinstance(candidate, dict):
            message = f"expected a constraint: {{type: Surface, fricCoeff: 0.5}}, not {describe(candidate)}"
            raise InputError(document.problem(candidate_key, message))
        constraint = candidate if candidate.get("type") in ("Surface", "Grasp") else constraint  # the last contact
    return limb, str(constraint.get("type", "Surface")), kind == "Add", constraint


def _constraints(key: Key, commands: list[Any]) -> Iterator[tuple[Key, Any]]:
    """Yield key and content of the constraints of contact commands; invalid commands as they are."""
    for k, command in enumerate(commands):
        if not isinstance(command, dict):
            yield (*key, "contactCommandList", k), command
        elif command.get("constraint"):
            yield (*key, "contactCommandList", k, "constraint"), command["constraint"]


def _pose(document: Document, key: Key, item: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return rotation and position of a step."""
    pose = item.get("pose")
    found = pose_of(pose.get("translation"), pose.get("rotation", (0.0, 0.0, 0.0))) if isinstance(pose, dict) else None
    if found is None:
        message = f"expected translation: [x, y, z] and rotation: [roll, pitch, yaw], numbers, not {describe(pose)}"
        raise InputError(document.problem((*key, "pose") if "pose" in item else key, message))
    return found


def _friction(document: Document, key: Key, constraint: dict[str, Any]) -> float:
    value = constraint.get("fricCoeff", DEFAULT_FRICTION)
    friction = number(value, 0.0)
    if friction is None:
        raise InputError(document.problem(key, f"fricCoeff: expected a number from 0 on, not {describe(value)}"))
    return friction


def _reject_jumps(document: Document, steps: list[tuple[Key, float, float, dict[str, Any]]]) -> None:
    """Raise an error for jumps (both feet in the air). Hands may overlap with a foot: they move before or after it."""
    feet = [step for step in steps if "Foot" in str(step[3].get("limb"))]
    for before, after in pairwise(feet):
        if after[1] < before[2] - 1e-9 and before[3].get("limb") != after[3].get("limb"):
            raise InputError(document.problem(after[0], "both feet are in the air at once: jumps are not planned here"))


def _unused_name(name: str, used: set[str]) -> str:
    """Return ``name``, or if it is used, ``name_2``, ``name_3``, ...; add the result to ``used``."""
    found = name if name not in used else next(f"{name}_{k}" for k in range(2, 10**6) if f"{name}_{k}" not in used)
    used.add(found)
    return found
