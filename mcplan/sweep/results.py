"""Results of an experiment: one row per case with its inputs and results."""

import csv
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcplan.errors import InputError
from mcplan.sweep.columns import COLUMNS, DEFAULT_COLUMNS, kind_of, with_flags
from mcplan.sweep.experiment import Experiment
from mcplan.sweep.store import FAILED, Store
from mcplan.util.files import atomic_write
from mcplan.util.html_table import html_of, html_table

Row = dict[str, Any]
"""Inputs and results of a case, by column."""

MAX_NOTEBOOK_ROWS = 60
"""Maximum number of rows that a notebook shows."""


@dataclass(frozen=True, repr=False)
class Results:
    """The rows of an experiment.

    Parameters
    ----------
    experiment : the experiment.
    rows : one for each case in the store, in the order of the experiment. Each has ``case`` (the hash), the fields of
        the case, ``status``, and result columns; flags of stages that it did not reach are false.
    """

    experiment: Experiment
    rows: tuple[Row, ...]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def failed(self) -> int:
        """Number of cases without a verdict."""
        return sum(row["status"] == FAILED for row in self.rows)

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that occur in a row, in the order of ``COLUMNS``."""
        found = {name for row in self.rows for name in row}
        return ("case", *self.experiment.fields, "status", *(name for name in COLUMNS if name in found))

    @property
    def shown(self) -> tuple[str, ...]:
        """Inputs, and the columns listed in the file."""
        collect = self.experiment.spec.collect or DEFAULT_COLUMNS
        return tuple(dict.fromkeys([*self.experiment.fields, *collect]))

    def csv(self) -> str:
        """Return the table as CSV: numbers with all digits, lists as JSON, missing values empty."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows([_cell(row.get(name)) for name in self.columns] for row in self.rows)
        return text.getvalue()

    def to_pandas(self) -> Any:
        """Return a ``pandas.DataFrame``: one row per case with its inputs, ``success`` and the other results."""
        try:
            import pandas
        except ModuleNotFoundError as error:
            raise InputError("to_pandas takes the library pandas: pip install pandas") from error
        return pandas.DataFrame([{name: row.get(name) for name in self.columns} for row in self.rows])

    def __repr__(self) -> str:
        successes = sum(bool(row.get("success")) for row in self.rows)
        return f"Results({self.experiment.name!r}, {len(self)} of {len(self.experiment)} cases, {successes} succeeded)"

    def _repr_html_(self) -> str:
        """Return a table for notebooks: the first cases, with the columns that the experiment lists."""
        rows = [[shown_value(row.get(name)) for name in self.shown] for row in self.rows[:MAX_NOTEBOOK_ROWS]]
        more = f"<p>and {len(self) - MAX_NOTEBOOK_ROWS} more</p>" if len(self) > MAX_NOTEBOOK_ROWS else ""
        return html_of(self, html_table(self.shown, rows), more)

    def write_parquet(self, path: Path) -> None:
        """Write the table as Parquet; lists, and columns of mixed types, as JSON texts.

        Raises
        ------
        InputError
            pyarrow is not installed.
        """
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError:
            raise InputError("Parquet needs the package pyarrow: pip install pyarrow") from None
        arrays = {name: pa.array(_typed(name, [row.get(name) for row in self.rows])) for name in self.columns}
        with atomic_write(path) as partial:
            pq.write_table(pa.table(arrays), partial)


def collect_results(experiment: Experiment, store: Store) -> Results:
    """Return the rows of the cases that the store has."""
    found = store.results(case.id for case in experiment.cases)
    known = ({"case": case.id, **case.fields, **found[case.id]} for case in experiment.cases if case.id in found)
    return Results(experiment, tuple(with_flags(row, experiment.spec.steps) for row in known))


def shown_value(value: Any) -> str:
    """Format a value for tables."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        return ", ".join(f"{key} {json.dumps(part)}" for key, part in value.items())
    return json.dumps(value) if isinstance(value, list) else str(value)


def groups(rows: Iterable[Row], names: Sequence[str]) -> dict[tuple[Any, ...], list[Row]]:
    """Group rows by their values of some columns, in the order of first occurrence."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(_group_key(row.get(name)) for name in names), []).append(row)
    return found


def _group_key(value: Any) -> Any:
    """Return a dictionary key for a value: in Python 1 equals True, and lists are not hashable."""
    return shown_value(value) if isinstance(value, (bool, list, dict)) else value


def _cell(value: Any) -> str:
    """Format a value for CSV."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value)


def _typed(name: str, values: list[Any]) -> list[Any]:
    """Convert the values of a column to one type."""
    kind = kind_of(name, values)
    if kind in ("flag", "text"):
        return values if kind == "flag" else [None if value is None else _cell(value) for value in values]
    return [None if value is None else float(value) for value in values]
