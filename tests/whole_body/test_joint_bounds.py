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


def test_what_cannot_be_stopped_as_promised_is_stopped_in_time_with_twice_what_that_takes():
    """As after an impact: nothing is gained by a stop at once."""
    rng, dt, limit = np.random.default_rng(2), 1e-3, np.ones(500)
    q, v = rng.uniform(-1.0, 0.9, 500), rng.uniform(0.5, 8.0, 500)
    gap = limit - q
    least = v**2 / (gap + np.sqrt(gap**2 + (dt * v) ** 2))
    hard = least > B
    q, v, least = q[hard], v[hard], least[hard]
    limit = limit[: len(q)]
    stoppable = 2.0 * least < CEILING
    assert len(q) > 100
    asked = np.zeros(len(q))
    for _ in range(3000):
        low, high = viable_acceleration(q, v, -limit, limit, 100 * limit, dt, B, CEILING)
        assert np.all(low <= high)
        a = np.clip(0.0, low, high)
        asked = np.maximum(asked, -a)
        v = v + dt * a
        q = q + dt * v
    assert np.all(q[stoppable] <= 1 + 1e-9)
    assert np.all(asked[stoppable] <= joint_bounds.STOP_FACTOR * least[stoppable] * (1 + 1e-9))
    assert np.all(asked[stoppable] >= 1.9 * least[stoppable])


def test_a_velocity_beyond_its_limit_comes_back_within_the_time_of_recovery():
    v, limit, dt = np.array([2.0, -2.0, 1.004, 3.0]), np.ones(4), 1e-3
    _, high = viable_acceleration(np.zeros(4), v, -100 * limit, 100 * limit, limit, dt, B, CEILING)
    low, _ = viable_acceleration(np.zeros(4), v, -100 * limit, 100 * limit, limit, dt, B, CEILING)
    np.testing.assert_allclose(high[[0, 2, 3]], [-10.0, -4.0, -20.0], atol=1e-6)  # at once what is little
    np.testing.assert_allclose(low[1], 10.0, atol=1e-6)
    for _ in range(400):
        low, high = viable_acceleration(np.zeros(4), v, -100 * limit, 100 * limit, limit, dt, B, CEILING)
        v = v + dt * np.clip(0.0, low, high)
    assert np.all(np.abs(v) <= 1 + 1e-9)
