"""The certificate's clearance: what overlaps is named with its time and depth; what rests on its support may."""

from dataclasses import replace

import numpy as np
import pytest

from mcplan.certificate.clearance_checks import clearance_checks, stance_clearance
from mcplan.certificate.recomputed_run import RecomputedRun
from mcplan.certificate.verify import verify
from mcplan.planning.sequence import complete_sequence
from mcplan.record.records import PhaseRecord, PlaceRecord, WorldRecord
from mcplan.robot import robot_file
from mcplan.scenario.load import load_scenario
from mcplan.sim.recorder import RunRecorder
from tests.sim.waving_box import waving_run

STEP = 0.02


@pytest.fixture(scope="module")
def plan():
    return complete_sequence(load_scenario("sway"))


def run_of(plan, configurations, step=STEP, objects=()):
    """A run that merely stands in one configuration after the other, with the object at poses (7,)."""
    robot, stance = plan.scenario.robot, plan.stances[0]
    recorder = RunRecorder(plan, step)
    still = np.zeros(robot.nv)
    for k, q in enumerate(configurations):
        patches = [contact.patch for contact in stance.contacts]
        there = (objects[k][None], np.zeros((1, 6))) if objects else None
        recorder.append(
            k * step, q, still, still, np.zeros(robot.n), None, {}, {}, patches, ("stand", 0), 3, objects=there
        )
    return recorder.finish()


def check(plan, configurations, step=STEP):
    (found,) = clearance_checks(RecomputedRun(run_of(plan, configurations, step)))
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


def test_a_robot_without_shapes_has_no_clearance(monkeypatch):
    """Not even a plate for what touches."""
    monkeypatch.setattr(robot_file, "with_patch_shapes", lambda model, *_: model)
    report = verify(waving_run(40, touch=30))
    assert report.values["clearance"] is None
    assert report.success


def test_the_tolerance_is_twenty_micrometres(plan):
    """Of the depth that links may sink into their supports; what arithmetic leaves breaks no run."""
    q = plan.stances[0].q
    off = -check(plan, [q, lowered(q, 0.01)]).value - 0.01  # the boxes of the feet end so far below the soles
    assert abs(off) < 1e-3
    assert check(plan, [q, lowered(q, 0.002 - off + 1e-5)]).passed
    assert not check(plan, [q, lowered(q, 0.002 - off + 4e-5)]).passed


def crossed(plan, by):
    """HRP-2 with its left leg turned inward."""
    q = plan.stances[0].q.copy()
    q[7 + plan.scenario.robot.joint_names.index("LLEG_JOINT1")] -= by
    return q


@pytest.mark.parametrize("bad", [1, 7, 10, 19, 24])
def test_what_overlaps_only_between_the_samples_that_are_looked_at_is_found(plan, bad):
    """Legs that meet in one sample of twenty-five, of which every twentieth and the last are looked at at first."""
    fine = [crossed(plan, 0.3 if k == bad else 0.0) for k in range(25)]
    found = check(plan, fine, step=0.001)
    assert not found.passed
    assert f"t = {0.001 * bad:.3f} s" in found.failure
    assert check(plan, [crossed(plan, 0.0)] * 25, step=0.001).passed


def test_a_fast_approach_is_looked_at_in_between_but_found_free(plan):
    """How far things move decides where to look, not whether they touch."""
    fine = [lowered(crossed(plan, 0.05 * np.sin(np.pi * k / 20)), -0.05) for k in range(21)]
    found, still = check(plan, fine, step=0.001), check(plan, [plan.stances[0].q] * 2)
    assert found.passed
    assert 0.0 < found.value <= still.value + 1e-9


def test_only_the_link_of_a_patch_may_sink_and_only_into_its_own_support(plan):
    """With the contact taken away, the same depth is an overlap."""
    q = lowered(plan.stances[0].q, 0.0015)
    run = run_of(plan, [plan.stances[0].q, q])
    stance = run.record.plan.stances[0]
    bare = stance.model_copy(update={"contacts": stance.contacts[1:]})
    record = run.record.model_copy(update={"plan": run.record.plan.model_copy(update={"stances": [bare]})})
    (found,) = clearance_checks(RecomputedRun(replace(run, record=record, active=run.active & [False, True])))
    assert not found.passed
    assert "LLEG_LINK5 and floor" in found.failure
    assert "RLEG" not in found.failure


