"""When a phase ends: criteria on what is measured, combined with ``AllOf`` and ``AnyOf``.

A criterion answers with its label when it is met and with an empty text when it is not; the label of what ended a phase
is recorded with the phase.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import inf
from types import MappingProxyType
from typing import NamedTuple, Protocol

from mcplan.settings.states import Until

NOTHING: Mapping[str, float] = MappingProxyType({})

FORGOTTEN = 0.1
"""Part of its length that a break takes back of the time for which a criterion has been met altogether."""


class Measurement(NamedTuple):
    """What criteria look at.

    elapsed : time since the phase began (s).
    error : by name of a task (``com``, ``trunk``, a patch): distance to the reference (m or rad).
    speed : by name of a task: speed of the thing itself (m/s or rad/s); ``joints`` is the fastest joint.
    force : by name of a patch in contact: normal force (N); for a grasp the magnitude of the force.
    height : by name of a patch on its way to a contact: how far it is from its place along the normal (m), infinite if
        it is not over its place.
    """

    elapsed: float
    error: Mapping[str, float] = NOTHING
    speed: Mapping[str, float] = NOTHING
    force: Mapping[str, float] = NOTHING
    height: Mapping[str, float] = NOTHING


class Asked(Mapping[str, float]):
    """Numbers by name that are computed when they are asked for.

    Parameters
    ----------
    names : gives what may be asked for at present.
    compute : of a name, the number.
    """

    def __init__(self, names: Callable[[], Sequence[str]], compute: Callable[[str], float]):
        self._names, self._compute = names, compute

    def __getitem__(self, name: str) -> float:
        """Compute the number."""
        if name not in self._names():
            raise KeyError(name)
        return self._compute(name)

    def __iter__(self) -> Iterator[str]:
        """Go through the names."""
        return iter(self._names())

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._names())


class Criterion(Protocol):
    """Anything that can say that a phase is over."""

    def met(self, measurement: Measurement) -> str:
        """Return the label when the criterion is met, else an empty text."""
        ...


@dataclass(frozen=True)
class Elapsed:
    """The references have run their time."""

    seconds: float

    def met(self, measurement: Measurement) -> str:
        """Return ``time`` when so much time has passed."""
        # Half a nanosecond forgives the rounding of k * dt: a phase never takes a tick more for it.
        return "time" if measurement.elapsed >= self.seconds - 5e-10 else ""


@dataclass(frozen=True)
class Timeout:
    """The phase has not ended otherwise."""

    seconds: float

    def met(self, measurement: Measurement) -> str:
        """Return ``timeout`` when so much time has passed."""
        return "timeout" if measurement.elapsed >= self.seconds - 5e-10 else ""


@dataclass(frozen=True)
class ErrorBelow:
    """A task is within ``bound`` (m or rad) of its reference; a task that does not exist has no error."""

    name: str
    bound: float

    def met(self, measurement: Measurement) -> str:
        """Return ``error NAME`` when the error is small."""
        return f"error {self.name}" if measurement.error.get(self.name, 0.0) <= self.bound else ""


@dataclass(frozen=True)
class SpeedBelow:
    """A task moves slower than ``bound`` (m/s or rad/s)."""

    name: str
    bound: float

    def met(self, measurement: Measurement) -> str:
        """Return ``speed NAME`` when the speed is small."""
        return f"speed {self.name}" if measurement.speed.get(self.name, 0.0) <= self.bound else ""


@dataclass(frozen=True)
class ForceBelow:
    """A contact carries at most ``bound`` (N); a patch without contact carries nothing."""

    name: str
    bound: float

    def met(self, measurement: Measurement) -> str:
        """Return ``unloaded NAME`` when the force is small."""
        return f"unloaded {self.name}" if measurement.force.get(self.name, 0.0) <= self.bound else ""


@dataclass(frozen=True)
class ForceAbove:
    """A contact carries at least ``bound`` (N)."""

    name: str
    bound: float

    def met(self, measurement: Measurement) -> str:
        """Return ``force NAME`` when the force is reached."""
        return f"force {self.name}" if measurement.force.get(self.name, 0.0) >= self.bound else ""


@dataclass(frozen=True)
class Over:
    """A patch is over its place, no higher than ``bound`` (m): what it meets there is its support."""

    name: str
    bound: float

    def met(self, measurement: Measurement) -> str:
        """Return ``above NAME`` when it is."""
        return f"above {self.name}" if measurement.height.get(self.name, inf) <= self.bound else ""


@dataclass
class Sustained:
    """Another criterion has been met without a break for ``seconds``; one that is asked anew for each phase."""

    criterion: Criterion
    seconds: float
    since: float | None = None

    def met(self, measurement: Measurement) -> str:
        """Return the other criterion's label when it has been met for long enough."""
        label = self.criterion.met(measurement)
        if not label:
            self.since = None
            return ""
        if self.since is None:
            self.since = measurement.elapsed
        return label if measurement.elapsed - self.since >= self.seconds - 5e-10 else ""


