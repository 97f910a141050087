"""Conditions on cases (``scenario == "stairs" and environment.friction < 0.5``) and thresholds on results.

A condition consists of numbers, texts, lists, true, false, null, column names, ``== != < <= > >= in not in``, ``and or
not``, and parentheses. It is parsed with Python's grammar; any other node is refused, and no code is executed.

Thresholds such as ``success: ">= 0.9"`` or ``worst_slip: "max <= 0.01"`` serve continuous integration.
"""

import ast
import operator
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mcplan.errors import InputError
from mcplan.sweep.schema import ExpectSpec, ExperimentSpec
from mcplan.util.spelling import did_you_mean_or_all

MAX_LENGTH = 1000
"""Maximum length of a condition, characters."""

_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
_CONSTANTS = {"true": True, "false": False, "null": None}


class Condition:
    """A parsed condition.

    Parameters
    ----------
    text : the condition.
    known : names that the condition may contain.

    Raises
    ------
    InputError
        The text is not a condition as described in this module, or contains an unknown name.
    """

    def __init__(self, text: str, known: Iterable[str]):
        self.text = text.strip()
        if len(self.text) > MAX_LENGTH:
            raise InputError(f"the condition is longer than {MAX_LENGTH} characters")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self._tree = ast.parse(self.text, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise InputError(f'{self.text!r} is not a condition such as: scenario == "stairs" and seed < 3') from None
        names = set(known)
        for name in _names(self._tree):
            if name not in names:
                raise InputError(f"{self.text!r}: unknown name `{name}`{did_you_mean_or_all(name, names)}")

    def holds(self, row: Mapping[str, Any]) -> bool:
        """Return whether the condition holds for a case; comparisons with a missing value are false."""
        return bool(_value(self._tree, row))


def _names(node: ast.expr) -> Iterator[str]:
    """Yield the column names of a condition; refuse nodes that no condition has."""
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float, str)):
        return
    if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
        name = ast.unparse(node)
        if name not in _CONSTANTS:
            yield name
    elif isinstance(node, ast.BoolOp):
        for value in node.values:
            yield from _names(value)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub)):
        yield from _names(node.operand)
    elif isinstance(node, (ast.List, ast.Tuple)):
        for item in node.elts:
            yield from _names(item)
    elif isinstance(node, ast.Compare) and all(type(op) in _COMPARISONS for op in node.ops):
        for part in (node.left, *node.comparators):
            yield from _names(part)
    else:
        raise InputError(
            f"{ast.unparse(node)!r}: a condition holds names, numbers, texts and lists, == != < <= > >= in, and or not"
        )


def _value(node: ast.expr, row: Mapping[str, Any]) -> Any:
    """Return the value of a node of the condition for a case."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
        name = ast.unparse(node)
        return _CONSTANTS[name] if name in _CONSTANTS else row.get(name)
    if isinstance(node, ast.BoolOp):
        values = (_value(value, row) for value in node.values)
        return all(values) if isinstance(node.op, ast.And) else any(values)
    if isinstance(node, ast.UnaryOp):
        value = _value(node.operand, row)
        if isinstance(node.op, ast.Not):
            return not value
        return -value if isinstance(value, (int, float)) else None
    if isinstance(node, (ast.List, ast.Tuple)):
        return [_value(item, row) for item in node.elts]
    assert isinstance(node, ast.Compare)
    left = _value(node.left, row)
    for op, comparator in zip(node.ops, node.comparators, strict=True):
        right = _value(comparator, row)
        try:
            if not _COMPARISONS[type(op)](left, right):
                return False
        except TypeError:  # a number cannot be ordered with a text or a missing value
            return False
        left = right
    return True


_RELATIONS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "==": operator.eq,
}
_STATISTICS: dict[str, Callable[[np.ndarray], Any]] = {
    "mean": np.mean,
    "median": np.median,
    "min": np.min,
    "max": np.max,
}
_THRESHOLD = re.compile(rf"\s*({'|'.join(_STATISTICS)})?\s*(>=|<=|==|>|<)\s*(\S+)\s*")


@dataclass(frozen=True)
class StatisticThreshold:
    """``statistic OP bound``, the statistic over all cases; a flag counts as 1 if true, otherwise 0."""

    statistic: str
    relation: str
    bound: float

    def __str__(self) -> str:
        return f"{self.statistic} {self.relation} {self.bound:g}"

    def value(self, values: Sequence[Any]) -> float:
        """Return the statistic of numbers and flags."""
        return float(_STATISTICS[self.statistic](np.array(values, dtype=float)))

    def holds(self, value: float) -> bool:
        """Return whether a value satisfies the threshold; NaN does not."""
        return _RELATIONS[self.relation](value, self.bound)


@dataclass(frozen=True)
class Verdict:
    """Result of one threshold."""

    text: str
    passed: bool


def parse_threshold(text: str) -> StatisticThreshold:
    """Return the threshold of a text such as ``>= 0.9`` (of the mean) or ``max <= 0.01``."""
    match = _THRESHOLD.fullmatch(text)
    try:
        if match is None:
            raise ValueError
        return StatisticThreshold(match[1] or "mean", match[2], float(match[3]))
    except ValueError:
        raise InputError(f"expected a threshold such as '>= 0.9' or 'max <= 0.01', got {text!r}") from None


def expectations(spec: ExperimentSpec) -> Iterator[tuple[tuple[str | int, ...], ExpectSpec]]:
    """Yield the key in the file and the thresholds of each group."""
    if isinstance(spec.expect, Mapping):
        if spec.expect:
            yield ("expect",), ExpectSpec(columns=spec.expect)
    else:
        for k, expect in enumerate(spec.expect):
            yield ("expect", k), expect


def judge(spec: ExperimentSpec, rows: Sequence[Mapping[str, Any]], known: Sequence[str]) -> list[Verdict]:
    """Evaluate each threshold on rows as `collect_results` returns them.

    Cases without a value are left out: a case without a plan has no margins. The text gives the number of cases with
    a value. If no case has one, the threshold fails.
    """
    verdicts = []
    for _, expect in expectations(spec):
        condition = None if expect.where is None else Condition(expect.where, known)
        chosen = [row for row in rows if condition is None or condition.holds(row)]
        where = f" where {expect.where}" if expect.where else ""
        for name, text in expect.columns.items():
            threshold = parse_threshold(text)
            values = [row[name] for row in chosen if isinstance(row.get(name), (bool, int, float))]
            cases = f"of {len(values)} of {len(chosen)} cases{where}"
            if not values:
                verdicts.append(Verdict(f"{name}: {threshold}: no value {cases}", False))
                continue
            value = threshold.value(values)
            passed = threshold.holds(value)
            verdicts.append(Verdict(f"{name}: {threshold.statistic} {value:.4g} {cases}, expected {threshold}", passed))
    return verdicts