def recorded(run, **changes):
    """The run with another record."""
    return replace(run, record=run.record.model_copy(update=changes))


def test_what_has_let_go_may_sink_for_a_moment_only(plan):
    """A sole that left its contact two stances ago: named with its greatest depth, and from when on it is too deep."""
    depths = [0.0015] * 9 + [0.0019, 0.0015]
    run = run_of(plan, [lowered(plan.stances[0].q, depth) for depth in depths])
    stance, column = run.record.plan.stances[0], run.patches.index("left_sole")
    bare = stance.model_copy(update={"contacts": [c for c in stance.contacts if c.patch != "left_sole"]})
    stances = run.record.plan.model_copy(update={"stances": [stance, bare, bare]})
    run = recorded(run, plan=stances, phases=[PhaseRecord(name="stand", stance=2)])
    active = run.active.copy()
    active[5:, column] = False
    (found,) = clearance_checks(RecomputedRun(replace(run, active=active)))
    off = -check(plan, [plan.stances[0].q, lowered(plan.stances[0].q, 0.01)]).value - 0.01
    assert not found.passed
    assert f"LLEG_LINK5 and floor overlap by {0.0019 + off:.4g} m at t = 0.180 s (from t = 0.120 s on)" in found.failure
    assert "RLEG" not in found.failure


def test_links_keep_apart_from_the_ground_that_there_is(plan):
    """Not from the one that the scenario believes in: it lies 10 mm higher."""
    raised = PlaceRecord(R=np.eye(3).tolist(), p=[0.0, 0.0, 0.01])
    run = recorded(run_of(plan, [plan.stances[0].q] * 2), world=WorldRecord(surfaces={"floor": raised}))
    (found,) = clearance_checks(RecomputedRun(run))
    assert not found.passed
    assert found.value == pytest.approx(-0.01, abs=1e-3)


ROD = "[{name: rod, box: {size: [2, 0.1, 0.1]}, mass: 5, friction: 0.4, pose: {xyz: [3, 0, 0.05]}}]"


@pytest.fixture(scope="module")
def beside():
    """HRP-2 and a rod that lies far away."""
    return complete_sequence(load_scenario("sway", {"environment.objects": ROD}))


def rod(yaw):
    """The pose (7,) of the rod half a metre up, ahead to the left: turned by 45 degrees it ends in the robot."""
    return np.array([0.7, 0.7, 0.5, np.cos(yaw / 2), 0.0, 0.0, np.sin(yaw / 2)])


@pytest.mark.parametrize(("yaw", "passes"), [(np.pi / 4, False), (-np.pi / 4, True)])
def test_an_object_blocks_where_it_is_now_and_as_it_is_turned(beside, yaw, passes):
    home = beside.scenario.environment.objects[0].pose
    run = run_of(beside, [beside.stances[0].q] * 3, objects=[home, home, rod(yaw)])
    (found,) = clearance_checks(RecomputedRun(run))
    assert found.passed == passes
    assert passes or ("rod" in found.failure and "t = 0.040 s" in found.failure)
    first, second = beside.stances[0], replace(beside.stances[0], objects={"rod": rod(yaw)})
    planned = stance_clearance(replace(beside, stances=(first, second)))
    assert planned.passed == passes
    assert passes or ("rod" in planned.failure and "in stance 1" in planned.failure)


@pytest.mark.parametrize(("sunk", "wrong"), [(0.0015, ["stance 2"]), (0.0035, ["stance 0", "stance 1", "stance 2"])])
def test_a_patch_may_sink_in_the_stances_of_its_contact_and_in_the_one_after(plan, sunk, wrong):
    """There it is still in place and only carries nothing; no deeper than 2 mm, and not one stance later."""
    both = replace(plan.stances[0], q=lowered(plan.stances[0].q, sunk))
    one = replace(both, contacts=tuple(c for c in both.contacts if c.patch != "left_sole"))
    for k in range(1, 4):
        found = stance_clearance(replace(plan, stances=(both, one, one)[:k]))
        assert found.passed == (f"stance {k - 1}" not in wrong and wrong != ["stance 0", "stance 1", "stance 2"])
        if not found.passed:
            assert "LLEG_LINK5 and floor" in found.failure
            assert ("RLEG" in found.failure) == (sunk > 0.002)
