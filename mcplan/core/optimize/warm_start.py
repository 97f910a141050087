"""Warm start of the condensed QP: solve it with the previous active set, of which few rows change.

With ``G_a z = b_a`` for the active rows and ``y`` their multipliers,

    [H G_a'; G_a 0] [z; y] = [-g; b_a],   H = U'U,  Y = U^-T G_a',  v = U^-T g,  S = Y'Y = R'R,  w = R^-T (b_a + Y'v),

so that ``R y = -w`` and ``U z = -(v + Y y)``: ``K = [H G_a' g; . 0 -b_a]`` is factored in place and becomes
``[U Y v; . R w]``. This ``z`` minimises the QP if no multiplier has the wrong sign and ``z`` satisfies all other rows.
"""

import math

from mcplan.core.algebra.products import segment
from mcplan.core.jit import jit, jit_algebra
from mcplan.core.optimize import layout as lay
from mcplan.core.optimize.condense import condense_cost, gather, row_limits, substitute, write_row
from mcplan.core.optimize.layout import part, section
from mcplan.core.optimize.least_distance import MIN_PIVOT
from mcplan.core.optimize.recover import (
    ACTIVE,
    FIXED,
    INEQUALITY,
    LOWER,
    check,
    largest_residual,
    recover_multipliers,
    recover_variables,
)

PRIMAL_TOLERANCE = 1e-10
"""Largest violation of a row scaled to unit length in ``u = U z + v``."""

MAX_VIOLATION = 1e-10
"""Largest residual of the inequalities. It is mostly zero, but not if active rows are almost dependent."""

ROUNDING = 1e-11
"""Violation of a row that is no violation, whatever its length: many rows are met with equality but for rounding, and
the length of a row takes as long as ten rows."""

MAX_EXCHANGES = 12
"""Largest number of exchanges of active rows, and thus of rows that may be wrong: an exchange drops at most one row and
adds at most one. Nine of ten sets that can be repaired need one to three."""

DEPENDENT_PIVOT = 1e-10
"""Smallest pivot of ``S``, relative to its diagonal; below this the active rows count as dependent."""


@jit
def solve_with_active_set(program, work, theta, sense, multiplier):
    """Solve at ``theta``, from the active rows of ``sense`` on; return the largest residual, infinite if not solved.

    Without a proof of convergence, but with few steps: the row whose multiplier has the wrong sign and is the largest
    leaves the active set, the most violated one enters it, and the QP is solved again. Several rows that enter at once
    are often dependent, and rows that leave together mostly return one by one. ``sense`` (rows,) int32 is that of
    ``recover.finish``, out: the last active set; ``multiplier`` (rows,) is overwritten.
    """
    sizes = section(program, lay.SIZES)
    free, rows = sizes[lay.FREE], sizes[lay.ROWS]
    gather(program, work, theta)
    substitute(program, work)
    row_limits(program, work)
    solution, z = part(program, work, lay.KKT_SOLUTION), part(program, work, lay.Z)
    size = part(program, work, lay.SHIFT)
    first = free + -free % 4
    for _ in range(MAX_EXCHANGES + 1):
        count = _gather_active_rows(program, work, sense)
        if count < 0:
            return math.inf
        height = first + count + -count % 4
        width = height + 4
        K = part(program, work, lay.KKT)[: height * width].reshape((height, width))
        condense_cost(program, work, K)
        _write_kkt(program, work, K, first, count)
        if factor_kkt(K, first):
            return math.inf
        _solve(K, solution)
        magnitude = 0.0
        for k in range(free):
            z[k] = solution[k]
            magnitude += abs(z[k])
        if not magnitude < math.inf:
            return math.inf
        count = 0
        for i in range(rows):
            multiplier[i] = 0.0
            if sense[i] & ACTIVE and size[i] > 0.0:
                multiplier[i] = solution[first + count]
                count += 1
        recover_variables(program, work)
        wrong_count = _exchange_rows(program, work, K, sense, multiplier)
        if wrong_count > MAX_EXCHANGES:
            return math.inf
        if wrong_count == 0:
            recover_multipliers(program, work, multiplier)
            check(program, work)
            is_satisfied = part(program, work, lay.RESIDUAL)[INEQUALITY] <= MAX_VIOLATION
            return largest_residual(program, work) if is_satisfied else math.inf
    return math.inf


