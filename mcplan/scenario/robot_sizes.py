"""Sizes of a robot that a scenario's expressions may use, and groups of its patches: ``=robot.leg``, ``{patch: feet}``.

    robot.leg       from hip to sole along the joints      robot.height    of the base over the ground in half_sitting
    robot.foot      length of a sole, 0 of a point         robot.width     from the left to the right foot's origin
    robot.reach     from shoulder to hand along the joints robot.shoulder  height of the shoulders in half_sitting
    robot.front     from below the base to the toes        robot.step      height that a knee lifts the robot by
    robot.breadth   from shoulder to shoulder

All in m, rounded to millimetres, so that a scenario reads the same whatever the last digits of a robot's file are.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mcplan.document.build import Mark
from mcplan.document.document import Document
from mcplan.errors import InputError
from mcplan.robot.anatomy import find_hands, measure_sizes
from mcplan.scenario.expression import ROBOT

if TYPE_CHECKING:
    from mcplan.robot.robot import Robot

Places = Mapping[str, np.ndarray]
"""From the name of a patch to where (2,) it is about a point."""

DIGITS = 9
"""Decimals (m) of places that are turned."""

PREFIX = f"{ROBOT}."
NAMES = ("leg", "foot", "height", "width", "front", "step", "reach", "shoulder", "breadth")
GROUPS = ("feet", "left_feet", "right_feet", "hands")
"""Each stands for several patches: those that the robot stands on, all of them or those of a side, ``x`` and ``y`` then
being of the point below its base, about which ``yaw`` turns them; and those at the ends of its other limbs."""


@lru_cache(maxsize=16)
def _loaded(path: str, stamp: float) -> "Robot":
    from mcplan.robot.robot_file import load_robot

    return load_robot(path)


def robot_of(document: Document) -> "Robot | None":
    """Return the robot that a scenario names, or None where it names none that can be loaded."""
    name = document.data.get("robot") if isinstance(document.data, dict) else None
    if not isinstance(name, str):
        return None
    path = Path(name)
    is_path = path.suffix.lower() in (".yaml", ".yml", ".urdf", ".xml") or len(path.parts) > 1
    place = Path(document.path).parent / path if is_path else path
    try:
        return _loaded(str(place), os.stat(place).st_mtime if is_path else 0.0)
    except (InputError, OSError):  # reported where the robot itself is read
        return None


def sizes(robot: "Robot") -> dict[str, float]:
    """Return the sizes by name; those that a robot does not have, for want of arms or of a posture, are left out."""
    return {name: round(value, 3) for name, value in measure_sizes(robot).items()}


def size_values(document: Document, robot: "Robot | None" = None) -> dict[str, float]:
    """Return the values of ``robot.NAME`` for the expressions of a document; none where no expression uses them.

    ``robot`` is that of the document if it is loaded already.
    """
    if not _uses(document.data):
        return {}
    robot = robot_of(document) if robot is None else robot
    if robot is None:  # reported where the robot is read; nothing is built from these
        return dict.fromkeys((PREFIX + name for name in NAMES), 1.0)
    return {PREFIX + name: value for name, value in sizes(robot).items()}


def _uses(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_uses, value.values()))
    if isinstance(value, list):
        return any(map(_uses, value))
    return isinstance(value, str) and value.startswith("=") and PREFIX in value


def with_groups(document: Document, robot: "Robot | None" = None) -> Document:
    """Return the document with ``feet`` and other groups as the robot's own, in lists of contacts and of patches.

    ``robot`` is that of the document if it is loaded already.
    """
    if not isinstance(document.data, dict) or not _names_group(document.data):
        return document
    robot = robot_of(document) if robot is None else robot
    groups = {} if robot is None else _groups(robot)
    return document.with_data(*_replaced(document.data, document.mark, groups)) if groups else document


def _groups(robot: "Robot") -> dict[str, Places]:
    """Return the patches of each group, and where they are about the point that is given."""
    standing = robot.feet
    if not standing:
        return {}
    left = {name: place for name, place in standing.items() if place[1] > 0}
    right = {name: place for name, place in standing.items() if place[1] < 0}
    return dict(zip(GROUPS, (standing, left, right, dict.fromkeys(find_hands(robot), np.zeros(2))), strict=True))


def _names_group(value: Any) -> bool:
    if isinstance(value, Mapping):
        return value.get("patch") in GROUPS or any(map(_names_group, value.values()))
    return value in GROUPS if isinstance(value, str) else isinstance(value, list) and any(map(_names_group, value))


def _replaced(value: Any, mark: Mark, groups: Mapping[str, Places]) -> tuple[Any, Mark]:
    """Return a value with its groups as patches, and its mark, in which each patch stands where its group does."""
    if isinstance(value, Mapping):
        inside = {key: _replaced(item, mark.child(key), groups) for key, item in value.items()}
        marks = {key: each for key, (_, each) in inside.items()}
        return {key: item for key, (item, _) in inside.items()}, replace(mark, children=marks)
    if not isinstance(value, list):
        return value, mark
    found: list[tuple[Any, Mark]] = []
    for k, item in enumerate(value):
        own = replace(mark.child(k), index=k)
        if isinstance(item, str) and item in groups:
            found += [(name, own) for name in groups[item]]
        elif isinstance(item, Mapping) and item.get("patch") in GROUPS and groups[item["patch"]]:
            found += [(_placed(item, name, place), own) for name, place in groups[item["patch"]].items()]
        else:
            found.append(_replaced(item, own, groups))
    if not found:  # a group that a robot does not have, alone in a list, is said to be unknown
        return value, mark
    return [item for item, _ in found], replace(mark, children=[each for _, each in found])


def _placed(item: Mapping[str, Any], name: str, place: np.ndarray) -> dict[str, Any]:
    """Return the contact of one patch of a group: the point that is given is that below the base.

    ``(x, y) + R(yaw) place``; where the yaw is left open the group stands as it does in its posture.
    """
    contact, yaw = {**item, "patch": name}, item.get("yaw")
    if isinstance(yaw, int | float):
        c, s = np.cos(yaw), np.sin(yaw)
        place = np.round(np.array([[c, -s], [s, c]]) @ place, DIGITS)
    for axis, offset in zip("xy", place.tolist(), strict=True):
        if isinstance(item.get(axis), int | float):
            contact[axis] = item[axis] + offset
    return contact
