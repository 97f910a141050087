"""Primal simplex method with bounded variables, for the many small linear programs of static equilibrium.

    minimise  c' x   subject to   A x = b,   0 <= x <= upper         A (m, n) with m of 6 to 50 and n of some hundred

The tableau ``T`` (m + 1, 1 + m + capacity) holds ``B^-1 [b, 1, A]`` over the basis ``B``, and the reduced costs in its
last row; column 0 is the right-hand side, columns ``1 .. m`` belong to the artificial variables of phase 1 and so have
``B^-1`` itself. With this block, columns can be appended to a solved program (column generation), and another cost can
be minimised from the last optimum. A variable at its upper bound is replaced by its distance from the bound, so that
all variables outside the basis are zero. An artificial variable that is still basic after phase 1 (a redundant row)
gets the upper bound zero. Variables that are no longer needed can get it too (`fix_at_zero`).

Most programs are nearly degenerate. So the leaving variable is chosen in two passes, as the largest pivot among the
steps that violate no bound by more than `BOUND_TOLERANCE`, and a tableau that rounding has made inaccurate is computed
again.

Source: Dantzig's rule and upper bounds; Harris (1973), Pivot selection methods of the Devex LP code; Bland's rule
(1977) after a run of degenerate steps, so that it ends.
"""

from typing import NamedTuple

import numpy as np

from mcplan.core.jit import jit, jit_algebra, jit_allocating
from mcplan.util.arrays import aligned_zeros

OPTIMAL, UNBOUNDED, INFEASIBLE, STALLED = range(4)
"""Status: a minimum; no lower bound; no feasible point; the limit of pivots was reached."""

COST_TOLERANCE = 1e-10
"""A variable enters the basis if its reduced cost is below minus this."""

PIVOT_TOLERANCE = 1e-8
"""Smallest entry of the entering column that can be a pivot."""

BOUND_TOLERANCE = 1e-10
"""Violation of a bound that the choice of the leaving variable allows."""

FEASIBILITY_TOLERANCE = 1e-9
"""Largest sum of artificial variables of a feasible program."""

EQUATION_TOLERANCE = 1e-8
"""Largest error of ``A x = b``, relative to its largest term, of an accurate tableau."""

BASIC_TOLERANCE = 2e-8
"""Largest violation of a bound by a basic variable of an accurate tableau."""

MIN_PIVOT_OF_BASIS = 1e-11
"""A column of the basis with smaller pivots is replaced when the tableau is computed again."""

MAX_DEGENERATE_STEPS = 60
"""Number of degenerate steps in a row after which Bland's rule is used."""

MAX_ATTEMPTS = 4
"""Number of times that a minimisation is tried, each with a tableau computed again."""


class Program(NamedTuple):
    """A program and its tableau.

    The first ``1 + m`` entries of ``upper`` and ``flipped`` belong to the right-hand side and the artificial variables.

    Parameters
    ----------
    A, b : (m, capacity), (m,).
    T, basis : (m + 1, >= 1 + m + capacity), (m,): the tableau, and the column of each row's basic variable.
    sign : (m,): by which each row is multiplied so that phase 1 starts from a non-negative right-hand side.
    upper : (1 + m + capacity,): upper bound of each column's variable.
    flipped : (1 + m + capacity,): 1 where the variable is measured from its upper bound.
    count : (1,): number of true variables.
    """

    A: np.ndarray
    b: np.ndarray
    T: np.ndarray
    basis: np.ndarray
    sign: np.ndarray
    upper: np.ndarray
    flipped: np.ndarray
    count: np.ndarray


def allocate(m: int, capacity: int) -> Program:
    """Return an empty program of ``m`` rows with room for ``capacity`` variables."""
    width = 1 + m + capacity
    return Program(
        np.zeros((m, capacity)), np.zeros(m), aligned_zeros(m + 1, width), np.zeros(m, np.int64), np.ones(m),
        np.full(width, np.inf), np.zeros(width, np.int64), np.zeros(1, np.int64),
    )  # fmt: skip


