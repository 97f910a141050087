"""Rows that follow from others are emptied, so that the equations have a solution; all else stays as it is."""

import numpy as np
import pytest

from mcplan.core.algebra.consistent_rows import DEPENDENT, make_consistent


def consistent(A, b):
    m, n = A.shape
    rows, b, basis = np.ascontiguousarray(A.T).ravel(), b.copy(), np.zeros((m, n))
    make_consistent(rows, b, m, n, basis)
    return rows.reshape(n, m).T, b


@pytest.mark.parametrize(("m", "n", "rank"), [(6, 20, 6), (11, 20, 6), (12, 9, 9), (30, 34, 24)])
def test_equations_have_a_solution(m, n, rank):
    rng = np.random.default_rng(m)
    A = rng.normal(size=(m, rank)) @ rng.normal(size=(rank, n))
    b = rng.normal(size=m)
    rows, right = consistent(A, b)
    assert np.array_equal(rows[:rank], A[:rank])  # the first rows are independent
    assert np.array_equal(right[:rank], b[:rank])
    assert not rows[rank:].any()
    assert not right[rank:].any()


def test_a_solution_of_all_rows_is_one_of_those_that_stay():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(14, 6)) @ rng.normal(size=(6, 20))
    x = rng.normal(size=20)
    rows, right = consistent(A, A @ x)
    assert np.allclose(rows @ x, right, atol=1e-12)
    assert np.linalg.matrix_rank(rows) == np.linalg.matrix_rank(A)


def test_a_row_that_hardly_differs_leaves_free_what_it_would_pin():
    rng = np.random.default_rng(1)
    A, noise = rng.normal(size=(2, 8)), rng.normal(size=8)
    noise *= np.linalg.norm(A[0]) / np.linalg.norm(noise)
    A[1] = A[0] + 0.5 * DEPENDENT * noise
    rows, right = consistent(A, np.array([1.0, 5.0]))
    assert not rows[1].any()
    assert right[1] == 0.0
    A[1] = A[0] + 10.0 * DEPENDENT * noise
    rows, right = consistent(A, np.array([1.0, 5.0]))
    assert np.array_equal(rows, A)
    assert right[1] == 5.0
