"""Condensation of a compiled QP: data map, substitutions and rows as the packed arrays of core.optimize.layout.

Two-sided rows: the inequalities of a QP become ``lower <= a'x <= upper``.

One-sided rows and variable bounds with the same left-hand side up to a constant factor, for all parameter values,
become one row; its bounds are the tightest of theirs. The number of rows halves.

Elimination: equality ``r`` determines variable ``j`` if the coefficient ``a_rj`` is constant and nonzero:

    x_j = -(b_r + sum_{k != j} a_rk x_k) / a_rj.

Each equality and each variable is used at most once, and the substitutions are acyclic: in the returned order every
right-hand side contains only variables that remain or were substituted before.
"""

from dataclasses import dataclass, field

import numpy as np

from mcplan.core.optimize import layout as lay
from mcplan.optimize.compiled.data_map import DataMap


@dataclass(frozen=True)
class RowBound:
    """Bound of one side of a row, ``factor * values[position]``, from one inequality of the problem.

    ``dual`` is the index of that inequality's multiplier among those of [A's rows, lower bounds, upper bounds]; the
    multiplier is ``|factor|`` times the magnitude of the row's.
    """

    position: int
    factor: float
    dual: int


@dataclass
class TwoSidedRow:
    """A two-sided row: its left-hand side as (position in ``values``, variable), position -1 for the coefficient 1."""

    entries: list[tuple[int, int]]
    lower: list[RowBound] = field(default_factory=list)
    upper: list[RowBound] = field(default_factory=list)


def merge_rows(data: DataMap) -> list[TwoSidedRow]:
    """Group the inequalities and the variable bounds by their left-hand sides."""
    rows: dict[tuple, tuple[TwoSidedRow, float]] = {}
    all_entries = data.row_entries
    for number in range(data.equalities, data.rows):
        entries = sorted(all_entries[number], key=lambda entry: entry[1])
        key, scale = _left_hand_side(data, entries)
        row, reference = rows.setdefault(key, (TwoSidedRow(entries), scale))
        ratio = scale / reference  # this row is ratio * row + b >= 0
        bound = RowBound(data.b + number, -1.0 / ratio, number)
        (row.lower if ratio > 0.0 else row.upper).append(bound)
    for variable in range(data.size):
        constant = data.S.shape[1] - 1
        for side, start in enumerate((data.lower, data.upper)):
            position = start + variable
            if data.is_constant(position) and abs(data.constant(position)) == float("inf"):
                continue
            key = ((variable, ((constant, 1.0),)),)
            row, reference = rows.setdefault(key, (TwoSidedRow([(-1, variable)]), 1.0))
            bound = RowBound(position, reference, data.rows + side * data.size + variable)
            (row.lower if (side == 0) == (reference > 0.0) else row.upper).append(bound)
    return [row for row, _ in rows.values()]


def _left_hand_side(data: DataMap, entries: list[tuple[int, int]]) -> tuple[tuple, float]:
    """Return a key that is the same for proportional left-hand sides, and the row's scale."""
    if not entries:
        return ("empty",), 1.0
    maps = [(variable, data.terms(position)) for position, variable in entries]
    scale = next((c for _, terms in maps for _, c in terms if c != 0.0), 1.0)
    return tuple((variable, tuple((p, c / scale) for p, c in terms)) for variable, terms in maps), scale


MIN_PIVOT_RATIO = 0.05
"""Smallest pivot, relative to the largest constant coefficient of its row; it limits the growth of rounding errors."""


@dataclass(frozen=True)
class Elimination:
    """Substitutions in the order in which they are evaluated.

    Parameters
    ----------
    variables, rows, pivots : of each substitution, the variable, its equality, and the position of ``a_rj``.
    remaining : variables that remain, ordered for the condensed problem.
    remaining_rows : equalities that remain.
    """

    variables: np.ndarray
    rows: np.ndarray
    pivots: np.ndarray
    remaining: np.ndarray
    remaining_rows: np.ndarray


