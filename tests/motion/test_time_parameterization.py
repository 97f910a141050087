"""Time parameterizations are twice differentiable and pass their nodes; references follow by the chain rule."""

import numpy as np
import pytest

from mcplan.motion.spline import PostureSpline, Spline
from mcplan.motion.time_parameterization import (
    FULL_ERROR,
    MIN_CLOCK_RATE,
    RATE_TIME_CONSTANT_S,
    ReferenceClock,
    TimedPath,
    TimedRate,
    TimeParameterization,
)

STEP = 1e-5


def law():
    """A law that goes over a path of 3 s in less, by x(s) = sd² = 4 + sin(2 s)."""
    s = np.linspace(0.0, 3.0, 13)
    fine = np.linspace(0.0, 3.0, 6001)
    pace = 1.0 / np.sqrt(4.0 + np.sin(2.0 * fine))
    t = np.concatenate([[0.0], np.cumsum(0.5 * (pace[1:] + pace[:-1]) * np.diff(fine))])
    return TimeParameterization(np.interp(s, fine, t), s, np.sqrt(4.0 + np.sin(2.0 * s)), np.cos(2.0 * s))


def test_it_leads_through_its_nodes_with_their_rates():
    one = law()
    for t, s, rate, change in zip(one.times[:-1], one.path, one.rate, one.change, strict=False):
        np.testing.assert_allclose(one.at(t), (s, rate, change), atol=1e-12)
    np.testing.assert_allclose(one.at(one.duration)[:2], (one.path[-1], one.rate[-1]), atol=1e-12)


def test_its_rates_are_the_derivatives_and_nothing_jumps():
    one, rng = law(), np.random.default_rng(0)
    for t in [*rng.uniform(0.01, one.duration - 0.01, 20), *one.times[1:-1]]:
        s, rate, change = one.at(t)
        before, after = one.at(t - STEP), one.at(t + STEP)
        np.testing.assert_allclose(rate, (after[0] - before[0]) / (2 * STEP), atol=1e-6)
        np.testing.assert_allclose(change, (after[1] - before[1]) / (2 * STEP), atol=1e-4)
        np.testing.assert_allclose(after[2], before[2], atol=1e-2)
        assert rate == pytest.approx(np.sqrt(4.0 + np.sin(2.0 * s)), abs=1e-3)


def test_slopes_where_it_begins_give_back_the_rates_in_time():
    one, rng = law(), np.random.default_rng(1)
    velocity, acceleration = rng.normal(size=(2, 5))
    slope, bend = one.slopes(velocity, acceleration)
    _, rate, change = one.at(0.0)
    np.testing.assert_allclose(slope * rate, velocity, atol=1e-12)
    np.testing.assert_allclose(bend * rate**2 + slope * change, acceleration, atol=1e-12)


def test_the_time_of_a_place_is_when_it_is_there():
    one = law()
    for s in (0.0, 0.3, 1.7, 3.0, 3.2):
        assert one.at(one.time_of(s))[0] == pytest.approx(s, abs=1e-6)


def curves(rng):
    times = np.linspace(0.0, 3.0, 9)
    q = rng.uniform(-0.5, 0.5, (9, 12))
    q[:, 3:7] = [1.0, 0.0, 0.0, 0.0] + 0.2 * rng.uniform(-1, 1, (9, 4))
    q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
    return PostureSpline(times, q), Spline(times, rng.uniform(-1, 1, (9, 3)))


