"""Parameters of a scenario file, and the numbers that follow from them.

    parameters: {riser: 0.15, tread: 0.30, slope: =riser/tread}
    ...
    pose: {xyz: [=1.5*tread, 0, =2*riser]}

Any text that begins with ``=`` is an expression (see `mcplan.scenario.expression`); it may use every parameter, and the
sizes of the robot (see `mcplan.scenario.robot_sizes`). The result is the same document with plain numbers, without the
sections
``parameters`` and ``variants``, and with the robot's feet and hands by their names.
"""

import difflib
import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from mcplan.document.document import Document
from mcplan.errors import Problem
from mcplan.scenario.expression import Expression, ExpressionError, is_name, same_name
from mcplan.scenario.robot_sizes import size_values, with_groups
from mcplan.scenario.schema import ScenarioSpec

if TYPE_CHECKING:
    from mcplan.robot.robot import Robot

Key = tuple[str | int, ...]

SECTIONS = ("parameters", "variants")


def parameter_values(
    document: Document, drawn: Mapping[str, float] | None = None, robot: "Robot | None" = None
) -> tuple[dict[str, float], list[Problem]]:
    """Return the value of each parameter, by its name as expressions have it, and what is wrong with them.

    Parameters
    ----------
    drawn : values, by the same names, that replace those of the file; parameters that depend on them follow.
    robot : of the document, if it is loaded already.
    """
    section = document.data.get("parameters") or {}
    if not isinstance(section, dict):
        return size_values(document, robot), [document.problem(("parameters",), "expected a mapping {name: number}")]
    problems: list[Problem] = []
    values = size_values(document, robot)
    waiting: dict[str, Expression] = {}
    written: dict[str, str] = {}
    for key, given in section.items():
        name = same_name(key)
        try:
            if not is_name(key):
                raise ExpressionError("cannot be the name of a parameter")
            if name in written:
                raise ExpressionError(f"is the same name as `{written[name]}`; an expression cannot tell them apart")
            written[name] = key
            if drawn and name in drawn:
                values[name] = drawn[name]
            elif is_expression(given):
                waiting[name] = Expression(given[1:])
            elif isinstance(given, (int, float)) and not isinstance(given, bool) and math.isfinite(given):
                values[name] = given
            else:
                raise ExpressionError(f"expected a number or an expression such as =2*riser, got {given!r}")
        except ExpressionError as reason:
            problems.append(document.problem(("parameters", key), str(reason)))
    _settle(document, waiting, values, problems, written)
    return values, problems


def _settle(
    document: Document,
    waiting: dict[str, Expression],
    values: dict[str, float],
    problems: list[Problem],
    written: Mapping[str, str],
) -> None:
    """Evaluate the parameters that depend on others, in whatever order they can be; ``written``: names in the file."""
    while waiting:
        ready = [name for name, expression in waiting.items() if not set(expression.names) & set(waiting)]
        if not ready:
            for name in waiting:
                said = f"depends on itself: {', '.join(waiting)}"
                problems.append(document.problem(("parameters", written[name]), said))
            return
        for name in ready:
            expression = waiting.pop(name)
            if not _all_known(expression, document, values):
                continue
            try:
                values[name] = _number(expression.value(values))
            except ExpressionError as reason:
                said = f"={expression.text}: {reason}"
                problems.append(document.problem(("parameters", written[name]), said))


def _all_known(expression: Expression, document: Document, values: Mapping[str, float]) -> bool:
    """Whether no parameter is missing because of a mistake that is reported at the parameter itself."""
    section = document.data.get("parameters")
    missing = {same_name(key) for key in section} - set(values) if isinstance(section, dict) else set()
    return missing.isdisjoint(expression.names)


def resolve(
    document: Document, drawn: Mapping[str, float] | None = None, robot: "Robot | None" = None
) -> tuple[Document, list[Problem]]:
    """Return the document with every expression replaced by its value, and what is wrong with them.

    ``drawn`` and ``robot`` are as for ``parameter_values``.
    """
    if not isinstance(document.data, dict):
        return document, []
    values, problems = parameter_values(document, drawn, robot)
    strays = _strays(document)
    problems += [document.problem((key,), f"unknown key; did you mean `{meant}`?") for key, meant in strays.items()]
    rest = {key: value for key, value in document.data.items() if key not in (*SECTIONS, *strays)}
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
            return 1.0  # so that checking can go on; nothing is built from it

    data = replaced((), rest)
    problems += list(_unused(document, used))
    if not found and len(rest) == len(document.data):
        return with_groups(document, robot), problems
    return with_groups(document.with_data(data), robot), problems


def is_expression(value: object) -> bool:
    """Whether a value of the file is to be evaluated."""
    return isinstance(value, str) and value.startswith("=")


def _strays(document: Document) -> dict[str, str]:
    """Return the keys at the top that stand for a parameter, as after ``--set riser=0.1``, and where it is."""
    section = document.data.get("parameters")
    names = [name for name in section if is_name(name)] if isinstance(section, dict) else []
    strays = {}
    for key in (key for key in document.data if key not in ScenarioSpec.model_fields):
        near = difflib.get_close_matches(str(key), [*names, *ScenarioSpec.model_fields], n=1)
        if near and near[0] in names:
            strays[key] = f"parameters.{near[0]}"
    return strays


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
    """Yield the expressions in a value and in what it contains."""
    if is_expression(value):
        yield value
    elif isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _expressions(item)


def _number(value: float) -> float:
    """Return whole numbers as such: they may be asked for, and read better in a file."""
    return int(value) if value.is_integer() and abs(value) < 1e9 else value
