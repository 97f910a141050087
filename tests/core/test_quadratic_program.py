import numpy as np
import pytest

from mcplan.core.optimize.active_set import CONFLICT, NOT_CONVEX, SLOTS, SOLVED, solve_qp
from mcplan.optimize.dense import solve_dense


def solve(H, g, A, low, high, x_low, x_high, equal):
    n, m = len(g), len(A)
    x, dual = np.zeros(n), np.zeros(m + n)
    scratch = (np.zeros((n, n)), np.zeros((n, n)), np.zeros((SLOTS, n + m + 1)), np.zeros((2, n + 1), np.int64))
    status = solve_qp(n, m, equal, H.copy(), g, A, low, high, x_low, x_high, x, dual, *scratch)
    return status, x, dual


def random_program(rng):
    n, m = int(rng.integers(2, 40)), int(rng.integers(1, 60))
    equal = int(rng.integers(0, min(n // 2, m) + 1))
    B, A = rng.normal(size=(n, n)), rng.normal(size=(m, n))
    inside = A @ rng.uniform(-0.1, 0.1, n)
    low, high = inside - rng.uniform(0, 1, m), inside + rng.uniform(0, 1, m)
    low[:equal] = high[:equal] = inside[:equal]
    side = np.full(n, 0.5)
    return B @ B.T + 0.1 * np.eye(n), 5 * rng.normal(size=n), A, low, high, -side, side, equal


def test_the_optimality_conditions_hold():
    rng = np.random.default_rng(0)
    active = 0
    for _ in range(60):
        H, g, A, low, high, x_low, x_high, equal = random_program(rng)
        status, x, dual = solve(H, g, A, low, high, x_low, x_high, equal)
        assert status == SOLVED
        value = np.concatenate([A @ x, x])
        below, above = np.concatenate([low, x_low]), np.concatenate([high, x_high])
        assert np.maximum(below - value, value - above).max() < 1e-7
        rows = np.vstack([A, np.eye(len(g))])
        assert np.allclose(H @ x + g, rows.T @ dual, atol=1e-6)
        held = np.where(dual > 0.0, value - below, above - value)
        assert np.abs(held[equal:][dual[equal:] != 0.0]).max(initial=0.0) < 1e-7
        active += int((dual[equal:] != 0.0).sum())
        other = solve_dense(H, g, A, low, high, x_lower=x_low, x_upper=x_high)
        assert 0.5 * x @ H @ x + g @ x == pytest.approx(other.objective, rel=1e-6, abs=1e-6)
    assert active > 100


def test_contradictions_are_told_and_repetitions_pass():
    rng = np.random.default_rng(1)
    told = 0
    for _ in range(40):
        H, g, A, low, high, x_low, x_high, equal = random_program(rng)
        if equal < 3:
            continue
        for off, expected in ((0.0, SOLVED), (0.5, CONFLICT)):
            A[equal - 1] = A[0] + A[1]
            low[equal - 1] = high[equal - 1] = low[0] + low[1] + off
            assert solve(H, g, A, low, high, x_low, x_high, equal)[0] == expected
            told += 1
    assert told > 20
    x_low = np.zeros(2)
    A = np.ones((1, 2))
    assert solve(np.eye(2), x_low, A, np.array([3.0]), np.array([9.0]), x_low, x_low + 1.0, 0)[0] == CONFLICT
    assert solve(-np.eye(2), x_low, A, np.array([0.0]), np.array([1.0]), x_low, x_low + 1.0, 0)[0] == NOT_CONVEX
