"""Checks of an experiment before it runs: overrides on each scenario; columns of figures, tables and thresholds."""

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from mcplan.document.document import Document, read_document
from mcplan.errors import InputError, Problem, ScenarioError
from mcplan.robot.robot import Robot
from mcplan.scenario.assemble import SUFFIXES
from mcplan.scenario.load import find_scenario
from mcplan.scenario.parameters import robot_place
from mcplan.scenario.scenario import Scenario
from mcplan.sweep.axes import Axis, Key, axes_of, combinations, display_name, seeds_of
from mcplan.sweep.columns import COLUMNS, Kind, kind_of
from mcplan.sweep.condition import Condition, expectations, parse_threshold
from mcplan.sweep.schema import ExperimentSpec
from mcplan.util.spelling import did_you_mean_or_all


class ScenarioChecker:
    """Check of one scenario: tries each value of each axis once, with the other axes at their first value.

    Parameters
    ----------
    document : content of the experiment file.
    index : index of the scenario in the experiment's list.
    robots : robots loaded so far by name or path, to which the scenario's is added.
    elsewhere : whether cases run on other machines, which may have packages that are not installed here.

    Attributes
    ----------
    scenario : the scenario without overrides; None if it is invalid.
    problems : problems found so far, each at the line of the experiment that causes it.
    """

    def __init__(
        self,
        document: Document,
        spec: ExperimentSpec,
        axes: tuple[Axis, ...],
        index: int,
        robots: dict[str | Path, Robot],
        elsewhere: bool = False,
    ):
        self.scenario: Scenario | None = None
        self.problems: list[Problem] = []
        self._document, self._spec, self._axes, self._elsewhere = document, spec, axes, elsewhere
        self._robots = robots
        self._key: Key = ("scenarios", index)
        self._name = spec.scenarios[index]
        try:
            file = find_scenario(self._path())
            self.scenario = self._load(read_document(file, ScenarioError))
        except InputError as error:
            self.problems += [document.problem(self._key, str(problem)) for problem in error.problems]

    def try_values(self) -> None:
        """Add a problem for each value that is invalid in the scenario; nothing if the scenario itself is invalid."""
        if self.scenario is not None:
            self.problems += dict.fromkeys(self._value_problems())

    def _load(self, source: Document, variant: int | None = None) -> Scenario:
        """Return the scenario of a document, or its variant, with the robot if it is loaded already."""
        name = source.data.get("robot") if isinstance(source.data, dict) else None
        place = robot_place(name, source) if isinstance(name, str) else ""
        scenario = Scenario.of(source, variant, self._robots.get(place))
        self._robots[place] = scenario.robot
        return scenario

    def _path(self) -> str:
        """Return the scenario's name, or its path; paths in an experiment are relative to its file."""
        path = Path(self._name)
        is_path = path.suffix.lower() in SUFFIXES or len(path.parts) > 1
        return str(Path(self._document.path).parent / path) if is_path else self._name

    def _value_problems(self) -> Iterator[Problem]:
        fixed_keys: dict[str, Key] = {name: ("set", name) for name in self._spec.set}
        reported: set[str] | None = None
        for indices, overrides in self._test_cases():
            axis_keys = {n: axis.key(k, n) for axis, k in zip(self._axes, indices, strict=True) for n in axis.points[k]}
            problems = self._override_problems(overrides, fixed_keys | axis_keys)
            found = [problem for problem in problems if problem.key not in (reported or ())]
            yield from found
            reported = {problem.key for problem in found} if reported is None else reported

    def _test_cases(self) -> Iterator[tuple[tuple[int, ...], dict[str, Any]]]:
        """Yield the first case, then for each other value of each axis the first case with it."""
        name = display_name(self._name)
        first, overrides = next(combinations(self._spec, self._axes, name))
        yield first, overrides
        for k, axis in enumerate(self._axes):
            for index in (i for i in range(len(axis.points)) if i != first[k]):
                yield from itertools.islice(combinations(self._spec, self._axes, name, (k, index)), 1)

    def _override_problems(self, overrides: dict[str, Any], keys: dict[str, Key]) -> Iterator[Problem]:
        """Yield the problems of the scenario with these overrides, each at the line of its override."""
        assert self.scenario is not None
        seed = seeds_of(self._spec)[0] if self._spec.variants else None
        try:
            document = self.scenario.source.with_overrides(overrides, ScenarioError) if overrides else None
            scenario = self._load(document or self.scenario.source, seed)
            if self._spec.steps == "simulate":
                _check_simulation(scenario, self._elsewhere)
        except InputError as error:
            for problem in error.problems:
                matching = [name for name in keys if _within(problem.key, name)]
                key = keys[max(matching, key=len)] if matching else self._key
                text = ": ".join(part for part in (problem.key, problem.message) if part)
                yield self._document.problem(key, f"{self._name}: {text}")


