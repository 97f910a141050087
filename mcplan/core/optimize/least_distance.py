"""Transformation of a dense QP with positive definite Hessian to a least-distance problem, for an active-set solver.

With z, H, g, G, s and the bounds of `condense`, ``H = U'U``, ``v = U^-T g`` and the new variables ``u = U z + v``,

    minimise  1/2 |u|^2   subject to   lower - s + G U^-1 v <= G U^-1 u <= upper - s + G U^-1 v,

with the rows of ``M = G U^-1`` scaled to unit length (Arnström, Bemporad, Axehill 2022, eq. 3).
"""

import math

from mcplan.core.jit import jit, jit_algebra
from mcplan.core.optimize import layout as lay
from mcplan.core.optimize.condense import condense_cost, condense_rows, gather, substitute
from mcplan.core.optimize.layout import part, section

SINGULAR = 1
"""Status of ``prepare``: the Hessian is too ill-conditioned to be factored; H, g, G and bounds are ready."""

MIN_PIVOT = 1e-13
"""Smallest accepted pivot, relative to the diagonal entry, without a shift."""

MIN_SHIFTED_PIVOT = 1e-10
"""Smallest pivot, relative to the diagonal entry, that gets no shift where shifts are allowed."""


@jit_algebra
def factorise(H, shift, added):
    """Replace the upper triangle of ``H`` by ``U`` with ``H + diag(added) = U'U``; return 1 on a failed pivot, else 0.

    A pivot that is not positive gets ``shift`` added; with ``shift`` zero it is a failure.
    """
    n = H.shape[0]
    for i in range(n):
        diagonal = H[i, i]
        row = H[i, i:]
        k = 0
        while k + 8 <= i:
            r0, r1, r2, r3 = H[k, i:], H[k + 1, i:], H[k + 2, i:], H[k + 3, i:]
            r4, r5, r6, r7 = H[k + 4, i:], H[k + 5, i:], H[k + 6, i:], H[k + 7, i:]
            c0, c1, c2, c3, c4, c5, c6, c7 = r0[0], r1[0], r2[0], r3[0], r4[0], r5[0], r6[0], r7[0]
            for j in range(row.size):
                row[j] -= (c0 * r0[j] + c1 * r1[j] + c2 * r2[j] + c3 * r3[j]) + (
                    c4 * r4[j] + c5 * r5[j] + c6 * r6[j] + c7 * r7[j]
                )
            k += 8
        while k < i:
            r0 = H[k, i:]
            c0 = r0[0]
            for j in range(row.size):
                row[j] -= c0 * r0[j]
            k += 1
        added[i] = 0.0
        if not H[i, i] > (MIN_PIVOT if shift == 0.0 else MIN_SHIFTED_PIVOT) * diagonal:
            if not shift > 0.0 or not H[i, i] > -shift:
                return 1
            added[i] = shift
            H[i, i] += shift
        scale = 1.0 / math.sqrt(H[i, i])
        for j in range(row.size):
            row[j] *= scale
    return 0


@jit_algebra
def transform_rows(U, Y, prefix):
    """Replace ``Y = G'`` by ``U^-T G'``; at step k only the leading ``prefix[k]`` columns of ``Y`` are non-zero.

    Rows are eliminated in blocks of four, so that each loaded number is used four times. Each row is a view of its
    own: the compiler vectorises the loops only then.
    """
    n = U.shape[0]
    blocked = n - n % 4
    for i in range(0, blocked, 4):
        q0, q1, q2, q3 = Y[i], Y[i + 1], Y[i + 2], Y[i + 3]
        for k in range(0, i, 4):
            a0, a1, a2, a3 = U[k, i], U[k, i + 1], U[k, i + 2], U[k, i + 3]
            b0, b1, b2, b3 = U[k + 1, i], U[k + 1, i + 1], U[k + 1, i + 2], U[k + 1, i + 3]
            c0, c1, c2, c3 = U[k + 2, i], U[k + 2, i + 1], U[k + 2, i + 2], U[k + 2, i + 3]
            d0, d1, d2, d3 = U[k + 3, i], U[k + 3, i + 1], U[k + 3, i + 2], U[k + 3, i + 3]
            p0, p1, p2, p3 = Y[k], Y[k + 1], Y[k + 2], Y[k + 3]
            for j in range(prefix[k + 3]):
                a, b, c, d = p0[j], p1[j], p2[j], p3[j]
                q0[j] -= (a0 * a + b0 * b) + (c0 * c + d0 * d)
                q1[j] -= (a1 * a + b1 * b) + (c1 * c + d1 * d)
                q2[j] -= (a2 * a + b2 * b) + (c2 * c + d2 * d)
                q3[j] -= (a3 * a + b3 * b) + (c3 * c + d3 * d)
        scale0, scale1 = 1.0 / U[i, i], 1.0 / U[i + 1, i + 1]
        scale2, scale3 = 1.0 / U[i + 2, i + 2], 1.0 / U[i + 3, i + 3]
        a1, a2, a3 = U[i, i + 1], U[i, i + 2], U[i, i + 3]
        b2, b3, c3 = U[i + 1, i + 2], U[i + 1, i + 3], U[i + 2, i + 3]
        for j in range(prefix[i + 3]):
            a = q0[j] * scale0
            b = (q1[j] - a1 * a) * scale1
            c = (q2[j] - (a2 * a + b2 * b)) * scale2
            q3[j] = (q3[j] - (a3 * a + b3 * b + c3 * c)) * scale3
            q0[j], q1[j], q2[j] = a, b, c
    for i in range(blocked, n):
        row = Y[i]
        for k in range(i):
            coefficient, above = U[k, i], Y[k]
            for j in range(prefix[k]):
                row[j] -= coefficient * above[j]
        scale = 1.0 / U[i, i]
        for j in range(prefix[i]):
            row[j] *= scale


