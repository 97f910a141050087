"""Dual active-set method for small dense strictly convex quadratic programs.

    minimise  1/2 x' H x + g' x   subject to   low <= A x <= high,   x_low <= x <= x_high

From the unconstrained minimum, one violated constraint after the other enters the active set. The multipliers of active
constraints stay non-negative; a constraint whose multiplier would change its sign leaves it. With ``H = L L'`` and the
active normals ``N``, the method updates ``J = L^-T Q`` and ``R`` with ``J' N = [R; 0]``; ``T`` has ``J'``, whose rows
are contiguous. A constraint enters by one Householder reflection of the rows beyond the active ones.

Source: Goldfarb & Idnani, A numerically stable dual method for solving strictly convex quadratic programs,
Mathematical Programming 27, 1983.
"""

import math

from mcplan.core.jit import jit, jit_algebra

SOLVED, CONFLICT, STALLED, NOT_CONVEX = range(4)
"""Status: a minimum; constraints contradict each other; the limit of steps was reached; H is not positive definite."""

ROW_TOLERANCE = 1e-9
"""Largest violation of a satisfied constraint, whose normal is scaled to unit length."""

REDUNDANT_TOLERANCE = 1e-5
"""Largest error of an equality whose normal depends on the others: it is skipped."""

MIN_INDEPENDENT = 1e-7
"""A normal is in the span of the active ones if at most this fraction of its square lies outside."""

D, Z, R_, U, V, NORM, SLOTS = range(7)
"""Rows of the scratch ``vectors`` (SLOTS, n + m + 1): J' normal, primal and dual step, multipliers, reflection, row
norms."""


@jit_algebra
def invert_factor(H, n, T):
    """Overwrite the lower triangle of H by L and write ``T = L^-1``; return whether H is positive definite."""
    for j in range(n):
        square = H[j, j]
        for k in range(j):
            square -= H[j, k] * H[j, k]
        if not square > 0.0:
            return False
        pivot = math.sqrt(square)
        H[j, j] = pivot
        scale = 1.0 / pivot
        for i in range(j + 1, n):
            value = H[i, j]
            for k in range(j):
                value -= H[i, k] * H[j, k]
            H[i, j] = value * scale
    for i in range(n):
        for j in range(n):
            T[i, j] = 0.0
        T[i, i] = 1.0
        for k in range(i):
            factor = H[i, k]
            if factor != 0.0:
                for j in range(k + 1):
                    T[i, j] -= factor * T[k, j]
        scale = 1.0 / H[i, i]
        for j in range(i + 1):
            T[i, j] *= scale
    return True


@jit_algebra
def dot(a, b, n):
    """Return the inner product of the first n entries."""
    total = 0.0
    for k in range(n):
        total += a[k] * b[k]
    return total


@jit_algebra
def _write_normal(T, A, m, row, sign, n, d):
    """Write ``d = J' normal`` of a row, or of a bound where ``row >= m``."""
    if row >= m:
        j = row - m
        for k in range(n):
            d[k] = sign * T[k, j]
    else:
        for k in range(n):
            d[k] = sign * dot(T[k], A[row], n)


@jit_algebra
def _write_steps(T, R, d, active, n, z, r):
    """Write the primal step ``z = J_2 d_2`` and the dual one ``R r = d_1``; return ``z' normal = |d_2|^2``."""
    square = 0.0
    for j in range(n):
        z[j] = 0.0
    for k in range(active, n):
        factor = d[k]
        square += factor * factor
        if factor != 0.0:
            for j in range(n):
                z[j] += factor * T[k, j]
    for i in range(active - 1, -1, -1):
        value = d[i]
        for k in range(i + 1, active):
            value -= R[i, k] * r[k]
        r[i] = value / R[i, i]
    return square


@jit_algebra
def _add_constraint(T, R, d, active, n, v, w):
    """Append the constraint whose ``J' normal`` is d: reflect the rows of T so that ``d_2`` becomes ``(a, 0, ..)``."""
    square = 0.0
    for k in range(active, n):
        square += d[k] * d[k]
    length = math.sqrt(square)
    alpha = -length if d[active] > 0.0 else length
    for k in range(active, n):
        v[k] = d[k]
    v[active] -= alpha
    norm_square = square - alpha * d[active]
    if norm_square > 0.0:
        for j in range(n):
            w[j] = 0.0
        for k in range(active, n):
            if v[k] != 0.0:
                for j in range(n):
                    w[j] += v[k] * T[k, j]
        for k in range(active, n):
            factor = v[k] / norm_square
            if factor != 0.0:
                for j in range(n):
                    T[k, j] -= factor * w[j]
    for i in range(active):
        R[i, active] = d[i]
    R[active, active] = alpha


