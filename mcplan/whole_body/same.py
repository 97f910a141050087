"""Whether what is given is what was given before: work that depends on it alone is kept from tick to tick."""

from collections.abc import Sequence
from operator import is_


def same(given: Sequence[object], kept: Sequence[object]) -> bool:
    """Say whether two sequences hold the same objects; whether equal ones would do is theirs to know."""
    return len(given) == len(kept) and all(map(is_, given, kept))
