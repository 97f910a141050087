"""Time of references that waits: it does not jump, goes on, and a motion along it has the derivatives of what it is."""

import numpy as np
import pytest

from mcplan.motion.spline import Spline
from mcplan.motion.time_parameterization import (
    FULL_ERROR,
    MIN_CLOCK_RATE,
    RATE_TIME_CONSTANT_S,
    ReferenceClock,
    TimedPath,
    TimeParameterization,
)

DT = 1e-4


def test_without_errors_time_runs_as_planned():
    one = ReferenceClock()
    for _ in range(100):
        one.advance(1e-3, 1.0)
    assert (one.rate, one.change, one.late) == (1.0, 0.0, 0.0)


def test_while_it_is_behind_time_runs_slower_and_then_as_planned_again():
    one, rates = ReferenceClock(), []
    for k in range(2000):
        one.advance(1e-3, 2.0 * FULL_ERROR if k < 500 else 0.0)
        rates.append(one.rate)
    assert min(rates) == pytest.approx(MIN_CLOCK_RATE, abs=1e-3)
    assert rates[-1] == 1.0
    assert np.abs(np.diff(rates)).max() <= 1e-3 / RATE_TIME_CONSTANT_S
    assert np.abs(np.diff(rates, 2)).max() <= 1e-6 / RATE_TIME_CONSTANT_S**2
    assert one.late == pytest.approx(1e-3 * np.sum(1.0 - np.array(rates)), abs=1e-3)


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
    assert motion.end_time == pytest.approx(planned + one.late)
    np.testing.assert_allclose(samples[-1].value, path.end)