@jit
def _gather_active_rows(program, work, sense):
    """Write ``G_a``, ``b_a`` and the rows' sums of magnitudes; return their number, negative if there is no solution.

    Left out are rows that are empty because they follow from others (0 = 0).
    """
    sizes = section(program, lay.SIZES)
    free, rows = sizes[lay.FREE], sizes[lay.ROWS]
    lower, upper = part(program, work, lay.ROW_LOWER), part(program, work, lay.ROW_UPPER)
    G = part(program, work, lay.COLUMNS).reshape((rows, free))
    b, size = part(program, work, lay.LDP_LOWER), part(program, work, lay.SHIFT)
    count = 0
    for i in range(rows):
        if not lower[i] <= upper[i]:
            return -1
        if sense[i] & ACTIVE == 0:
            continue
        row = segment(G, free * count, free)
        bound = (lower[i] if sense[i] & LOWER else upper[i]) - write_row(program, work, i, row)
        if not abs(bound) < lay.BIG:
            return -1
        size[i] = 0.0
        for k in range(free):
            size[i] += abs(row[k])
        if size[i] == 0.0 and bound == 0.0:
            continue
        if count == free or size[i] == 0.0:
            return -1
        b[count] = bound
        count += 1
    return count


@jit
def _write_kkt(program, work, K, first, count):
    """Write ``G_a'``, ``g`` and ``-b_a`` into ``K``. Rows and columns of the padding belong to unknowns of zero."""
    sizes = section(program, lay.SIZES)
    free, rows = sizes[lay.FREE], sizes[lay.ROWS]
    G, g = part(program, work, lay.COLUMNS).reshape((rows, free)), part(program, work, lay.G)
    b = part(program, work, lay.LDP_LOWER)
    height, last = K.shape[0], K.shape[0]
    for i in range(height):
        padding = K[i, max(free, i - i % 4) :]
        for j in range(padding.size):
            padding[j] = 0.0
        if i < free:
            K[i, last] = g[i]
        elif first <= i < first + count:
            K[i, last] = -b[i - first]
        else:
            K[i, i] = 1.0 if i < first else -1.0
    for i in range(count):
        for k in range(free):
            K[k, first + i] = G[i, k]


@jit_algebra
def factor_kkt(K, first):
    """Factor ``K`` in place, four rows at a time; return 1 on a failed pivot, else 0.

    Rows before ``first`` are those of ``H``; from the others the elimination leaves ``-S``, whose sign is changed.
    """
    width = K.shape[1]
    for i in range(0, K.shape[0], 4):
        if i < first:
            s0, s1, s2, s3 = K[i, i], K[i + 1, i + 1], K[i + 2, i + 2], K[i + 3, i + 3]
            _subtract(K, i, 0, i)
            tolerance = MIN_PIVOT
        else:
            _subtract(K, i, 0, first)
            for r in range(i, i + 4):
                row = K[r, i:]
                for j in range(row.size):
                    row[j] = -row[j]
            s0, s1, s2, s3 = K[i, i], K[i + 1, i + 1], K[i + 2, i + 2], K[i + 3, i + 3]
            _subtract(K, i, first, i)
            tolerance = DEPENDENT_PIVOT
        # factor the 4 x 4 block on the diagonal, then apply it to all columns
        d0 = K[i, i]
        r0 = 1.0 / math.sqrt(d0)
        u01, u02, u03 = K[i, i + 1] * r0, K[i, i + 2] * r0, K[i, i + 3] * r0
        d1 = K[i + 1, i + 1] - u01 * u01
        r1 = 1.0 / math.sqrt(d1)
        u12, u13 = (K[i + 1, i + 2] - u01 * u02) * r1, (K[i + 1, i + 3] - u01 * u03) * r1
        d2 = K[i + 2, i + 2] - (u02 * u02 + u12 * u12)
        r2 = 1.0 / math.sqrt(d2)
        u23 = (K[i + 2, i + 3] - (u02 * u03 + u12 * u13)) * r2
        d3 = K[i + 3, i + 3] - (u03 * u03 + u13 * u13 + u23 * u23)
        r3 = 1.0 / math.sqrt(d3)
        if not (d0 > tolerance * s0 and d1 > tolerance * s1 and d2 > tolerance * s2 and d3 > tolerance * s3):
            return 1
        q0, q1 = segment(K, width * i + i, width - i), segment(K, width * (i + 1) + i, width - i)
        q2, q3 = segment(K, width * (i + 2) + i, width - i), segment(K, width * (i + 3) + i, width - i)
        for j in range(q0.size):
            a = q0[j] * r0
            b = (q1[j] - u01 * a) * r1
            c = (q2[j] - (u02 * a + u12 * b)) * r2
            q3[j] = (q3[j] - (u03 * a + u13 * b + u23 * c)) * r3
            q0[j], q1[j], q2[j] = a, b, c
    return 0


