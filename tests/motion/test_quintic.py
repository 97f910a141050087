import numpy as np
import pytest

from mcplan.motion.spline import Spline, minimum_jerk


@pytest.fixture(params=range(5))
def quintic(request):
    rng = np.random.default_rng(request.param)
    x0, x1, v0, a0 = rng.normal(size=(4, 3))
    return Spline.to_rest(x0, x1, rng.uniform(0.2, 3.0), v0, a0, start_time=rng.normal()), (x0, x1, v0, a0)


def test_it_leaves_the_given_state_and_comes_to_rest_at_the_end(quintic):
    trajectory, (x0, x1, v0, a0) = quintic
    inside = 1e-9 * trajectory.duration
    for t, state in (
        (trajectory.start_time - 1.0, (x0, v0, a0)),
        (trajectory.start_time + inside, (x0, v0, a0)),
        (trajectory.end_time - inside, (x1, 0 * x1, 0 * x1)),
        (trajectory.end_time + 1.0, (x1, 0 * x1, 0 * x1)),
    ):
        for got, want in zip(trajectory.sample(t), state, strict=True):
            np.testing.assert_allclose(got, want, atol=1e-5)


def test_its_derivatives_are_those_of_its_value(quintic):
    trajectory, _ = quintic
    step = 1e-5 * trajectory.duration
    for s in np.linspace(0.05, 0.95, 7):
        t = trajectory.start_time + s * trajectory.duration
        before, here, after = (trajectory.sample(t + k * step) for k in (-1, 0, 1))
        # Central differences: truncation O(step²), rounding O(1e-16 / step).
        np.testing.assert_allclose((after.value - before.value) / (2 * step), here.velocity, atol=1e-6)
        np.testing.assert_allclose((after.velocity - before.velocity) / (2 * step), here.acceleration, atol=1e-4)


def test_from_rest_it_is_minimum_jerk():
    trajectory = Spline.to_rest(np.zeros(1), np.array([2.0]), 3.0)
    for s in np.linspace(-0.2, 1.2, 15):
        value, slope, curvature = minimum_jerk(s)
        got = trajectory.sample(3.0 * s)
        want = 2 * value, 2 * slope / 3, 2 * curvature / 9
        np.testing.assert_allclose([got.value[0], got.velocity[0], got.acceleration[0]], want, atol=1e-12)


def test_the_steepest_slope_of_minimum_jerk_is_fifteen_eighths():
    slopes = [minimum_jerk(s)[1] for s in np.linspace(0, 1, 1001)]
    assert max(slopes) == pytest.approx(15 / 8, abs=1e-12)