def eliminate(data: DataMap) -> Elimination:
    """Choose substitutions greedily by the fill that they cause (Markowitz), as long as no cycle closes."""
    entries = data.row_entries
    counts = np.diff(data.A_indptr)
    candidates = []
    for row in range(data.equalities):
        constants = [(abs(data.constant(p)), p, j) for p, j in entries[row] if data.is_constant(p)]
        largest = max((size for size, _, _ in constants), default=0.0)
        for size, position, variable in constants:
            if size > 0.0 and size >= MIN_PIVOT_RATIO * largest:
                fill = (len(entries[row]) - 1) * (int(counts[variable]) - 1)
                candidates.append((fill, int(counts[variable]), row, variable, position))
    candidates.sort()
    source: dict[int, tuple[int, int]] = {}
    used: set[int] = set()
    for _, _, row, variable, position in candidates:
        if row in used or variable in source:
            continue
        needs = [j for _, j in entries[row] if j != variable]
        if not _depends_on(variable, needs, source, entries):
            source[variable] = (row, position)
            used.add(row)
    order = _evaluation_order(source, entries)
    remaining = np.array([j for j in range(data.size) if j not in source], dtype=np.int64)
    return Elimination(
        variables=np.array(order, dtype=np.int64),
        rows=np.array([source[j][0] for j in order], dtype=np.int64),
        pivots=np.array([source[j][1] for j in order], dtype=np.int64),
        remaining=remaining,
        remaining_rows=np.array([r for r in range(data.equalities) if r not in used], dtype=np.int64),
    )


def _depends_on(target: int, start: list[int], source: dict[int, tuple[int, int]], entries) -> bool:
    """Return whether the evaluation of one of the variables ``start`` depends on ``target``."""
    stack, visited = list(start), set(start)
    while stack:
        variable = stack.pop()
        if variable == target:
            return True
        if variable in source:
            for _, j in entries[source[variable][0]]:
                if j != variable and j not in visited:
                    visited.add(j)
                    stack.append(j)
    return False


def _evaluation_order(source: dict[int, tuple[int, int]], entries) -> list[int]:
    """Return the substituted variables in topological order."""
    order: list[int] = []
    done: set[int] = set()
    for first in sorted(source):
        stack = [(first, False)]
        while stack:
            variable, expanded = stack.pop()
            if variable in done:
                continue
            if expanded:
                done.add(variable)
                order.append(variable)
                continue
            stack.append((variable, True))
            stack.extend(
                (j, False) for _, j in entries[source[variable][0]] if j in source and j not in done and j != variable
            )
    return order


WIDE_FRACTION = 0.4
"""An eliminated variable whose substitution fills at least this share of its row uses the blocked update of H."""


@dataclass(frozen=True)
class Condensed:
    """The packed program, a new workspace, and the types of its rows.

    Parameters
    ----------
    program : (entries,) int64.
    work : (entries,) float64.
    equality : (rows,) bool: which of the two-sided rows are equalities.
    variables, rows : size of the dense QP.
    order : variables in the order of its unknowns z.
    """

    program: np.ndarray
    work: np.ndarray
    equality: np.ndarray
    variables: int
    rows: int
    order: np.ndarray

    def part(self, which: int) -> np.ndarray:
        """Return a view of one part of the workspace."""
        start = self.program[lay.OFFSETS] + which
        return self.work[self.program[start] : self.program[start + 1]]


def build_program(data: DataMap, elimination: Elimination) -> Condensed:
    """Lay out the program and a workspace for one structure."""
    entries = data.row_entries
    rows = [_equality(data, entries, r) for r in elimination.remaining_rows] + merge_rows(data)
    equality = np.arange(len(rows)) < len(elimination.remaining_rows)
    needs = _dependencies(elimination, entries)
    order = _variable_order(elimination, rows, needs)
    reference = np.empty(data.size, np.int64)
    reference[order] = np.arange(len(order))
    reference[elimination.variables] = -np.arange(len(elimination.variables)) - 1
    supports = [np.sort(reference[np.fromiter(s, np.int64, len(s))]) for s in needs]

    first = [_first_column(row, reference, supports, len(order)) for row in rows]
    by_first = np.argsort(first, kind="stable")
    rows, equality = [rows[i] for i in by_first], equality[by_first]
    prefix = np.searchsorted(np.array(first, dtype=float)[by_first], np.arange(len(order)), side="right")

    sections: dict[int, np.ndarray] = {}
    single, coefficients, constants = _gather(data, sections)
    _substitutions(data, elimination, entries, reference, sections)
    sections[lay.SUPPORT_POINTER], sections[lay.SUPPORT] = _csr(supports)
    sections[lay.REFERENCE] = reference
    _cost(data, reference, supports, len(order), sections)
    factors = _rows(rows, reference, sections)
    sections[lay.PREFIX] = prefix
    sections[lay.A_POINTER], sections[lay.A_START], sections[lay.A_ROW] = _runs(data)
    sections[lay.P_POINTER], sections[lay.P_ROWS] = data.P_indptr, data.P_indices
    substituted = len(elimination.variables)
    sections[lay.SIZES] = np.array([
        data.size, len(order), substituted, len(rows), data.equalities, data.inequalities,
        data.b, data.P, data.q, data.d, data.lower, data.upper,
    ])  # fmt: skip
    lengths = _part_lengths(data, len(order), substituted, len(rows), len(factors))
    lengths[lay.SINGLE_COEFFICIENTS], lengths[lay.COEFFICIENTS] = len(single), len(coefficients)
    sections[lay.OFFSETS] = np.concatenate([[0], np.cumsum(lengths)])
    header = lay.SECTIONS + 1
    starts = header + np.concatenate([[0], np.cumsum([len(sections[k]) for k in range(lay.SECTIONS)])])
    program = np.concatenate([starts] + [sections[k] for k in range(lay.SECTIONS)]).astype(np.int64)
    condensed = Condensed(program, np.zeros(sum(lengths)), equality, len(order), len(rows), order)
    condensed.part(lay.SINGLE_COEFFICIENTS)[:] = single
    condensed.part(lay.COEFFICIENTS)[:] = coefficients
    condensed.part(lay.FACTORS)[:] = factors
    condensed.part(lay.VALUES)[:] = constants
    program.flags.writeable = False
    return condensed