@jit_algebra
def pivot(T, basis, row, column, columns):
    """Let variable ``column`` enter the basis in ``row``."""
    scale = 1.0 / T[row, column]
    for j in range(columns):
        T[row, j] *= scale
    T[row, column] = 1.0
    for first, end in ((0, row), (row + 1, len(T))):  # vectorised only if no row of the loop can be ``row`` itself
        for i in range(first, end):
            factor = T[i, column]
            if factor != 0.0:
                for j in range(columns):
                    T[i, j] -= factor * T[row, j]
                T[i, column] = 0.0
    basis[row] = column


@jit
def leaving_row(program, entering, bland):
    """Return the row whose variable blocks the entering one, or -1, and the step."""
    T, basis, upper = program.T, program.basis, program.upper
    m = T.shape[0] - 1
    slack = 0.0 if bland else BOUND_TOLERANCE
    max_ratio = np.inf
    for i in range(m):
        a = T[i, entering]
        if a > PIVOT_TOLERANCE:
            max_ratio = min(max_ratio, (max(T[i, 0], 0.0) + slack) / a)
        elif a < -PIVOT_TOLERANCE and upper[basis[i]] < np.inf:
            max_ratio = min(max_ratio, (max(upper[basis[i]] - T[i, 0], 0.0) + slack) / -a)
    leaving, step, pivot_size = -1, np.inf, 0.0
    for i in range(m):
        a = T[i, entering]
        if a > PIVOT_TOLERANCE:
            ratio = max(T[i, 0], 0.0) / a
        elif a < -PIVOT_TOLERANCE and upper[basis[i]] < np.inf:
            ratio = max(upper[basis[i]] - T[i, 0], 0.0) / -a
        else:
            continue
        if ratio > max_ratio:
            continue
        if leaving < 0 or (basis[i] < basis[leaving] if bland else abs(a) > pivot_size):
            leaving, step, pivot_size = i, ratio, abs(a)
    return leaving, step


@jit
def iterate(program):
    """Pivot until no reduced cost of a true variable (columns ``1 + m ..``) is negative; return the status."""
    T, basis, upper = program.T, program.basis, program.upper
    m = T.shape[0] - 1
    columns = 1 + m + program.count[0]
    costs, bounds = T[m, 1 + m : columns], upper[1 + m : columns]  # an index from 0 on is not tested for its sign
    degenerate = 0
    for _ in range(200 + 20 * (m + columns)):
        bland = degenerate > MAX_DEGENERATE_STEPS
        entering = -1
        min_cost = -COST_TOLERANCE
        for j in range(costs.size):
            if costs[j] < min_cost and bounds[j] > 0.0:
                entering = 1 + m + j
                if bland:
                    break
                min_cost = costs[j]
        if entering < 0:
            return OPTIMAL
        row, step = leaving_row(program, entering, bland)
        if upper[entering] <= step:
            if upper[entering] == np.inf:
                return UNBOUNDED
            flip(program, entering)
            degenerate = 0
            continue
        degenerate = degenerate + 1 if step <= 1e-12 else 0
        if T[row, entering] < 0.0 and basis[row] > m:  # artificial variables are at zero and have no upper bound
            flip_basic(program, row)
        # over a small pivot, a leaving variable that rounding has put beyond its bound would move the entering one far
        # beyond its own: so it leaves at its bound, and the resulting error appears in ``equation_error``
        T[row, 0] = max(T[row, 0], 0.0) if T[row, entering] > 0.0 else min(T[row, 0], 0.0)
        pivot(T, basis, row, entering, columns)
    return STALLED


@jit
def flip(program, column):
    """Move a nonbasic variable to its other bound, and measure it from there."""
    T = program.T
    for i in range(len(T)):
        T[i, 0] -= program.upper[column] * T[i, column]
        T[i, column] = -T[i, column]
    program.flipped[column] = 1 - program.flipped[column]


@jit
def fix_at_zero(program, first, last):
    """Set the upper bounds of the true variables ``first .. last - 1`` to zero, their value in the present solution."""
    m = len(program.b)
    for i in range(m):
        j = program.basis[i] - 1 - m
        if first <= j < last and program.flipped[1 + m + j]:
            flip_basic(program, i)
    for j in range(first, last):
        if program.flipped[1 + m + j]:
            flip(program, 1 + m + j)
        program.upper[1 + m + j] = 0.0