@jit_algebra
def form_rows(U, g, Y, prefix, lower, upper, v, M, length, ldp_lower, ldp_upper):
    """Write the unit rows ``M``, their lengths before scaling, their bounds, and ``v``."""
    n, rows = Y.shape
    for i in range(n):
        v[i] = g[i]
    for k in range(n):
        v[k] /= U[k, k]
        for j in range(k + 1, n):
            v[j] -= U[k, j] * v[k]
    transform_rows(U, Y, prefix)
    for j in range(rows):
        length[j] = 0.0
        ldp_lower[j] = 0.0
    for i in range(n):
        row, v_i = Y[i], v[i]
        for j in range(rows):
            length[j] += row[j] * row[j]
            ldp_lower[j] += row[j] * v_i
    for j in range(rows):
        length[j] = math.sqrt(length[j])
        if length[j] <= 1e-300:
            length[j] = 1.0
        scale = 1.0 / length[j]
        offset = ldp_lower[j]
        ldp_upper[j] = (upper[j] + offset) * scale if upper[j] < lay.BIG else lay.BIG
        ldp_lower[j] = (lower[j] + offset) * scale if lower[j] > -lay.BIG else -lay.BIG
        for i in range(n):
            M[j, i] = Y[i, j] * scale


@jit
def condense(program, work, theta):
    """Condense the QP at the parameter vector ``theta``: write H (upper triangle), g, G' and the bounds."""
    gather(program, work, theta)
    substitute(program, work)
    free = section(program, lay.SIZES)[lay.FREE]
    condense_cost(program, work, part(program, work, lay.H).reshape((free, free)))
    condense_rows(program, work)


@jit
def _to_least_distance(program, work, shift):
    """Factor ``H`` and form the least-distance problem of the condensed one; return 0 or ``SINGULAR``."""
    sizes = section(program, lay.SIZES)
    free, rows = sizes[lay.FREE], sizes[lay.ROWS]
    U = part(program, work, lay.H).reshape((free, free))
    Y = part(program, work, lay.COLUMNS).reshape((free, rows))
    if factorise(U, shift, part(program, work, lay.PROXIMAL)):
        return SINGULAR
    form_rows(
        U, part(program, work, lay.G), Y, section(program, lay.PREFIX),
        part(program, work, lay.ROW_LOWER), part(program, work, lay.ROW_UPPER), part(program, work, lay.V),
        part(program, work, lay.M).reshape((rows, free)), part(program, work, lay.LENGTH),
        part(program, work, lay.LDP_LOWER), part(program, work, lay.LDP_UPPER),
    )  # fmt: skip
    return 0


@jit
def prepare(program, work, theta):
    """Condense the QP at ``theta`` and form its least-distance problem; return 0 or ``SINGULAR``."""
    condense(program, work, theta)
    return _to_least_distance(program, work, 0.0)


@jit
def prepare_shifted(program, work, theta, relative):
    """Prepare ``H + R`` like ``prepare``; where a pivot fails, R has ``relative`` times H's largest diagonal entry.

    It is the first step, z_k = 0, of the proximal iteration ``z+ = argmin 1/2 z'Hz + g'z + 1/2 (z - z_k)'R(z - z_k)``.
    """
    condense(program, work, theta)
    sizes = section(program, lay.SIZES)
    free = sizes[lay.FREE]
    U = part(program, work, lay.H).reshape((free, free))
    z = part(program, work, lay.Z)
    largest = 0.0
    for i in range(free):
        largest = max(largest, U[i, i])
    shift = relative * largest if largest > 0.0 else 1.0
    for i in range(free):
        z[i] = 0.0
    return _to_least_distance(program, work, shift)


@jit
def recentre(program, work):
    """Move the proximal term to the present ``z``: only ``v`` and the bounds change."""
    sizes = section(program, lay.SIZES)
    free, rows = sizes[lay.FREE], sizes[lay.ROWS]
    U = part(program, work, lay.H).reshape((free, free))
    Y = part(program, work, lay.COLUMNS).reshape((free, rows))
    g, z, v = part(program, work, lay.G), part(program, work, lay.Z), part(program, work, lay.V)
    added = part(program, work, lay.PROXIMAL)
    length, offset = part(program, work, lay.LENGTH), part(program, work, lay.SHIFT)
    lower, upper = part(program, work, lay.ROW_LOWER), part(program, work, lay.ROW_UPPER)
    ldp_lower, ldp_upper = part(program, work, lay.LDP_LOWER), part(program, work, lay.LDP_UPPER)
    for i in range(free):
        v[i] = g[i] - added[i] * z[i]
    for k in range(free):
        v[k] /= U[k, k]
        for j in range(k + 1, free):
            v[j] -= U[k, j] * v[k]
    for j in range(rows):
        offset[j] = 0.0
    for i in range(free):
        for j in range(rows):
            offset[j] += Y[i, j] * v[i]
    for j in range(rows):
        ldp_upper[j] = (upper[j] + offset[j]) / length[j] if upper[j] < lay.BIG else lay.BIG
        ldp_lower[j] = (lower[j] + offset[j]) / length[j] if lower[j] > -lay.BIG else -lay.BIG
