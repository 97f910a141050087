"""Factors with the sparsity of a tree, and without zeros, solve the equations of their matrix."""

import numpy as np

from mcplan.core.algebra.tree_factor import (
    dense_factor,
    dense_solve,
    roots,
    tree_factor,
    tree_multiply,
    tree_solve,
)

PARENT = np.array([-1, 0, 1, 2, 3, 4, 5, 6, 7, 5, 9, 7, -1, 12, 13, 14, 15, 16])
"""A free body with branches, and one without."""


def test_factor_of_a_tree():
    rng, n = np.random.default_rng(0), len(PARENT)
    L = np.eye(n)
    for i in range(n):
        j = PARENT[i]
        while j >= 0:
            L[i, j] = rng.normal()
            j = PARENT[j]
    A, x = L.T @ np.diag(rng.uniform(1.0, 2.0, n)) @ L, rng.normal(size=n)
    root, b = roots(PARENT), np.empty(n)
    assert root.tolist() == 12 * [0] + 6 * [12]
    lower = np.tril(A)
    tree_multiply(lower, PARENT, n, x, b)
    assert np.allclose(b, A @ x)
    tree_factor(lower, PARENT, root, n)
    tree_solve(lower, PARENT, root, n, b)
    assert np.allclose(b, x)
    A[7, 7] = -1.0
    tree_factor(A, PARENT, root, n)
    assert np.isnan(A[7, 7])


def test_factor_without_zeros():
    rng = np.random.default_rng(1)
    for n in (6, 13):
        G = rng.normal(size=(n, 2 * n))
        A, x = G @ G.T, rng.normal(size=n)
        lower, b = np.tril(A), A @ x
        dense_factor(lower, n)
        dense_solve(lower, n, b)
        assert np.allclose(b, x)
    A[3, 3] = -1.0
    dense_factor(A, n)
    assert np.isnan(A[3, 3])