def _part_lengths(data: DataMap, n: int, substituted: int, rows: int, factors: int) -> list[int]:
    """Return the lengths of the parts of the workspace, in the order of core.optimize.layout."""
    kkt_size = n + min(rows, n) + 6  # variables and active rows are each padded to a multiple of four
    length = dict.fromkeys(range(lay.PARTS), rows)
    length |= {
        lay.FACTORS: factors, lay.VALUES: data.S.shape[0], lay.T: substituted * n,
        lay.T0: substituted, lay.H: n * n, lay.G: n, lay.SCRATCH: n, lay.COLUMNS: n * rows, lay.M: rows * n, lay.V: n,
        lay.Z: n, lay.X: data.size, lay.DUAL: data.rows + 2 * data.size, lay.GRADIENT: 2 * data.size,
        lay.ACTIVITY: 2 * data.rows, lay.RESIDUAL: 8, lay.PROXIMAL: n,
        lay.KKT: kkt_size * (kkt_size + 4), lay.KKT_SOLUTION: kkt_size,
    }  # fmt: skip
    return [length[k] for k in range(lay.PARTS)]


def _csr(lists) -> tuple[np.ndarray, np.ndarray]:
    """Return pointer and concatenation of some integer lists."""
    pointer = np.concatenate([[0], np.cumsum([len(items) for items in lists])]).astype(np.int64)
    flat = [np.asarray(items, dtype=np.int64) for items in lists]
    return pointer, np.concatenate(flat) if flat else np.zeros(0, np.int64)


def _runs(data: DataMap) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cut the columns of ``A`` into runs; return the columns' first runs, the runs' first entries, and their rows."""
    rows = data.A_indices
    starts = np.ones(len(rows), bool)
    starts[1:] = (np.diff(rows) != 1) | (rows[1:] == data.equalities)
    starts[data.A_indptr[:-1][np.diff(data.A_indptr) > 0]] = True
    first = np.flatnonzero(starts)
    return np.searchsorted(first, data.A_indptr), np.append(first, len(rows)), rows[first]


def _equality(data: DataMap, entries, row: int) -> TwoSidedRow:
    """Return an equality that was not used for a substitution as a row with equal bounds."""
    bound = RowBound(data.b + row, -1.0, row)
    return TwoSidedRow(entries[row], [bound], [bound])


def _dependencies(elimination: Elimination, entries) -> list[set[int]]:
    """Return for each eliminated variable the remaining variables that it can depend on."""
    index = {int(j): e for e, j in enumerate(elimination.variables)}
    supports: list[set[int]] = []
    for variable, row in zip(elimination.variables.tolist(), elimination.rows.tolist(), strict=True):
        support: set[int] = set()
        for _, j in entries[row]:
            if j != variable:
                support |= supports[index[j]] if j in index else {j}
        supports.append(support)
    return supports


def _variable_order(elimination: Elimination, rows: list[TwoSidedRow], supports: list[set[int]]) -> np.ndarray:
    """Order the remaining variables so that short rows start late, which shortens the triangular solves."""
    index = {int(j): e for e, j in enumerate(elimination.variables)}
    uses = dict.fromkeys(elimination.remaining.tolist(), 0)
    for row in rows:
        columns: set[int] = set()
        for _, j in row.entries:
            columns |= supports[index[j]] if j in index else {j}
        if len(columns) <= len(uses) // 4:
            for j in columns:
                uses[j] += 1
    return np.array(sorted(uses, key=lambda j: (uses[j], j)), dtype=np.int64)


def _first_column(row: TwoSidedRow, reference, supports, columns: int) -> int:
    """Return the first column of the condensed row that can be non-zero; ``columns`` if the row is zero."""
    firsts = [columns]
    for _, j in row.entries:
        r = int(reference[j])
        if r >= 0:
            firsts.append(r)
        elif len(supports[-r - 1]):
            firsts.append(int(supports[-r - 1][0]))
    return min(firsts)


def _gather(data: DataMap, sections) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Split the data map: entries that depend on parameters become a program, constants are computed here."""
    S, last = data.S, data.S.shape[1] - 1
    counts, varying = np.diff(S.indptr), np.diff(S[:, :last].tocsr().indptr)
    single, several = np.flatnonzero((varying == 1) & (counts == 1)), np.flatnonzero((varying > 0) & (counts > 1))
    sections[lay.SINGLE_ROWS], sections[lay.SINGLE_COLUMNS] = single, S[single].indices
    sections[lay.GATHER_ROWS] = several
    sections[lay.GATHER_POINTER], sections[lay.GATHER_COLUMNS] = S[several].indptr, S[several].indices
    constants = np.zeros(S.shape[0])
    column = S[:, [last]].tocoo()
    constants[column.row] = column.data
    return S[single].data.copy(), S[several].data.copy(), constants


