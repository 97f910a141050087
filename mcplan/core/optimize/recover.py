"""All variables and multipliers of a QP from the solution of the condensed one, and the residuals of the full QP.

The Lagrangian is ``1/2 x'Px + q'x + y_e'(A_e x + b_e) - y_i'(A_i x + b_i) - y_l'(x - lower) + y_u'(x - upper)`` with
``y_i, y_l, y_u >= 0``. The multiplier of an equality that determined ``x_j`` follows from stationarity in ``x_j``.
"""

from mcplan.core.algebra.products import dot, segment
from mcplan.core.jit import jit, jit_algebra
from mcplan.core.optimize import layout as lay
from mcplan.core.optimize.layout import part, section

EQUALITY, INEQUALITY, STATIONARITY, COMPLEMENTARITY, OBJECTIVE = range(5)
"""Entries of RESIDUAL. The first three are the largest over the rows, each relative to 1 plus the sum of the magnitudes
of its terms; the fourth is ``sum y s`` relative to 1 plus the sum of the magnitudes of the objective's terms."""

ACTIVE, LOWER, FIXED = 1, 2, 4
"""Bits of a row's ``sense`` in the solver: active; at its lower bound; always active (an equality)."""


@jit
def back_transform(program, work, u, multiplier):
    """Compute ``z = U^-1 (u - v)`` and turn the multipliers of unit rows into those of the rows, in place."""
    sizes = section(program, lay.SIZES)
    free, rows = sizes[lay.FREE], sizes[lay.ROWS]
    U = part(program, work, lay.H).reshape((free, free))
    v, z = part(program, work, lay.V), part(program, work, lay.Z)
    length = part(program, work, lay.LENGTH)
    for i in range(free - 1, -1, -1):
        total = u[i] - v[i]
        for j in range(i + 1, free):
            total -= U[i, j] * z[j]
        z[i] = total / U[i, i]
    for i in range(rows):
        multiplier[i] /= length[i]


@jit
def recover(program, work, multiplier):
    """Compute ``x`` and all multipliers from ``z`` and the rows' multipliers (positive at the upper bound)."""
    recover_variables(program, work)
    recover_multipliers(program, work, multiplier)


@jit
def recover_variables(program, work):
    """Compute ``x = T z + t``; the entries that are unknowns of the condensed QP are those of ``z``."""
    sizes = section(program, lay.SIZES)
    size, free, eliminated = sizes[lay.SIZE], sizes[lay.FREE], sizes[lay.ELIMINATED]
    T = part(program, work, lay.T).reshape((eliminated, free))
    t, z, x = part(program, work, lay.T0), part(program, work, lay.Z), part(program, work, lay.X)
    reference = section(program, lay.REFERENCE)
    support_pointer, support = section(program, lay.SUPPORT_POINTER), section(program, lay.SUPPORT)
    for i in range(size):
        r = reference[i]
        if r >= 0:
            x[i] = z[r]
        else:
            e = -r - 1
            first, last = support_pointer[e], support_pointer[e + 1]
            x[i] = t[e]
            if first < last:  # T is zero outside its support; its span is contiguous and thus faster
                start, stop = support[first], support[last - 1] + 1
                x[i] += dot(segment(T, free * e + start, stop - start), segment(z, start, stop - start))


@jit
def recover_multipliers(program, work, multiplier):
    """Compute all multipliers from ``x`` and the rows' multipliers (positive at the upper bound)."""
    sizes = section(program, lay.SIZES)
    size, eliminated, rows = sizes[lay.SIZE], sizes[lay.ELIMINATED], sizes[lay.ROWS]
    equalities = sizes[lay.EQUALITIES]
    values, x, dual = part(program, work, lay.VALUES), part(program, work, lay.X), part(program, work, lay.DUAL)
    for i in range(dual.size):
        dual[i] = 0.0
    pointer, position = section(program, lay.LIMIT_POINTER), section(program, lay.LIMIT_POSITION)
    owner = section(program, lay.LIMIT_DUAL)
    factors = part(program, work, lay.FACTORS)
    for i in range(rows):
        if multiplier[i] == 0.0:
            continue
        first = pointer[2 * i] if multiplier[i] < 0.0 else pointer[2 * i + 1]
        last = pointer[2 * i + 1] if multiplier[i] < 0.0 else pointer[2 * i + 2]
        if first < last and owner[first] < equalities:  # an equality: lower and upper limit are the same
            dual[owner[first]] = multiplier[i]
            continue
        sign = -1.0 if multiplier[i] < 0.0 else 1.0
        best = first
        for k in range(first + 1, last):
            if sign * factors[k] * values[position[k]] < sign * factors[best] * values[position[best]]:
                best = k
        if first < last:
            dual[owner[best]] = abs(factors[best] * multiplier[i])
    pointer, start, owner = section(program, lay.A_POINTER), section(program, lay.A_START), section(program, lay.A_ROW)
    P_pointer, P_rows = section(program, lay.P_POINTER), section(program, lay.P_ROWS)
    variable, row = section(program, lay.ELIMINATED_VARIABLE), section(program, lay.ELIMINATED_ROW)
    pivot = section(program, lay.ELIMINATED_PIVOT)
    total_rows = equalities + sizes[lay.INEQUALITIES]
    for e in range(eliminated - 1, -1, -1):
        j = variable[e]
        total = values[sizes[lay.Q] + j] - dual[total_rows + j] + dual[total_rows + size + j]
        for k in range(P_pointer[j], P_pointer[j + 1]):
            total += values[sizes[lay.P] + k] * x[P_rows[k]]
        for k in range(pointer[j], pointer[j + 1]):
            i, length = owner[k], start[k + 1] - start[k]
            term = dot(segment(values, start[k], length), segment(dual, i, length))
            total += term if i < equalities else -term
        dual[row[e]] = -total / values[pivot[e]]


