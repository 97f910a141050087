"""The primal simplex method on a small dense tableau, for the many tiny linear programs of static equilibrium.

    minimise  c' x   subject to   A x = b,  x >= 0            A (m, n) with m of about 10 and n of some hundred

The tableau ``T`` (m + 1, 1 + m + capacity) holds ``B^-1 [b, 1, A]`` over the basis ``B``, and the reduced costs in its
last row; column 0 is the right-hand side, columns ``1 .. m`` belong to the artificial variables of phase 1 and so hold
``B^-1`` itself. Since that block is kept, columns may be appended to a solved program (column generation), and another
cost may be minimised from where the last one ended.

Source: Dantzig's rule, with Bland's (1977) after a run of degenerate steps, so that it ends.
"""

from mcplan.core.jit import jit, jit_algebra

OPTIMAL, UNBOUNDED, INFEASIBLE, STALLED = range(4)
"""Status: a minimum; no lower bound; no feasible point; the limit of pivots was reached."""

COST_TOLERANCE = 1e-10
PIVOT_TOLERANCE = 1e-9
FEASIBILITY_TOLERANCE = 1e-9
DEGENERATE_STEPS = 40


@jit_algebra
def pivot(T, basis, row, column, columns):
    """Let variable ``column`` enter the basis in ``row``."""
    rows = T.shape[0]
    scale = 1.0 / T[row, column]
    for j in range(columns):
        T[row, j] *= scale
    T[row, column] = 1.0
    for i in range(rows):
        if i == row:
            continue
        factor = T[i, column]
        if factor != 0.0:
            for j in range(columns):
                T[i, j] -= factor * T[row, j]
            T[i, column] = 0.0
    basis[row] = column


@jit
def iterate(T, basis, columns, guarded):
    """Pivot until the reduced costs of the true variables (columns ``1 + m ..``) are non-negative; return the status.

    When ``guarded`` (phase 2), an artificial variable that is still basic (a redundant row, at level zero) leaves as
    soon as any step would move it.
    """
    m = T.shape[0] - 1
    degenerate = 0
    for _ in range(200 + 20 * (m + columns)):
        bland = degenerate > DEGENERATE_STEPS
        entering = -1
        best = -COST_TOLERANCE
        for j in range(1 + m, columns):
            if T[m, j] < best:
                entering = j
                if bland:
                    break
                best = T[m, j]
        if entering < 0:
            return OPTIMAL
        leaving = -1
        ratio = 0.0
        size = 0.0
        for i in range(m):
            a = T[i, entering]
            if guarded and basis[i] <= m:
                if abs(a) <= PIVOT_TOLERANCE:
                    continue
                step = 0.0
            else:
                if a <= PIVOT_TOLERANCE:
                    continue
                step = max(T[i, 0], 0.0) / a
            if leaving >= 0:
                if step > ratio + 1e-12:
                    continue
                tie = step >= ratio - 1e-12
                if tie and (basis[i] > basis[leaving] if bland else abs(a) <= size):
                    continue
            leaving = i
            ratio = step
            size = abs(a)
        if leaving < 0:
            return UNBOUNDED
        degenerate = degenerate + 1 if ratio <= 1e-12 else 0
        pivot(T, basis, leaving, entering, columns)
    return STALLED


@jit
def start(A, b, T, basis, sign):
    """Fill the tableau with ``A x = b`` over the artificial basis and minimise the sum of the artificials.

    Parameters
    ----------
    A, b : (m, n), (m,).
    T, basis : (m + 1, 1 + m + capacity), (m,): written.
    sign : (m,): written; the sign by which each row was multiplied to make its right-hand side non-negative.

    Returns
    -------
    status : OPTIMAL, INFEASIBLE or STALLED.
    """
    m, n = A.shape
    T[:] = 0.0
    for i in range(m):
        sign[i] = -1.0 if b[i] < 0.0 else 1.0
        T[i, 0] = sign[i] * b[i]
        T[i, 1 + i] = 1.0
        basis[i] = 1 + i
        T[m, 0] -= T[i, 0]
        for j in range(n):
            T[i, 1 + m + j] = sign[i] * A[i, j]
            T[m, 1 + m + j] -= T[i, 1 + m + j]
    status = iterate(T, basis, 1 + m + n, False)
    if status == OPTIMAL and -T[m, 0] > FEASIBILITY_TOLERANCE:
        return INFEASIBLE
    return status


@jit
def minimise(T, basis, cost, columns):
    """Minimise ``cost' x`` from the feasible basis in ``T``; ``cost`` (n,) belongs to columns ``1 + m ..``."""
    m = T.shape[0] - 1
    for j in range(columns):
        T[m, j] = cost[j - 1 - m] if j > m else 0.0
    for i in range(m):
        if basis[i] > m:
            weight = cost[basis[i] - 1 - m]
            if weight != 0.0:
                for j in range(columns):
                    T[m, j] -= weight * T[i, j]
    return iterate(T, basis, columns, True)


@jit
def append(T, sign, A, columns):
    """Append the columns ``A`` (m, k) of new variables as ``B^-1 A`` from index ``columns`` on; they start at zero."""
    m, k = A.shape
    for j in range(k):
        for i in range(m):
            total = 0.0
            for r in range(m):
                total += T[i, 1 + r] * sign[r] * A[r, j]
            T[i, columns + j] = total
        T[m, columns + j] = 0.0
