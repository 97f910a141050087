"""Parameters, robot sizes and patch groups of a scenario file: evaluation of expressions to numbers and names.

    parameters: {riser: 0.15, tread: 0.30, slope: =riser/tread}
    ...
    pose: {xyz: [=1.5*tread, 0, =2*riser]}
    contacts: [{patch: feet, surface: floor, x: =robot.leg, y: 0}]

Any text that begins with ``=`` is an expression (see `mcplan.scenario.expression`); it may use every parameter, and the
sizes of the robot:

    robot.leg       from hip to sole along the joints      robot.height    of the base over the ground in half_sitting
    robot.foot      length of a sole, 0 of a point         robot.width     from the left to the right foot's origin
    robot.reach     from shoulder to hand along the joints robot.shoulder  height of the shoulders in half_sitting
    robot.front     from below the base to the toes        robot.step      height that a knee lifts the robot by
    robot.breadth   from shoulder to shoulder

All in m, rounded to millimetres, so that a scenario does not depend on the last digits of a robot's file. The result is
the document with plain numbers, without the sections ``parameters`` and ``variants``.
"""

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mcplan.document.build import Mark
from mcplan.document.document import Document
from mcplan.errors import InputError, Problem
from mcplan.robot.anatomy import find_hands, measure_sizes
from mcplan.scenario.expression import ROBOT, Expression, ExpressionError, is_name, same_name
from mcplan.scenario.schema import ScenarioSpec
from mcplan.util.spelling import closest_name

if TYPE_CHECKING:
    from mcplan.robot.robot import Robot


Places = Mapping[str, np.ndarray]
"""Position (2,) relative to a point, by patch."""

DIGITS = 9
"""Decimals (m) of rotated positions."""

PREFIX = f"{ROBOT}."
SIZE_NAMES = ("leg", "foot", "height", "width", "front", "step", "reach", "shoulder", "breadth")
PATCH_GROUPS = ("feet", "left_feet", "right_feet", "hands")
"""Groups of patches: those of the feet, all or of one side, and those at the ends of the other limbs. For feet, ``x``
and ``y`` refer to the point below the base, about which ``yaw`` turns them."""


@lru_cache(maxsize=16)
def _load_cached(path: str, stamp: float) -> "Robot":
    from mcplan.robot.robot_file import load_robot

    return load_robot(path)


def robot_of(document: Document) -> "Robot | None":
    """Return the robot of a scenario, or None if it cannot be loaded."""
    name = document.data.get("robot") if isinstance(document.data, dict) else None
    if not isinstance(name, str):
        return None
    path = Path(name)
    is_path = path.suffix.lower() in (".yaml", ".yml", ".urdf", ".xml") or len(path.parts) > 1
    place = Path(document.path).parent / path if is_path else path
    try:
        return _load_cached(str(place), os.stat(place).st_mtime if is_path else 0.0)
    except (InputError, OSError):  # reported where the robot itself is read
        return None


def robot_sizes(robot: "Robot") -> dict[str, float]:
    """Return the sizes by name, without those that the robot lacks (no arms, or no posture)."""
    return {name: round(value, 3) for name, value in measure_sizes(robot).items()}


def size_values(document: Document, robot: "Robot | None" = None) -> dict[str, float]:
    """Return the values of ``robot.NAME`` for the expressions of a document; empty if no expression uses them.

    ``robot`` is that of the document, if already loaded.
    """
    if not _uses_sizes(document.data):
        return {}
    robot = robot_of(document) if robot is None else robot
    if robot is None:  # reported where the robot is read; the values are placeholders
        return dict.fromkeys((PREFIX + name for name in SIZE_NAMES), 1.0)
    return {PREFIX + name: value for name, value in robot_sizes(robot).items()}


def _uses_sizes(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_uses_sizes, value.values()))
    if isinstance(value, list):
        return any(map(_uses_sizes, value))
    return isinstance(value, str) and value.startswith("=") and PREFIX in value


def with_groups(document: Document, robot: "Robot | None" = None) -> Document:
    """Replace ``feet`` and other groups in lists of contacts and of patches by the robot's patches.

    ``robot`` is that of the document, if already loaded.
    """
    if not isinstance(document.data, dict) or not _names_group(document.data):
        return document
    robot = robot_of(document) if robot is None else robot
    groups = {} if robot is None else _groups(robot)
    return document.with_data(*_expand_groups(document.data, document.mark, groups)) if groups else document


