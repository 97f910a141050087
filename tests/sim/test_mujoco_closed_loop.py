"""Plans executed by torques alone, on supports that are where the plan says and on supports that are not."""

import numpy as np
import pytest

from mcplan.certificate.verify import verify
from mcplan.sim.simulate import Simulation
from tests import shared


@pytest.fixture(scope="module")
def one_step():
    return shared.planned_up_to("step", "right_sole")


@pytest.fixture(scope="module")
def one_hand():
    return shared.planned_up_to("table_hand", "right_hand")


def executed(plan, support, higher=0.0):
    """Simulate, with a support moved up once the patch that will land on it is in the air."""
    simulation, moved = Simulation(plan, "mujoco"), False
    model = simulation.physics.model
    while simulation.step() is not None:
        if not moved and simulation.controller.machine.phase.name.startswith("swing"):
            model.geom(f"world:{support}").pos[2] += higher
            moved = True
    assert moved
    return simulation, simulation.finish()


def test_a_step_is_certified(one_step):
    simulation, run = executed(one_step, "floor")
    report = verify(run)
    assert report.success, report.text()
    assert report.values["slip"] < 1e-3
    assert report.values["solver_failures"] == 0
    assert np.all(np.abs(run.tau) <= simulation.controller.robot.limits.torque)
    ends = {event.name: event.ended_by for event in simulation.controller.machine.events}
    assert ends["approach right_sole"] == "force right_sole"
    assert not any("timeout" in reason for reason in ends.values())


@pytest.mark.parametrize("higher", [-0.008, 0.0, 0.008])
def test_a_hand_finds_a_table_that_is_not_quite_where_it_was_planned(one_hand, higher):
    _, run = executed(one_hand, "table", higher)
    # the certificate measures clearance from the table as planned: the hand on a lower one is inside it
    broken = {check.name for check in verify(run).checks if not check.passed}
    assert broken == ({"clearance"} if higher < 0 else set())
    column = run.patches.index("right_hand")
    X = one_hand.scenario.robot.frame_pose(run.q[-1], "right_hand")
    assert X[2, 3] == pytest.approx(0.73 + higher, abs=1e-3)
    assert run.active[-1, column]


def test_the_same_plan_gives_the_same_motion_to_the_bit(one_step):
    first, second = (Simulation(one_step, "mujoco") for _ in range(2))
    for _ in range(60):
        a, b = first.step(), second.step()
    np.testing.assert_array_equal(a.q, b.q)
    np.testing.assert_array_equal(a.tau, b.tau)
