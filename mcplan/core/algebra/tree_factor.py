"""Factor of a symmetric matrix with the sparsity of a tree: ``A = L' D L``, no fill (Featherstone 2008, table 6.3).

Row i has entries in the columns on the path from i to its root only. The root of a tree is the first of the six columns
of a free body, which all paths of the tree contain. The upper triangle of the matrix is scratch.
"""

import math

import numpy as np

from mcplan.core.algebra.products import add_products, dot, segment
from mcplan.core.jit import jit_algebra, jit_inline


def roots(parent: np.ndarray) -> np.ndarray:
    """Return the root (n,) of each column from the next column towards it, -1 at a root."""
    root = np.arange(len(parent))
    for i, j in enumerate(parent):
        if j >= 0:
            root[i] = root[j]
    return root.astype(np.int64)


@jit_inline
def _add_root(out, scale, a, b, c, d, e, f):
    """Add ``scale (a, .., f)`` to the six entries of a root; the compiler makes two instructions of it."""
    out[0] += scale * a
    out[1] += scale * b
    out[2] += scale * c
    out[3] += scale * d
    out[4] += scale * e
    out[5] += scale * f


@jit_inline
def _add_row(out, row, scale, j, root, parent):
    """Add ``scale row_j`` to ``out_j`` for the columns on the path from j to its root."""
    while j >= root + 6:
        out[j] += scale * row[j]
        j = parent[j]
    x, y = segment(row, root, 6), segment(out, root, 6)
    if j == root + 5:
        _add_root(y, scale, x[0], x[1], x[2], x[3], x[4], x[5])
    else:
        for k in range(j - root + 1):
            y[k] += scale * x[k]


@jit_inline
def _product(row, x, j, root, parent):
    """Return the sum of ``row_j x_j`` over the columns on the path from j to its root."""
    total = 0.0
    while j >= root + 6:
        total += row[j] * x[j]
        j = parent[j]
    a, b = segment(row, root, 6), segment(x, root, 6)
    if j == root + 5:
        return total + (a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3] + a[4] * b[4] + a[5] * b[5])
    for k in range(j - root + 1):
        total += a[k] * b[k]
    return total


@jit_algebra
def tree_factor(A, parent, root, n):
    """Overwrite the lower triangle of A (n, n) by L, its diagonal by that of D^-1; NaN where A is not definite."""
    for k in range(n - 1, -1, -1):
        row = segment(A, n * k, n)
        inverse = 1.0 / row[k] if row[k] > 0.0 else math.nan
        row[k] = inverse
        i = parent[k]
        while i >= root[k] + 6:
            entry = inverse * row[i]
            _add_row(segment(A, n * i, n), row, -entry, i, root[k], parent)
            row[i] = entry
            i = parent[i]
        x = segment(row, root[k], 6)
        a, b, c, d, e, f = x[0], x[1], x[2], x[3], x[4], x[5]
        for r in range(i - root[k] + 1):
            entry = inverse * x[r]
            _add_root(segment(A, n * (root[k] + r) + root[k], 6), -entry, a, b, c, d, e, f)
            x[r] = entry


@jit_algebra
def tree_solve(L, parent, root, n, x):
    """Overwrite x (n,) by the solution y of ``L' D L y = x``."""
    for i in range(n - 1, -1, -1):
        _add_row(x, segment(L, n * i, n), -x[i], parent[i], root[i], parent)
    for i in range(n):
        x[i] = x[i] * L[i, i] - _product(segment(L, n * i, n), x, parent[i], root[i], parent)


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


@jit_algebra
def dense_factor(A, n):
    """Overwrite the lower triangle of a matrix without zeros by ``D L``, its diagonal by D^-1, the rest by ``-L'``."""
    entries = segment(A, 0, n * n)
    for i in range(n - 1, -1, -1):
        row = segment(A, n * i, n)
        for k in range(i + 1, n):
            row[k] = -A[k, i] * A[k, k]
        add_products(row, i + 1, 1, n - 1 - i, entries, n * (i + 1), n, segment(A, n * i, i + 1))
        row[i] = 1.0 / row[i] if row[i] > 0.0 else math.nan


@jit_algebra
def dense_solve(L, n, x):
    """Overwrite x (n,) by the solution y of ``L' D L y = x``, from the factor of `dense_factor`."""
    for i in range(n - 1, -1, -1):
        x[i] += dot(segment(L, n * i + i + 1, n - 1 - i), segment(x, i + 1, n - 1 - i))
    for i in range(n):
        x[i] = L[i, i] * (x[i] - dot(segment(L, n * i, i), segment(x, 0, i)))