def _groups(robot: "Robot") -> dict[str, Places]:
    """Return the patches of each group, with their positions relative to the group's point."""
    standing = robot.feet
    if not standing:
        return {}
    left = {name: place for name, place in standing.items() if place[1] > 0}
    right = {name: place for name, place in standing.items() if place[1] < 0}
    return dict(zip(PATCH_GROUPS, (standing, left, right, dict.fromkeys(find_hands(robot), np.zeros(2))), strict=True))


def _names_group(value: Any) -> bool:
    if isinstance(value, Mapping):
        return value.get("patch") in PATCH_GROUPS or any(map(_names_group, value.values()))
    if isinstance(value, list):
        return any(map(_names_group, value))
    return isinstance(value, str) and value in PATCH_GROUPS


def _expand_groups(value: Any, mark: Mark, groups: Mapping[str, Places]) -> tuple[Any, Mark]:
    """Replace the groups in a value by patches; in the mark each patch has the line of its group."""
    if isinstance(value, Mapping):
        inside = {key: _expand_groups(item, mark.child(key), groups) for key, item in value.items()}
        marks = {key: each for key, (_, each) in inside.items()}
        return {key: item for key, (item, _) in inside.items()}, replace(mark, children=marks)
    if not isinstance(value, list):
        return value, mark
    found: list[tuple[Any, Mark]] = []
    for k, item in enumerate(value):
        item_mark = replace(mark.child(k), index=k)
        if isinstance(item, str) and item in groups:
            found += [(name, item_mark) for name in groups[item]]
        elif isinstance(item, Mapping) and item.get("patch") in PATCH_GROUPS and groups[item["patch"]]:
            found += [(_placed(item, name, place), item_mark) for name, place in groups[item["patch"]].items()]
        else:
            found.append(_expand_groups(item, item_mark, groups))
    if not found:  # an empty group is reported later as an unknown patch
        return value, mark
    return [item for item, _ in found], replace(mark, children=[each for _, each in found])


def _placed(item: Mapping[str, Any], name: str, place: np.ndarray) -> dict[str, Any]:
    """Return the contact of one patch of a group; the group's coordinates are those of the point below the base.

    ``(x, y) + R(yaw) place``; without a yaw the group keeps its orientation in the posture.
    """
    contact, yaw = {**item, "patch": name}, item.get("yaw")
    if isinstance(yaw, int | float):
        c, s = np.cos(yaw), np.sin(yaw)
        place = np.round(np.array([[c, -s], [s, c]]) @ place, DIGITS)
    for axis, offset in zip("xy", place.tolist(), strict=True):
        if isinstance(item.get(axis), int | float):
            contact[axis] = item[axis] + offset
    return contact


Key = tuple[str | int, ...]

SECTIONS = ("parameters", "variants")


def parameter_values(
    document: Document, drawn: Mapping[str, float] | None = None, robot: "Robot | None" = None
) -> tuple[dict[str, float], list[Problem]]:
    """Return the value of each parameter, by its normalized name, and the problems.

    Parameters
    ----------
    drawn : values that replace those of the file; dependent parameters follow.
    robot : of the document, if already loaded.
    """
    section = document.data.get("parameters") or {}
    if not isinstance(section, dict):
        return size_values(document, robot), [document.problem(("parameters",), "expected a mapping {name: number}")]
    problems: list[Problem] = []
    values = size_values(document, robot)
    pending: dict[str, Expression] = {}
    spellings: dict[str, str] = {}
    for key, given in section.items():
        name = same_name(key)
        try:
            if not is_name(key):
                raise ExpressionError("cannot be the name of a parameter")
            if name in spellings:
                raise ExpressionError(f"is the same name as `{spellings[name]}`; an expression cannot tell them apart")
            spellings[name] = key
            if drawn and name in drawn:
                values[name] = drawn[name]
            elif is_expression(given):
                pending[name] = Expression(given[1:])
            elif isinstance(given, (int, float)) and not isinstance(given, bool) and math.isfinite(given):
                values[name] = given
            else:
                raise ExpressionError(f"expected a number or an expression such as =2*riser, got {given!r}")
        except ExpressionError as reason:
            problems.append(document.problem(("parameters", key), str(reason)))
    _evaluate_dependent(document, pending, values, problems, spellings)
    return values, problems


