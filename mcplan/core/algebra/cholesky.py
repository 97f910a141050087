"""Cholesky factors of small symmetric positive definite matrices, dense or with a band, and solutions with them."""

import math

from mcplan.core.jit import jit_algebra


@jit_algebra
def cholesky(A, n, band):
    """Overwrite the lower triangle of the leading (n, n) block of A by L, ``L L' = A``; NaN where A is not definite.

    Entries farther than ``band`` from the diagonal are zero, and not read; for a dense matrix ``band`` is n.
    """
    for j in range(n):
        square = A[j, j]
        for k in range(max(j - band, 0), j):
            square -= A[j, k] * A[j, k]
        pivot = math.sqrt(square) if square > 0.0 else math.nan
        A[j, j] = pivot
        for i in range(j + 1, min(j + band + 1, n)):
            value = A[i, j]
            for k in range(max(i - band, 0), j):
                value -= A[i, k] * A[j, k]
            A[i, j] = value / pivot


@jit_algebra
def cholesky_solve(L, n, band, x):
    """Overwrite x (n,) by the solution of ``L L' y = x``."""
    for i in range(n):
        value = x[i]
        for k in range(max(i - band, 0), i):
            value -= L[i, k] * x[k]
        x[i] = value / L[i, i]
    for i in range(n - 1, -1, -1):
        value = x[i]
        for k in range(i + 1, min(i + band + 1, n)):
            value -= L[k, i] * x[k]
        x[i] = value / L[i, i]
