import numpy as np
import pytest
from scipy.optimize import linprog

from mcplan.statics.linear_program import LinearProgram


def random_program(rng, m, n, degenerate):
    A = rng.normal(size=(m, n))
    x = rng.uniform(0.0, 1.0, n) * (rng.random(n) < (0.1 if degenerate else 0.7))
    b = A @ x
    c = A.T @ rng.normal(size=m) + rng.uniform(0.0, 1.0, n) * (rng.random(n) < 0.8)
    return A, b, c


@pytest.mark.parametrize("degenerate", [False, True])
def test_minimum_and_duals_agree_with_highs(degenerate):
    rng = np.random.default_rng(1)
    for _ in range(60):
        m, n = int(rng.integers(1, 9)), int(rng.integers(9, 80))
        A, b, c = random_program(rng, m, n, degenerate)
        expected = linprog(c, A_eq=A, b_eq=b, method="highs")
        optimum = LinearProgram(A, b).minimise(c)
        assert optimum.value == pytest.approx(expected.fun, abs=1e-8)
        assert np.all(optimum.x >= 0.0)
        assert np.abs(A @ optimum.x - b).max() < 1e-9
        assert (c - A.T @ optimum.y).min() > -1e-8
        assert optimum.y @ b == pytest.approx(optimum.value, abs=1e-8)


def test_infeasible_and_unbounded_programs_are_told_apart():
    A = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    assert not LinearProgram(A, np.array([-1.0, 1.0])).feasible
    free = LinearProgram(np.array([[1.0, -1.0]]), np.array([0.0]))
    assert free.feasible
    assert free.minimise(np.array([-1.0, 0.0])).value == -np.inf


def test_redundant_rows_do_no_harm_even_when_a_later_column_makes_them_count():
    A = np.array([[1.0, 2.0, 1.0], [2.0, 4.0, 2.0]])
    program = LinearProgram(A, np.array([1.0, 2.0]), capacity=5)
    assert program.minimise(np.array([3.0, 1.0, 2.0])).value == pytest.approx(0.5)
    program.append(np.array([[1.0], [1.0]]))
    optimum = program.minimise(np.array([3.0, 1.0, 2.0, -5.0]))
    assert optimum.value == pytest.approx(0.5)
    assert optimum.x[3] == 0.0


def test_appended_columns_give_the_program_that_had_them_from_the_start():
    rng = np.random.default_rng(2)
    for _ in range(20):
        A, b, c = random_program(rng, 6, 40, False)
        grown = LinearProgram(A[:, :25], b, capacity=26)
        whole = LinearProgram(A, b)
        if not grown.feasible:
            continue
        grown.append(A[:, 25:])
        for cost in (c, c[::-1] @ np.eye(40) * 0 + c + A.T @ rng.normal(size=6)):
            assert grown.minimise(cost).value == pytest.approx(whole.minimise(cost).value, abs=1e-8)
