import numpy as np
import pytest

from mcplan.core.algebra import joint_bounds

B, CEILING = 10.0, 500.0


def viable_acceleration(q, v, lower, upper, velocity, dt, braking, ceiling):
    """Bounds of many joints, (n,) each."""
    rows = np.broadcast_arrays(q, v, lower, upper, velocity)
    given = dt, braking, ceiling, joint_bounds.RECOVERY
    bounds = [joint_bounds.viable_acceleration(*row, *given) for row in zip(*rows, strict=True)]
    low, high = np.array(bounds).T
    return low, high


@pytest.mark.parametrize("dt", [1e-3, 5e-3])
def test_a_joint_driven_at_random_stays_inside_and_is_never_braked_harder_than_promised(dt):
    rng = np.random.default_rng(1)
    n = 200
    lower, upper = -rng.uniform(0.01, 2, n), rng.uniform(0.01, 2, n)
    velocity = rng.uniform(0.5, 8, n)
    q, v = lower + (upper - lower) * rng.uniform(size=n), np.zeros(n)
    push = rng.choice([-CEILING, CEILING], n)
    for k in range(2000):
        low, high = viable_acceleration(q, v, lower, upper, velocity, dt, B, CEILING)
        assert np.all(low <= high)
        assert np.all(low <= B + 1e-9)
        assert np.all(high >= -B - 1e-9)
        if k % 100 == 0:
            push = rng.choice([-CEILING, 0.0, CEILING], n)
        v = v + dt * np.clip(push, low, high)
        q = q + dt * v
        assert np.all(np.abs(v) <= velocity + 1e-12)
        assert np.all((q >= lower - 1e-12) & (q <= upper + 1e-12))
    assert np.min(np.minimum(q - lower, upper - q)) < 1e-3


def test_the_limit_is_reached_and_not_only_approached():
    q, v, limit = np.zeros(1), np.zeros(1), np.ones(1)
    for _ in range(3000):
        _, high = viable_acceleration(q, v, -limit, limit, 4 * limit, 1e-3, B, CEILING)
        v = v + 1e-3 * high
        q = q + 1e-3 * v
    assert 1 - q[0] < 1e-6


def test_from_outside_the_limits_the_joint_comes_back():
    q, v, limit = np.array([1.2, -1.2, 0.0]), np.array([3.0, -3.0, 9.0]), np.ones(3)
    for _ in range(3000):
        low, high = viable_acceleration(q, v, -limit, limit, 4 * limit, 1e-3, B, CEILING)
        assert np.all(low <= high)
        assert np.all(np.abs(np.r_[low, high]) <= CEILING)
        v = v + 1e-3 * np.clip(0.0, low, high)
        q = q + 1e-3 * v
    assert np.all(np.abs(q) <= 1 + 1e-6)


def test_a_joint_without_limits_is_free():
    inf = np.full(1, np.inf)
    low, high = viable_acceleration(np.zeros(1), np.zeros(1), -inf, inf, inf, 1e-3, B, CEILING)
    assert (low[0], high[0]) == (-CEILING, CEILING)