def _substitutions(data: DataMap, elimination: Elimination, entries, reference, sections) -> None:
    """Lay out the substitutions; a ``reference`` is the column of a remaining variable, or negative."""
    positions, references, remaining = [], [], []
    for variable, row in zip(elimination.variables.tolist(), elimination.rows.tolist(), strict=True):
        others = sorted(((p, reference[j]) for p, j in entries[row] if j != variable), key=lambda other: other[1] < 0)
        remaining.append(sum(r >= 0 for _, r in others))
        positions.append([p for p, _ in others])
        references.append([r for _, r in others])
    sections[lay.ELIMINATED_PIVOT] = elimination.pivots
    sections[lay.ELIMINATED_RHS] = data.b + elimination.rows
    sections[lay.ELIMINATED_POINTER], sections[lay.ELIMINATED_POSITION] = _csr(positions)
    sections[lay.ELIMINATED_SPLIT] = sections[lay.ELIMINATED_POINTER][:-1] + np.array(remaining, np.int64)
    sections[lay.ELIMINATED_REFERENCE] = _csr(references)[1]
    sections[lay.ELIMINATED_ROW], sections[lay.ELIMINATED_VARIABLE] = elimination.rows, elimination.variables


def _cost(data: DataMap, reference, supports, columns: int, sections) -> None:
    """Lay out the rows of P; diagonal rows of wide substitutions (`WIDE_FRACTION`) have their own section."""
    wide, wide_position, owners, positions, others = [], [], [], [], []
    for i in range(data.size):
        span = range(data.P_indptr[i], data.P_indptr[i + 1])  # column i, which is row i: P is symmetric
        r = int(reference[i])
        diagonal = len(span) == 1 and data.P_indices[span[0]] == i
        if diagonal and r < 0 and len(supports[-r - 1]) >= WIDE_FRACTION * columns:
            wide.append(-r - 1)
            wide_position.append(data.P + span[0])
        elif len(span):
            owners.append(r)
            positions.append([data.P + k for k in span])
            others.append([reference[data.P_indices[k]] for k in span])
    sections[lay.WIDE_SUPPORT], sections[lay.WIDE_POSITION] = (
        np.array(wide, np.int64),
        np.array(wide_position, np.int64),
    )
    sections[lay.COST_REFERENCE] = np.array(owners, np.int64)
    sections[lay.COST_POINTER], sections[lay.COST_POSITION] = _csr(positions)
    sections[lay.COST_OTHER] = _csr(others)[1]


def _rows(rows: list[TwoSidedRow], reference, sections) -> np.ndarray:
    """Lay out left-hand sides and bounds; return the factors of the bounds."""
    sections[lay.ROW_POINTER], sections[lay.ROW_POSITION] = _csr([[p for p, _ in row.entries] for row in rows])
    sections[lay.ROW_REFERENCE] = _csr([[reference[j] for _, j in row.entries] for row in rows])[1]
    sides = [side for row in rows for side in (row.lower, row.upper)]
    sections[lay.LIMIT_POINTER], sections[lay.LIMIT_POSITION] = _csr([[bound.position for bound in s] for s in sides])
    sections[lay.LIMIT_DUAL] = _csr([[bound.dual for bound in s] for s in sides])[1]
    return np.array([bound.factor for s in sides for bound in s], dtype=float)
