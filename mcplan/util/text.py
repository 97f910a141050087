"""Amounts as a person reads them: lengths in mm, angles in degrees, with digits that say something however small.

One line for an object that holds arrays: its class, and each of its public fields, arrays by their shape.

Names as matplotlib and Graphviz are to write them: what a file calls a thing is text, whatever signs it holds.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np


def format_length(metres: float) -> str:
    """Return a length: ``12.3 mm``, from a metre on ``1.23 m``; never one that reads as nothing."""
    return f"{metres:.3g} m" if abs(metres) >= 1.0 else f"{_digits(1000.0 * metres)} mm"


def format_angle(radians: float) -> str:
    """Return an angle: ``1.15 deg``."""
    return f"{_digits(math.degrees(radians))} deg"


def format_length_or_angle(amount: float) -> str:
    """Return an amount that is the larger of one in m and one in rad."""
    return f"{format_length(amount)} or {format_angle(amount)}"


def _digits(value: float) -> str:
    """Return three digits, without an exponent for small numbers."""
    return f"{value:.3g}" if abs(value) >= 0.1 or value == 0.0 else f"{value:.2g}"


LONGEST = 150
"""Characters of a line; what would go beyond is left out."""


def summary(thing: object, names: Iterable[str] | None = None) -> str:
    """Return the line; a class takes it as its ``__repr__``.

    Parameters
    ----------
    thing : a dataclass, a named tuple, or any object with attributes.
    names : of the fields; by default all.
    """
    if names is None:
        names = getattr(thing, "__dataclass_fields__", None) or getattr(thing, "_fields", None) or vars(thing)
    name, line = type(thing).__name__, ""
    for field in names:
        if field.startswith("_") or (text := _value_text(getattr(thing, field))) is None:
            continue
        more = f"{', ' if line else ''}{field}={text}"
        if len(name) + len(line) + len(more) > LONGEST:
            return f"{name}({line}, ...)"
        line += more
    return f"{name}({line})"


def _value_text(value: Any) -> str | None:
    """Return a value in a few characters, None for what does not fit into them."""
    if isinstance(value, np.ndarray) and value.ndim:
        return f"array{value.shape}" if value.size > 4 else str([float(f"{x:.4g}") for x in value.ravel()])
    if isinstance(value, bool | np.bool_ | int | str | type(None)):
        return repr(value)
    if isinstance(value, float | np.floating):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        return "{" + ", ".join(map(str, value)) + "}"
    text = repr(value)
    return text if len(text) <= 60 and " at 0x" not in text and "\n" not in text else None


def escape_mathtext(text: str) -> str:
    """Return a text for matplotlib: ``$`` begins no formula, and a label that begins with ``_`` is in the legend."""
    text = text.replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


def escape_dot(text: str) -> str:
    r"""Return a text for a quoted string of DOT: ``"`` does not end it, and ``\`` is a sign like any other."""
    return text.replace("\\", r"\\").replace('"', r"\"")
