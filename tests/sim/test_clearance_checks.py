"""The certificate's clearance: what overlaps is named with its time and depth; what rests on its support may."""

import numpy as np
import pytest

from mcplan.planning.sequence import complete
from mcplan.scene.load import load_scenario
from mcplan.sim.clearance_checks import clearance_checks
from mcplan.sim.evidence import Evidence
from mcplan.sim.recorder import RunRecorder
from mcplan.sim.verify import verify
from tests.sim.waving_box import waving_run

STEP = 0.02


@pytest.fixture(scope="module")
def plan():
    return complete(load_scenario("sway"))


def run_of(plan, configurations):
    """A run that merely stands in one configuration after the other."""
    robot, stance = plan.scenario.robot, plan.stances[0]
    recorder = RunRecorder(robot, plan, STEP)
    still = np.zeros(robot.nv)
    for k, q in enumerate(configurations):
        patches = [contact.patch for contact in stance.contacts]
        recorder.append(k * STEP, q, still, still, np.zeros(robot.n), None, {}, {}, patches, ("stand", 0), 3)
    return recorder.finish()


def check(plan, configurations):
    (found,) = clearance_checks(Evidence(run_of(plan, configurations)))
    return found


def lowered(q, by):
    q = q.copy()
    q[2] -= by
    return q


def test_standing_is_clear(plan):
    found = check(plan, [plan.stances[0].q] * 3)
    assert found.passed
    assert found.value > 0.005


@pytest.mark.parametrize(("sunk", "passes"), [(0.0015, True), (0.003, False)])
def test_soles_may_sink_two_millimetres(plan, sunk, passes):
    q = plan.stances[0].q
    found = check(plan, [q, q, lowered(q, sunk), q])
    assert found.passed == passes
    if not passes:
        assert found.value == pytest.approx(-sunk, abs=1e-3)
        assert "LLEG_LINK5 and floor" in found.failure
        assert "t = 0.040 s" in found.failure


def test_links_that_meet_are_named(plan):
    robot, q = plan.scenario.robot, plan.stances[0].q.copy()
    q[7 + robot.joint_names.index("LLEG_JOINT1")] -= 0.3
    found = check(plan, [plan.stances[0].q, q])
    assert not found.passed
    assert "LLEG" in found.failure
    assert "RLEG" in found.failure
    assert "t = 0.020 s" in found.failure


def test_the_report_holds_the_clearance(plan):
    report = verify(run_of(plan, [lowered(plan.stances[0].q, 0.01)] * 2))
    assert report.values["clearance"] == pytest.approx(-0.01, abs=1e-3)
    assert any("overlap" in failure for failure in report.failures)


def test_a_run_without_a_plan_document_is_not_judged():
    report = verify(waving_run())
    assert report.values["clearance"] is None
    assert report.success
