"""Ticks in one kernel against ticks that are computed step by step, and what makes them look."""

import numpy as np
import pytest

from mcplan.control.usual_tick import UsualTick
from mcplan.core.whole_body.tick import DEPTH, SLIDING
from mcplan.motion.spline import Spline
from mcplan.sim.simulate import Simulation
from tests import shared


def states(name, physics, ticks, by_kernel, change=None):
    """Return the states along a plan, and in how many ticks one kernel did all; ``change`` is called in the middle."""
    simulation, count, respond = Simulation(shared.planned(name), physics), 0, UsualTick.respond

    def counted(tick, *arguments):
        nonlocal count
        solution = respond(tick, *arguments) if by_kernel else None
        count += solution is not None
        return solution

    rows = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(UsualTick, "respond", counted)
        if not by_kernel:
            patch.setattr(UsualTick, "observe", lambda tick, q, v: False)
        for k in range(ticks):
            if change is not None and k == ticks // 2:
                change(simulation)
            simulation.step()
            rows.append(np.concatenate([simulation.physics.q, simulation.physics.v]))
    return np.array(rows), count


def raise_com_reference(simulation):
    """Replace the reference of the centre of mass by one that rises."""
    motion = simulation.controller.motion
    value = motion.com.sample(simulation.t).value
    motion.com = Spline.to_rest(value, value + np.array([0.0, 0.0, 0.02]), 0.2, start_time=simulation.t)


def drop_preloads(simulation):
    """Drop the preloads of all contacts for a while."""
    simulation.controller.tasks.preload_drop_time = simulation.t


@pytest.mark.parametrize(("name", "physics", "change"), [
    ("step", "contact", None),
    ("sway", "qp", None),
    ("step", "contact", raise_com_reference),
    ("step", "contact", drop_preloads),
])  # fmt: skip
def test_ticks_in_one_kernel_lead_to_the_states_of_ticks_step_by_step(name, physics, change):
    in_one, count = states(name, physics, 1200, True, change)
    step_by_step, none = states(name, physics, 1200, False, change)
    assert count > 500
    assert none == 0
    np.testing.assert_allclose(in_one, step_by_step, rtol=0, atol=1e-9)


def test_a_robot_that_slides_turns_or_falls_is_looked_at():
    simulation = Simulation(shared.planned("step"), "contact")
    for _ in range(100):
        simulation.step()
    usual, q, v = simulation.controller._usual, simulation.physics.q, simulation.physics.v
    bounds, usual_bounds = usual._observed[0], usual._observed[0].copy()
    assert usual.observe(q, v)
    pushed = v + np.r_[0.8, np.zeros(len(v) - 1)]  # the whole robot moves, its soles with it
    for watched in (SLIDING, DEPTH):
        bounds[:] = np.inf, np.inf, -np.inf
        assert usual.observe(q, pushed)
        bounds[watched] = usual_bounds[watched]
        assert not usual.observe(q, pushed)
    for watched, settled in ((np.inf, True), (-1.0, False)):  # no free motion is that small
        bounds[:], usual._is_settled = (np.inf, watched, -np.inf), True
        assert usual.observe(q, v)
        assert usual._is_settled == settled