@jit
def flip_basic(program, row):
    """Measure the basic variable of a row from its upper bound."""
    T, column = program.T, program.basis[row]
    for j in range(T.shape[1]):
        T[row, j] = -T[row, j]
    T[row, 0] += program.upper[column]
    T[row, column] = 1.0
    program.flipped[column] = 1 - program.flipped[column]


@jit
def infeasibility(program):
    """Return the sum of the artificial variables in the basis."""
    m = len(program.b)
    total = 0.0
    for i in range(m):
        if program.basis[i] <= m:
            total += max(program.T[i, 0], 0.0)
    return total


@jit
def start(program, slack):
    """Fill the tableau, with artificial variables where no slack can be basic, and minimise their sum.

    Parameters
    ----------
    program : with ``A``, ``b``, ``upper`` and ``count`` given; the rest is written.
    slack : (m,): for each row the variable with 1 in this row and 0 in the others, or -1.

    Returns
    -------
    status : OPTIMAL, INFEASIBLE or STALLED. If feasible, the artificial variables get the upper bound zero.
    """
    A, b, T, basis, sign, upper, flipped, count = program
    m, n = len(b), count[0]
    T[:, : 1 + m + n] = 0.0
    flipped[:] = 0
    for i in range(m):
        upper[1 + i] = np.inf
        sign[i] = -1.0 if b[i] < 0.0 else 1.0
        T[i, 0] = sign[i] * b[i]
        T[i, 1 + i] = 1.0
        for j in range(n):
            T[i, 1 + m + j] = sign[i] * A[i, j]
        if slack[i] >= 0 and 0.0 <= b[i] <= upper[1 + m + slack[i]]:
            basis[i] = 1 + m + slack[i]
            continue
        basis[i] = 1 + i
        for j in range(n):
            T[m, 1 + m + j] -= T[i, 1 + m + j]
    for i in range(m):
        if basis[i] > m:  # artificial variables cost 1, which is the reduced cost of nonbasic ones
            T[m, 1 + i] = 1.0
    return continue_phase_1(program)


@jit
def continue_phase_1(program):
    """Continue phase 1, whose costs are in the last row; close the artificial variables if the program is feasible."""
    status = iterate(program)
    if status == STALLED:
        return STALLED
    if infeasibility(program) > FEASIBILITY_TOLERANCE:
        return INFEASIBLE
    close_artificials(program)
    return OPTIMAL


@jit
def close_artificials(program):
    """Set the upper bounds of the artificial variables, and the values of basic ones, to zero."""
    m = len(program.b)
    for i in range(m):
        program.upper[1 + i] = 0.0
        if program.basis[i] <= m and abs(program.T[i, 0]) <= FEASIBILITY_TOLERANCE:
            program.T[i, 0] = 0.0


@jit_allocating
def minimise(program, cost):
    """Minimise ``cost' x`` from the feasible basis in ``T``; ``cost`` (n or more,) belongs to columns ``1 + m ..``."""
    status = STALLED
    for attempt in range(MAX_ATTEMPTS):
        if attempt > 0:
            refresh(program)
            close_artificials(program)
            # rounding may have hidden that the basis violates its bounds: then start again
            if bound_violation(program) > BASIC_TOLERANCE and start(program, np.full(len(program.b), -1)) != OPTIMAL:
                return STALLED
        price_row(program, cost)
        status = iterate(program)
        if status != STALLED and is_accurate(program):
            return status
    return STALLED


@jit
def price_row(program, cost):
    """Write the reduced costs."""
    T, basis, flipped = program.T, program.basis, program.flipped
    m = T.shape[0] - 1
    columns = 1 + m + program.count[0]
    for j in range(1 + m):
        T[m, j] = 0.0
    reduced_costs, is_flipped = T[m, 1 + m : columns], flipped[1 + m : columns]
    for j in range(reduced_costs.size):
        reduced_costs[j] = -cost[j] if is_flipped[j] else cost[j]
    for i in range(m):
        if basis[i] > m:
            weight = -cost[basis[i] - 1 - m] if flipped[basis[i]] else cost[basis[i] - 1 - m]
            if weight != 0.0:
                for j in range(columns):
                    T[m, j] -= weight * T[i, j]