@dataclass
class Gathered:
    """Another criterion has been met for ``seconds`` altogether; one that is asked anew for each phase.

    A break takes back the part `FORGOTTEN` of its length: a patch that chatters on its support touches it, though never
    for long; one that has met it once and bounced off does not.
    """

    criterion: Criterion
    seconds: float
    held: float = 0.0
    last: tuple[float, bool] | None = None

    def met(self, measurement: Measurement) -> str:
        """Return the other criterion's label when it is met and has been for long enough."""
        label, now = self.criterion.met(measurement), measurement.elapsed
        if self.last is not None:
            before, was_met = self.last
            self.held = max(self.held + (now - before) * (1.0 if was_met else -FORGOTTEN), 0.0)
        self.last = now, bool(label)
        return label if self.held >= self.seconds - 5e-10 else ""


def _keeps_time(criterion: Criterion) -> bool:
    """Say whether a criterion has to be asked at every tick to notice a break."""
    if isinstance(criterion, Sustained | Gathered):
        return True
    inner = getattr(criterion, "criteria", None) or [getattr(criterion, "criterion", None)]
    return any(_keeps_time(each) for each in inner if each is not None)


@dataclass(frozen=True, init=False)
class _Several:
    criteria: tuple[Criterion, ...]
    _timed: tuple[bool, ...] = field(repr=False, compare=False)

    def __init__(self, *criteria: Criterion):
        object.__setattr__(self, "criteria", criteria)
        object.__setattr__(self, "_timed", tuple(map(_keeps_time, criteria)))


class AllOf(_Several):
    """All criteria at the same time; the label names them all."""

    def met(self, measurement: Measurement) -> str:
        """Return the labels joined by `` and `` when every criterion is met; those that keep time are always asked."""
        labels: list[str] = []
        for criterion, timed in zip(self.criteria, self._timed, strict=True):
            if timed or all(labels):
                labels.append(criterion.met(measurement))
        return " and ".join(labels) if all(labels) else ""


class AnyOf(_Several):
    """The first criterion that is met, in the order given."""

    def met(self, measurement: Measurement) -> str:
        """Return the label of the first criterion that is met; those that keep time are always asked."""
        found = ""
        for criterion, timed in zip(self.criteria, self._timed, strict=True):
            if timed or not found:
                label = criterion.met(measurement)
                found = found or label
        return found


@dataclass(frozen=True)
class Named:
    """Another criterion under a label of the user's."""

    criterion: Criterion
    label: str

    def met(self, measurement: Measurement) -> str:
        """Return the label when the other criterion is met."""
        return self.label if self.criterion.met(measurement) else ""


def criterion_of(until: Until, duration: float) -> Criterion:
    """Return the criterion for a state whose references take ``duration`` (s)."""
    criterion = _bare(until, duration)
    if until.lasting is not None:
        criterion = Sustained(criterion, until.lasting)
    if until.altogether is not None:
        criterion = Gathered(criterion, until.altogether)
    return criterion if until.label is None else Named(criterion, until.label)


def _bare(until: Until, duration: float) -> Criterion:
    if until.all is not None:
        return AllOf(*(criterion_of(each, duration) for each in until.all))
    if until.any is not None:
        return AnyOf(*(criterion_of(each, duration) for each in until.any))
    if until.elapsed is not None:
        return Elapsed(until.elapsed)
    if until.finished is not None:
        return Elapsed(duration + until.finished)
    if until.timeout is not None:
        return Timeout(duration + until.timeout)
    if until.force is not None and until.above is not None:
        return ForceAbove(until.force, until.above)
    bound = until.below or 0.0
    if until.force is not None:
        return ForceBelow(until.force, bound)
    if until.over is not None:
        return Over(until.over, bound)
    if until.error is not None:
        return ErrorBelow(until.error, bound)
    return SpeedBelow(until.speed or "", bound)


def labels_of(until: Until) -> set[str]:
    """Return the labels with which a criterion may end a state."""
    if until.label is not None:
        return {until.label}
    if until.any is not None:
        return set().union(*map(labels_of, until.any))
    if until.all is not None:
        return {" and ".join(labels) for labels in product(*map(labels_of, until.all))}
    if until.force is not None:
        return {f"{'force' if until.above is not None else 'unloaded'} {until.force}"}
    if until.over is not None:
        return {f"above {until.over}"}
    if until.error is not None or until.speed is not None:
        return {f"error {until.error}" if until.error is not None else f"speed {until.speed}"}
    return {"timeout" if until.timeout is not None else "time"}
