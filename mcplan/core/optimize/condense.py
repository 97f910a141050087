"""Condensing: from parameter values to a dense QP without the variables that equalities determine.

With ``values`` the data of ``minimise 1/2 x'Px + q'x, A_e x + b_e = 0, lower <= A_r x <= upper``, equalities determine
some variables, the eliminated ones, as ``x_e = T z + t``, with ``z`` the free ones. With the constant parts s of the
rows the QP is, in z,

    minimise   1/2 z'H z + g'z     subject to   lower - s <= G z <= upper - s.

The integer array ``program`` describes the structure, ``work`` has the numbers; see `layout`.
"""

import numpy as np

from mcplan.core.algebra.products import segment
from mcplan.core.jit import jit, jit_algebra
from mcplan.core.optimize import layout as lay
from mcplan.core.optimize.layout import part, section


@jit
def gather(program, work, theta):
    """Compute the data that depend on parameters: ``values = S theta``."""
    rows = section(program, lay.GATHER_ROWS)
    pointer = section(program, lay.GATHER_POINTER)
    columns = section(program, lay.GATHER_COLUMNS)
    coefficients = part(program, work, lay.COEFFICIENTS)
    values = part(program, work, lay.VALUES)
    single, multiple = section(program, lay.SINGLE_ROWS), section(program, lay.SINGLE_COLUMNS)
    factor = part(program, work, lay.SINGLE_COEFFICIENTS)
    for i in range(single.size):  # an unsigned index is not tested for being negative
        values[np.uint64(single[i])] = factor[i] * theta[np.uint64(multiple[i])]
    for i in range(rows.size):
        total = 0.0
        for k in range(pointer[i], pointer[i + 1]):
            total += coefficients[k] * theta[columns[k]]
        values[rows[i]] = total


@jit
def substitute(program, work):
    """Compute ``T`` and ``t``: ``x_j = -(b_r + sum a_rk x_k) / a_rj``, in the order of the substitutions."""
    sizes = section(program, lay.SIZES)
    free, eliminated = sizes[lay.FREE], sizes[lay.ELIMINATED]
    pivot, rhs = section(program, lay.ELIMINATED_PIVOT), section(program, lay.ELIMINATED_RHS)
    pointer, split = section(program, lay.ELIMINATED_POINTER), section(program, lay.ELIMINATED_SPLIT)
    position, reference = section(program, lay.ELIMINATED_POSITION), section(program, lay.ELIMINATED_REFERENCE)
    support_pointer, support = section(program, lay.SUPPORT_POINTER), section(program, lay.SUPPORT)
    values = part(program, work, lay.VALUES)
    T = part(program, work, lay.T).reshape((eliminated, free))
    t = part(program, work, lay.T0)
    for e in range(eliminated):
        scale = -1.0 / values[pivot[e]]
        offset, row = scale * values[rhs[e]], T[e]
        if split[e] < pointer[e + 1]:
            for k in range(support_pointer[e], support_pointer[e + 1]):
                row[support[k]] = 0.0
        for k in range(pointer[e], split[e]):
            row[np.uint64(reference[k])] = scale * values[np.uint64(position[k])]
        for k in range(split[e], pointer[e + 1]):
            a = scale * values[position[k]]
            r = -reference[k] - 1
            offset += a * t[r]
            for c in range(support_pointer[r], support_pointer[r + 1]):
                row[support[c]] += a * T[r, support[c]]
        t[e] = offset


