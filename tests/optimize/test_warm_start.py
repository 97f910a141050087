"""From the rows that were active last, the QP's solution is found, or it is said that it is not."""

import cvxpy as cp
import numpy as np
import pytest

from mcplan.core.optimize import warm_start
from mcplan.optimize.compiled import compile_problem


@pytest.fixture
def rng():
    return np.random.default_rng(3)


@pytest.fixture
def program(rng):
    """A QP with an equality, a substitution, bounds and rows, some of them active; it is compiled."""
    x, r = cp.Variable(7), cp.Variable(3)
    A, b, q = cp.Parameter((3, 7)), cp.Parameter(3), cp.Parameter(7)
    G, h = cp.Parameter((5, 7)), cp.Parameter(5)
    A.value, b.value, q.value = rng.standard_normal((3, 7)), rng.standard_normal(3), 3.0 * rng.standard_normal(7)
    G.value, h.value = rng.standard_normal((5, 7)), np.full(5, 0.2)
    cost = cp.sum_squares(r) + 0.1 * cp.sum_squares(x) + q @ x
    limits = [r == A @ x - b, A[0] @ x == 0.1, G @ x <= h, x <= 0.5, x >= -0.5]
    return compile_problem(cp.Problem(cp.Minimize(cost), limits)), q


def hold(compiled):
    solver, c = compiled._solver, compiled.condensed
    return warm_start.solve_with_active_set(c.program, c.work, compiled.theta, solver.sense, solver.multiplier)


def test_the_active_rows_of_a_solution_give_it_again(program, rng):
    compiled, q = program
    for _ in range(20):
        compiled.set(q, 3.0 * rng.standard_normal(7))
        assert compiled.solve() == cp.OPTIMAL
        x, dual = compiled.x.copy(), compiled.dual.copy()
        compiled.x[:], compiled.dual[:] = np.nan, np.nan
        assert hold(compiled) < 1e-12
        np.testing.assert_allclose(compiled.x, x, atol=1e-11)
        np.testing.assert_allclose(compiled.dual, dual, atol=1e-9)


def test_other_active_rows_are_exchanged(program, rng):
    compiled, q = program
    exchanged = refused = 0
    for _ in range(40):
        compiled.warm = False
        compiled.set(q, 3.0 * rng.standard_normal(7))
        compiled.solve()
        before = compiled._solver.sense.copy()
        compiled.set(q, compiled.parameter_view(q) + rng.standard_normal(7))
        residual = hold(compiled)
        x, sense = compiled.x.copy(), compiled._solver.sense.copy()
        assert compiled.solve() == cp.OPTIMAL
        if residual == np.inf:
            refused += 1
            continue
        exchanged += not np.array_equal(sense, before)
        assert residual < 1e-12
        np.testing.assert_allclose(compiled.x, x, atol=1e-11)
        np.testing.assert_array_equal(compiled._solver.sense, sense)
    assert exchanged > 20
    assert refused < 4


def test_an_active_set_without_solution_is_found_out():
    x = cp.Variable(2)
    h = cp.Parameter(2, value=[1.0, -1.0])
    compiled = compile_problem(
        cp.Problem(cp.Minimize(cp.sum_squares(x)), [x[0] + x[1] >= h[0], x[0] + x[1] <= h[1] + 3])
    )
    assert compiled.solve() == cp.OPTIMAL
    compiled.set(h, [3.0, -1.0])
    assert hold(compiled) == np.inf


def test_dependent_rows_are_left_to_the_solver():
    x = cp.Variable(3)
    compiled = compile_problem(
        cp.Problem(cp.Minimize(cp.sum_squares(x - 1)), [x[0] + x[1] <= 1, x[0] <= 0.5, x[1] <= 0.5])
    )
    assert compiled.solve() == cp.OPTIMAL
    compiled._solver.sense[:] = 1
    assert hold(compiled) == np.inf
    compiled.warm = True
    assert compiled.solve() == cp.OPTIMAL
    np.testing.assert_allclose(x.value, [0.5, 0.5, 1.0], atol=1e-12)


def test_a_nan_is_not_held(program):
    compiled, q = program
    compiled.solve()
    compiled.set(q, np.nan)
    assert not hold(compiled) < 1.0


def test_at_most_as_many_wrong_rows_as_exchanges_are_repaired():
    x, c = cp.Variable(2 * warm_start.MAX_EXCHANGES), cp.Parameter(2 * warm_start.MAX_EXCHANGES)
    compiled = compile_problem(cp.Problem(cp.Minimize(cp.sum_squares(x - c)), [x <= 0.5]))
    for wrong in (warm_start.MAX_EXCHANGES, warm_start.MAX_EXCHANGES + 1):
        compiled.set(c, np.zeros(x.size))
        assert compiled.solve() == cp.OPTIMAL
        compiled.set(c, np.where(np.arange(x.size) < wrong, 1.0, 0.0))
        assert (hold(compiled) < 1e-12) == (wrong <= warm_start.MAX_EXCHANGES)
        exchanged = np.count_nonzero(compiled._solver.sense)
        assert exchanged == (wrong if wrong <= warm_start.MAX_EXCHANGES else 1)
