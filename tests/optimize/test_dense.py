import numpy as np
import pytest

from mcplan.errors import InputError
from mcplan.optimize import dense
from mcplan.optimize.dense import solve_dense


def random_program(rng, n=12, rows=20, equalities=3):
    L = rng.normal(size=(n, n))
    A, inside = rng.normal(size=(rows, n)), rng.normal(size=n)
    lower, upper = A @ inside - rng.uniform(0.1, 1, rows), A @ inside + rng.uniform(0.1, 1, rows)
    lower[:equalities] = upper[:equalities] = (A @ inside)[:equalities]
    return L @ L.T + 0.1 * np.eye(n), 5 * rng.normal(size=n), A, lower, upper


@pytest.mark.parametrize("seed", range(20))
def test_kkt_conditions(seed):
    H, g, A, lower, upper = random_program(np.random.default_rng(seed))
    s = solve_dense(H, g, A, lower, upper)
    assert s.ok
    np.testing.assert_allclose(H @ s.x + g + A.T @ s.dual, 0, atol=1e-8)
    value = A @ s.x
    assert np.all(value > lower - 1e-7)
    assert np.all(value < upper + 1e-7)
    free = lower < upper
    np.testing.assert_allclose((np.maximum(s.dual, 0) * (upper - value))[free], 0, atol=1e-6)
    np.testing.assert_allclose((np.minimum(s.dual, 0) * (lower - value))[free], 0, atol=1e-6)


def test_bounds_are_rows_with_the_identity():
    rng = np.random.default_rng(4)
    H, g, A, lower, upper = random_program(rng)
    x_low, x_up = np.full(12, -0.5), np.full(12, 0.5)
    A, lower, upper = A[3:6], lower[3:6] - 5, upper[3:6] + 5
    both = solve_dense(H, g, np.vstack([np.eye(12), A]), np.r_[x_low, lower], np.r_[x_up, upper])
    apart = solve_dense(H, g, A, lower, upper, x_lower=x_low, x_upper=x_up)
    np.testing.assert_allclose(apart.x, both.x, atol=1e-9)
    np.testing.assert_allclose(apart.dual, both.dual, atol=1e-7)


def test_linear_program():
    s = solve_dense(None, np.array([1.0, 2.0]), np.ones((1, 2)), np.ones(1), None, x_lower=np.zeros(2))
    assert s.ok
    np.testing.assert_allclose(s.x, [1, 0], atol=1e-7)


def test_failures_are_told_apart():
    one = np.ones((1, 1))
    apart = solve_dense(one, np.zeros(1), np.ones((2, 1)), np.array([1.0, -2]), np.array([2.0, -1]))
    assert apart.status == "infeasible"
    assert not solve_dense(one, np.zeros(1), one, np.array([1.0]), np.array([0.0])).ok
    assert not solve_dense(None, np.ones(1), one, None, np.ones(1)).ok
    assert solve_dense(None, np.ones(1)).status == "unbounded"


def test_singular_hessian_and_redundant_equalities():
    A = np.array([[1.0, 1, 0], [2, 2, 0]])
    s = solve_dense(np.diag([1.0, 0, 0]), np.zeros(3), A, np.array([1.0, 2]), np.array([1.0, 2]))
    assert s.ok
    np.testing.assert_allclose(s.x[:2], [0, 1], atol=1e-6)


def test_nan_is_refused():
    with pytest.raises(InputError, match="g has a value that is not finite"):
        solve_dense(np.eye(1), np.array([np.nan]), np.eye(1), None, np.ones(1))


@pytest.mark.parametrize("side", [-1.0, 1.0])
@pytest.mark.parametrize("of_x", [False, True])
def test_an_answer_beyond_a_bound_is_never_ok(side, of_x, monkeypatch):
    """The minimum without bounds, which a solver that is content too early might return for that within them."""

    def careless(*program, **options):
        _, value, flag, info = solve(*program, **options)
        return np.full(1, 3.0 * side), value, flag, info | {"lam": np.zeros(len(info["lam"]))}

    one, solve = np.ones(1), dense.daqp.solve
    bounds = {"x_lower": -one, "x_upper": one} if of_x else {"A": np.eye(1), "lower": -one, "upper": one}
    assert solve_dense(np.eye(1), -3.0 * side * one, **bounds).ok
    monkeypatch.setattr(dense.daqp, "solve", careless)
    s = solve_dense(np.eye(1), -3.0 * side * one, **bounds)
    assert not s.ok
    assert s.primal_residual == pytest.approx(2.0)
    assert s.stationarity == pytest.approx(0.0)


@pytest.mark.parametrize("flag", [1, -1])
def test_an_answer_that_is_not_finite_is_never_ok(flag, monkeypatch):
    solve = dense.daqp.solve

    def broken(*program, **options):
        x, value, _, info = solve(*program, **options)
        return x, value, flag, info | {"lam": np.full(len(info["lam"]), np.nan)}

    monkeypatch.setattr(dense.daqp, "solve", broken)
    s = solve_dense(*random_program(np.random.default_rng(7)))
    assert not s.ok
    assert np.isfinite(s.x).all()
    assert np.isfinite(s.dual).all()
    assert s.stationarity > 1e-3
