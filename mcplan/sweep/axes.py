"""Axes of an experiment: the varied fields and their values; the cases are the product of the axes."""

import itertools
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from mcplan.document.document import Document
from mcplan.errors import InputError, Problem
from mcplan.sweep.condition import Condition
from mcplan.sweep.schema import ExperimentSpec, SeedRange

Key = tuple[str | int, ...]

MAX_COMBINATIONS = 1_000_000
"""Maximum number of combinations that ``where`` is evaluated on; larger experiments are refused."""


@dataclass(frozen=True)
class Axis:
    """One axis of the experiment: fields that vary together.

    Parameters
    ----------
    section : ``grid``, ``zip`` or ``cases``.
    points : overrides (value by field) at each index of the axis.
    """

    section: str
    points: tuple[dict[str, Any], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Fields, in the order of the file."""
        return tuple(dict.fromkeys(name for point in self.points for name in point))

    def key(self, index: int, name: str) -> Key:
        """Return the key of a value in the experiment file."""
        if self.section == "cases":
            return "cases", index, name
        return self.section, name, index


def axes_of(spec: ExperimentSpec) -> tuple[Axis, ...]:
    """Return the axes: one per key of ``grid``, one for ``zip``, one for ``cases``."""
    axes = [Axis("grid", tuple({name: value} for value in values)) for name, values in spec.grid.items()]
    if spec.zip:
        rows = zip(*spec.zip.values(), strict=True)
        axes.append(Axis("zip", tuple(dict(zip(spec.zip, row, strict=True)) for row in rows)))
    if spec.cases:
        axes.append(Axis("cases", spec.cases))
    return tuple(axes)


def swept_fields(axes: Iterable[Axis]) -> tuple[str, ...]:
    """Return the fields that differ between cases."""
    return tuple(dict.fromkeys(name for axis in axes for name in axis.names))


def combinations(
    spec: ExperimentSpec, axes: tuple[Axis, ...], scenario: str, fixed: tuple[int, int] | None = None
) -> Iterator[tuple[tuple[int, ...], dict[str, Any]]]:
    """Yield the index along each axis and the overrides of a scenario's cases; the last axis changes fastest.

    Parameters
    ----------
    scenario : its name, as in the condition of the experiment.
    fixed : (axis, index): yield only the cases with this index.
    """
    condition = Condition(spec.where, ("scenario", *swept_fields(axes))) if spec.where is not None else None
    index_ranges = [range(len(axis.points)) for axis in axes]
    if fixed is not None:
        index_ranges[fixed[0]] = range(fixed[1], fixed[1] + 1)
    for indices in itertools.product(*index_ranges):
        overrides = dict(spec.set)
        for axis, index in zip(axes, indices, strict=True):
            overrides.update(axis.points[index])
        if condition is None or condition.holds({"scenario": scenario, **overrides}):
            yield indices, overrides


def display_name(scenario: str) -> str:
    """Return the name of a scenario in tables and conditions; for a file, its stem."""
    return Path(scenario).stem if scenario.endswith((".yaml", ".yml")) else scenario


def seeds_of(spec: ExperimentSpec) -> tuple[int, ...] | range:
    """Return the seeds as a tuple or range."""
    seeds = spec.seeds
    return range(seeds.first, seeds.first + seeds.count) if isinstance(seeds, SeedRange) else seeds


def seeds_text(spec: ExperimentSpec) -> str:
    """Return the seeds as text, for example ``seeds 0 to 9``."""
    seeds = seeds_of(spec)
    if isinstance(seeds, range) and len(seeds) > 1:
        return f"seeds {seeds[0]} to {seeds[-1]}"
    return f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}"


def axis_problems(document: Document, spec: ExperimentSpec, axes: tuple[Axis, ...]) -> Iterator[Problem]:
    """Yield a problem for each field given twice and each value that an axis repeats."""
    sections: dict[str, str] = dict.fromkeys(spec.set, "set")
    for axis in axes:
        for name in axis.names:
            if name in sections:
                yield document.problem((axis.section, name), f"is also in `{sections[name]}`; remove one of them")
            sections[name] = axis.section
        indices: dict[str, int] = {}
        for index, point in enumerate(axis.points):
            text = json.dumps(_with_floats(point), sort_keys=True)
            if text in indices:
                key: Key = ("grid", axis.names[0], index) if axis.section == "grid" else (axis.section, index)
                yield document.problem(key, f"the same as number {indices[text] + 1}; remove one of them")
            indices.setdefault(text, index)
    scenarios = [str(name) for name in spec.scenarios]
    for index, name in enumerate(scenarios):
        display, earlier = display_name(name), [display_name(other) for other in scenarios[:index]]
        if name in scenarios[:index]:
            yield document.problem(("scenarios", index), f"`{name}` is listed twice")
        elif display in earlier:
            text = (
                f"`{name}` is called `{display}` in tables, as number {earlier.index(display) + 1} is; rename the file"
            )
            yield document.problem(("scenarios", index), text)
    if not isinstance(spec.seeds, SeedRange):
        for index, seed in enumerate(spec.seeds):
            if seed in spec.seeds[:index]:
                yield document.problem(("seeds", index), f"{seed} is listed twice")


def _with_floats(value: Any) -> Any:
    """Convert integers to floats if exact: 1 and 1.0 of a field are the same case."""
    if isinstance(value, dict):
        return {name: _with_floats(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_with_floats(part) for part in value]
    exact = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53
    return float(value) if exact else value


def where_problems(document: Document, spec: ExperimentSpec, axes: tuple[Axis, ...]) -> Iterator[Problem]:
    """Yield problems of ``where``: a syntax error, too many combinations, scenarios without a remaining case."""
    if spec.where is None:
        return
    if (count := prod(len(axis.points) for axis in axes)) > MAX_COMBINATIONS:
        yield document.problem(("where",), f"{count:,} combinations to choose from, more than {MAX_COMBINATIONS:,}")
        return
    try:
        for index, name in enumerate(spec.scenarios):
            if next(combinations(spec, axes, display_name(name)), None) is None:
                yield document.problem(("scenarios", index), f"{name}: `where` leaves none of its cases")
    except InputError as error:
        yield document.problem(("where",), str(error))
