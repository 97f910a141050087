"""Cholesky factors of small symmetric positive definite matrices, dense or with a band, and solutions with them.

Factor of a symmetric matrix with the sparsity of a tree: ``A = L' L``, no fill (Featherstone 2008, table 6.3).

Row i has entries in the columns on the way from i to its root only. ``parent[i] = i - 1`` makes it dense.
"""


import math

from mcplan.core.jit import jit_algebra


@jit_algebra
def cholesky(A, n, band):
    """Overwrite the lower triangle of the leading (n, n) block of A by L, ``L L' = A``; NaN where A is not definite.

    Entries farther than ``band`` from the diagonal are zero, and not looked at; of a dense matrix ``band`` is n.
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


@jit_algebra
def tree_factor(A, parent, n):
    """Overwrite the lower triangle of A (n, n) by L; NaN where A is not definite."""
    for k in range(n - 1, -1, -1):
        square = A[k, k]
        pivot = math.sqrt(square) if square > 0.0 else math.nan
        A[k, k] = pivot
        share = 1.0 / pivot
        i = parent[k]
        while i >= 0:
            A[k, i] *= share
            i = parent[i]
        i = parent[k]
        while i >= 0:
            entry = A[k, i]
            j = i
            while j >= 0:
                A[i, j] -= entry * A[k, j]
                j = parent[j]
            i = parent[i]


@jit_algebra
def tree_solve(L, parent, n, x):
    """Overwrite x (n,) by the solution y of ``L' L y = x``."""
    for i in range(n - 1, -1, -1):
        value = x[i] / L[i, i]
        x[i] = value
        j = parent[i]
        while j >= 0:
            x[j] -= L[i, j] * value
            j = parent[j]
    for i in range(n):
        value = x[i]
        j = parent[i]
        while j >= 0:
            value -= L[i, j] * x[j]
            j = parent[j]
        x[i] = value / L[i, i]


@jit_algebra
def tree_multiply(A, parent, n, x, out):
    """Write ``A x`` (n,) from the lower triangle of A."""
    for i in range(n):
        out[i] = A[i, i] * x[i]
    for i in range(n):
        value = out[i]
        j = parent[i]
        while j >= 0:
            value += A[i, j] * x[j]
            out[j] += A[i, j] * x[i]
            j = parent[j]
        out[i] = value
