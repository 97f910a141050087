"""HTML representation of objects in notebooks: repr, tables, collapsible parts."""

from collections.abc import Iterable, Sequence
from html import escape


def html_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table of text cells; numbers are right-aligned."""
    lines = [_row("th", header), *(_row("td", row) for row in rows)]
    return f"<table>{''.join(lines)}</table>"


def html_of(item: object, *tables: str) -> str:
    """Return the repr of an object as HTML, followed by further HTML."""
    return f"<b>{escape(repr(item))}</b>{''.join(tables)}"


def folded(title: str, content: str) -> str:
    """Return a collapsible part."""
    return f"<details><summary>{escape(title)}</summary>{content}</details>"


def numbers(values: Iterable[float]) -> str:
    """Format numbers with four digits."""
    return ", ".join(f"{value + 0.0:.4g}" for value in values)


def _row(kind: str, cells: Sequence[object]) -> str:
    """Return a row of cells ``th`` or ``td``."""
    return "<tr>" + "".join(_cell(kind, cell) for cell in cells) + "</tr>"


def _cell(kind: str, cell: object) -> str:
    text = "" if cell is None else f"{cell:.4g}" if isinstance(cell, float) else str(cell)
    alignment = "right" if isinstance(cell, int | float) else "left"
    return f"<{kind} style='text-align:{alignment}'>{escape(text)}</{kind}>"
