"""Whether the columns, figures, tables and thresholds of an experiment name what there is."""

from collections.abc import Iterable, Iterator

from mcplan.document import Document
from mcplan.document.messages import closest
from mcplan.errors import InputError, Problem
from mcplan.sweep.axes import Key, axes_of, shown_name
from mcplan.sweep.columns import COLUMNS, Kind, kind_of
from mcplan.sweep.condition import Condition
from mcplan.sweep.expectation import expectations, parse_threshold
from mcplan.sweep.schema import ExperimentSpec


def output_problems(document: Document, spec: ExperimentSpec, known: Iterable[str]) -> Iterator[Problem]:
    """Yield unknown columns, texts in place of numbers, conditions that cannot be read, thresholds that are none."""
    names = tuple(known)

    def columns(found: Iterable[tuple[Key, str | None]]) -> Iterator[Problem]:
        for key, name in found:
            if name is not None and name not in names:
                yield document.problem(key, f"unknown column `{name}`{closest(name, names)}")

    def condition(key: Key, text: str | None) -> Iterator[Problem]:
        if text is not None:
            try:
                Condition(text, names)
            except InputError as error:
                yield document.problem(key, str(error))

    def number(key: Key, name: str) -> Iterator[Problem]:
        if name in names and _kind(spec, name) == "text":
            yield document.problem(key, f"`{name}` is a text; expected a number or what is true or false, as `success`")

    yield from columns((("collect", k), name) for k, name in enumerate(spec.collect))
    if spec.collect and not spec.tables and {*spec.collect} <= {*names} - {*COLUMNS}:
        text = "names no result, so the table has no columns; expected one such as `success`, or `tables`"
        yield document.problem(("collect",), text)
    for k, figure in enumerate(spec.figures):
        yield from columns((("figures", k, key), getattr(figure, key)) for key in ("x", "y", "by", "value"))
        shown = "y" if figure.value is None else "value"
        yield from number(("figures", k, shown), getattr(figure, shown))
        yield from condition(("figures", k, "where"), figure.where)
    for k, table in enumerate(spec.tables):
        for part in ("rows", "values", "each"):
            yield from columns((("tables", k, part, i), name) for i, name in enumerate(getattr(table, part)))
        yield from columns([(("tables", k, "by"), table.by)])
        yield from _against_problems(document, spec, k)
        yield from condition(("tables", k, "where"), table.where)
    for key, expect in expectations(spec):
        yield from condition((*key, "where"), expect.where)
        place = key if isinstance(spec.expect, dict) else (*key, "columns")
        for name, text in expect.columns.items():
            yield from columns([((*place, name), name)])
            yield from number((*place, name), name)
            try:
                parse_threshold(text)
            except InputError as error:
                yield document.problem((*place, name), str(error))


def _kind(spec: ExperimentSpec, name: str) -> Kind:
    """Return the kind of a result, or of a field that a case is given."""
    if name == "seed":
        return "count"
    return kind_of(name, [point[name] for axis in axes_of(spec) for point in axis.points if name in point])


def _against_problems(document: Document, spec: ExperimentSpec, index: int) -> Iterator[Problem]:
    """Yield what ratios cannot be to, and results that have none."""
    table = spec.tables[index]
    if table.against is None:
        return
    found = [point[table.by] for axis in axes_of(spec) for point in axis.points if table.by in point]
    if table.by == "scenario":
        found = [shown_name(name) for name in spec.scenarios]
    if table.against not in found:
        near = closest(str(table.against), map(str, found))
        yield document.problem(("tables", index, "against"), f"{table.against}: no value of `{table.by}`{near}")
    for i, name in enumerate(table.each):
        if name in COLUMNS and COLUMNS[name].kind in ("flag", "text"):
            yield document.problem(("tables", index, "each", i), f"`{name}` is no number, so it has no ratio")
