"""Rows that follow from others take the right-hand side that the others imply; all else stays as it is."""

import numpy as np
import pytest

from mcplan.core.consistent_rows import make_consistent


def consistent(A, b):
    m, n = A.shape
    b, basis = b.copy(), np.zeros((m + 1, n))
    make_consistent(np.ascontiguousarray(A.T).ravel(), b, m, n, basis, basis[m])
    return b


@pytest.mark.parametrize(("m", "n", "rank"), [(6, 20, 6), (11, 20, 6), (12, 9, 9), (30, 34, 24)])
def test_equations_have_a_solution(m, n, rank):
    rng = np.random.default_rng(m)
    A = rng.normal(size=(m, rank)) @ rng.normal(size=(rank, n))
    b = rng.normal(size=m)
    new = consistent(A, b)
    x = np.linalg.lstsq(A, new, rcond=None)[0]
    assert np.abs(A @ x - new).max() < 1e-9 * np.abs(x).max()
    assert np.allclose(new[:rank], b[:rank], atol=1e-12)  # the first rows are independent


def test_what_has_a_solution_stays():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(14, 6)) @ rng.normal(size=(6, 20))
    b = A @ rng.normal(size=20)
    assert np.allclose(consistent(A, b), b, atol=1e-10)
    assert not np.allclose(consistent(A, b + rng.normal(size=14)), b)


def test_a_row_that_hardly_differs_follows():
    rng = np.random.default_rng(1)
    A = rng.normal(size=(2, 8))
    A[1] = 2.0 * A[0] + 1e-6 * rng.normal(size=8)
    assert consistent(A, np.array([1.0, 5.0])) == pytest.approx([1.0, 2.0], abs=1e-6)
