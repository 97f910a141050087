"""Parameters of a scenario file, and the numbers that follow from them.

    parameters: {riser: 0.15, tread: 0.30, slope: =riser/tread}
    ...
    pose: {xyz: [=1.5*tread, 0, =2*riser]}

Any text that begins with ``=`` is an expression (see `mcplan.scene.expression`); it may use every parameter, and the
sizes of the robot (see `mcplan.scene.sizes`). The result is the same document with plain numbers, without the sections
``parameters`` and ``variants``, and with the robot's feet and hands by their names.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from mcplan.document import Document
from mcplan.errors import Problem
from mcplan.scene.expression import RESERVED, Expression, ExpressionError
from mcplan.scene.sizes import size_values, with_groups

Key = tuple[str | int, ...]

SECTIONS = ("parameters", "variants")


def parameter_values(
    document: Document, drawn: Mapping[str, float] | None = None
) -> tuple[dict[str, float], list[Problem]]:
    """Return the value of each parameter and what is wrong with them.

    Parameters
    ----------
    drawn : values that replace those of the file; parameters that depend on them follow.
    """
    section = document.data.get("parameters") or {}
    if not isinstance(section, dict):
        return size_values(document), [document.problem(("parameters",), "expected a mapping {name: number}")]
    problems: list[Problem] = []
    values = size_values(document)
    waiting: dict[str, Expression] = {}
    for name, given in section.items():
        try:
            if not name.isidentifier() or name in RESERVED:
                raise ExpressionError("cannot be the name of a parameter")
            if drawn and name in drawn:
                values[name] = drawn[name]
            elif is_expression(given):
                waiting[name] = Expression(given[1:])
            elif isinstance(given, (int, float)) and not isinstance(given, bool) and math.isfinite(given):
                values[name] = given
            else:
                raise ExpressionError(f"expected a number or an expression such as =2*riser, got {given!r}")
        except ExpressionError as reason:
            problems.append(document.problem(("parameters", name), str(reason)))
    _settle(document, waiting, values, problems)
    return values, problems


def _settle(
    document: Document, waiting: dict[str, Expression], values: dict[str, float], problems: list[Problem]
) -> None:
    """Evaluate the parameters that depend on others, in whatever order they can be."""
    while waiting:
        ready = [name for name, expression in waiting.items() if not set(expression.names) & set(waiting)]
        if not ready:
            for name in waiting:
                problems.append(document.problem(("parameters", name), f"depends on itself: {', '.join(waiting)}"))
            return
        for name in ready:
            expression = waiting.pop(name)
            if not _all_known(expression, document, values):
                continue
            try:
                values[name] = _number(expression.value(values))
            except ExpressionError as reason:
                problems.append(document.problem(("parameters", name), f"={expression.text}: {reason}"))


def _all_known(expression: Expression, document: Document, values: Mapping[str, float]) -> bool:
    """Whether no parameter is missing because of a mistake that is reported at the parameter itself."""
    section = document.data.get("parameters")
    return not isinstance(section, dict) or not any(n in section and n not in values for n in expression.names)


def resolve(document: Document, drawn: Mapping[str, float] | None = None) -> tuple[Document, list[Problem]]:
    """Return the document with every expression replaced by its value, and what is wrong with them."""
    if not isinstance(document.data, dict):
        return document, []
    values, problems = parameter_values(document, drawn)
    rest = {key: value for key, value in document.data.items() if key not in SECTIONS}
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
        return with_groups(document), problems
    return with_groups(document.with_data(data)), problems


def is_expression(value: object) -> bool:
    """Whether a value of the file is to be evaluated."""
    return isinstance(value, str) and value.startswith("=")


def _unused(document: Document, used: set[str]) -> Iterator[Problem]:
    """Report parameters without effect: a misspelt ``--set parameters.x`` would otherwise pass unnoticed."""
    section = document.data.get("parameters")
    if not isinstance(section, dict):
        return
    for given in section.values():
        if is_expression(given):
            try:
                used.update(Expression(given[1:]).names)
            except ExpressionError:
                continue  # reported where it is evaluated
    for name in section:
        if name.isidentifier() and name not in used and name not in RESERVED:
            yield document.problem(("parameters", name), "no expression uses this parameter")


def _number(value: float) -> float:
    """Return whole numbers as such: they may be asked for, and read better in a file."""
    return int(value) if value.is_integer() and abs(value) < 1e9 else value
