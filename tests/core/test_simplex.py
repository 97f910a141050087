import numpy as np
import pytest
from scipy.optimize import linprog

from mcplan.core.optimize import simplex


class Tableau:
    """A program in the arrays of the kernels."""

    def __init__(self, A, b, upper=None, capacity=None):
        m, n = A.shape
        self.program = simplex.allocate(m, capacity or n)
        self.program.A[:, :n], self.program.b[:], self.program.count[0] = A, b, n
        if upper is not None:
            self.program.upper[1 + m : 1 + m + n] = upper
        self.status = simplex.start(self.program, np.full(m, -1))

    def minimise(self, cost):
        """Return the status, x and y."""
        status = simplex.minimise(self.program, np.array(cost, dtype=float))
        x, y = np.zeros(self.program.count[0]), np.zeros(len(self.program.b))
        simplex.solution(self.program, x)
        simplex.duals(self.program, y, 0.0)
        return status, x, y

    def append(self, columns):
        n, k = self.program.count[0], columns.shape[1]
        self.program.A[:, n : n + k] = columns
        simplex.append(self.program, k, 0.0)


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
        status, x, y = Tableau(A, b).minimise(c)
        assert status == simplex.OPTIMAL
        assert c @ x == pytest.approx(expected.fun, abs=1e-8)
        assert np.all(x >= 0.0)
        assert np.abs(A @ x - b).max() < 1e-9
        assert (c - A.T @ y).min() > -1e-8
        assert y @ b == pytest.approx(c @ x, abs=1e-8)


@pytest.mark.parametrize("degenerate", [False, True])
def test_bounded_variables_agree_with_highs_for_one_cost_after_the_other(degenerate):
    rng = np.random.default_rng(3)
    infeasible = 0
    for _ in range(80):
        m, n = int(rng.integers(1, 9)), int(rng.integers(9, 60))
        A, b, _ = random_program(rng, m, n, degenerate)
        upper = np.where(rng.random(n) < 0.2, np.inf, rng.uniform(0.0, 1.2, n))
        upper[rng.random(n) < 0.1] = 0.0
        if degenerate:
            upper, A, b = np.ceil(upper), np.round(A), np.round(A) @ np.round(rng.uniform(0.0, 1.0, n))
        bounds = [(0.0, bound) for bound in upper]
        tableau = Tableau(A, b, upper)
        for _ in range(4):
            c = rng.normal(size=n)
            expected = linprog(c, A_eq=A, b_eq=b, bounds=bounds, method="highs")
            if expected.status == 2:
                assert tableau.status == simplex.INFEASIBLE
                infeasible += 1
                break
            assert tableau.status == simplex.OPTIMAL
            status, x, y = tableau.minimise(c)
            if expected.status == 3:
                assert status == simplex.UNBOUNDED
                continue
            assert status == simplex.OPTIMAL
            assert c @ x == pytest.approx(expected.fun, abs=1e-8)
            assert np.abs(A @ x - b).max() < 1e-8
            assert np.all((x >= 0.0) & (x <= upper))
            reduced = c - A.T @ y
            assert y @ b + np.minimum(reduced, 0.0)[np.isfinite(upper)] @ upper[np.isfinite(upper)] == pytest.approx(
                expected.fun, abs=1e-8
            )
    assert 0 < infeasible < 80


def test_infeasible_and_unbounded_programs_are_told_apart():
    A = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    assert Tableau(A, np.array([-1.0, 1.0])).status == simplex.INFEASIBLE
    free = Tableau(np.array([[1.0, -1.0]]), np.array([0.0]))
    assert free.status == simplex.OPTIMAL
    assert free.minimise([-1.0, 0.0])[0] == simplex.UNBOUNDED


def test_redundant_rows_do_no_harm_even_when_a_later_column_makes_them_count():
    A = np.array([[1.0, 2.0, 1.0], [2.0, 4.0, 2.0]])
    tableau = Tableau(A, np.array([1.0, 2.0]), capacity=5)
    assert tableau.minimise([3.0, 1.0, 2.0])[1] @ [3.0, 1.0, 2.0] == pytest.approx(0.5)
    tableau.append(np.array([[1.0], [1.0]]))
    cost = [3.0, 1.0, 2.0, -5.0]
    _, x, _ = tableau.minimise(cost)
    assert x @ cost == pytest.approx(0.5)
    assert x[3] == 0.0


def test_appended_columns_give_the_program_that_had_them_from_the_start():
    rng = np.random.default_rng(2)
    compared = 0
    for _ in range(20):
        A, b, c = random_program(rng, 6, 40, False)
        grown, whole = Tableau(A[:, :25], b, capacity=40), Tableau(A, b)
        if grown.status != simplex.OPTIMAL:
            continue
        compared += 1
        grown.append(A[:, 25:])
        for cost in (c, c + A.T @ rng.normal(size=6)):
            assert cost @ grown.minimise(cost)[1] == pytest.approx(cost @ whole.minimise(cost)[1], abs=1e-8)
    assert compared > 5


def test_a_variable_held_at_zero_stays_there_and_the_others_go_on():
    A = np.array([[1.0, 1.0, 1.0]])
    tableau = Tableau(A, np.array([1.0]), np.array([0.4, 0.4, 2.0]))
    assert tableau.minimise([-2.0, -1.0, 0.0])[1] == pytest.approx([0.4, 0.4, 0.2])
    assert tableau.minimise([1.0, 0.0, 0.0])[1][0] == 0.0
    simplex.fix_at_zero(tableau.program, 0, 1)
    assert tableau.minimise([-2.0, -1.0, 0.0])[1] == pytest.approx([0.0, 0.4, 0.6])


def test_a_tableau_that_was_computed_anew_is_the_same():
    rng = np.random.default_rng(4)
    A, b, c = random_program(rng, 6, 30, False)
    tableau = Tableau(A, b, np.full(30, 0.9))
    status, x, _ = tableau.minimise(c)
    assert status == simplex.OPTIMAL
    assert simplex.equation_error(tableau.program) < 1e-12
    tableau.program.T[:6] *= 1.0 + 1e-6
    assert simplex.equation_error(tableau.program) > 1e-8
    assert tableau.minimise(c)[1] == pytest.approx(x, abs=1e-12)
    assert simplex.equation_error(tableau.program) < 1e-12
