"""Before and after: two sweeps over the same configurations, and what has become worse.

Cases are matched by what was asked for (the configuration), not by the code that ran them.
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

NOTICED = {"margin": 0.05, "ratio": 0.05, "clock": 0.25}
"""By which part of its value before a mean must become worse to be marked; clock times differ by themselves."""

REGRESSION = "REGRESSION"


Before = Mapping[str, Any]
"""What a case was given before, its results and its ``status``."""


@dataclass(frozen=True)
class Comparison:
    """What changed.

    Parameters
    ----------
    table : scenario by scenario, column by column, with a mark where it became worse.
    regressions : cases for which a flag held before and does not hold now, as text.
    matched, new, gone : how many cases are in both, only in this sweep, only in the one before.
    """

    table: Table
    regressions: tuple[str, ...]
    matched: int
    new: int
    gone: int

    def text(self) -> str:
        """Return one line on all."""
        return (
            f"{self.matched} cases as before, {self.new} new, {self.gone} gone; "
            f"{len(self.regressions)} regression{'s' * (len(self.regressions) != 1)}"
        )


def results_before(directory: str | os.PathLike[str], own: str | os.PathLike[str]) -> dict[str, Before]:
    """Return the newest results in the store of a directory, by configuration.

    Parameters
    ----------
    own : directory that the sweep itself writes to. Its store is read before the sweep, and without what the present
        code has put there: that would be compared with itself.

    Raises
    ------
    InputError
        When there is no store.
    """
    same = Path(directory).resolve() == Path(own).resolve()
    with Store(directory, read_only=True) as store:
        return dict(store.latest(but=code_version() if same else None))


def compare(old: Mapping[str, Before], results: Results) -> Comparison:
    """Compare with results from before, by configuration: the columns that are shown, and in any case ``success``."""
    configurations = {case.id: case.configuration for case in results.experiment.cases}
    pairs = [(old.get(configurations[row["case"]]), row) for row in results.rows]
    steps = results.experiment.spec.steps
    both = [(with_flags(a, steps), b) for a, b in pairs if a is not None]
    lines, regressions = [], []
    for (scenario,), rows in groups([b for _, b in both], ["scenario"]).items():
        members = {row["case"] for row in rows}
        of = [(a, b) for a, b in both if b["case"] in members]
        for name in dict.fromkeys(["success", *results.shown]):
            if name in COLUMNS:
                line, turned = _column(name, of)
                if line is not None:
                    lines.append((str(scenario), name, *line))
                regressions += [f"{_label(row, results)}: {name} no longer holds" for row in turned]
    table = Table("before and after", ("scenario", "column", "before", "after", ""), tuple(lines))
    matched = len(both)
    gone = len(set(old) - set(configurations.values()))
    return Comparison(table, tuple(regressions), matched, len(pairs) - matched, gone)


def _column(name: str, pairs: Sequence[tuple[Before, Row]]) -> tuple[tuple[str, str, str] | None, list[Row]]:
    """Return before, after and mark of a column, and the rows whose flag turned."""
    column = COLUMNS[name]
    known = [(a[name], b[name], b) for a, b in pairs if a.get(name) is not None and b.get(name) is not None]
    if column.kind == "text" or not known:
        return None, []
    before, after = [a for a, _, _ in known], [b for _, b, _ in known]
    if column.kind == "flag":
        turned = [row for a, b, row in known if a and not b]
        mark = REGRESSION if turned else "better" if sum(after) > sum(before) else ""
        return (f"{sum(before)}/{len(before)}", f"{sum(after)}/{len(after)}", mark), turned
    old, new = float(np.mean(before)), float(np.mean(after))
    worse = (old - new) * column.better
    mark = "worse" if worse > NOTICED.get(column.kind, np.inf) * abs(old) else ""
    return (shown_value(old), shown_value(new), mark), []


def _label(row: Row, results: Results) -> str:
    return ", ".join(f"{name} {shown_value(row[name])}" for name in results.experiment.fields if name in row)
