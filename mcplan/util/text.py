"""Text formatting: lengths, angles, short representations, escaping for matplotlib and DOT.

`summary` describes an object in one line: its class and its public fields, arrays by their shape. Names from files are
escaped, because matplotlib and Graphviz interpret some characters.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np


def format_length(metres: float) -> str:
    """Format a length: ``12.3 mm``, from 1 m ``1.23 m``; small values are never shown as zero."""
    return f"{metres:.3g} m" if abs(metres) >= 1.0 else f"{_digits(1000.0 * metres)} mm"


def format_angle(radians: float) -> str:
    """Format an angle: ``1.15 deg``."""
    return f"{_digits(math.degrees(radians))} deg"


def format_length_or_angle(amount: float) -> str:
    """Format a bound on both a length in m and an angle in rad."""
    return f"{format_length(amount)} or {format_angle(amount)}"


def _digits(value: float) -> str:
    """Format with three digits, without an exponent for small numbers."""
    return f"{value:.3g}" if abs(value) >= 0.1 or value == 0.0 else f"{value:.2g}"


MAX_LINE_LENGTH = 150
"""Maximum length of a line, characters; the remaining fields are omitted."""


def summary(item: object, names: Iterable[str] | None = None) -> str:
    """Describe an object in one line; used as ``__repr__`` of classes.

    Parameters
    ----------
    item : a dataclass, a named tuple, or any object with attributes.
    names : names of the fields; by default all.
    """
    if names is None:
        names = getattr(item, "__dataclass_fields__", None) or getattr(item, "_fields", None) or vars(item)
    name, line = type(item).__name__, ""
    for field in names:
        if field.startswith("_") or (text := _value_text(getattr(item, field))) is None:
            continue
        addition = f"{', ' if line else ''}{field}={text}"
        if len(name) + len(line) + len(addition) > MAX_LINE_LENGTH:
            return f"{name}({line}, ...)"
        line += addition
    return f"{name}({line})"


def _value_text(value: Any) -> str | None:
    """Return a short text of a value, or None if it is too long."""
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
    """Escape a text for matplotlib, where ``$`` would start a formula and a leading ``_`` would hide a label."""
    text = text.replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


def escape_dot(text: str) -> str:
    r"""Escape ``"`` and ``\`` in a text for a quoted string of DOT."""
    return text.replace("\\", r"\\").replace('"', r"\"")