def test_references_along_a_law_have_the_derivatives_of_what_they_are():
    posture, centre = curves(np.random.default_rng(1))
    one, start = law(), 0.7
    whole, com, spin = TimedPath(posture, one, start), TimedPath(centre, one, start), TimedRate(centre, one, start)
    for t in np.random.default_rng(2).uniform(start + 0.05, start + one.duration - 0.05, 10):
        x, before, after = com.sample(t), com.sample(t - STEP), com.sample(t + STEP)
        np.testing.assert_allclose(x.velocity, (after.value - before.value) / (2 * STEP), atol=1e-5)
        np.testing.assert_allclose(x.acceleration, (after.velocity - before.velocity) / (2 * STEP), atol=1e-3)
        y, before, after = whole.sample(t), whole.sample(t - STEP), whole.sample(t + STEP)
        np.testing.assert_allclose(y.v[6:], (after.q[7:] - before.q[7:]) / (2 * STEP), atol=1e-5)
        np.testing.assert_allclose(y.vd, (after.v - before.v) / (2 * STEP), atol=1e-3)
        (_, rate), (low, _), (high, _) = (spin.sample(at) for at in (t, t - STEP, t + STEP))
        np.testing.assert_allclose(rate, (high - low) / (2 * STEP), atol=1e-3)


def test_a_reference_along_a_law_ends_at_rest_when_the_law_does():
    posture, centre = curves(np.random.default_rng(3))
    one = law()
    com = TimedPath(centre, one, 1.0)
    assert com.end_time == pytest.approx(1.0 + one.duration)
    end = com.sample(com.end_time + 0.1)
    np.testing.assert_array_equal(end.value, centre.end)
    np.testing.assert_array_equal(end.velocity, 0.0)
    np.testing.assert_array_equal(TimedPath(posture, one, 1.0).sample(9.0).q, posture.end)


DT = 1e-4


def test_without_errors_time_runs_as_planned():
    one = ReferenceClock()
    for _ in range(100):
        one.advance(1e-3, 1.0)
    assert (one.rate, one.change, one.delay) == (1.0, 0.0, 0.0)


def test_while_it_is_behind_time_runs_slower_and_then_as_planned_again():
    one, rates = ReferenceClock(), []
    for k in range(2000):
        one.advance(1e-3, 2.0 * FULL_ERROR if k < 500 else 0.0)
        rates.append(one.rate)
    assert min(rates) == pytest.approx(MIN_CLOCK_RATE, abs=1e-3)
    assert rates[-1] == 1.0
    assert np.abs(np.diff(rates)).max() <= 1e-3 / RATE_TIME_CONSTANT_S
    assert np.abs(np.diff(rates, 2)).max() <= 1e-6 / RATE_TIME_CONSTANT_S**2
    assert one.delay == pytest.approx(1e-3 * np.sum(1.0 - np.array(rates)), abs=1e-3)


def test_a_motion_that_waits_has_the_derivatives_of_what_it_is_and_ends_later():
    values = np.random.default_rng(0).uniform(-1, 1, (9, 3))
    path, one = Spline(np.linspace(0.0, 2.0, 9), values), ReferenceClock()
    law = TimeParameterization(np.array([0.0, 0.5, 1.0]), np.array([0.0, 1.0, 2.0]), np.full(3, 2.0), np.zeros(3))
    motion = TimedPath(path, law, 0.2, one)
    planned, samples = motion.end_time, []
    for k in range(12000):
        samples.append(motion.sample(0.2 + k * DT))
        one.advance(DT, 3.0 if 2000 < k < 6000 else 0.0)
    x = np.array([s.value for s in samples])
    v, a = np.array([s.velocity for s in samples]), np.array([s.acceleration for s in samples])
    inner = slice(10, int((motion.end_time - 0.2) / DT) - 10)
    np.testing.assert_allclose(np.gradient(x, DT, axis=0)[inner], v[inner], atol=5e-2)
    np.testing.assert_allclose(np.gradient(v, DT, axis=0)[inner], a[inner], atol=0.02 * np.abs(a).max())
    assert np.abs(np.diff(a, axis=0))[inner].max() < 0.02 * np.abs(a).max()  # they do not jump, in a tenth of 1 ms
    assert motion.end_time == pytest.approx(planned + one.delay)
    np.testing.assert_allclose(samples[-1].value, path.end)
