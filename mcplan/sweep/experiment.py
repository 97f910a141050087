"""Experiment: the checked content of its file, and its cases."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any

from mcplan.document.document import Document, read_document, sort_by_line
from mcplan.errors import InputError, Problem
from mcplan.robot.robot import Robot
from mcplan.robot.robot_file import robot_identity
from mcplan.scenario.parameters import robot_of
from mcplan.scenario.scenario import Scenario
from mcplan.sweep.axes import (
    Axis,
    axes_of,
    axis_problems,
    combinations,
    display_name,
    seeds_of,
    swept_fields,
    where_problems,
)
from mcplan.sweep.case import Case
from mcplan.sweep.columns import COLUMNS
from mcplan.sweep.experiment_check import ScenarioChecker, output_problems
from mcplan.sweep.schema import ExperimentSpec, SeedRange
from mcplan.util.arguments import file_path
from mcplan.util.text import summary

MAX_CASES = 10_000
"""Maximum number of cases without ``--max-cases``."""


@dataclass(frozen=True)
class Experiment:
    """An experiment.

    Parameters
    ----------
    spec : checked content of the file.
    document : content of the file as it was read, with line numbers.
    axes : varied fields, without scenarios and seeds.
    scenarios : by their name in tables.
    """

    spec: ExperimentSpec
    document: Document
    axes: tuple[Axis, ...]
    scenarios: dict[str, Scenario]

    __repr__ = summary

    @property
    def name(self) -> str:
        """Name of the experiment."""
        return self.spec.name

    @property
    def swept(self) -> tuple[str, ...]:
        """Fields that differ between cases."""
        return swept_fields(self.axes)

    @property
    def fields(self) -> tuple[str, ...]:
        """Columns of the table that are inputs of a case."""
        return ("scenario", *self.swept, "seed")

    @property
    def known(self) -> tuple[str, ...]:
        """All columns."""
        return (*self.fields, *COLUMNS)

    def __len__(self) -> int:
        count = len(self.scenarios) * prod(len(axis.points) for axis in self.axes)
        if self.spec.where is not None:
            count = sum(1 for name in self.scenarios for _ in combinations(self.spec, self.axes, name))
        return count * len(seeds_of(self.spec))

    @cached_property
    def cases(self) -> tuple[Case, ...]:
        """The cases by scenario; seed and last axis change fastest."""
        return tuple(self._cases())

    def _cases(self) -> Iterator[Case]:
        spec, swept = self.spec, self.swept
        for name, scenario in self.scenarios.items():
            for _, overrides in combinations(spec, self.axes, name):
                robot = robot_identity(_robot(scenario, overrides))
                for seed in seeds_of(spec):
                    variant = seed if spec.variants else None
                    yield Case(name, scenario.source, overrides, swept, seed, variant, spec.steps, robot)


def _robot(scenario: Scenario, overrides: Mapping[str, Any]) -> Robot:
    """Return the robot of a case: the scenario's, or that of the override ``robot``."""
    if "robot" not in overrides:
        return scenario.robot
    robot = robot_of(scenario.source.with_overrides({"robot": overrides["robot"]}, InputError))
    assert robot is not None, "the scenario was checked with it"
    return robot


def load_experiment(
    path: str | os.PathLike[str] | Mapping[str, Any],
    max_cases: int | None = None,
    seeds: str | None = None,
    elsewhere: bool = False,
) -> Experiment:
    """Read and check an experiment.

    Parameters
    ----------
    path : of the file; or its content as a dictionary, with paths relative to the working directory.
    max_cases : maximum number of cases; None: ``MAX_CASES``.
    seeds : ``FROM`` or ``FROM:COUNT``: replaces the seeds of the file, to measure on new ones.
    elsewhere : whether the cases run on other machines, so that the packages installed here do not matter.

    Raises
    ------
    InputError
        All problems of the file, with their lines: unknown keys and fields, values that a scenario refuses, features
        that its physics lacks, empty lists, missing scenarios, too many cases.
    """
    if isinstance(path, Mapping):
        document = Document.of_values(path, InputError)
    else:
        document = read_document(file_path("load_experiment", path), InputError, collect=True)
    spec, problems = document.examine(ExperimentSpec, salvage=True)
    if spec is None:
        raise InputError(*problems)
    if seeds is not None:
        seed_range = _seeds(seeds, len(seeds_of(spec)))
        spec = spec.model_copy(update={"seeds": seed_range})
        document = document.with_overrides({"seeds": {"from": seed_range.first, "count": seed_range.count}}, InputError)
    axes = axes_of(spec)
    problems += axis_problems(document, spec, axes)
    where_errors = list(where_problems(document, spec, axes))
    problems += where_errors
    scenarios: dict[str, Scenario] = {}
    robots: dict[str | Path, Robot] = {}  # each is loaded once
    for index, name in enumerate(spec.scenarios):
        checker = ScenarioChecker(document, spec, axes, index, robots, elsewhere)
        if not where_errors:  # otherwise the cases of a scenario are unknown
            checker.try_values()
        problems += checker.problems
        if checker.scenario is not None:
            scenarios[display_name(name)] = checker.scenario
    experiment = Experiment(spec, document, axes, scenarios)
    problems += output_problems(document, spec, experiment.known)
    if not where_errors:
        problems += _case_count_problems(experiment, max_cases)
    if problems:
        raise InputError(*sort_by_line(problems))
    return experiment


def _seeds(text: str, default_count: int) -> SeedRange:
    """Parse ``FROM`` or ``FROM:COUNT``; the default of COUNT is ``default_count``, the number of seeds in the file."""
    first, colon, count = text.partition(":")
    if not first.isdecimal() or (colon and not (count.isdecimal() and int(count) > 0)):
        raise InputError(f"--seeds {text}: expected FROM or FROM:COUNT, whole numbers, for example 4711:10")
    return SeedRange.model_validate({"from": int(first), "count": int(count) if colon else default_count})


def _case_count_problems(experiment: Experiment, max_cases: int | None) -> list[Problem]:
    count, limit = len(experiment), MAX_CASES if max_cases is None else max_cases
    if count <= limit:
        return []
    factors = [f"{len(experiment.scenarios)} scenarios"]
    factors += [f"{len(axis.points)} x {', '.join(axis.names)}" for axis in experiment.axes]
    factors.append(f"{len(seeds_of(experiment.spec))} seeds")
    message = f"{count:,} cases ({' * '.join(factors)}), more than {limit:,}; if that is meant: --max-cases {count}"
    return [experiment.document.problem((), message)]
