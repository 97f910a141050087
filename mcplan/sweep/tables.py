"""Tables that sum an experiment up: a row per scenario or field, a column per result, cells over all seeds."""

import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mcplan.sweep.columns import COLUMNS
from mcplan.sweep.condition import Condition
from mcplan.sweep.results import Results, Row, groups, shown_value
from mcplan.sweep.schema import TableSpec
from mcplan.sweep.statistics import aggregate


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
    """Return the tables that the file asks for, or one over all that is swept."""
    spec, swept = results.experiment.spec, results.experiment.swept
    asked = spec.tables
    if not asked:
        given = results.experiment.fields
        values = tuple(name for name in results.shown if name not in given)
        asked = (TableSpec(rows=("scenario", *swept), values=values),)
    return [_table(table, results) for table in asked]


def legend(results: Results) -> str:
    """Return what the result columns of the tables are, and how a cell sums up."""
    spec = results.experiment.spec
    names = [name for table in spec.tables for name in (*table.values, *table.each)] or results.shown
    parts = []
    for name in dict.fromkeys(names):
        column = COLUMNS.get(name)
        if column is not None:
            unit = f" ({column.unit})" if column.unit else ""
            parts.append(f"{name}: {column.text}{unit}")
    how = (
        "Over several cases: rates with 95 % Wilson intervals, the worst margin or ratio, medians of counts and times."
    )
    return "; ".join(parts) + f". {how}"


def _table(spec: TableSpec, results: Results) -> Table:
    rows = chosen(results, spec.where)
    header = [*spec.rows, *spec.values]
    here = groups(rows, [spec.by]) if spec.by else {}
    places = [key[0] for key in groups(results.rows, [spec.by]) if key in here] if spec.by else []
    header += [
        f"{place} {name}" if len(spec.each) > 1 else shown_value(place) for place in places for name in spec.each
    ]
    cell = _cell if spec.against is None else _ratio_cell(spec, results, rows)
    body = []
    for key, members in groups(rows, spec.rows).items():
        cells = [shown_value(value) for value in key]
        cells += [_cell(name, members) for name in spec.values]
        split = groups(members, [spec.by]) if spec.by else {}
        cells += [cell(name, split.get((place,), [])) for place in places for name in spec.each]
        body.append(tuple(cells))
    return Table(spec.title, tuple(header), tuple(body))


def chosen(results: Results, where: str | None) -> list[Row]:
    """Return the rows for which a condition holds."""
    if where is None:
        return list(results.rows)
    condition = Condition(where, results.experiment.known)
    return [row for row in results.rows if condition.holds(row)]


def _cell(name: str, rows: Sequence[Row]) -> str:
    return aggregate(name, [row.get(name) for row in rows])


def _ratio_cell(spec: TableSpec, results: Results, rows: Sequence[Row]) -> Callable[[str, Sequence[Row]], str]:
    """Return what makes a cell of ratios: the median over cases of the result to that of the case they are against.

    That one is alike in all fields but ``by`` and those that vary with it along an axis.
    """
    varied = {spec.by, *(name for axis in results.experiment.axes if spec.by in axis.names for name in axis.names)}
    same = [name for name in results.experiment.fields if name not in varied]
    base = groups([row for row in rows if row.get(str(spec.by)) == spec.against], same)

    def cell(name: str, members: Sequence[Row]) -> str:
        pairs = [(row, other) for key, of in groups(members, same).items() for row in of for other in base.get(key, ())]
        known = [(row.get(name), other.get(name)) for row, other in pairs]
        ratios = [value / other for value, other in known if value is not None and other]
        return shown_value(float(np.median(ratios))) if ratios else "–"

    return cell


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