@jit_algebra
def condense_cost(program, work, H):
    """Compute the upper triangle of ``H`` and ``g``: ``H = [I; T]' P [I; T]``, ``g = [I; T]' (P [0; t] + q)``.

    ``H`` is written to the leading block of the array.
    """
    sizes = section(program, lay.SIZES)
    size, free, eliminated = sizes[lay.SIZE], sizes[lay.FREE], sizes[lay.ELIMINATED]
    values = part(program, work, lay.VALUES)
    support_pointer, support = section(program, lay.SUPPORT_POINTER), section(program, lay.SUPPORT)
    reference = section(program, lay.REFERENCE)
    T = part(program, work, lay.T).reshape((eliminated, free))
    t = part(program, work, lay.T0)
    g = part(program, work, lay.G)
    y = part(program, work, lay.SCRATCH)
    for i in range(free):
        g[i] = 0.0
        row = H[i, i:free]
        for j in range(row.size):
            row[j] = 0.0
    linear = sizes[lay.Q]
    for i in range(size):
        q, r = values[linear + i], reference[i]
        if q != 0.0:
            if r >= 0:
                g[r] += q
            else:
                e = -r - 1
                for k in range(support_pointer[e], support_pointer[e + 1]):
                    g[support[k]] += q * T[e, support[k]]
    wide, wide_position = section(program, lay.WIDE_SUPPORT), section(program, lay.WIDE_POSITION)
    _add_wide(wide, wide_position, values, T, t, H, g)
    owner, pointer = section(program, lay.COST_REFERENCE), section(program, lay.COST_POINTER)
    position, other = section(program, lay.COST_POSITION), section(program, lay.COST_OTHER)
    for i in range(owner.size):
        r, first, last = owner[i], pointer[i], pointer[i + 1]
        if last - first == 1 and other[first] == r:  # only the diagonal
            p = values[position[first]]
            if r >= 0:
                H[r, r] += p
            else:
                e = -r - 1
                for k in range(support_pointer[e], support_pointer[e + 1]):
                    a = support[k]
                    scaled = p * T[e, a]
                    g[a] += scaled * t[e]
                    for c in range(k, support_pointer[e + 1]):
                        H[a, support[c]] += scaled * T[e, support[c]]
            continue
        for k in range(free):
            y[k] = 0.0
        constant = 0.0
        for k in range(first, last):  # y = row of P times [I; T]
            p, s = values[position[k]], other[k]
            if s >= 0:
                y[s] += p
            else:
                e = -s - 1
                constant += p * t[e]
                for c in range(support_pointer[e], support_pointer[e + 1]):
                    y[support[c]] += p * T[e, support[c]]
        if r >= 0:
            g[r] += constant
            for j in range(r, free):
                H[r, j] += y[j]
        else:
            e = -r - 1
            for k in range(support_pointer[e], support_pointer[e + 1]):
                a = support[k]
                factor = T[e, a]
                g[a] += factor * constant
                for j in range(a, free):
                    H[a, j] += factor * y[j]


@jit_algebra
def _add_wide(wide, position, values, T, t, H, g):
    """Add ``sum p_e T_e' T_e`` to ``H`` and ``sum p_e t_e T_e'`` to ``g``, eight rows of ``T`` per sweep over ``H``."""
    free = g.size
    count = wide.size
    for i in range(count):
        e = wide[i]
        factor = values[position[i]] * t[e]
        for a in range(free):
            g[a] += factor * T[e, a]
    i = 0
    while i + 8 <= count:
        e0, e1, e2, e3 = wide[i], wide[i + 1], wide[i + 2], wide[i + 3]
        e4, e5, e6, e7 = wide[i + 4], wide[i + 5], wide[i + 6], wide[i + 7]
        p0, p1, p2, p3 = values[position[i]], values[position[i + 1]], values[position[i + 2]], values[position[i + 3]]
        p4, p5 = values[position[i + 4]], values[position[i + 5]]
        p6, p7 = values[position[i + 6]], values[position[i + 7]]
        for a in range(free):
            f0, f1, f2, f3 = p0 * T[e0, a], p1 * T[e1, a], p2 * T[e2, a], p3 * T[e3, a]
            f4, f5, f6, f7 = p4 * T[e4, a], p5 * T[e5, a], p6 * T[e6, a], p7 * T[e7, a]
            if f0 == f1 == f2 == f3 == f4 == f5 == f6 == f7 == 0.0:
                continue
            row = H[a, a:free]
            T0, T1, T2, T3 = T[e0, a:], T[e1, a:], T[e2, a:], T[e3, a:]
            T4, T5, T6, T7 = T[e4, a:], T[e5, a:], T[e6, a:], T[e7, a:]
            for b in range(row.size):
                row[b] += (f0 * T0[b] + f1 * T1[b] + f2 * T2[b] + f3 * T3[b]) + (
                    f4 * T4[b] + f5 * T5[b] + f6 * T6[b] + f7 * T7[b]
                )
        i += 8
    while i + 2 <= count:
        e0, e1 = wide[i], wide[i + 1]
        p0, p1 = values[position[i]], values[position[i + 1]]
        for a in range(free):
            f0, f1 = p0 * T[e0, a], p1 * T[e1, a]
            if f0 == f1 == 0.0:
                continue
            row, T0, T1 = H[a, a:free], T[e0, a:], T[e1, a:]
            for b in range(row.size):
                row[b] += f0 * T0[b] + f1 * T1[b]
        i += 2
    while i < count:
        e0 = wide[i]
        p0 = values[position[i]]
        for a in range(free):
            f0 = p0 * T[e0, a]
            if f0 == 0.0:
                continue
            row, T0 = H[a, a:free], T[e0, a:]
            for b in range(row.size):
                row[b] += f0 * T0[b]
        i += 1


