"""Least squares with priorities: algorithm 2, the sequence of programs, and their optimality conditions."""

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from mcplan.control.textbook import hierarchical_least_squares, sequence_of_programs
from mcplan.errors import InputError, SolverFailed

SIZES = [(12, (3, 4, 2)), (12, (8, 8, 8)), (7, (6, 1, 7)), (20, (5, 5, 5, 5)), (10, (12, 3))]


def levels(random, n, sizes, deficient=False):
    found = []
    for m in sizes:
        A = random.normal(size=(m, n))
        if deficient and m > 2:
            A[-1] = A[0] - 2.0 * A[1]
        found.append((A, random.normal(size=m)))
    return found


@pytest.mark.parametrize(("n", "sizes"), SIZES)
@pytest.mark.parametrize("deficient", [False, True])
def test_both_methods_give_the_same_answer(n, sizes, deficient):
    random = np.random.default_rng(n)
    for _ in range(10):
        parts = levels(random, n, sizes, deficient)
        x, y = hierarchical_least_squares(parts), sequence_of_programs(parts)
        np.testing.assert_allclose(x, y, atol=1e-8 * max(1.0, np.abs(x).max()))


def test_a_level_is_met_as_well_as_without_those_below_it():
    random = np.random.default_rng(1)
    for _ in range(20):
        parts = levels(random, 9, (4, 7, 5), deficient=True)
        x = hierarchical_least_squares(parts)
        (A, b), (B, c) = parts[:2]
        np.testing.assert_allclose(A @ x, A @ np.linalg.lstsq(A, b)[0], atol=1e-9)
        # the second: its gradient has no part along what the first leaves free
        null = np.linalg.svd(A)[2][np.linalg.matrix_rank(A) :]
        np.testing.assert_allclose(null @ B.T @ (B @ x - c), 0.0, atol=1e-9)
        alone = hierarchical_least_squares(parts[:2])
        np.testing.assert_allclose(B @ x, B @ alone, atol=1e-9)


def test_inequalities_hold_at_all_levels_and_cost_the_first_no_more_than_they_must():
    random = np.random.default_rng(2)
    for _ in range(10):
        parts = levels(random, 8, (10, 8))
        G = np.vstack([np.eye(8), -np.eye(8)])
        x = sequence_of_programs(parts, G, np.full(16, 0.05))
        assert np.abs(x).max() <= 0.05 + 1e-8
        best = lsq_linear(*parts[0], bounds=(-0.05, 0.05), tol=1e-12).x
        np.testing.assert_allclose(parts[0][0] @ x, parts[0][0] @ best, atol=1e-6)


def test_what_cannot_be_is_refused():
    with pytest.raises(InputError, match="level 2: A has the shape"):
        hierarchical_least_squares([(np.eye(3), np.zeros(3)), (np.eye(2), np.zeros(2))])
    with pytest.raises(InputError, match="at least one"):
        sequence_of_programs([])
    with pytest.raises(SolverFailed, match="level 1 of 1"):
        sequence_of_programs([(np.eye(1), [0.0])], [[1.0], [-1.0]], [-1.0, -1.0])
