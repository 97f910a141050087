"""The last of the way to a support: without a jump, at its speed, as deep as it may go and no deeper."""

import numpy as np
import pytest

from mcplan.motion.descent import DESCENT_RAMP_S, Descent
from mcplan.motion.limb_path import LimbPath

NORMAL, SPEED = np.array([0.6, 0.0, 0.8]), 0.02


@pytest.fixture(params=[0.003, 0.03])
def descent(request):
    """One that only gets up to speed, and one that goes on at it."""
    above = np.eye(3), np.array([0.1, 0.0, 0.01])
    path = LimbPath((np.eye(3), np.zeros(3)), above, 0.05 * NORMAL, 0.05 * NORMAL, start_time=1.0)
    return Descent(path, NORMAL, SPEED, request.param)


def depth(descent, t):
    """How far below the end of its path it is (m)."""
    return float((descent.end[1] - descent.sample(t).p) @ NORMAL)


def test_it_never_jumps(descent):
    times = np.linspace(descent.path.end_time, descent.end_time + 0.1, 4001)
    places = np.array([descent.sample(t).p for t in times])
    assert np.linalg.norm(np.diff(places, axis=0), axis=1).max() <= 1.01 * SPEED * (times[1] - times[0])


def test_its_acceleration_rises_and_falls_without_a_jump(descent):
    """A jump of it is one of the torques of the leg that stands."""
    end = descent.path.end_time
    times = np.linspace(end, min(descent.end_time, end + 1.2 * DESCENT_RAMP_S) - 1e-9, 2001)
    changes = np.diff([descent.sample(t).acceleration[:3] @ NORMAL for t in times])
    assert np.abs(changes).max() <= 1.01 * 6.0 * SPEED / DESCENT_RAMP_S**2 * (times[1] - times[0])


def test_it_ends_at_its_depth_and_stays_there(descent):
    assert depth(descent, descent.end_time - 1e-9) == pytest.approx(descent.depth, abs=1e-9)
    for later in (0.0, 1.0):
        sample = descent.sample(descent.end_time + later)
        assert depth(descent, descent.end_time + later) == pytest.approx(descent.depth)
        assert sample.velocity == pytest.approx(np.zeros(6))
        assert sample.acceleration == pytest.approx(np.zeros(6))


def test_its_derivatives_are_those_of_its_place(descent):
    step, end = 1e-6, descent.path.end_time
    for s in (0.3 * DESCENT_RAMP_S, 0.6 * DESCENT_RAMP_S, 1.5 * DESCENT_RAMP_S):
        if end + s > descent.end_time - 2 * step:
            continue
        before, here, after = (descent.sample(end + s + k * step) for k in (-1, 0, 1))
        assert (after.p - before.p) / (2 * step) == pytest.approx(here.velocity[:3], abs=1e-7)
        assert (after.velocity - before.velocity) / (2 * step) == pytest.approx(here.acceleration, abs=1e-7)