@jit_algebra
def _drop_constraint(T, R, position, active, n):
    """Delete column ``position`` of R and make R triangular again by rotations of neighbouring rows."""
    for k in range(position, active - 1):
        for i in range(k + 2):
            R[i, k] = R[i, k + 1]
        a, b = R[k, k], R[k + 1, k]
        length = math.hypot(a, b)
        c, s = a / length, b / length
        R[k, k] = length
        R[k + 1, k] = 0.0
        for j in range(k + 1, active - 1):
            above, below = R[k, j + 1], R[k + 1, j + 1]
            R[k, j + 1] = c * above + s * below
            R[k + 1, j + 1] = c * below - s * above
        for j in range(n):
            above, below = T[k, j], T[k + 1, j]
            T[k, j] = c * above + s * below
            T[k + 1, j] = c * below - s * above


@jit
def solve_qp(n, m, equal, H, g, A, low, high, x_low, x_high, x, dual, T, R, vectors, active_rows):
    """Solve the program of the module's docstring.

    Parameters
    ----------
    n, m, equal : unknowns; rows; the first ``equal`` rows are equalities (``low`` is taken).
    H : (>= n, >= n) symmetric, its lower triangle is read and overwritten.
    g, x_low, x_high : (>= n,)
    A, low, high : (>= m, >= n), (>= m,), (>= m,)
    x : (>= n,) out.
    dual : (>= m + n,) out, multipliers of rows, then bounds: ``H x + g = A' dual + ..``, positive at the lower side.
    T, R : (>= n, >= n) scratch; vectors : (SLOTS, >= n + m + 1) scratch; places : (2, >= n + 1) int64 scratch.

    Returns
    -------
    status : SOLVED, CONFLICT, STALLED, NOT_CONVEX.
    """
    if not invert_factor(H, n, T):
        return NOT_CONVEX
    d, z, r, u, v, norm = vectors[D], vectors[Z], vectors[R_], vectors[U], vectors[V], vectors[NORM]
    active_row, side = active_rows[0], active_rows[1]
    for k in range(n):
        d[k] = -dot(T[k], g, k + 1)
    for j in range(n):
        x[j] = 0.0
    for k in range(n):
        factor = d[k]
        for j in range(k + 1):
            x[j] += factor * T[k, j]
    for i in range(m):
        norm[i] = math.sqrt(dot(A[i], A[i], n))
    for i in range(m + n):
        dual[i] = 0.0

    active = 0
    next_equality = 0
    for _ in range(10 * (n + m) + 50):
        # the next constraint: the equalities in their order, then the most violated inequality
        entering, sign, slack = -1, 1, 0.0
        if next_equality < equal:
            entering = next_equality
            next_equality += 1
            slack = dot(A[entering], x, n) - low[entering]
            if slack > 0.0:
                sign, slack = -1, -slack
        else:
            worst = -ROW_TOLERANCE
            for i in range(equal, m):
                if norm[i] == 0.0:
                    continue
                value = dot(A[i], x, n)
                scale = 1.0 / norm[i]
                gap = (value - low[i]) * scale
                if gap < worst:
                    worst, entering, sign, slack = gap, i, 1, value - low[i]
                gap = (high[i] - value) * scale
                if gap < worst:
                    worst, entering, sign, slack = gap, i, -1, high[i] - value
            for j in range(n):
                gap = x[j] - x_low[j]
                if gap < worst:
                    worst, entering, sign, slack = gap, m + j, 1, gap
                gap = x_high[j] - x[j]
                if gap < worst:
                    worst, entering, sign, slack = gap, m + j, -1, gap
            if entering < 0:
                for k in range(active):
                    dual[active_row[k]] += side[k] * u[k]
                return SOLVED
        entering_multiplier = 0.0
        while True:
            _write_normal(T, A, m, entering, sign, n, d)
            square = _write_steps(T, R, d, active, n, z, r)
            total = square + dot(d, d, active)
            dual_step, leaving = math.inf, -1
            for k in range(active):
                if active_row[k] >= equal and r[k] > 0.0 and u[k] < dual_step * r[k]:
                    dual_step, leaving = u[k] / r[k], k
            full_step = math.inf
            if square > MIN_INDEPENDENT * total:
                full_step = -slack / square
            elif entering < equal and -slack <= REDUNDANT_TOLERANCE * max(1.0, norm[entering]):
                break
            step = min(dual_step, full_step)
            if step == math.inf:
                return CONFLICT
            for k in range(active):
                u[k] -= step * r[k]
            entering_multiplier += step
            if full_step < math.inf:
                for j in range(n):
                    x[j] += step * z[j]
                slack += step * square
            if full_step <= dual_step:
                _add_constraint(T, R, d, active, n, v, z)
                active_row[active], side[active], u[active] = entering, sign, entering_multiplier
                active += 1
                break
            _drop_constraint(T, R, leaving, active, n)
            for k in range(leaving, active - 1):
                active_row[k], side[k], u[k] = active_row[k + 1], side[k + 1], u[k + 1]
            active -= 1
    return STALLED