def _check_simulation(scenario: Scenario, elsewhere: bool) -> None:
    """Raise InputError if no simulation of this scenario can start, as `mcplan run` does."""
    from mcplan.sim.disturbance import validate_disturbances  # these imports take a second; plans do not need them
    from mcplan.sim.simulate import find_back_end

    physics = scenario.simulation.physics
    try:
        if not elsewhere:
            find_back_end(physics)
    except InputError as error:
        raise InputError(scenario.document.problem(("simulation", "physics"), str(error))) from None
    try:
        validate_disturbances(scenario, physics)
    except InputError as error:
        package = "control.solver"  # a known solver whose package may be missing here
        if errors := [problem for problem in error.problems if not (elsewhere and problem.key == package)]:
            raise InputError(*errors) from None


def _within(key: str, name: str) -> bool:
    """Whether a key path equals, lies within, or contains that of an override."""
    is_inside = key.startswith((f"{name}.", f"{name}["))
    contains = bool(key) and name.startswith((f"{key}.", f"{key}["))
    return key == name or is_inside or contains


def output_problems(document: Document, spec: ExperimentSpec, known: Iterable[str]) -> Iterator[Problem]:
    """Yield unknown columns, texts instead of numbers, invalid conditions and invalid thresholds."""
    names = tuple(known)

    def columns(found: Iterable[tuple[Key, str | None]]) -> Iterator[Problem]:
        for key, name in found:
            if name is not None and name not in names:
                yield document.problem(key, f"unknown column `{name}`{did_you_mean_or_all(name, names)}")

    def condition(key: Key, text: str | None) -> Iterator[Problem]:
        if text is not None:
            try:
                Condition(text, names)
            except InputError as error:
                yield document.problem(key, str(error))

    def number(key: Key, name: str) -> Iterator[Problem]:
        if name in names and _column_kind(spec, name) == "text":
            yield document.problem(key, f"`{name}` is a text; expected a number or a flag, as `success`")

    yield from columns((("collect", k), name) for k, name in enumerate(spec.collect))
    if spec.collect and not spec.tables and {*spec.collect} <= {*names} - {*COLUMNS}:
        text = "names no result column; add one such as `success`, or define `tables`"
        yield document.problem(("collect",), text)
    for k, figure in enumerate(spec.figures):
        yield from columns((("figures", k, key), getattr(figure, key)) for key in ("x", "y", "by", "value"))
        drawn = "y" if figure.value is None else "value"
        yield from number(("figures", k, drawn), getattr(figure, drawn))
        yield from condition(("figures", k, "where"), figure.where)
    for k, table in enumerate(spec.tables):
        for part in ("rows", "values", "each"):
            yield from columns((("tables", k, part, i), name) for i, name in enumerate(getattr(table, part)))
        yield from columns([(("tables", k, "by"), table.by)])
        yield from _against_problems(document, spec, k)
        yield from condition(("tables", k, "where"), table.where)
    for key, expect in expectations(spec):
        yield from condition((*key, "where"), expect.where)
        columns_key = key if isinstance(spec.expect, dict) else (*key, "columns")
        for name, text in expect.columns.items():
            yield from columns([((*columns_key, name), name)])
            yield from number((*columns_key, name), name)
            try:
                parse_threshold(text)
            except InputError as error:
                yield document.problem((*columns_key, name), str(error))


def _column_kind(spec: ExperimentSpec, name: str) -> Kind:
    """Return the kind of a result, or of an input of a case."""
    if name == "seed":
        return "count"
    return kind_of(name, [point[name] for axis in axes_of(spec) for point in axis.points if name in point])


def _against_problems(document: Document, spec: ExperimentSpec, index: int) -> Iterator[Problem]:
    """Yield invalid ``against`` values, and results without a ratio."""
    table = spec.tables[index]
    if table.against is None:
        return
    values = [point[table.by] for axis in axes_of(spec) for point in axis.points if table.by in point]
    if table.by == "scenario":
        values = [display_name(name) for name in spec.scenarios]
    if table.against not in values:
        hint = did_you_mean_or_all(str(table.against), map(str, values))
        yield document.problem(("tables", index, "against"), f"{table.against}: no value of `{table.by}`{hint}")
    for i, name in enumerate(table.each):
        if name in COLUMNS and COLUMNS[name].kind in ("flag", "text"):
            yield document.problem(("tables", index, "each", i), f"`{name}` is not a number, so it has no ratio")
