"""Summary tables of an experiment, with confidence intervals: rows by scenario or field, a column per result."""

import html
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm, t

from mcplan.sweep.columns import COLUMNS, Kind, kind_of
from mcplan.sweep.condition import Condition
from mcplan.sweep.results import Results, Row, groups, shown_value
from mcplan.sweep.schema import TableSpec

CONFIDENCE = 0.95
"""Confidence level of all intervals."""

MAX_TEXTS = 3
"""Maximum number of different texts that a cell lists."""


@dataclass(frozen=True)
class Interval:
    """A value and its confidence interval (``CONFIDENCE``)."""

    value: float
    low: float
    high: float


def wilson(successes: int, count: int) -> Interval:
    """Return the success rate with Wilson's interval, which is valid for few cases, and for rates of 0 and 1.

        (p + z²/2n ± z sqrt(p (1 - p)/n + z²/4n²)) / (1 + z²/n),    p = successes / n, n = count,

    where z is the two-sided quantile of the normal distribution (1.96 for 95 %).

    Raises
    ------
    ValueError
        Without a case, or with more successes than cases.
    """
    if not 0 <= successes <= count or count == 0:
        raise ValueError(f"{successes} successes of {count}")
    z, p = float(norm.ppf(0.5 + CONFIDENCE / 2)), successes / count
    centre = (p + z**2 / (2 * count)) / (1 + z**2 / count)
    half_width = z / (1 + z**2 / count) * np.sqrt(p * (1 - p) / count + z**2 / (4 * count**2))
    low = 0.0 if successes == 0 else float(centre - half_width)  # exact: rounding would leave 1e-17
    high = 1.0 if successes == count else float(centre + half_width)
    return Interval(p, low, high)


def mean_interval(values: Sequence[float]) -> Interval:
    """Return the mean with Student's interval; of one value, an interval of zero width."""
    array = np.asarray(values, dtype=float)
    mean = float(array.mean())
    if len(array) < 2:
        return Interval(mean, mean, mean)
    half_width = float(t.ppf(0.5 + CONFIDENCE / 2, len(array) - 1) * array.std(ddof=1) / np.sqrt(len(array)))
    return Interval(mean, mean - half_width, mean + half_width)


def interval_of(kind: Kind, values: Sequence[Any]) -> Interval:
    """Return the rate of a flag or the mean of numbers, with its interval."""
    return wilson(sum(map(bool, values)), len(values)) if kind == "flag" else mean_interval(values)


def aggregate(name: str, values: Sequence[Any]) -> str:
    """Return the text of a table cell that summarizes many cases.

    Flags: the rate with Wilson's interval. Margins and ratios: the worst. Counts and clock times: the median. Texts:
    the most frequent ones with their counts.
    """
    present = [value for value in values if value is not None]
    if not present:
        return "–"
    kind = kind_of(name, present)
    if len(present) == 1 and len(values) == 1:
        return shown_value(present[0])
    if kind == "flag":
        rate = wilson(sum(present), len(present))
        return f"{sum(present)}/{len(present)} ({100 * rate.low:.0f}–{100 * rate.high:.0f} %)"
    if kind == "text":
        texts = Counter(str(value) for value in present if value != "").most_common()
        listed = [f"{count} × {text}" for text, count in texts[:MAX_TEXTS]]
        return "; ".join([*listed, f"{len(texts) - MAX_TEXTS} others"] if len(texts) > MAX_TEXTS else listed) or "none"
    number = {"margin": min, "ratio": max}.get(kind, np.median)(present)
    return shown_value(float(number))


@dataclass(frozen=True)
class Table:
    """A table of texts."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def markdown(self) -> str:
        """Return the table as Markdown."""
        lines = [_line(self.header), "|" + "---|" * len(self.header), *map(_line, self.rows)]
        return (f"**{self.title}**\n\n" if self.title else "") + "\n".join(lines) + "\n"

    def html(self) -> str:
        """Return the table as HTML."""
        head = "".join(f"<th>{html.escape(text)}</th>" for text in self.header)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(text)}</td>" for text in row) + "</tr>\n" for row in self.rows
        )
        caption = f"<caption>{html.escape(self.title)}</caption>" if self.title else ""
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table>\n"


def tables_of(results: Results) -> list[Table]:
    """Return the tables defined in the file; by default one table over all swept fields."""
    spec, swept = results.experiment.spec, results.experiment.swept
    specs = spec.tables
    if not specs:
        inputs = results.experiment.fields
        values = tuple(name for name in results.shown if name not in inputs)
        specs = (TableSpec(rows=("scenario", *swept), values=values),)
    return [_table(table, results) for table in specs]


def legend(results: Results) -> str:
    """Return the descriptions of the result columns, and how cells summarize cases."""
    spec = results.experiment.spec
    names = [name for table in spec.tables for name in (*table.values, *table.each)] or results.shown
    parts = []
    for name in dict.fromkeys(names):
        column = COLUMNS.get(name)
        if column is not None:
            unit = f" ({column.unit})" if column.unit else ""
            parts.append(f"{name}: {column.text}{unit}")
    rules = (
        "Over several cases: rates with 95 % Wilson intervals, the worst margin or ratio, medians of counts and times."
    )
    return "; ".join(parts) + f". {rules}"


def _table(spec: TableSpec, results: Results) -> Table:
    rows = select_rows(results, spec.where)
    header = [*spec.rows, *spec.values]
    column_groups = groups(rows, [spec.by]) if spec.by else {}
    keys = [key[0] for key in groups(results.rows, [spec.by]) if key in column_groups] if spec.by else []
    header += [f"{by} {name}" if len(spec.each) > 1 else shown_value(by) for by in keys for name in spec.each]
    cell = _cell if spec.against is None else _ratio_cell(spec, results, rows)
    body = []
    for key, members in groups(rows, spec.rows).items():
        cells = [shown_value(value) for value in key]
        cells += [_cell(name, members) for name in spec.values]
        members_by = groups(members, [spec.by]) if spec.by else {}
        cells += [cell(name, members_by.get((by,), [])) for by in keys for name in spec.each]
        body.append(tuple(cells))
    return Table(spec.title, tuple(header), tuple(body))


def select_rows(results: Results, where: str | None) -> list[Row]:
    """Return the rows for which a condition holds."""
    if where is None:
        return list(results.rows)
    condition = Condition(where, results.experiment.known)
    return [row for row in results.rows if condition.holds(row)]


def _cell(name: str, rows: Sequence[Row]) -> str:
    return aggregate(name, [row.get(name) for row in rows])


def _ratio_cell(spec: TableSpec, results: Results, rows: Sequence[Row]) -> Callable[[str, Sequence[Row]], str]:
    """Return a function that formats a cell of ratios: the median over cases of result / result of the reference case.

    The reference case has the same fields, except ``by`` and those that vary with it along an axis.
    """
    varied = {spec.by, *(name for axis in results.experiment.axes if spec.by in axis.names for name in axis.names)}
    matching = [name for name in results.experiment.fields if name not in varied]
    reference_rows = groups([row for row in rows if row.get(str(spec.by)) == spec.against], matching)

    def cell(name: str, members: Sequence[Row]) -> str:
        pairs = [
            (row, reference)
            for key, same in groups(members, matching).items()
            for row in same
            for reference in reference_rows.get(key, ())
        ]
        values = [(row.get(name), reference.get(name)) for row, reference in pairs]
        ratios = [value / base for value, base in values if value is not None and base]
        return shown_value(float(np.median(ratios))) if ratios else "–"

    return cell


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
