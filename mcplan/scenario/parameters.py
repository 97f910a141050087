"""Parameters, robot sizes and patch groups of a scenario file: evaluation of expressions to numbers and names.

    parameters: {riser: 0.15, tread: 0.30, slope: =riser/tread}
    ...
    pose: {xyz: [=1.5*tread, 0, =2*riser]}
    contacts: [{patch: feet, surface: floor, x: =robot.leg, y: 0}]

Any text that begins with ``=`` is an expression (see `mcplan.scenario.expression`); it may use every parameter, and the
sizes of the robot:

    robot.leg       from hip to sole along the joints       robot.height    height of the base in half_sitting
    robot.foot      length of a sole, 0 for a point         robot.width     from the left to the right foot's origin
    robot.reach     from shoulder to hand along the joints  robot.shoulder  height of the shoulders in half_sitting
    robot.front     from below the base to the toes         robot.step      height by which a knee can lift the robot
    robot.breadth   from shoulder to shoulder

Sizes are in m, rounded to millimetres, so that a scenario does not depend on the last digits of a robot's file. The
resolved document has plain numbers, without the sections ``parameters`` and ``variants``.
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
from mcplan.robot.anatomy import find_hands
from mcplan.scenario.expression import ROBOT, Expression, ExpressionError, is_name, same_name
from mcplan.scenario.schema import ScenarioSpec
from mcplan.util.spelling import closest_name

if TYPE_CHECKING:
    from mcplan.robot.robot import Robot


PatchPositions = Mapping[str, np.ndarray]
"""Horizontal position (2,) relative to the reference point of a group, by patch (m)."""

DIGITS = 9
"""Number of decimals of rotated positions (m)."""

PREFIX = f"{ROBOT}."
"""Prefix of the names of sizes in expressions."""

SIZE_NAMES = ("leg", "foot", "height", "width", "front", "step", "reach", "shoulder", "breadth")
PATCH_GROUPS = ("feet", "left_feet", "right_feet", "hands")
"""Groups of patches: all feet, those of one side, and the patches at the ends of the other limbs. For feet, ``x`` and
``y`` refer to the point below the base, and ``yaw`` rotates the group about this point."""


@lru_cache(maxsize=16)
def _load_cached(path: str, stamp: float) -> "Robot":
    from mcplan.robot.robot_file import load_robot

    return load_robot(path)


def robot_place(name: str, document: Document) -> str | Path:
    """Return a robot as it is loaded: a bundled name, or a path relative to the document's file."""
    path = Path(name)
    is_path = path.suffix.lower() in (".yaml", ".yml", ".urdf", ".xml") or len(path.parts) > 1
    return Path(document.path).parent / path if is_path else name


def robot_of(document: Document) -> "Robot | None":
    """Return the robot of a scenario, or None if it cannot be loaded."""
    name = document.data.get("robot") if isinstance(document.data, dict) else None
    if not isinstance(name, str):
        return None
    place = robot_place(name, document)
    try:
        return _load_cached(str(place), os.stat(place).st_mtime if isinstance(place, Path) else 0.0)
    except (InputError, OSError):  # reported where the robot itself is read
        return None


def robot_sizes(robot: "Robot") -> dict[str, float]:
    """Return the sizes (m) of a robot by name, without those that it does not have, such as those of arms."""
    return {name: round(value, 3) for name, value in robot.sizes.items()}


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
    if not isinstance(document.data, dict) or not _has_group(document.data):
        return document
    robot = robot_of(document) if robot is None else robot
    groups = {} if robot is None else _groups(robot)
    return document.with_data(*_expand_groups(document.data, document.mark, groups)) if groups else document


def _groups(robot: "Robot") -> dict[str, PatchPositions]:
    """Return the patches of each group, with their positions relative to the reference point of the group."""
    feet = robot.feet
    if not feet:
        return {}
    left_feet = {name: position for name, position in feet.items() if position[1] > 0}
    right_feet = {name: position for name, position in feet.items() if position[1] < 0}
    return dict(
        zip(PATCH_GROUPS, (feet, left_feet, right_feet, dict.fromkeys(find_hands(robot), np.zeros(2))), strict=True)
    )