@jit_algebra
def _traverse(values, x, dual, runs, start, owner, equalities, activity, magnitude, gradient, terms):
    """Add ``A x`` to the activities, ``A_e'y_e - A_i'y_i`` to the gradient, and the magnitudes of the terms."""
    for j in range(gradient.size):
        x_j = x[j]
        for r in range(runs[j], runs[j + 1]):
            i, length = owner[r], start[r + 1] - start[r]
            total, size = 0.0, 0.0
            if length == 1:
                term = values[start[r]] * x_j
                activity[i] += term
                magnitude[i] += abs(term)
                total = values[start[r]] * dual[i]
                size = abs(total)
            else:
                a, y = segment(values, start[r], length), segment(dual, i, length)
                row, row_magnitude = segment(activity, i, length), segment(magnitude, i, length)
                for k in range(length):
                    term = a[k] * x_j
                    row[k] += term
                    row_magnitude[k] += abs(term)
                    term = a[k] * y[k]
                    total += term
                    size += abs(term)
            gradient[j] += total if i < equalities else -total
            terms[j] += size


@jit
def check(program, work):
    """Compute the residuals of ``x`` and the multipliers on the full QP, and the objective."""
    sizes = section(program, lay.SIZES)
    size, equalities = sizes[lay.SIZE], sizes[lay.EQUALITIES]
    rows = equalities + sizes[lay.INEQUALITIES]
    values, x, dual = part(program, work, lay.VALUES), part(program, work, lay.X), part(program, work, lay.DUAL)
    residual = part(program, work, lay.RESIDUAL)
    activity, magnitude = part(program, work, lay.ACTIVITY)[:rows], part(program, work, lay.ACTIVITY)[rows:]
    gradient, terms = part(program, work, lay.GRADIENT)[:size], part(program, work, lay.GRADIENT)[size:]
    runs, start, owner = section(program, lay.A_POINTER), section(program, lay.A_START), section(program, lay.A_ROW)
    P_pointer, P_rows = section(program, lay.P_POINTER), section(program, lay.P_ROWS)
    b = sizes[lay.B]
    for i in range(rows):
        activity[i] = values[b + i]
        magnitude[i] = 1.0 + abs(values[b + i])
    objective = values[sizes[lay.D]]
    scale = 1.0 + abs(objective)
    for j in range(size):
        product, product_terms = 0.0, 0.0
        for k in range(P_pointer[j], P_pointer[j + 1]):
            term = values[sizes[lay.P] + k] * x[P_rows[k]]
            product += term
            product_terms += abs(term)
        q = values[sizes[lay.Q] + j]
        low, high = dual[rows + j], dual[rows + size + j]
        gradient[j], terms[j] = product + q - low + high, 1.0 + product_terms + abs(q) + low + high
        term = x[j] * (0.5 * product + q)
        objective += term
        scale += abs(term)
    _traverse(values, x, dual, runs, start, owner, equalities, activity, magnitude, gradient, terms)
    stationarity, inequality, complementarity = 0.0, 0.0, 0.0
    for j in range(size):
        stationarity = _worst(stationarity, abs(gradient[j]), terms[j])
        low, high = values[sizes[lay.LOWER] + j], values[sizes[lay.UPPER] + j]
        if low > -lay.BIG:
            inequality = _worst(inequality, low - x[j], 1.0 + abs(low))
            complementarity += dual[rows + j] * abs(x[j] - low)
        if high < lay.BIG:
            inequality = _worst(inequality, x[j] - high, 1.0 + abs(high))
            complementarity += dual[rows + size + j] * abs(high - x[j])
    equality = 0.0
    for i in range(equalities):
        equality = _worst(equality, abs(activity[i]), magnitude[i])
    for i in range(equalities, rows):
        if not activity[i] >= 0.0:
            inequality = _worst(inequality, -activity[i], magnitude[i])
        if dual[i] != 0.0:
            complementarity += dual[i] * abs(activity[i])
    residual[EQUALITY], residual[INEQUALITY], residual[STATIONARITY] = equality, inequality, stationarity
    residual[COMPLEMENTARITY], residual[OBJECTIVE] = complementarity / scale, objective


@jit
def _worst(largest, excess, scale):
    """Return the larger of ``largest`` and ``excess / scale``, or NaN if one is; divide only for a new largest."""
    return largest if excess <= largest * scale or largest != largest else excess / scale


@jit
def largest_residual(program, work):
    """Return the largest of the four residuals; NaN if one is."""
    residual, largest = part(program, work, lay.RESIDUAL), 0.0
    for k in range(OBJECTIVE):
        largest = _worst(largest, residual[k], 1.0)
    return largest


@jit
def finish(program, work, u, multiplier, sense):
    """Compute variables, multipliers, residuals, and the active rows for the next solve; return the largest residual.

    ``sense`` (rows,) int32 has the active rows and their sides for the solver; equalities do not change.
    """
    for i in range(sense.size):
        if sense[i] & FIXED == 0:
            sense[i] = 0 if multiplier[i] == 0.0 else ACTIVE if multiplier[i] > 0.0 else ACTIVE | LOWER
    back_transform(program, work, u, multiplier)
    recover(program, work, multiplier)
    check(program, work)
    return largest_residual(program, work)
