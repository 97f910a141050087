"""Rows that follow from others are emptied, so that the equations have a solution; all else stays as it is."""

import numpy as np
import pytest

from mcplan.core.algebra.consistent_rows import NEUTRAL, drop_determined, make_consistent

DEPENDENT = 2e-2


def consistent(A, b):
    m, n = A.shape
    rows, b, scratch = np.ascontiguousarray(A.T).ravel(), b.copy(), np.zeros((2 * m + 1) * n)
    make_consistent(rows, b, m, n, scratch, np.full(m, DEPENDENT))
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


@pytest.mark.parametrize("off", [0.0, 0.5, 10.0])
def test_an_inequality_that_equations_determine_is_emptied_and_no_other(off):
    """A row in their span, one that is off it by a part of `DEPENDENT` or by more, and one that has nothing to do."""
    rng = np.random.default_rng(2)
    m, n = 5, 12
    A = rng.normal(size=(m, n))
    rows, scratch, thresholds = np.ascontiguousarray(A.T).ravel(), np.zeros((2 * m + 1) * n), np.full(m, DEPENDENT)
    rank = make_consistent(rows, np.zeros(m), m, n, scratch, thresholds)
    assert rank == m
    free = np.linalg.svd(A)[2][m]  # of length 1, and orthogonal to all of A
    row = rng.normal(size=m) @ A
    G = np.array([row + off * DEPENDENT * np.linalg.norm(row) * free, rng.normal(size=n)])
    inequalities, lower = np.ascontiguousarray(G.T).ravel(), np.array([3.0, 4.0])
    drop_determined(inequalities, lower, 2, DEPENDENT, rows, m, n, scratch, rank, thresholds)
    kept = inequalities.reshape(n, 2).T
    assert np.array_equal(kept[1], G[1])
    assert lower[1] == 4.0
    if off < 1.0:
        assert not kept[0].any()
        assert lower[0] == NEUTRAL
    else:
        assert np.array_equal(kept[0], G[0])
        assert lower[0] == 3.0


@pytest.mark.parametrize("least", [0.3, 3.0])
def test_a_row_may_follow_from_all_others_though_none_follows_from_those_before_it(least):
    """Five rows with a singular value that is small, in which the last one has next to no part."""
    rng = np.random.default_rng(4)
    small = np.array([0.38, 0.74, -0.37, 0.27, 0.05])
    U = np.linalg.qr(np.column_stack([small, rng.normal(size=(5, 4))]))[0][:, ::-1]
    V = np.linalg.qr(rng.normal(size=(12, 5)))[0]
    A, b = U @ np.diag([1.0, 1.0, 1.0, 1.0, least * DEPENDENT]) @ V.T, rng.normal(size=5)
    before = np.linalg.norm(A[4] - np.linalg.lstsq(A[:4].T, A[4])[0] @ A[:4])
    assert before > 3 * DEPENDENT
    rows, right = consistent(A, b)
    left = 1.0 / np.linalg.norm(np.linalg.pinv(A), axis=0) / np.linalg.norm(A, axis=1)
    gone = [int(np.argmin(left))] if left.min() < DEPENDENT else []
    assert gone == ([1] if least < 1.0 else [])
    assert not rows[gone].any()
    assert not right[gone].any()
    assert np.array_equal(np.delete(rows, gone, axis=0), np.delete(A, gone, axis=0))
    assert np.array_equal(np.delete(right, gone), np.delete(b, gone))


def near_rows(parts):
    """Three rows, the first two of which differ by 2 %, and a fourth that follows from the first and the third."""
    a, noise, d = np.linalg.qr(np.random.default_rng(5).normal(size=(9, 3)))[0].T
    A = np.array([a, a + 0.02 * noise, d, 2.0 * a + d])
    rows, b, scratch = np.ascontiguousarray(A.T).ravel(), np.arange(1.0, 5.0), np.zeros(81)
    parts = np.array(parts)
    rank = make_consistent(rows, b, 4, 9, scratch, parts)
    kept = [bool(row.any()) for row in rows.reshape(9, 4).T]
    assert kept == [part > 0.0 for part in parts]
    assert kept == [value != 0.0 for value in b]
    assert rank == sum(kept)
    return kept


@pytest.mark.parametrize("first", [True, False])
def test_of_near_rows_that_goes_of_which_more_has_to_be_new(first):
    parts = [0.03, 0.01] if first else [0.01, 0.03]
    assert near_rows([*parts, 0.01, 0.03])[:2] == [not first, first]


def test_what_followed_from_a_row_that_goes_stays_where_it_does_not_follow_from_the_rest():
    assert near_rows([0.03, 0.01, 0.01, 0.01]) == [False, True, True, True]
    assert near_rows([0.03, 0.01, 0.01, 0.03]) == [False, True, True, False]