@jit
def row_limits(program, work):
    """Compute the bounds of the rows: the tightest of their limits."""
    pointer, limit = section(program, lay.LIMIT_POINTER), section(program, lay.LIMIT_POSITION)
    values, factors = part(program, work, lay.VALUES), part(program, work, lay.FACTORS)
    lower, upper = part(program, work, lay.ROW_LOWER), part(program, work, lay.ROW_UPPER)
    for i in range(lower.size):
        low, high = -lay.BIG, lay.BIG
        for k in range(pointer[2 * i], pointer[2 * i + 1]):
            low = max(low, factors[k] * values[limit[k]])
        for k in range(pointer[2 * i + 1], pointer[2 * i + 2]):
            high = min(high, factors[k] * values[limit[k]])
        lower[i], upper[i] = low, high


@jit
def write_row(program, work, i, row):
    """Write row i of ``G`` to ``row`` (free,), and return its shift ``s_i``."""
    sizes = section(program, lay.SIZES)
    free, eliminated = sizes[lay.FREE], sizes[lay.ELIMINATED]
    values, t = part(program, work, lay.VALUES), part(program, work, lay.T0)
    T = part(program, work, lay.T).reshape((eliminated, free))
    pointer = section(program, lay.ROW_POINTER)
    position, reference = section(program, lay.ROW_POSITION), section(program, lay.ROW_REFERENCE)
    support_pointer, support = section(program, lay.SUPPORT_POINTER), section(program, lay.SUPPORT)
    shift = 0.0
    for k in range(free):
        row[k] = 0.0
    for k in range(pointer[i], pointer[i + 1]):
        a = values[position[k]] if position[k] >= 0 else 1.0
        r = reference[k]
        if r >= 0:
            row[r] += a
            continue
        e = -r - 1
        shift += a * t[e]
        if support_pointer[e] < support_pointer[e + 1]:  # T is zero outside its support; its span is contiguous
            start = support[support_pointer[e]]
            length = support[support_pointer[e + 1] - 1] + 1 - start
            out, added = segment(row, start, length), segment(T, free * e + start, length)
            for c in range(length):
                out[c] += a * added[c]
    return shift


@jit
def condense_rows(program, work):
    """Compute ``G'`` (one column per row), the shifts ``s`` and the bounds ``lower - s``, ``upper - s``."""
    row_limits(program, work)
    sizes = section(program, lay.SIZES)
    free, rows = sizes[lay.FREE], sizes[lay.ROWS]
    columns, row = part(program, work, lay.COLUMNS), part(program, work, lay.SCRATCH)
    lower, upper = part(program, work, lay.ROW_LOWER), part(program, work, lay.ROW_UPPER)
    for i in range(rows):
        shift = write_row(program, work, i, row)
        for k in range(free):
            columns[k * rows + i] = row[k]
        lower[i] = lower[i] - shift if lower[i] > -lay.BIG else -lay.BIG
        upper[i] = upper[i] - shift if upper[i] < lay.BIG else lay.BIG
