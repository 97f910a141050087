"""Thresholds: ``success: ">= 0.9"``, ``worst_slip: "max <= 0.01"``; what a continuous integration asks."""

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mcplan.errors import InputError
from mcplan.sweep.condition import Condition
from mcplan.sweep.schema import ExpectSpec, ExperimentSpec

_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "==": operator.eq,
}
_OF: dict[str, Callable[[np.ndarray], Any]] = {"mean": np.mean, "median": np.median, "min": np.min, "max": np.max}
_THRESHOLD = re.compile(rf"\s*({'|'.join(_OF)})?\s*(>=|<=|==|>|<)\s*(\S+)\s*")


@dataclass(frozen=True)
class Threshold:
    """``statistic OP bound``, the statistic over all cases; a flag counts 1 where it is true."""

    statistic: str
    relation: str
    bound: float

    def __str__(self) -> str:
        return f"{self.statistic} {self.relation} {self.bound:g}"

    def value(self, values: Sequence[Any]) -> float:
        """Return the statistic of numbers and flags."""
        return float(_OF[self.statistic](np.array(values, dtype=float)))

    def holds(self, value: float) -> bool:
        """Whether a value keeps it; what is not a number does not."""
        return _COMPARE[self.relation](value, self.bound)


@dataclass(frozen=True)
class Verdict:
    """What became of one threshold."""

    text: str
    passed: bool


def parse_threshold(text: str) -> Threshold:
    """Return the threshold of a text such as ``>= 0.9`` (of the mean) or ``max <= 0.01``."""
    match = _THRESHOLD.fullmatch(text)
    try:
        if match is None:
            raise ValueError
        return Threshold(match[1] or "mean", match[2], float(match[3]))
    except ValueError:
        raise InputError(f"expected a threshold such as '>= 0.9' or 'max <= 0.01', got {text!r}") from None


def expectations(spec: ExperimentSpec) -> Iterator[tuple[tuple[str | int, ...], ExpectSpec]]:
    """Yield each group of thresholds and where it stands in the file."""
    if isinstance(spec.expect, Mapping):
        if spec.expect:
            yield ("expect",), ExpectSpec(columns=spec.expect)
    else:
        for k, expect in enumerate(spec.expect):
            yield ("expect", k), expect


def judge(spec: ExperimentSpec, rows: Sequence[Mapping[str, Any]], known: Sequence[str]) -> list[Verdict]:
    """Return the verdict on each threshold, of rows as `collect_results` returns them.

    A case without a value, as one that was not planned has no margins, is left out, and is counted in the text. Where
    no case has a value the threshold is broken.
    """
    verdicts = []
    for _, expect in expectations(spec):
        condition = None if expect.where is None else Condition(expect.where, known)
        chosen = [row for row in rows if condition is None or condition.holds(row)]
        where = f" where {expect.where}" if expect.where else ""
        for name, text in expect.columns.items():
            threshold = parse_threshold(text)
            values = [row[name] for row in chosen if isinstance(row.get(name), (bool, int, float))]
            of = f"of {len(values)} of {len(chosen)} cases{where}"
            if not values:
                verdicts.append(Verdict(f"{name}: {threshold}: no value {of}", False))
                continue
            value = threshold.value(values)
            passed = threshold.holds(value)
            verdicts.append(Verdict(f"{name}: {threshold.statistic} {value:.4g} {of}, expected {threshold}", passed))
    return verdicts
