"""Termination criteria of phases: thresholds on measured quantities, combined with ``AllOf`` and ``AnyOf``.

A criterion returns its label when it is met, else an empty text. The label of the criterion that ended a phase is
recorded with the phase.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import inf
from typing import Protocol

from mcplan.settings.states import Until

INTERRUPTION_FACTOR = 0.1
"""An interruption subtracts this fraction of its length from the total time of `HeldInTotal`."""

ROUNDING_S = 5e-10
"""Tolerance of times (s). It exceeds the rounding error of k * dt, which would make a phase last one tick longer."""


@dataclass(slots=True)
class Measurement:
    """Measured quantities of criteria.

    elapsed : time since the phase began (s).
    error : by name of a task (``com``, ``trunk``, a patch): distance to the reference (m or rad).
    speed : by name of a task: measured speed (m/s or rad/s); ``joints`` is the fastest joint.
    force : by name of a patch in contact: normal force (N); for a grasp the magnitude of the force.
    height : by name of a patch that moves to a contact: distance along its normal (m), infinite if the patch is not
        over the contact.
    """

    elapsed: float
    error: Mapping[str, float] = field(default_factory=dict)
    speed: Mapping[str, float] = field(default_factory=dict)
    force: Mapping[str, float] = field(default_factory=dict)
    height: Mapping[str, float] = field(default_factory=dict)


class LazyValues(Mapping[str, float]):
    """Numbers by name that are computed on access.

    Parameters
    ----------
    names : returns the names that exist at present.
    compute : returns the number of a name.
    """

    def __init__(self, names: Callable[[], Sequence[str]], compute: Callable[[str], float]):
        self._names, self._compute = names, compute

    def __getitem__(self, name: str) -> float:
        """Compute the number."""
        if name not in self._names():
            raise KeyError(name)
        return self._compute(name)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(self._names())

    def __len__(self) -> int:
        """Return the number of names."""
        return len(self._names())


class Criterion(Protocol):
    """A condition that ends a phase."""

    def evaluate(self, measurement: Measurement) -> str:
        """Return the label when the criterion is met, else an empty text."""
        ...


@dataclass(frozen=True)
class TimeReached:
    """Criterion: a time has passed since the phase began."""

    label: str
    seconds: float

    def evaluate(self, measurement: Measurement) -> str:
        """Return the label when the time has passed."""
        return self.label if measurement.elapsed >= self.seconds - ROUNDING_S else ""


@dataclass(frozen=True)
class Threshold:
    """Criterion: a measured quantity is at most, or at least, a bound.

    Parameters
    ----------
    label : text returned when the criterion is met.
    quantity : field of `Measurement`: ``error``, ``speed``, ``force`` or ``height``.
    name : name of the task or patch.
    bound : bound of the quantity, in its unit.
    at_least : whether the quantity must be at least the bound, else at most.
    default : value of a name that does not exist: no error, no force, infinite height.
    """

    label: str
    quantity: str
    name: str
    bound: float
    at_least: bool = False
    default: float = 0.0

    def evaluate(self, measurement: Measurement) -> str:
        """Return the label when the quantity is within the bound."""
        value = getattr(measurement, self.quantity).get(self.name, self.default)
        return self.label if (value >= self.bound if self.at_least else value <= self.bound) else ""


@dataclass
class HeldFor:
    """Criterion: another one has been met without interruption for ``seconds``. Each phase needs a new object."""

    criterion: Criterion
    seconds: float
    start: float | None = None

    def evaluate(self, measurement: Measurement) -> str:
        """Return the other criterion's label when it has been met for long enough."""
        label = self.criterion.evaluate(measurement)
        if not label:
            self.start = None
            return ""
        if self.start is None:
            self.start = measurement.elapsed
        return label if measurement.elapsed - self.start >= self.seconds - ROUNDING_S else ""


@dataclass
class HeldInTotal:
    """Criterion: another one has been met for ``seconds`` in total. Each phase needs a new object.

    An interruption subtracts the fraction `INTERRUPTION_FACTOR` of its length. So a patch that chatters on its support
    counts as touching, and a patch that hit it once and bounced off does not.
    """

    criterion: Criterion
    seconds: float
    total: float = 0.0
    previous: tuple[float, bool] | None = None

    def evaluate(self, measurement: Measurement) -> str:
        """Return the other criterion's label when it is met and has been for long enough."""
        label, elapsed = self.criterion.evaluate(measurement), measurement.elapsed
        if self.previous is not None:
            previous_time, was_met = self.previous
            self.total = max(self.total + (elapsed - previous_time) * (1.0 if was_met else -INTERRUPTION_FACTOR), 0.0)
        self.previous = elapsed, bool(label)
        return label if self.total >= self.seconds - ROUNDING_S else ""