@jit_algebra
def _subtract(K, i, start, end):
    """Eliminate the rows from ``start`` to ``end`` from rows i to i + 3: ``K_ij -= sum_k K_ki K_kj``.

    Each row is a view of its own: the compiler vectorises the loops only then.
    """
    width = K.shape[1]
    q0, q1 = segment(K, width * i + i, width - i), segment(K, width * (i + 1) + i, width - i)
    q2, q3 = segment(K, width * (i + 2) + i, width - i), segment(K, width * (i + 3) + i, width - i)
    for k in range(start, end, 4):
        p0, p1 = segment(K, width * k + i, width - i), segment(K, width * (k + 1) + i, width - i)
        p2, p3 = segment(K, width * (k + 2) + i, width - i), segment(K, width * (k + 3) + i, width - i)
        a0, a1, a2, a3 = p0[0], p0[1], p0[2], p0[3]
        b0, b1, b2, b3 = p1[0], p1[1], p1[2], p1[3]
        c0, c1, c2, c3 = p2[0], p2[1], p2[2], p2[3]
        d0, d1, d2, d3 = p3[0], p3[1], p3[2], p3[3]
        if a0 == a1 == a2 == a3 == b0 == b1 == b2 == b3 == c0 == c1 == c2 == c3 == d0 == d1 == d2 == d3 == 0.0:
            continue
        for j in range(q0.size):
            a, b, c, d = p0[j], p1[j], p2[j], p3[j]
            q0[j] = q0[j] - a0 * a - b0 * b - c0 * c - d0 * d
            q1[j] = q1[j] - a1 * a - b1 * b - c1 * c - d1 * d
            q2[j] = q2[j] - a2 * a - b2 * b - c2 * c - d2 * d
            q3[j] = q3[j] - a3 * a - b3 * b - c3 * c - d3 * d


@jit_algebra
def _solve(K, solution):
    """Compute ``[z; y]`` from the factor: ``R y = -w``, then ``U z = -(v + Y y)``."""
    height, width = K.shape
    for i in range(height - 4, -1, -4):  # four rows at a time, because their sums do not depend on each other
        q0, q1 = segment(K, width * i + i, width - i), segment(K, width * (i + 1) + i, width - i)
        q2, q3 = segment(K, width * (i + 2) + i, width - i), segment(K, width * (i + 3) + i, width - i)
        below = segment(solution, i, height - i)
        s0, s1, s2, s3 = q0[height - i], q1[height - i], q2[height - i], q3[height - i]
        for j in range(4, below.size):
            value = below[j]
            s0 += q0[j] * value
            s1 += q1[j] * value
            s2 += q2[j] * value
            s3 += q3[j] * value
        x3 = -s3 / q3[3]
        x2 = -(s2 + q2[3] * x3) / q2[2]
        x1 = -(s1 + (q1[2] * x2 + q1[3] * x3)) / q1[1]
        x0 = -(s0 + (q0[1] * x1 + q0[2] * x2 + q0[3] * x3)) / q0[0]
        below[0], below[1], below[2], below[3] = x0, x1, x2, x3


@jit
def _exchange_rows(program, work, K, sense, multiplier):
    """Drop the active row with the largest multiplier of the wrong sign, and add the most violated row.

    Return the number of such active rows or of violated rows, whichever is larger.
    """
    values, x, z = part(program, work, lay.VALUES), part(program, work, lay.X), part(program, work, lay.Z)
    pointer, variable = section(program, lay.ROW_POINTER), section(program, lay.ELIMINATED_VARIABLE)
    position, reference = section(program, lay.ROW_POSITION), section(program, lay.ROW_REFERENCE)
    lower, upper = part(program, work, lay.ROW_LOWER), part(program, work, lay.ROW_UPPER)
    dropped, drop_count, smallest = -1, 0, 0.0
    violated, violated_count, side, largest, largest_length = -1, 0, 0, PRIMAL_TOLERANCE, 1.0
    for i in range(sense.size):
        if sense[i] & ACTIVE:
            signed_multiplier = -multiplier[i] if sense[i] & LOWER else multiplier[i]
            if sense[i] & FIXED == 0 and not signed_multiplier >= 0.0:
                drop_count += 1
                if not signed_multiplier >= smallest:
                    dropped, smallest = i, signed_multiplier
            continue
        total = 0.0
        for k in range(pointer[i], pointer[i + 1]):
            a = values[position[k]] if position[k] >= 0 else 1.0
            r = reference[k]
            total += a * (z[r] if r >= 0 else x[variable[-r - 1]])
        excess = max(lower[i] - total, total - upper[i])
        if excess <= ROUNDING:
            continue
        length = _row_length(program, work, K, i)
        if not excess <= PRIMAL_TOLERANCE * length:
            violated_count += 1
        if not excess * largest_length <= largest * length:
            violated, largest, largest_length = i, excess, length
            side = LOWER if total < lower[i] else 0
    if dropped >= 0:
        sense[dropped] = 0
    if violated >= 0:
        sense[violated] = ACTIVE | side
    return max(drop_count, violated_count)


@jit
def _row_length(program, work, K, i):
    """Return the length ``|G_i U^-1|`` of a row of the least-distance problem."""
    y, square = part(program, work, lay.SCRATCH), 0.0
    write_row(program, work, i, y)
    for k in range(y.size):
        y[k] /= K[k, k]
        square += y[k] * y[k]
        for j in range(k + 1, y.size):
            y[j] -= K[k, j] * y[k]
    return math.sqrt(square)
