"""Factor of a symmetric matrix with the sparsity of a tree: ``A = L' L``, no fill (Featherstone 2008, table 6.3).

Row i has entries in the columns on the path from i to its root only. ``parent[i] = i - 1`` makes it dense.
"""

import math

from mcplan.core.jit import jit_algebra


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