@jit_allocating
def is_accurate(program):
    """Return whether the basic solution satisfies ``A x = b`` and its bounds, within rounding."""
    return equation_error(program) <= EQUATION_TOLERANCE and bound_violation(program) <= BASIC_TOLERANCE


@jit_allocating
def equation_error(program):
    """Return the largest entry of ``A x - b`` over the largest of its terms (or 1) at the tableau's basic solution."""
    A, b, T, basis, sign, upper, flipped, count = program
    m = len(b)
    error, scale = -b, np.maximum(np.abs(b), 1.0)  # rounding grows with forces, which may be unbounded
    is_flipped = flipped[1 + m : 1 + m + count[0]]
    for j in range(is_flipped.size):
        if is_flipped[j]:  # rare
            for r in range(m):
                term = A[r, j] * upper[1 + m + j]
                error[r], scale[r] = error[r] + term, max(scale[r], abs(term))
    worst = 0.0
    for r in range(m):
        for i in range(m):
            j = basis[i]
            if j > m:
                term = A[r, j - 1 - m] * (-T[i, 0] if flipped[j] else T[i, 0])
                error[r], scale[r] = error[r] + term, max(scale[r], abs(term))
            elif j == 1 + r:
                error[r] += sign[r] * T[i, 0]
        worst = max(worst, abs(error[r]) / scale[r])
    return worst


@jit
def bound_violation(program):
    """Return the largest violation of a bound by the basic variables."""
    worst = 0.0
    for i in range(len(program.b)):
        value = program.T[i, 0]
        worst = max(worst, -value, value - program.upper[program.basis[i]])
    return worst


@jit_allocating
def refresh(program):
    """Compute the tableau of the present basis again from ``A`` and ``b``."""
    A, b, T, basis, sign, upper, flipped, count = program
    m, n = len(b), count[0]
    columns = 1 + m + n
    T[:, :columns] = 0.0
    for i in range(m):
        T[i, 0] = sign[i] * b[i]
        T[i, 1 + i] = 1.0
        for j in range(n):
            T[i, 1 + m + j] = sign[i] * A[i, j]
            if flipped[1 + m + j]:
                T[i, 0] -= upper[1 + m + j] * T[i, 1 + m + j]
                T[i, 1 + m + j] = -T[i, 1 + m + j]
    columns_of_basis = basis.copy()
    basis[:] = -1
    for column in columns_of_basis:
        row, pivot_size = -1, MIN_PIVOT_OF_BASIS
        for i in range(m):
            if basis[i] < 0 and abs(T[i, column]) > pivot_size:
                row, pivot_size = i, abs(T[i, column])
        if row >= 0:
            pivot(T, basis, row, column, columns)
    for i in range(m):  # replace columns that depend on the others by artificial variables
        if basis[i] < 0:
            basis[i] = 1 + i


@jit
def append(program, k, artificial):
    """Append ``k`` variables to the tableau, whose columns are already in ``A`` and whose cost is zero.

    ``artificial`` is the cost of an artificial variable: 1 in phase 1, else 0.
    """
    A, sign, T, m, n = program.A, program.sign, program.T, len(program.b), program.count[0]
    for j in range(n, n + k):
        for i in range(m + 1):
            total = 0.0
            for r in range(m):
                inverse = T[i, 1 + r] - (artificial if i == m else 0.0)
                total += inverse * sign[r] * A[r, j]
            T[i, 1 + m + j] = total
        program.upper[1 + m + j] = np.inf
        program.flipped[1 + m + j] = 0
    program.count[0] = n + k


@jit
def solution(program, x):
    """Write the variables ``x`` (n,) of the tableau, within their bounds."""
    m = len(program.b)
    for j in range(program.count[0]):
        x[j] = program.upper[1 + m + j] if program.flipped[1 + m + j] else 0.0
    for i in range(m):
        j = program.basis[i]
        if j > m:
            value = min(max(program.T[i, 0], 0.0), program.upper[j])
            x[j - 1 - m] = program.upper[j] - value if program.flipped[j] else value


@jit
def duals(program, y, artificial):
    """Write the duals ``y`` (m,): the reduced cost of a column ``a`` with cost ``c`` is ``c - y' a``."""
    m = len(program.b)
    for r in range(m):
        y[r] = program.sign[r] * (artificial - program.T[m, 1 + r])
