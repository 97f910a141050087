"""The inequalities of a QP as two-sided rows: ``lower <= a'x <= upper``.

One-sided rows and variable bounds with the same left-hand side up to a constant factor, for all parameter values,
become one row; its bounds are the tightest of theirs. What was the smaller problem twice becomes half as large.
"""

from dataclasses import dataclass, field

from mcplan.optimize.compiled.data_map import DataMap


@dataclass(frozen=True)
class Limit:
    """One side of a row: ``factor * values[position]``, from one inequality of the problem.

    ``dual`` is the index of that inequality's multiplier among those of [A's rows, lower bounds, upper bounds]; the
    multiplier is ``|factor|`` times the magnitude of the row's.
    """

    position: int
    factor: float
    dual: int


@dataclass
class Row:
    """A two-sided row: its left-hand side as (position in ``values``, variable), position -1 for the coefficient 1."""

    entries: list[tuple[int, int]]
    lower: list[Limit] = field(default_factory=list)
    upper: list[Limit] = field(default_factory=list)


def merge_rows(data: DataMap) -> list[Row]:
    """Group the inequalities and the variable bounds by their left-hand sides."""
    rows: dict[tuple, tuple[Row, float]] = {}
    all_entries = data.row_entries
    for number in range(data.equalities, data.rows):
        entries = sorted(all_entries[number], key=lambda entry: entry[1])
        key, scale = _left_hand_side(data, entries)
        row, reference = rows.setdefault(key, (Row(entries), scale))
        ratio = scale / reference  # this row is ratio * row + b >= 0
        limit = Limit(data.b + number, -1.0 / ratio, number)
        (row.lower if ratio > 0.0 else row.upper).append(limit)
    for variable in range(data.size):
        constant = data.S.shape[1] - 1
        for side, start in enumerate((data.lower, data.upper)):
            position = start + variable
            if data.is_constant(position) and abs(data.constant(position)) == float("inf"):
                continue
            key = ((variable, ((constant, 1.0),)),)
            row, reference = rows.setdefault(key, (Row([(-1, variable)]), 1.0))
            limit = Limit(position, reference, data.rows + side * data.size + variable)
            (row.lower if (side == 0) == (reference > 0.0) else row.upper).append(limit)
    return [row for row, _ in rows.values()]


def _left_hand_side(data: DataMap, entries: list[tuple[int, int]]) -> tuple[tuple, float]:
    """Return a key that is the same for proportional left-hand sides, and the row's scale."""
    if not entries:
        return ("empty",), 1.0
    maps = [(variable, data.terms(position)) for position, variable in entries]
    scale = next((c for _, terms in maps for _, c in terms if c != 0.0), 1.0)
    return tuple((variable, tuple((p, c / scale) for p, c in terms)) for variable, terms in maps), scale
