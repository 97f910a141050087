"""Numbers that stand for many cases, with how sure they are."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm, t

from mcplan.sweep.columns import Kind, kind_of
from mcplan.sweep.results import shown_value

CONFIDENCE = 0.95
TEXTS = 3
"""So many different texts stand in a cell."""


@dataclass(frozen=True)
class Interval:
    """A value and the interval that holds the true one with the confidence above."""

    value: float
    low: float
    high: float


def wilson(successes: int, count: int) -> Interval:
    """Return the rate of successes with Wilson's interval: sound for few cases, and for rates of 0 and 1.

        (p + z²/2n ± z sqrt(p (1 - p)/n + z²/4n²)) / (1 + z²/n)

    Raises
    ------
    ValueError
        Without a case, or with more successes than cases.
    """
    if not 0 <= successes <= count or count == 0:
        raise ValueError(f"{successes} successes of {count}")
    z, p = float(norm.ppf(0.5 + CONFIDENCE / 2)), successes / count
    middle = (p + z**2 / (2 * count)) / (1 + z**2 / count)
    reach = z / (1 + z**2 / count) * np.sqrt(p * (1 - p) / count + z**2 / (4 * count**2))
    low = 0.0 if successes == 0 else float(middle - reach)  # exactly, where rounding leaves 1e-17
    high = 1.0 if successes == count else float(middle + reach)
    return Interval(p, low, high)


def mean_interval(values: Sequence[float]) -> Interval:
    """Return the mean with Student's interval; the mean alone where there is one value."""
    array = np.asarray(values, dtype=float)
    mean = float(array.mean())
    if len(array) < 2:
        return Interval(mean, mean, mean)
    reach = float(t.ppf(0.5 + CONFIDENCE / 2, len(array) - 1) * array.std(ddof=1) / np.sqrt(len(array)))
    return Interval(mean, mean - reach, mean + reach)


def interval_of(kind: Kind, values: Sequence[Any]) -> Interval:
    """Return the rate of a flag, else the mean."""
    return wilson(sum(map(bool, values)), len(values)) if kind == "flag" else mean_interval(values)


def aggregate(name: str, values: Sequence[Any]) -> str:
    """Return what a cell of a table says of many cases.

    A flag: how often it is true, with Wilson's interval; a margin or a ratio: the worst; a count or a clock time: the
    median; a text: the most frequent ones and how often each stands there.
    """
    known = [value for value in values if value is not None]
    if not known:
        return "–"
    kind = kind_of(name, known)
    if len(known) == 1 and len(values) == 1:
        return shown_value(known[0])
    if kind == "flag":
        rate = wilson(sum(known), len(known))
        return f"{sum(known)}/{len(known)} ({100 * rate.low:.0f}–{100 * rate.high:.0f} %)"
    if kind == "text":
        said = Counter(str(value) for value in known if value != "").most_common()
        shown = [f"{count} × {text}" for text, count in said[:TEXTS]]
        return "; ".join([*shown, f"{len(said) - TEXTS} others"] if len(said) > TEXTS else shown) or "none"
    number = {"margin": min, "ratio": max}.get(kind, np.median)(known)
    return shown_value(float(number))
