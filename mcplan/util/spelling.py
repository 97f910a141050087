"""Suggestions for misspelt names in messages (did-you-mean), by difflib."""

import difflib
from collections.abc import Iterable

MAX_COMPARED_LENGTH = 80
"""Number of characters of a name that are compared, because the time grows with the square of the length."""


def closest_name(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the known name that is most similar to this one, or None below a similarity of ``cutoff``."""
    return next(iter(difflib.get_close_matches(name[:MAX_COMPARED_LENGTH], list(known), n=1, cutoff=cutoff)), None)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``; did you mean `x`?`` for the nearest known name, otherwise an empty text."""
    near = closest_name(name, known)
    return f"; did you mean `{near}`?" if near else ""


def did_you_mean_or_all(name: str, known: Iterable[str]) -> str:
    """Return ``; did you mean `x`?`` for the nearest known name, or the list of all."""
    names = list(known)
    return did_you_mean(name, names) or f"; there are: {', '.join(names) or 'none'}"
