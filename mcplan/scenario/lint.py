"""Unit sanity warnings: degrees for radians, millimetres for metres, unusual friction and masses."""

import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from mcplan.document.document import Document
from mcplan.errors import Problem, ScenarioWarning

FULL_TURN = 2 * math.pi
"""rad: larger angles are unusual."""

MAX_LENGTH = 20.0
"""m: larger lengths and coordinates are unusual."""

MAX_FRICTION = 2.0
"""Larger friction coefficients are unusual: rubber on dry concrete has about 1."""

MAX_MASS, MIN_MASS = 2000.0, 1e-3
"""kg: other masses are unusual."""

Key = tuple[str | int, ...]


def lint(document: Document) -> list[Problem]:
    """Return likely mistakes, each with its line; the file is valid nevertheless."""
    replaced = overridden_friction(document)
    return [*([replaced] if replaced else []), *_unusual_values(document)]


def lint_robot(document: Document) -> list[Problem]:
    """Return likely mistakes in the patches and postures of a robot file."""
    parts = ((key, document.data.get(key)) for key in ("patches", "postures"))
    return [document.problem(key, text) for part, value in parts for key, text in _walk((part,), value)]


def _unusual_values(document: Document) -> list[Problem]:
    return [document.problem(key, text) for key, text in _walk((), document.data)]


def overridden_friction(document: Document) -> Problem | None:
    """Return a notice if ``environment.friction`` overrides the friction of surfaces or bars."""
    section = document.data.get("environment") if isinstance(document.data, dict) else None
    if not isinstance(section, dict) or section.get("friction") is None:
        return None
    groups = [section.get(group) or [] for group in ("surfaces", "bars")]
    items = [item for group in groups if isinstance(group, list) for item in group if isinstance(item, dict)]
    replaced = [f"`{item.get('name')}` {item['friction']}" for item in items if "friction" in item]
    if not replaced:
        return None
    shown = ", ".join(replaced[:4]) + (f" and {len(replaced) - 4} more" if len(replaced) > 4 else "")
    text = f"{section['friction']} replaces the friction of every surface and bar, also that of {shown}"
    return document.problem(("environment", "friction"), text)


def warn_unusual_values(document: Document, stacklevel: int = 3) -> None:
    """Warn of likely mistakes in a scenario from Python values or a file."""
    for problem in _unusual_values(document):
        warnings.warn(str(problem), ScenarioWarning, stacklevel=stacklevel)


def _angle(value: float) -> str:
    if abs(value) <= FULL_TURN:
        return ""
    return f"{value:g} rad is more than a whole turn; angles are in radians ({value:g} deg = {math.radians(value):.4g})"


def _length(value: float) -> str:
    if abs(value) <= MAX_LENGTH:
        return ""
    return f"{value:g} m is very far; lengths are in metres ({value:g} mm = {value / 1000:g})"


def _friction(value: float) -> str:
    return f"a friction coefficient of {value:g}; rubber on dry concrete has about 1" if value > MAX_FRICTION else ""


def _mass(value: float) -> str:
    if MIN_MASS <= value <= MAX_MASS:
        return ""
    return f"{value:g} kg; masses are in kilograms ({value:g} g = {value / 1000:g})"


QUANTITIES: dict[str, Callable[[float], str]] = {
    **dict.fromkeys(("rpy", "yaw", "angle", "angle_tolerance", "joints"), _angle),
    **dict.fromkeys(("xyz", "size", "ends", "radius", "length", "x", "y", "along", "polygon", "thickness"), _length),
    "friction": _friction,
    "mass": _mass,
}
"""Check by key, for the numbers under it, also in lists and tables."""


def _walk(key: Key, value: Any, check: Callable[[float], str] | None = None) -> Iterator[tuple[Key, str]]:
    if isinstance(value, dict):
        for name, item in value.items():
            if name not in ("q", "wrenches", "tau", "margins", "parameters", "variants", "transition"):
                yield from _walk((*key, name), item, QUANTITIES.get(name, check))
    elif isinstance(value, list):
        for k, item in enumerate(value):
            yield from _walk((*key, k), item, check)
    elif check is not None and type(value) in (int, float) and (text := check(float(value))):
        yield key, text
