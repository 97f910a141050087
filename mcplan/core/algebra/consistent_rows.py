"""Linear equations of which some rows follow from others, and inequalities of which equations leave nothing free."""

import math

import numpy as np

from mcplan.core.jit import jit_algebra

NEUTRAL = -1.0
"""Right-hand side of an inequality that says nothing: ``0 >= -1``."""

AGAIN = 0.1
"""With less left of it than this part, a row has lost digits and is made orthogonal once more."""


@jit_algebra
def _left(A, i, m, n, Q, rank):
    """Write row i of A into Q, less its part in the span of the ``rank`` rows there; return both squared lengths.

    ``r = a - sum_j (a' q_j) q_j``, twice where digits would be lost.
    """
    size = 0.0
    for k in range(n):
        x = A[m * k + i]
        Q[rank, k] = x
        size += x * x
    left = size
    for again in range(2):
        if again and left > AGAIN * AGAIN * size:
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
    """Empty the rows of ``A x = b`` that follow from the others, or nearly: they say ``0 = 0``.

    A row that nearly lies in the others' span must go as a whole. With another right-hand side alone it would ask
    for nothing along its rest, a direction that rounding or drift has chosen; as it is, it would ask
    for a hundred times its error along there.

    Rows are made orthonormal one after the other (Gram-Schmidt)::

        a_i = sum_j (a_i' q_j) q_j + r_i    for j < i
        |r_i| >= dependent_i |a_i|:   q_i = r_i / |r_i|
        else                        a_i = 0,  b_i = 0

    Each of those that stay may say something new, and one of them follow from all others all the same: with
    ``A = L Q`` the distance of a row from the span of the rest is ``1 / |(L^-1)_i|``, a column of the inverse. The
    nearest one, as counted in its own ``dependent_i |a_i|``, goes, and so on, until none is nearer than that. What
    followed from it need not follow from the rest, so that each time all others are tested again.

    Parameters
    ----------
    A : (n m,) the entries of an (m, n) matrix, column by column; changed where needed.
    b : (m,) changed with them.
    m, n : numbers of rows and columns.
    Q : (at least 2 m + 1, n) out: orthonormal rows that span the rest, first; the others are scratch.
    dependent : (m,) part of each row that is not in the span of the others; with less it counts as following from them.
        Changed: negative for the rows that are emptied.

    Returns
    -------
    The number of these.
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
    """Make the rows orthonormal that do not follow from those before them; return their number.

    Those that do get a negative sign of their ``dependent``.
    """
    rank = 0
    for i in range(m):
        size, left = _left(A, i, m, n, Q, rank)
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
    """Return the row that is nearest to the span of all others for its `dependent`, where one is near enough, else -1.

    ``L`` is written behind the rows of Q, a column of its inverse into the row between.
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
    """Empty the rows of ``A x >= b`` that equations determine, whose rows ``rank`` orthonormal ones of Q span.

    Such a row holds or it does not, whatever is chosen; where it does not, by as little as equations are off, it would
    leave no solution at all. They say ``0 >= -1`` then.

    Parameters
    ----------
    A : (n m,) the entries of an (m, n) matrix, column by column; changed where needed.
    b : (m,) changed with them.
    m, n : numbers of rows and columns.
    Q : (at least rank + 1, n) the row after those is scratch.
    dependent : part of a row that is not in that span; with less it counts as determined.
    """
    for i in range(m):
        size, left = _left(A, i, m, n, Q, rank)
        if left <= dependent * dependent * size:
            _empty(A, i, m, n)
            b[i] = NEUTRAL