def _is_stateful(criterion: Criterion) -> bool:
    """Whether a criterion has to be evaluated in every tick to notice an interruption."""
    if isinstance(criterion, HeldFor | HeldInTotal):
        return True
    inner = getattr(criterion, "criteria", None) or [getattr(criterion, "criterion", None)]
    return any(_is_stateful(part) for part in inner if part is not None)


@dataclass(frozen=True, init=False)
class _Combination:
    """Several criteria; ``_stateful`` marks those that have to be evaluated in every tick."""

    criteria: tuple[Criterion, ...]
    _stateful: tuple[bool, ...] = field(repr=False, compare=False)

    def __init__(self, *criteria: Criterion):
        object.__setattr__(self, "criteria", criteria)
        object.__setattr__(self, "_stateful", tuple(map(_is_stateful, criteria)))


class AllOf(_Combination):
    """Criterion: all of several are met at the same time; the label names them all."""

    def evaluate(self, measurement: Measurement) -> str:
        """Return the labels joined by `` and `` when all criteria are met; stateful ones are always evaluated."""
        labels: list[str] = []
        for criterion, stateful in zip(self.criteria, self._stateful, strict=True):
            if stateful or all(labels):
                labels.append(criterion.evaluate(measurement))
        return " and ".join(labels) if all(labels) else ""


class AnyOf(_Combination):
    """Criterion: any of several is met; the label is that of the first one that is met."""

    def evaluate(self, measurement: Measurement) -> str:
        """Return the label of the first criterion that is met; stateful ones are always evaluated."""
        result = ""
        for criterion, stateful in zip(self.criteria, self._stateful, strict=True):
            if stateful or not result:
                label = criterion.evaluate(measurement)
                result = result or label
        return result


@dataclass(frozen=True)
class Labelled:
    """Criterion: another one, with a label of the scenario."""

    criterion: Criterion
    label: str

    def evaluate(self, measurement: Measurement) -> str:
        """Return the label when the other criterion is met."""
        return self.label if self.criterion.evaluate(measurement) else ""


def earliest_time(criterion: Criterion) -> float:
    """Return the time since the phase began (s) before which a criterion is not met, and need not be evaluated."""
    if isinstance(criterion, TimeReached):
        return criterion.seconds - ROUNDING_S
    if isinstance(criterion, Labelled):
        return earliest_time(criterion.criterion)
    if isinstance(criterion, AllOf | AnyOf) and not _is_stateful(criterion):
        choose = max if isinstance(criterion, AllOf) else min
        return choose(map(earliest_time, criterion.criteria))
    return -inf


def criterion_of(until: Until, duration: float) -> Criterion:
    """Return the criterion for a state whose references take ``duration`` (s)."""
    criterion: Criterion
    if until.all is not None or until.any is not None:
        combination = AllOf if until.all is not None else AnyOf
        criterion = combination(*(criterion_of(part, duration) for part in until.all or until.any or ()))
    else:
        criterion = _single_criterion(until, duration)
    if until.lasting is not None:
        criterion = HeldFor(criterion, until.lasting)
    if until.altogether is not None:
        criterion = HeldInTotal(criterion, until.altogether)
    return criterion if until.label is None else Labelled(criterion, until.label)


def _single_criterion(until: Until, duration: float) -> TimeReached | Threshold:
    """Return the criterion of a single quantity."""
    if until.elapsed is not None:
        return TimeReached("time", until.elapsed)
    if until.finished is not None:
        return TimeReached("time", duration + until.finished)
    if until.timeout is not None:
        return TimeReached("timeout", duration + until.timeout)
    if until.force is not None and until.above is not None:
        return Threshold(f"force {until.force}", "force", until.force, until.above, at_least=True)
    bound = until.below or 0.0
    if until.force is not None:
        return Threshold(f"unloaded {until.force}", "force", until.force, bound)
    if until.over is not None:
        return Threshold(f"above {until.over}", "height", until.over, bound, default=inf)
    if until.error is not None:
        return Threshold(f"error {until.error}", "error", until.error, bound)
    return Threshold(f"speed {until.speed}", "speed", until.speed or "", bound)


def labels_of(until: Until) -> set[str]:
    """Return the labels with which a criterion may end a state."""
    if until.label is not None:
        return {until.label}
    if until.any is not None:
        return set().union(*map(labels_of, until.any))
    if until.all is not None:
        return {" and ".join(labels) for labels in product(*map(labels_of, until.all))}
    return {_single_criterion(until, 0.0).label}
