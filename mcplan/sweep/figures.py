"""Figures of an experiment: curves with intervals, and heat maps, from its rows."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from mcplan.sweep.columns import COLUMNS, kind_of
from mcplan.sweep.results import Results, Row, groups, shown_value
from mcplan.sweep.schema import FigureSpec
from mcplan.sweep.tables import Interval, interval_of, select_rows
from mcplan.view.charts import Curve, Figure, curve_chart, heat_chart


def figures_of(results: Results) -> dict[str, Figure]:
    """Return the figures that have data, by file name."""
    figures = {}
    for number, spec in enumerate(results.experiment.spec.figures, 1):
        rows = select_rows(results, spec.where)
        figure = _curves(spec, rows) if spec.value is None else _heat(spec, rows)
        if figure is not None:
            names = (spec.value or spec.y, spec.x, spec.by or (spec.y if spec.value else ""))
            name = "-".join(re.sub(r"\W+", "_", part).strip("_") for part in names if part)
            figures[f"{number}-{name}"] = figure
    return figures


def _curves(spec: FigureSpec, rows: Sequence[Row]) -> Figure | None:
    known = [row for row in rows if row.get(spec.y) is not None and row.get(spec.x) is not None]
    if not known:
        return None
    kind = kind_of(spec.y, [row[spec.y] for row in known])
    if kind == "text":
        return None
    numbers = all(_is_number(row[spec.x]) for row in known)
    curves = []
    for key, members in groups(known, [spec.by] if spec.by else []).items():
        label = shown_value(key[0]) if key else ""
        points = groups(members, [spec.x])
        intervals = [interval_of(kind, [row[spec.y] for row in cases]) for cases in points.values()]
        x = [value if numbers else shown_value(value) for (value,) in points]
        curves.append(_curve(label, x, intervals))
    return curve_chart(curves, _label(spec.x), _label(spec.y), spec.title or _title(spec), rate=kind == "flag")


def _curve(label: str, x: list[Any], intervals: list[Interval]) -> Curve:
    columns = np.array([[interval.value, interval.low, interval.high] for interval in intervals])
    return Curve(label, x, *columns.T)


def _heat(spec: FigureSpec, rows: Sequence[Row]) -> Figure | None:
    assert spec.value is not None
    known = [row for row in rows if row.get(spec.value) is not None]
    if not known:
        return None
    kind = kind_of(spec.value, [row[spec.value] for row in known])
    if kind == "text":
        return None
    x, y = (_ticks([key[0] for key in groups(known, [name])]) for name in (spec.x, spec.y))
    values = np.full((len(y), len(x)), np.nan)
    for (i, j), members in groups(known, [spec.x, spec.y]).items():
        values[y.index(j), x.index(i)] = interval_of(kind, [row[spec.value] for row in members]).value
    title = spec.title or f"{spec.value} over {spec.x} and {spec.y}"
    return heat_chart(
        values, [shown_value(v) for v in x], [shown_value(v) for v in y], _label(spec.x), _label(spec.y),
        _label(spec.value), title, rate=kind == "flag",
    )  # fmt: skip


def _ticks(values: list[Any]) -> list[Any]:
    """Return numbers sorted, other values in their order."""
    return sorted(values) if all(map(_is_number, values)) else values


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _label(name: str) -> str:
    unit = COLUMNS[name].unit if name in COLUMNS else ""
    return f"{name} [{unit}]" if unit else name


def _title(spec: FigureSpec) -> str:
    return f"{spec.y} over {spec.x}" + (f", by {spec.by}" if spec.by else "")
