"""Removal of nearly dependent rows from linear equations, and of inequalities that the equations determine."""

import math

import numpy as np

from mcplan.core.jit import jit_algebra

NEUTRAL = -1.0
"""Right-hand side of an empty inequality: ``0 >= -1``."""

REORTHOGONALISE_BELOW = 0.1
"""If less than this fraction of a row's length remains after projection, digits were lost: it is projected again."""


@jit_algebra
def _subtract_span(A, i, m, n, Q, rank):
    """Write row i of A, less its part in the span of the ``rank`` rows of Q, into Q; return both squared lengths.

    ``r = a - sum_j (a' q_j) q_j``, with a second pass where digits would be lost.
    """
    square = 0.0
    for k in range(n):
        x = A[m * k + i]
        Q[rank, k] = x
        square += x * x
    remaining = square
    for repeat in range(2):
        if repeat and remaining > REORTHOGONALISE_BELOW * REORTHOGONALISE_BELOW * square:
            break
        for j in range(rank):
            projection = 0.0
            for k in range(n):
                projection += Q[rank, k] * Q[j, k]
            for k in range(n):
                Q[rank, k] -= projection * Q[j, k]
        remaining = 0.0
        for k in range(n):
            remaining += Q[rank, k] * Q[rank, k]
    return square, remaining


@jit_algebra
def make_consistent(A, b, m, n, Q, threshold):
    """Set the rows of ``A x = b`` that depend on the others, or nearly, to ``0 = 0``.

    Such a row is removed entirely. Its component outside the span of the others is only rounding or drift: keeping it
    would constrain an arbitrary direction, or amplify errors in this direction about 100 times.

    Rows a_i are made orthonormal in their order (Gram-Schmidt), with the threshold t_i::

        a_i = sum_j (a_i' q_j) q_j + r_i    for j < i
        |r_i| > t_i |a_i|:   q_i = r_i / |r_i|
        else                 a_i = 0,  b_i = 0

    Each of the remaining rows is independent of those before it, but it may still depend on all others together: with
    ``A = L Q`` the distance of a row from the span of the rest is ``1 / |column i of L^-1|``. The nearest row, in
    units of its own ``t_i |a_i|``, is removed, until none is nearer than 1. Rows that depended on a removed row need
    not depend on the rest, so that all rows are tested again each time.

    Parameters
    ----------
    A : (n m,) the entries of an (m, n) matrix, column by column; changed where needed.
    b : (m,) changed with them.
    m, n : numbers of rows and columns.
    Q : (at least 2 m + 1, n) out: first the orthonormal rows that span the remaining ones; the others are scratch.
    threshold : (m,) in and out: t_i > 0, a row is removed if at most this fraction of its length lies outside the span
        of the others. Afterwards negative for removed rows, and infinite for those that were removed as the nearest.

    Returns
    -------
    The number of orthonormal rows.
    """
    while True:
        rank = _orthonormalise(A, m, n, Q, threshold)
        nearest = _nearest_row(A, m, n, Q, rank, threshold)
        if nearest < 0:
            break
        threshold[nearest] = np.inf
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
def _square_length(A, i, m, n):
    """Return the squared length of row i."""
    square = 0.0
    for k in range(n):
        square += A[m * k + i] * A[m * k + i]
    return square


@jit_algebra
def _orthonormalise(A, m, n, Q, threshold):
    """Orthonormalise the rows that are independent of those before them; return their number.

    The other rows get a negative ``threshold``; an infinite one marks a row that is never independent.
    """
    rank = 0
    for i in range(m):
        square, remaining = _subtract_span(A, i, m, n, Q, rank)
        threshold[i] = abs(threshold[i])
        if remaining > threshold[i] * threshold[i] * square and rank < n:
            remaining = math.sqrt(remaining)
            for k in range(n):
                Q[rank, k] /= remaining
            rank += 1
        else:
            threshold[i] = -threshold[i]
    return rank


@jit_algebra
def _nearest_row(A, m, n, Q, rank, threshold):
    """Return the row nearest to the span of all others, in units of its ``threshold``; -1 if none is nearer than 1.

    ``L`` is written below the rows of Q, a column of its inverse into the row between them.
    """
    nearest, min_distance, i = -1, 1.0, 0
    for row in range(m):
        if threshold[row] > 0.0:
            for j in range(i + 1):
                projection = 0.0
                for k in range(n):
                    projection += A[m * k + row] * Q[j, k]
                Q[m + 1 + i, j] = projection
            i += 1
    column, i = Q[m], 0
    for row in range(m):
        if threshold[row] > 0.0:
            length = 0.0
            for k in range(i, rank):
                x = 1.0 if k == i else 0.0
                for j in range(i, k):
                    x -= Q[m + 1 + k, j] * column[j]
                column[k] = x / Q[m + 1 + k, k]
                length += column[k] * column[k]
            distance = 1.0 / (length * _square_length(A, row, m, n) * threshold[row] * threshold[row])
            if distance < min_distance:
                nearest, min_distance = row, distance
            i += 1
    return nearest


@jit_algebra
def drop_determined(A, b, m, n, Q, rank, threshold):
    """Set the rows of ``A x >= b`` that the equations determine to ``0 >= -1``.

    No x that solves the equations can change such a row. If it is violated, even by rounding only, the problem would
    have no solution. The first ``rank`` rows of Q are orthonormal and span the rows of the equations.

    Parameters
    ----------
    A : (n m,) the entries of an (m, n) matrix, column by column; changed where needed.
    b : (m,) changed with them.
    m, n : numbers of rows and columns.
    Q : (at least rank + 1, n) the row after the first ``rank`` ones is scratch.
    threshold : a row counts as determined if at most this fraction of its length lies outside that span.
    """
    for i in range(m):
        square, remaining = _subtract_span(A, i, m, n, Q, rank)
        if remaining <= threshold * threshold * square:
            _clear_row(A, i, m, n)
            b[i] = NEUTRAL