def _has_group(value: Any) -> bool:
    if isinstance(value, Mapping):
        return value.get("patch") in PATCH_GROUPS or any(map(_has_group, value.values()))
    if isinstance(value, list):
        return any(map(_has_group, value))
    return isinstance(value, str) and value in PATCH_GROUPS


def _expand_groups(value: Any, mark: Mark, groups: Mapping[str, PatchPositions]) -> tuple[Any, Mark]:
    """Replace the groups in a value by patches; in its mark, each patch has the line of its group."""
    if isinstance(value, Mapping):
        expanded = {key: _expand_groups(item, mark.child(key), groups) for key, item in value.items()}
        marks = {key: child for key, (_, child) in expanded.items()}
        return {key: item for key, (item, _) in expanded.items()}, replace(mark, children=marks)
    if not isinstance(value, list):
        return value, mark
    expanded_items: list[tuple[Any, Mark]] = []
    for k, item in enumerate(value):
        item_mark = replace(mark.child(k), index=k)
        if isinstance(item, str) and item in groups:
            expanded_items += [(name, item_mark) for name in groups[item]]
        elif isinstance(item, Mapping) and item.get("patch") in PATCH_GROUPS and groups[item["patch"]]:
            expanded_items += [
                (_place_contact(item, name, position), item_mark) for name, position in groups[item["patch"]].items()
            ]
        else:
            expanded_items.append(_expand_groups(item, item_mark, groups))
    if not expanded_items:  # an empty group is reported later as an unknown patch
        return value, mark
    return [item for item, _ in expanded_items], replace(mark, children=[child for _, child in expanded_items])


def _place_contact(item: Mapping[str, Any], name: str, position: np.ndarray) -> dict[str, Any]:
    """Return the contact of one patch of a group, whose coordinates are those of its reference point.

    The patch is at ``(x, y) + R(yaw) position``; without a yaw the group keeps its orientation in the posture.
    """
    contact, yaw = {**item, "patch": name}, item.get("yaw")
    if isinstance(yaw, int | float):
        c, s = np.cos(yaw), np.sin(yaw)
        position = np.round(np.array([[c, -s], [s, c]]) @ position, DIGITS)
    for axis, offset in zip("xy", position.tolist(), strict=True):
        if isinstance(item.get(axis), int | float):
            contact[axis] = item[axis] + offset
    return contact


Key = tuple[str | int, ...]

SECTIONS = ("parameters", "variants")


def parameter_values(
    document: Document, drawn: Mapping[str, float] | None = None, robot: "Robot | None" = None
) -> tuple[dict[str, float], list[Problem]]:
    """Return the values of parameters and robot sizes by normalized name, and the problems.

    Parameters
    ----------
    drawn : values that replace those of the file; parameters that depend on them follow.
    robot : robot of the document, if already loaded.
    """
    section = document.data.get("parameters") or {}
    if not isinstance(section, dict):
        return size_values(document, robot), [document.problem(("parameters",), "expected a mapping {name: number}")]
    problems: list[Problem] = []
    values = size_values(document, robot)
    pending: dict[str, Expression] = {}
    spellings: dict[str, str] = {}
    for key, value in section.items():
        name = same_name(key)
        try:
            if not is_name(key):
                raise ExpressionError("cannot be the name of a parameter")
            if name in spellings:
                raise ExpressionError(f"is the same name as `{spellings[name]}`; an expression cannot tell them apart")
            spellings[name] = key
            if drawn and name in drawn:
                values[name] = drawn[name]
            elif is_expression(value):
                pending[name] = Expression(value[1:])
            elif isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
                values[name] = value
            else:
                raise ExpressionError(f"expected a number or an expression such as =2*riser, got {value!r}")
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
    """Evaluate the parameters that depend on others, in order of dependency, and add them to ``values``.

    ``spellings`` has the names as they are written in the file.
    """
    while pending:
        evaluable = [name for name, expression in pending.items() if not set(expression.names) & set(pending)]
        if not evaluable:
            for name in pending:
                message = f"depends on itself: {', '.join(pending)}"
                problems.append(document.problem(("parameters", spellings[name]), message))
            return
        for name in evaluable:
            expression = pending.pop(name)
            if not _all_known(expression, document, values):
                continue
            try:
                values[name] = _number(expression.value(values))
            except ExpressionError as reason:
                message = f"={expression.text}: {reason}"
                problems.append(document.problem(("parameters", spellings[name]), message))