def _evaluate_dependent(
    document: Document,
    pending: dict[str, Expression],
    values: dict[str, float],
    problems: list[Problem],
    spellings: Mapping[str, str],
) -> None:
    """Evaluate the parameters that depend on others, in order of dependency; ``spellings``: names as in the file."""
    while pending:
        ready = [name for name, expression in pending.items() if not set(expression.names) & set(pending)]
        if not ready:
            for name in pending:
                message = f"depends on itself: {', '.join(pending)}"
                problems.append(document.problem(("parameters", spellings[name]), message))
            return
        for name in ready:
            expression = pending.pop(name)
            if not _all_known(expression, document, values):
                continue
            try:
                values[name] = _number(expression.value(values))
            except ExpressionError as reason:
                message = f"={expression.text}: {reason}"
                problems.append(document.problem(("parameters", spellings[name]), message))


def _all_known(expression: Expression, document: Document, values: Mapping[str, float]) -> bool:
    """Whether all parameters have values; an invalid one has none, which is reported at the parameter itself."""
    section = document.data.get("parameters")
    missing = {same_name(key) for key in section} - set(values) if isinstance(section, dict) else set()
    return missing.isdisjoint(expression.names)


def resolve(
    document: Document, drawn: Mapping[str, float] | None = None, robot: "Robot | None" = None
) -> tuple[Document, list[Problem]]:
    """Replace every expression of a document by its value; return it with the problems.

    ``drawn`` and ``robot`` are as for ``parameter_values``.
    """
    if not isinstance(document.data, dict):
        return document, []
    values, problems = parameter_values(document, drawn, robot)
    misplaced = _misplaced_parameters(document)
    problems += [
        document.problem((key,), f"unknown key; did you mean `{intended}`?") for key, intended in misplaced.items()
    ]
    rest = {key: value for key, value in document.data.items() if key not in (*SECTIONS, *misplaced)}
    used: set[str] = set()
    found = False

    def replaced(key: Key, value: Any) -> Any:
        nonlocal found
        if isinstance(value, dict):
            return {name: replaced((*key, name), item) for name, item in value.items()}
        if isinstance(value, list):
            return [replaced((*key, k), item) for k, item in enumerate(value)]
        if not is_expression(value):
            return value
        found = True
        try:
            expression = Expression(value[1:])
            used.update(expression.names)
            return _number(expression.value(values)) if _all_known(expression, document, values) else 1.0
        except ExpressionError as reason:
            problems.append(document.problem(key, f"{value}: {reason}"))
            return 1.0  # a placeholder for further checks

    data = replaced((), rest)
    problems += list(_unused(document, used))
    if not found and len(rest) == len(document.data):
        return with_groups(document, robot), problems
    return with_groups(document.with_data(data), robot), problems


def is_expression(value: object) -> bool:
    """Whether a value of the file is an expression."""
    return isinstance(value, str) and value.startswith("=")


def _misplaced_parameters(document: Document) -> dict[str, str]:
    """Return top-level keys that are names of parameters, as of ``--set riser=0.1``, with the correct key path."""
    section = document.data.get("parameters")
    names = [name for name in section if is_name(name)] if isinstance(section, dict) else []
    misplaced = {}
    for key in (key for key in document.data if key not in ScenarioSpec.model_fields):
        similar = closest_name(str(key), [*names, *ScenarioSpec.model_fields])
        if similar in names:
            misplaced[key] = f"parameters.{similar}"
    return misplaced


def _unused(document: Document, used: set[str]) -> Iterator[Problem]:
    """Report parameters without effect: a misspelt ``--set parameters.x`` would otherwise pass unnoticed."""
    section = document.data.get("parameters")
    if not isinstance(section, dict):
        return
    for text in _expressions([document.data.get(name) for name in SECTIONS]):
        try:
            used.update(Expression(text[1:]).names)
        except ExpressionError:
            continue  # reported where it is evaluated
    for name in section:
        if is_name(name) and same_name(name) not in used:
            yield document.problem(("parameters", name), "no expression uses this parameter")


def _expressions(value: Any) -> Iterator[str]:
    """Yield the expressions in a value, recursively."""
    if is_expression(value):
        yield value
    elif isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _expressions(item)


def _number(value: float) -> float:
    """Convert whole numbers to integers: some keys require them, and they read better in a file."""
    return int(value) if value.is_integer() and abs(value) < 1e9 else value
