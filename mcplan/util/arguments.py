"""Checks of arguments of public functions, with messages that name the expected and the given value."""

import operator
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from mcplan.errors import InputError
from mcplan.util.spelling import did_you_mean_or_all

Kind = TypeVar("Kind")

HINTS = {
    "Robot": "mcplan.load_robot(...) gives one",
    "Environment": "mcplan.Environment([floor, table, ...]) is one",
    "Contact": 'mcplan.contact(robot, "left_sole", floor, x=0, y=0.1) gives one',
    "Plan": "mcplan.plan(...) or mcplan.load_plan(...) gives one",
    "Scenario": "mcplan.load_scenario(...) gives one",
}
"""How to obtain an object of a class, for error messages."""


def check_instance(where: str, name: str, value: object, kind: type[Kind]) -> Kind:
    """Check that ``value``, the argument ``name`` of the function ``where``, is of the type ``kind``; return it.

    Raises
    ------
    InputError
        It is of another type; the message has function, argument, expected type and value.
    """
    if isinstance(value, kind):
        return value
    hint = f"; {HINTS[kind.__name__]}" if kind.__name__ in HINTS else ""
    message = f"{where}: {name}: expected {_article(kind)}, not {describe(value)}{hint}"
    raise InputError(message, code="wrong_type", name=name, value=value)


def _article(kind: type) -> str:
    """Return the name of a type with its article."""
    name = "text" if kind is str else kind.__name__
    return f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"


def check_each(where: str, name: str, values: Any, kind: type[Kind]) -> list[Kind]:
    """Check that all values of a list are of the type ``kind``; for a single value suggest a list."""
    if isinstance(values, (kind, str | bytes)) or not isinstance(values, Iterable):
        hint = "; put it into a list: [...]" if isinstance(values, kind) else ""
        message = f"{where}: {name}: expected a list of {kind.__name__}, not {describe(values)}{hint}"
        raise InputError(message, code="wrong_type", name=name, value=values)
    return [check_instance(where, f"{name}[{k}]", value, kind) for k, value in enumerate(values)]


def check_vector(where: str, name: str, value: Any, *sizes: int) -> np.ndarray:
    """Convert ``value`` to finite floats (size,); the size must be one of ``sizes``, if given."""
    try:
        array = np.array(value, float)
    except (TypeError, ValueError):
        array = np.full(0, np.nan)
    has_size = array.ndim == 1 and (len(array) in sizes or not sizes)
    if not has_size or not np.isfinite(array).all():
        counts = " or ".join(map(str, sizes)) + " finite numbers" if sizes else "a list of finite numbers"
        message = f"{where}: {name}: expected {counts}, not {describe(value)}"
        raise InputError(message, code="wrong_shape", name=name, value=value)
    return array


def check_integer(where: str, name: str, value: Any, error: type[InputError] = InputError) -> int:
    """Convert ``value`` to a non-negative integer."""
    try:
        number = -1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = -1
    if number < 0:
        message = f"{where}: {name}: expected a whole number from 0 on, not {describe(value)}"
        raise error(message, code="out_of_range", name=name, value=value)
    return number


def unknown_message(what: str, name: str, known: Iterable[str]) -> str:
    """Return the message for an unknown name, with the closest known name, or all of them."""
    return f"unknown {what} `{name}`{did_you_mean_or_all(name, known)}"


def describe(value: object) -> str:
    """Format a value for a message: short; arrays by their shape."""
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}" if value.size > 4 else f"the array {value.tolist()}"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    text = repr(value)
    text = text if len(text) <= 80 else text[:77] + "..."
    is_plain = value is None or isinstance(value, str | bytes | int | float | complex | list | tuple | dict)
    return text if is_plain or type(value).__name__ in text else f"{type(value).__name__} {text}"


def file_path(where: str, value: Any) -> Path:
    """Return the argument ``value`` of the function ``where`` as a path."""
    if not isinstance(value, str | os.PathLike) or not os.fspath(value):
        raise InputError(f"{where}: expected the path of a file, not {describe(value)}", code="wrong_type", value=value)
    return Path(value)


def file_name(name: str) -> str:
    """Return a safe file name for the name of a scenario or robot."""
    return re.sub(r"[^\w .+-]+", "_", name).strip(". ") or "unnamed"
