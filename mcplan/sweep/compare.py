"""Comparison of two sweeps over the same configurations, with regressions.

Cases are matched by their configuration (inputs), not by the code that ran them.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mcplan.sweep.case import code_version
from mcplan.sweep.columns import COLUMNS, with_flags
from mcplan.sweep.results import Results, Row, groups, shown_value
from mcplan.sweep.store import Store
from mcplan.sweep.tables import Table

MIN_RELATIVE_CHANGE = {"margin": 0.05, "ratio": 0.05, "clock": 0.25}
"""Smallest relative change of a mean that is marked as worse, by kind; clock times vary from run to run."""

REGRESSION = "REGRESSION"
"""Mark of a column in which a flag that was true has become false."""

EarlierRow = Mapping[str, Any]
"""Inputs, results and ``status`` of a case in the earlier sweep."""


@dataclass(frozen=True)
class Comparison:
    """Comparison of two sweeps.

    Parameters
    ----------
    table : values before and after by scenario and column, with a mark where they became worse.
    regressions : cases with a flag that was true before and is false now, as text.
    matched, new, gone : numbers of cases in both sweeps, only in this one, only in the earlier one.
    """

    table: Table
    regressions: tuple[str, ...]
    matched: int
    new: int
    gone: int

    def text(self) -> str:
        """Return a summary in one line."""
        return (
            f"{self.matched} cases as before, {self.new} new, {self.gone} gone; "
            f"{len(self.regressions)} regression{'s' * (len(self.regressions) != 1)}"
        )


def earlier_results(
    directory: str | os.PathLike[str], present_directory: str | os.PathLike[str]
) -> dict[str, EarlierRow]:
    """Return the newest results in the store of a directory, by configuration.

    Parameters
    ----------
    present_directory : output directory of the present sweep. If ``directory`` is the same, rows of the present code
        are skipped: they would be compared with themselves.

    Raises
    ------
    InputError
        When there is no store.
    """
    is_same = Path(directory).resolve() == Path(present_directory).resolve()
    with Store(directory, read_only=True) as store:
        return dict(store.latest(excluded_code=code_version() if is_same else None))


def compare(old: Mapping[str, EarlierRow], results: Results) -> Comparison:
    """Compare with earlier results, by configuration: ``success`` and the columns that are shown."""
    configurations = {case.id: case.configuration for case in results.experiment.cases}
    pairs = [(old.get(configurations[row["case"]]), row) for row in results.rows]
    steps = results.experiment.spec.steps
    both = [(with_flags(a, steps), b) for a, b in pairs if a is not None]
    lines, regressions = [], []
    for (scenario,), rows in groups([b for _, b in both], ["scenario"]).items():
        members = {row["case"] for row in rows}
        scenario_pairs = [(a, b) for a, b in both if b["case"] in members]
        for name in dict.fromkeys(["success", *results.shown]):
            if name in COLUMNS:
                line, regressed = _column(name, scenario_pairs)
                if line is not None:
                    lines.append((str(scenario), name, *line))
                regressions += [f"{_label(row, results)}: {name} no longer holds" for row in regressed]
    table = Table("before and after", ("scenario", "column", "before", "after", ""), tuple(lines))
    matched = len(both)
    gone = len(set(old) - set(configurations.values()))
    return Comparison(table, tuple(regressions), matched, len(pairs) - matched, gone)


def _column(name: str, pairs: Sequence[tuple[EarlierRow, Row]]) -> tuple[tuple[str, str, str] | None, list[Row]]:
    """Return the value before, the value after and the mark of a column, and the rows with a regression."""
    column = COLUMNS[name]
    present = [(a[name], b[name], b) for a, b in pairs if a.get(name) is not None and b.get(name) is not None]
    if column.kind == "text" or not present:
        return None, []
    before, after = [a for a, _, _ in present], [b for _, b, _ in present]
    if column.kind == "flag":
        regressed = [row for a, b, row in present if a and not b]
        mark = REGRESSION if regressed else "better" if sum(after) > sum(before) else ""
        return (f"{sum(before)}/{len(before)}", f"{sum(after)}/{len(after)}", mark), regressed
    old, new = float(np.mean(before)), float(np.mean(after))
    worse = (old - new) * column.preference
    mark = "worse" if worse > MIN_RELATIVE_CHANGE.get(column.kind, np.inf) * abs(old) else ""
    return (shown_value(old), shown_value(new), mark), []


def _label(row: Row, results: Results) -> str:
    return ", ".join(f"{name} {shown_value(row[name])}" for name in results.experiment.fields if name in row)
