"""Which variables an equality gives explicitly, found by structure alone.

Equality ``r`` gives variable ``j`` when its coefficient ``a_rj`` depends on no parameter and is not zero:

    x_j = -(b_r + sum_{k != j} a_rk x_k) / a_rj.

Each equality and each variable is used at most once, and the substitutions are acyclic: walked in the returned order,
every right-hand side holds only variables that are kept or were given before.
"""

from dataclasses import dataclass

import numpy as np

from mcplan.optimize.compiled.data_map import DataMap

SMALLEST_RATIO = 0.05
"""A pivot may be smaller than the other constant coefficients of its row by this factor at most (round-off growth)."""


@dataclass(frozen=True)
class Elimination:
    """Substitutions in the order in which they are evaluated.

    Parameters
    ----------
    variables, rows, pivots : of each substitution, the variable, its equality, and the position of ``a_rj``.
    kept : variables that remain, ordered for the condensed problem.
    kept_rows : equalities that remain.
    """

    variables: np.ndarray
    rows: np.ndarray
    pivots: np.ndarray
    kept: np.ndarray
    kept_rows: np.ndarray


def eliminate(data: DataMap) -> Elimination:
    """Choose substitutions greedily by the fill that they cause (Markowitz), as long as no cycle closes."""
    entries = data.row_entries
    counts = np.diff(data.A_indptr)
    candidates = []
    for row in range(data.equalities):
        constants = [(abs(data.constant(p)), p, j) for p, j in entries[row] if data.is_constant(p)]
        largest = max((size for size, _, _ in constants), default=0.0)
        for size, position, variable in constants:
            if size > 0.0 and size >= SMALLEST_RATIO * largest:
                fill = (len(entries[row]) - 1) * (int(counts[variable]) - 1)
                candidates.append((fill, int(counts[variable]), row, variable, position))
    candidates.sort()
    source: dict[int, tuple[int, int]] = {}
    used: set[int] = set()
    for _, _, row, variable, position in candidates:
        if row in used or variable in source:
            continue
        needs = [j for _, j in entries[row] if j != variable]
        if not _reaches(variable, needs, source, entries):
            source[variable] = (row, position)
            used.add(row)
    order = _evaluation_order(source, entries)
    kept = np.array([j for j in range(data.size) if j not in source], dtype=np.int64)
    return Elimination(
        variables=np.array(order, dtype=np.int64),
        rows=np.array([source[j][0] for j in order], dtype=np.int64),
        pivots=np.array([source[j][1] for j in order], dtype=np.int64),
        kept=kept,
        kept_rows=np.array([r for r in range(data.equalities) if r not in used], dtype=np.int64),
    )


def _reaches(target: int, start: list[int], source: dict[int, tuple[int, int]], entries) -> bool:
    """Tell whether evaluating one of ``start`` needs ``target``."""
    stack, seen = list(start), set(start)
    while stack:
        variable = stack.pop()
        if variable == target:
            return True
        if variable in source:
            for _, j in entries[source[variable][0]]:
                if j != variable and j not in seen:
                    seen.add(j)
                    stack.append(j)
    return False


def _evaluation_order(source: dict[int, tuple[int, int]], entries) -> list[int]:
    """Return the given variables such that each comes after those that it needs."""
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
