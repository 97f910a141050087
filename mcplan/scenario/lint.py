"""Unit sanity warnings: degrees for radians, millimetres for metres, unusual friction and masses."""

import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from mcplan.document.document import Document
from mcplan.errors import Problem, ScenarioWarning

MAX_ANGLE_RAD = 2 * math.pi
"""Angle (rad) above which a warning is given."""

MAX_LENGTH_M = 20.0
"""Length or coordinate (m) above which a warning is given."""

MAX_FRICTION = 2.0
"""Friction coefficient above which a warning is given: rubber on dry concrete has about 1."""

MAX_MASS_KG, MIN_MASS_KG = 2000.0, 1e-3
"""Masses (kg) outside of which a warning is given."""

Key = tuple[str | int, ...]


def lint(document: Document) -> list[Problem]:
    """Return likely mistakes in a valid scenario file, each with its line."""
    notice = overridden_friction(document)
    return [*([notice] if notice else []), *_unusual_values(document)]


def lint_robot(document: Document) -> list[Problem]:
    """Return likely mistakes in the patches and postures of a robot file."""
    sections = ((key, document.data.get(key)) for key in ("patches", "postures"))
    return [document.problem(key, text) for part, value in sections for key, text in _unusual_numbers((part,), value)]


def _unusual_values(document: Document) -> list[Problem]:
    return [document.problem(key, text) for key, text in _unusual_numbers((), document.data)]


def overridden_friction(document: Document) -> Problem | None:
    """Return a notice if ``environment.friction`` overrides the friction of surfaces or bars."""
    section = document.data.get("environment") if isinstance(document.data, dict) else None
    if not isinstance(section, dict) or section.get("friction") is None:
        return None
    groups = [section.get(group) or [] for group in ("surfaces", "bars")]
    items = [item for group in groups if isinstance(group, list) for item in group if isinstance(item, dict)]
    overridden_items = [f"`{item.get('name')}` {item['friction']}" for item in items if "friction" in item]
    if not overridden_items:
        return None
    listed_items = ", ".join(overridden_items[:4]) + (
        f" and {len(overridden_items) - 4} more" if len(overridden_items) > 4 else ""
    )
    text = f"{section['friction']} replaces the friction of every surface and bar, also that of {listed_items}"
    return document.problem(("environment", "friction"), text)


def warn_unusual_values(document: Document, stacklevel: int = 3) -> None:
    """Warn of likely mistakes in a scenario from Python values or a file."""
    for problem in _unusual_values(document):
        warnings.warn(str(problem), ScenarioWarning, stacklevel=stacklevel)


def _angle(value: float) -> str:
    if abs(value) <= MAX_ANGLE_RAD:
        return ""
    return f"{value:g} rad is more than a whole turn; angles are in radians ({value:g} deg = {math.radians(value):.4g})"


def _length(value: float) -> str:
    if abs(value) <= MAX_LENGTH_M:
        return ""
    return f"{value:g} m is very far; lengths are in metres ({value:g} mm = {value / 1000:g})"


def _friction(value: float) -> str:
    return f"a friction coefficient of {value:g}; rubber on dry concrete has about 1" if value > MAX_FRICTION else ""


def _mass(value: float) -> str:
    if MIN_MASS_KG <= value <= MAX_MASS_KG:
        return ""
    return f"{value:g} kg; masses are in kilograms ({value:g} g = {value / 1000:g})"


QUANTITIES: dict[str, Callable[[float], str]] = {
    **dict.fromkeys(("rpy", "yaw", "angle", "angle_tolerance", "joints"), _angle),
    **dict.fromkeys(("xyz", "size", "ends", "radius", "length", "x", "y", "along", "polygon", "thickness"), _length),
    "friction": _friction,
    "mass": _mass,
}
"""Check of all numbers below a key, also of those in lists and mappings."""


def _unusual_numbers(key: Key, value: Any, check: Callable[[float], str] | None = None) -> Iterator[tuple[Key, str]]:
    if isinstance(value, dict):
        for name, item in value.items():
            if name not in ("q", "wrenches", "tau", "margins", "parameters", "variants", "transition"):
                yield from _unusual_numbers((*key, name), item, QUANTITIES.get(name, check))
    elif isinstance(value, list):
        for k, item in enumerate(value):
            yield from _unusual_numbers((*key, k), item, check)
    elif check is not None and type(value) in (int, float) and (text := check(float(value))):
        yield key, text
