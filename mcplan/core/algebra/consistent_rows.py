"""Removal of nearly dependent rows from linear equations, and of inequalities that the equations determine.

Only lengths and distances of rows are needed, not an orthonormal basis: the Cholesky factor ``U'U = A A'`` of the
remaining rows has them. Its loops run along columns of A, where entries are contiguous. Squares of lengths lose half of
the digits, so that fractions below 1e-6 cannot be told from 0.
"""

import math

import numpy as np

from mcplan.core.algebra.products import add_products, segment
from mcplan.core.jit import jit_algebra

NEUTRAL = -1.0
"""Right-hand side of an empty inequality: ``0 >= -1``."""


@jit_algebra
def make_consistent(A, b, m, n, scratch, threshold):
    """Set the rows of ``A x = b`` that depend on the others, or nearly, to ``0 = 0``.

    Such a row is removed entirely. Its component outside the span of the others is only rounding or drift: keeping it
    would constrain an arbitrary direction, or amplify errors in this direction about 100 times.

    Rows a_i are tested in their order, with the threshold t_i and the part r_i of a_i outside the span of the rows
    before it: a row stays if ``|r_i| > t_i |a_i|``. Each of the remaining rows is independent of those before it, but
    it may still depend on all others together: the distance of a row from the span of the rest is
    ``1 / |column i of U'^-1|``. The nearest row, in units of its own ``t_i |a_i|``, is removed, until none is nearer
    than 1. Rows that depended on a removed row need not depend on the rest, so that the rows after it are tested again.

    Parameters
    ----------
    A : (n m,) the entries of an (m, n) matrix, column by column; changed where needed.
    b : (m,) changed with them.
    m, n : numbers of rows and columns.
    scratch : ((2 m + 1) n,) out: one row of U for each remaining row, with a column for each row of A; the rest is
        scratch.
    threshold : (m,) in and out: t_i > 0, a row is removed if at most this fraction of its length lies outside the span
        of the others. Afterwards negative for removed rows, and infinite for those that were removed as the nearest.

    Returns
    -------
    The number of remaining rows.
    """
    start, rank = 0, 0
    while True:
        rank = _factor(A, m, n, scratch, threshold, start, rank)
        nearest, rank_before = _nearest_row(m, scratch, rank, threshold)
        if nearest < 0:
            break
        threshold[nearest] = np.inf
        start, rank = nearest, rank_before
    for i in range(m):
        if threshold[i] < 0.0:
            _clear_row(A, i, m, n)
            b[i] = 0.0
    return rank


@jit_algebra
def _clear_row(A, i, m, n):
    """Set row i to zero."""
    for k in range(n):
        A[m * k + i] = 0.0


@jit_algebra
def _factor(A, m, n, U, threshold, start, rank):
    """Factor the rows from ``start`` on that are independent of those before them, after ``rank`` rows before it.

    The other rows get a negative ``threshold``; an infinite one marks a row that is never independent. Return the
    number of independent rows.
    """
    for i in range(start, m):
        row = segment(U, m * rank + i, m - i)
        for j in range(row.size):
            row[j] = 0.0
        add_products(A, i, m, n, A, i, m, row)
        square = row[0]
        for j in range(row.size):
            row[j] = -row[j]
        add_products(U, i, m, rank, U, i, m, row)
        remaining = -row[0]
        threshold[i] = abs(threshold[i])
        if remaining > threshold[i] * threshold[i] * square and rank < n:
            scale = -1.0 / math.sqrt(remaining)
            for j in range(row.size):
                row[j] *= scale
            rank += 1
        else:
            threshold[i] = -threshold[i]
    return rank


@jit_algebra
def _substitute(U, m, row, i, Y, y):
    """Write row i of the solution Y of ``U'Y = B`` to y, which is minus row i of B; ``row`` is its row of A."""
    add_products(U, row, m, i, Y, 0, y.size, y)
    scale = -1.0 / U[m * i + row]
    for j in range(y.size):
        y[j] *= scale


@jit_algebra
def _nearest_row(m, U, rank, threshold):
    """Return the row nearest to the span of all others, in units of its ``threshold``, and how many remain before it.

    The row is -1 if none is nearer than 1. The inverse of U' is written behind U.
    """
    inverse, length = U[m * rank :], U[U.size - rank :]
    for k in range(rank):
        length[k] = 0.0
    i = 0
    for row in range(m):
        if threshold[row] > 0.0:
            y = segment(inverse, rank * i, rank)
            for k in range(rank):
                y[k] = 0.0
            y[i] = -1.0
            _substitute(U, m, row, i, inverse, y)
            for k in range(rank):
                length[k] += y[k] * y[k]
            i += 1
    nearest, rank_before, min_distance, i = -1, 0, 1.0, 0
    for row in range(m):
        if threshold[row] > 0.0:
            square = 0.0
            for k in range(i + 1):
                square += U[m * k + row] * U[m * k + row]
            distance = 1.0 / (length[i] * square * threshold[row] * threshold[row])
            if distance < min_distance:
                nearest, rank_before, min_distance = row, i, distance
            i += 1
    return nearest, rank_before


@jit_algebra
def drop_determined(C, d, count, fraction, A, m, n, scratch, rank, threshold):
    """Set the rows of ``C x >= d`` that the equations ``A x = b`` determine to ``0 >= -1``.

    No x that solves the equations can change such a row. If it is violated, even by rounding only, the problem would
    have no solution. The part of a row c in the span of A has the length ``|U'^-1 A c|``.

    Parameters
    ----------
    C : (n count,) the entries of a (count, n) matrix, column by column; changed where needed.
    d : (count,) changed with them.
    fraction : a row counts as determined if at most this fraction of its length lies outside that span.
    A, m, n, scratch, threshold : the equations, as `make_consistent` leaves them, and ``rank``, what it returned.
    """
    Y = scratch[m * rank :]
    chunk = (scratch.size - m * rank) // (rank + 1)
    for start in range(0, count, chunk):
        width = min(chunk, count - start)
        outside = segment(Y, rank * width, width)
        for j in range(width):
            outside[j] = 0.0
        for k in range(n):
            c = segment(C, count * k + start, width)
            for j in range(width):
                outside[j] += (1.0 - fraction * fraction) * c[j] * c[j]
        i = 0
        for row in range(m):
            if threshold[row] > 0.0:
                y = segment(Y, i * width, width)
                for j in range(width):
                    y[j] = 0.0
                add_products(A, row, m, n, C, start, count, y)
                for j in range(width):
                    y[j] = -y[j]
                _substitute(scratch, m, row, i, Y, y)
                for j in range(width):
                    outside[j] -= y[j] * y[j]
                i += 1
        for j in range(width):
            if outside[j] <= 0.0:
                _clear_row(C, start + j, count, n)
                d[start + j] = NEUTRAL
