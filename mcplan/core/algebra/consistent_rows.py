"""Removal of nearly dependent rows from linear equations, and of inequalities that the equations determine."""

import math

import numpy as np

from mcplan.core.jit import jit_algebra

NEUTRAL = -1.0
"""Right-hand side of an empty inequality: ``0 >= -1``."""

REORTHOGONALISE = 0.1
"""A row of which a smaller part remains has lost digits, and is made orthogonal a second time."""


@jit_algebra
def _residual(A, i, m, n, Q, rank):
    """Write row i of A, less its part in the span of the ``rank`` rows of Q, into Q; return both squared lengths.

    ``r = a - sum_j (a' q_j) q_j``, twice where digits would be lost.
    """
    size = 0.0
    for k in range(n):
        x = A[m * k + i]
        Q[rank, k] = x
        size += x * x
    left = size
    for again in range(2):
        if again and left > REORTHOGONALISE * REORTHOGONALISE * size:
            break
        for j in range(rank):
            along = 0.0
            for k in range(n):
                along += Q[rank, k] * Q[j, k]
            for k in range(n):
                Q[rank, k] -= along * Q[j, k]
        left = 0.0
        for k in range(n):
            left += Q[rank, k] * Q[rank, k]
    return size, left


@jit_algebra
def make_consistent(A, b, m, n, Q, dependent):
    """Set the rows of ``A x = b`` that depend on the others, or nearly, to ``0 = 0``.

    A row that nearly lies in the others' span must go as a whole. Its residual outside of the span is a direction that
    rounding or drift has chosen: with a corrected right-hand side the row would fix that direction at zero, and
    unchanged it would amplify its error there a hundredfold.

    Rows are made orthonormal one after the other (Gram-Schmidt)::

        a_i = sum_j (a_i' q_j) q_j + r_i    for j < i
        |r_i| >= dependent_i |a_i|:   q_i = r_i / |r_i|
        else                        a_i = 0,  b_i = 0

    Each of the remaining rows is independent of those before it, but it may still depend on all others together: with
    ``A = L Q`` the distance of a row from the span of the rest is ``1 / |(L^-1)_i|``, a column of the inverse. The
    nearest row, in units of its own ``dependent_i |a_i|``, is removed, until none is nearer than 1. Rows that depended
    on a removed row need not depend on the rest, so that all rows are tested again each time.

    Parameters
    ----------
    A : (n m,) the entries of an (m, n) matrix, column by column; changed where needed.
    b : (m,) changed with them.
    m, n : numbers of rows and columns.
    Q : (at least 2 m + 1, n) out: first the orthonormal rows that span the remaining ones; the others are scratch.
    dependent : (m,) a row counts as dependent if a smaller part of it lies outside the span of the others. Changed:
        negative for the rows that are emptied.

    Returns
    -------
    The number of orthonormal rows.
    """
    while True:
        rank = _orthonormal(A, m, n, Q, dependent)
        nearest = _nearest(A, m, n, Q, rank, dependent)
        if nearest < 0:
            break
        dependent[nearest] = np.inf
    for i in range(m):
        if dependent[i] < 0.0:
            _empty(A, i, m, n)
            b[i] = 0.0
    return rank


@jit_algebra
def _empty(A, i, m, n):
    """Set row i to zero."""
    for k in range(n):
        A[m * k + i] = 0.0


@jit_algebra
def _size(A, i, m, n):
    """Return the squared length of row i."""
    size = 0.0
    for k in range(n):
        size += A[m * k + i] * A[m * k + i]
    return size


@jit_algebra
def _orthonormal(A, m, n, Q, dependent):
    """Orthonormalise the rows that are independent of those before them; return their number.

    The other rows get a negative ``dependent``.
    """
    rank = 0
    for i in range(m):
        size, left = _residual(A, i, m, n, Q, rank)
        dependent[i] = abs(dependent[i])
        if left > dependent[i] * dependent[i] * size and rank < n:
            left = math.sqrt(left)
            for k in range(n):
                Q[rank, k] /= left
            rank += 1
        else:
            dependent[i] = -dependent[i]
    return rank


@jit_algebra
def _nearest(A, m, n, Q, rank, dependent):
    """Return the row nearest to the span of all others, in units of its `dependent`; -1 if none is nearer than 1.

    ``L`` is written below the rows of Q, a column of its inverse into the row between them.
    """
    nearest, least, i = -1, 1.0, 0
    for row in range(m):
        if dependent[row] > 0.0:
            for j in range(i + 1):
                along = 0.0
                for k in range(n):
                    along += A[m * k + row] * Q[j, k]
                Q[m + 1 + i, j] = along
            i += 1
    column, i = Q[m], 0
    for row in range(m):
        if dependent[row] > 0.0:
            length = 0.0
            for k in range(i, rank):
                x = 1.0 if k == i else 0.0
                for j in range(i, k):
                    x -= Q[m + 1 + k, j] * column[j]
                column[k] = x / Q[m + 1 + k, k]
                length += column[k] * column[k]
            distance = 1.0 / (length * _size(A, row, m, n) * dependent[row] * dependent[row])
            if distance < least:
                nearest, least = row, distance
            i += 1
    return nearest


@jit_algebra
def drop_determined(A, b, m, n, Q, rank, dependent):
    """Set the rows of ``A x >= b`` that the equations determine to ``0 >= -1``.

    No x that solves the equations can change such a row. If it is violated, be it by rounding of the equations, there
    would be no solution. The first ``rank`` rows of Q are orthonormal and span the rows of the equations.

    Parameters
    ----------
    A : (n m,) the entries of an (m, n) matrix, column by column; changed where needed.
    b : (m,) changed with them.
    m, n : numbers of rows and columns.
    Q : (at least rank + 1, n) the row after the first ``rank`` ones is scratch.
    dependent : a row counts as determined if a smaller part of it lies outside that span.
    """
    for i in range(m):
        size, left = _residual(A, i, m, n, Q, rank)
        if left <= dependent * dependent * size:
            _empty(A, i, m, n)
            b[i] = NEUTRAL
