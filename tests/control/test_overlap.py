"""Ramps of force overlap with quick shifts of the body: nothing waits for them."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from mcplan.certificate.verify import verify
from mcplan.control.phases import Load, Shift, Unload, phases_of
from mcplan.planning.planner import plan
from mcplan.planning.timing.retiming import MIN_FORCE_RAMPS, Retimer
from mcplan.scenario.load import load_scenario
from mcplan.settings.control import ControlSettings
from mcplan.sim.simulate import simulate
from tests import shared


@pytest.fixture(scope="module")
def fast():
    return plan(load_scenario("walk", {"control.pace": "fast", "parameters.distance": 0.5, "simulation.dt": 0.002}))


@pytest.fixture(scope="module")
def run(fast):
    return simulate(fast)


def laws(planned):
    return [segment.law for stance in planned.stances[1:] for segment in stance.transition.segments]


def test_a_run_takes_what_its_laws_take(fast, run):
    """Beside standing at the beginning and at the end, and a tick per phase."""
    control, phases = fast.scenario.control.under("qp"), phases_of(fast)
    expected = control.timing.start_time + sum(law.duration for law in laws(fast)) + control.timing.settle_time
    assert run.t[-1] == pytest.approx(expected, abs=len(phases) * run.dt)
    assert verify(run).success


def test_a_contact_is_unloaded_while_the_centre_of_mass_slows_down(fast, run):
    """Its force begins to sink while the body moves, and is nothing when the body has come to rest."""
    named = np.array(run.phases)[run.phase]
    unloading = [name for name in run.phases if name.startswith("unload")]
    assert len(unloading) >= 2
    speed, takes = np.linalg.norm(np.gradient(run.com, run.dt, axis=0), axis=1), fast.scenario.control.pace.ramp
    for name in unloading:
        ticks = np.flatnonzero(named == name)
        for piece in np.split(ticks, np.flatnonzero(np.diff(ticks) > 1) + 1):
            assert speed[piece[0]] > 0.02
            assert speed[piece[-1]] < 0.3 * speed[piece[0]]
            assert len(piece) * run.dt == pytest.approx(takes, abs=2.5 * run.dt)


def test_without_a_law_each_waits_for_the_other():
    slow = phases_of(shared.planned("step", control__pace="slow"))
    shifts = [phase for phase in slow if isinstance(phase, Shift)]
    assert not any(phase.overlaps_unloading for phase in shifts)
    assert not any(phase.ends_shift for phase in slow if isinstance(phase, Unload))
    assert not any(phase.precedes_shift for phase in slow if isinstance(phase, Load))


def test_with_laws_what_follows_says_what_overlaps(fast):
    phases = phases_of(fast)
    for before, after in pairwise(phases):
        if isinstance(before, Shift):
            assert before.overlaps_unloading == isinstance(after, Unload)
        if isinstance(after, Unload):
            assert after.ends_shift
        if isinstance(before, Load):
            assert before.precedes_shift == isinstance(after, Shift)


def test_a_ramp_that_nothing_else_waits_for_is_waited_for():
    """Of another patch that lifts next, or at the end."""
    motion = SimpleNamespace(settings=ControlSettings(timing={"load_time": 0.05, "unload_time": 0.1}), posture=None)
    assert Load(1, "foot").enter(motion, 2.0, None) == 0.05
    assert Load(1, "foot", precedes_shift=True).enter(motion, 2.0, None) == 0.0


def test_no_motion_is_quicker_than_forces_build_up_turn_and_vanish(fast):
    """Each takes a ramp; slower ramps make the short ones slower and leave the long ones alone."""
    control, segment = fast.scenario.control, fast.stances[1].transition.segments[0]
    quick = Retimer(fast.scenario.robot, control).timing(segment).duration
    for ramp in (0.02, 0.18):
        slower = control.model_copy(update={"pace": control.pace.model_copy(update={"ramp": ramp})})
        duration = Retimer(fast.scenario.robot, slower).timing(segment).duration
        assert duration == pytest.approx(max(quick, MIN_FORCE_RAMPS * ramp), rel=0.1)
        assert duration >= MIN_FORCE_RAMPS * ramp
