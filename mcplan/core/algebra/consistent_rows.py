"""Linear equations of which some rows follow from others, and inequalities of which equations leave nothing free."""

import math

from mcplan.core.jit import jit_algebra

DEPENDENT = 1e-2
"""Part of a row that is not in the span of the rows before it; with less it counts as following from them. Contacts
that pin each other exactly still differ by so much where they are off by millimetres; what is new in a row that pins
something else is several times as much."""

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
def make_consistent(A, b, m, n, Q):
    """Empty the rows of ``A x = b`` that follow from those before them: they say ``0 = 0``.

    A row that hardly differs from the others' span must go as a whole. With another right-hand side alone it would ask
    for nothing along what is left of it, which is a direction that rounding or drift has chosen.

    Rows are made orthonormal one after the other (Gram-Schmidt)::

        a_i = sum_j (a_i' q_j) q_j + r_i    for j < i
        |r_i| >= DEPENDENT |a_i|:   q_i = r_i / |r_i|
        else                        a_i = 0,  b_i = 0

    Parameters
    ----------
    A : (n m,) the entries of an (m, n) matrix, column by column; changed where needed.
    b : (m,) changed with them.
    m, n : numbers of rows and columns.
    Q : (at least m, n) out: orthonormal rows that span what is left, first.

    Returns
    -------
    The number of these.
    """
    rank = 0
    for i in range(m):
        size, left = _left(A, i, m, n, Q, rank)
        if left > DEPENDENT * DEPENDENT * size and rank < n:
            left = math.sqrt(left)
            for k in range(n):
                Q[rank, k] /= left
            rank += 1
        else:
            for k in range(n):
                A[m * k + i] = 0.0
            b[i] = 0.0
    return rank


@jit_algebra
def drop_determined(A, b, m, n, Q, rank):
    """Empty the rows of ``A x >= b`` that equations determine, whose rows ``rank`` orthonormal ones of Q span.

    Such a row holds or it does not, whatever is chosen; where it does not, by as little as equations are off, it would
    leave no solution at all. They say ``0 >= -1`` then.

    Parameters
    ----------
    A : (n m,) the entries of an (m, n) matrix, column by column; changed where needed.
    b : (m,) changed with them.
    m, n : numbers of rows and columns.
    Q : (at least rank + 1, n) the row after those is scratch.
    """
    for i in range(m):
        size, left = _left(A, i, m, n, Q, rank)
        if left <= DEPENDENT * DEPENDENT * size:
            for k in range(n):
                A[m * k + i] = 0.0
            b[i] = NEUTRAL
