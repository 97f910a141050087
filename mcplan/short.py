"""One line for an object that holds arrays: its class, and each of its public fields, arrays by their shape."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

LONGEST = 150
"""Characters of a line; what would go beyond is left out."""


def short(thing: object, names: Iterable[str] | None = None) -> str:
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
        if field.startswith("_") or (said := _said(getattr(thing, field))) is None:
            continue
        more = f"{', ' if line else ''}{field}={said}"
        if len(name) + len(line) + len(more) > LONGEST:
            return f"{name}({line}, ...)"
        line += more
    return f"{name}({line})"


def _said(value: Any) -> str | None:
    """Return a value in a few characters, None for what does not fit into them."""
    if isinstance(value, np.ndarray) and value.ndim:
        return f"array{value.shape}" if value.size > 4 else str([float(f"{x:.4g}") for x in value.ravel()])
    if isinstance(value, bool | np.bool_ | int | str | type(None)):
        return repr(value)
    if isinstance(value, float | np.floating):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        return "{" + ", ".join(map(str, value)) + "}"
    said = repr(value)
    return said if len(said) <= 60 and " at 0x" not in said and "\n" not in said else None