def _all_known(expression: Expression, document: Document, values: Mapping[str, float]) -> bool:
    """Return whether all parameters in an expression have values; invalid ones have none and are reported elsewhere."""
    section = document.data.get("parameters")
    missing = {same_name(key) for key in section} - set(values) if isinstance(section, dict) else set()
    return missing.isdisjoint(expression.names)


def resolve(
    document: Document, drawn: Mapping[str, float] | None = None, robot: "Robot | None" = None
) -> tuple[Document, list[Problem]]:
    """Return the document with every expression replaced by its value, and the problems.

    ``drawn`` and ``robot`` are as for ``parameter_values``.
    """
    if not isinstance(document.data, dict):
        return document, []
    values, problems = parameter_values(document, drawn, robot)
    misplaced = _misplaced_parameters(document)
    problems += [
        document.problem((key,), f"unknown key; did you mean `{intended}`?") for key, intended in misplaced.items()
    ]
    content = {key: value for key, value in document.data.items() if key not in (*SECTIONS, *misplaced)}
    used_names: set[str] = set()
    has_expressions = False

    def evaluated(key: Key, value: Any) -> Any:
        nonlocal has_expressions
        if isinstance(value, dict):
            return {name: evaluated((*key, name), item) for name, item in value.items()}
        if isinstance(value, list):
            return [evaluated((*key, k), item) for k, item in enumerate(value)]
        if not is_expression(value):
            return value
        has_expressions = True
        try:
            expression = Expression(value[1:])
            used_names.update(expression.names)
            return _number(expression.value(values)) if _all_known(expression, document, values) else 1.0
        except ExpressionError as reason:
            problems.append(document.problem(key, f"{value}: {reason}"))
            return 1.0  # a placeholder for further checks

    data = evaluated((), content)
    problems += list(_unused(document, used_names))
    if not has_expressions and len(content) == len(document.data):
        return with_groups(document, robot), problems
    return with_groups(document.with_data(data), robot), problems


def is_expression(value: object) -> bool:
    """Return whether a value of the file is an expression."""
    return isinstance(value, str) and value.startswith("=")


def _misplaced_parameters(document: Document) -> dict[str, str]:
    """Return the top-level keys that resemble a parameter (``--set riser=0.1``), each with the correct key path."""
    section = document.data.get("parameters")
    names = [name for name in section if is_name(name)] if isinstance(section, dict) else []
    misplaced = {}
    for key in (key for key in document.data if key not in ScenarioSpec.model_fields):
        similar = closest_name(str(key), [*names, *ScenarioSpec.model_fields])
        if similar in names:
            misplaced[key] = f"parameters.{similar}"
    return misplaced


def _unused(document: Document, used_names: set[str]) -> Iterator[Problem]:
    """Yield a problem for each parameter without effect; otherwise a misspelt ``--set parameters.x`` would pass."""
    section = document.data.get("parameters")
    if not isinstance(section, dict):
        return
    for text in _expressions([document.data.get(name) for name in SECTIONS]):
        try:
            used_names.update(Expression(text[1:]).names)
        except ExpressionError:
            continue  # reported where it is evaluated
    for name in section:
        if is_name(name) and same_name(name) not in used_names:
            yield document.problem(("parameters", name), "no expression uses this parameter")


def _expressions(value: Any) -> Iterator[str]:
    """Yield all expressions in a value, also those in its lists and mappings."""
    if is_expression(value):
        yield value
    elif isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _expressions(item)


def _number(value: float) -> float:
    """Convert whole numbers to integers, because some keys require them and files are easier to read."""
    return int(value) if value.is_integer() and abs(value) < 1e9 else value
