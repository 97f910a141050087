"""HRP-2 lifts a box between its hands, carries it and puts it down; and what verification says of it."""

from dataclasses import replace

import numpy as np
import pytest

from mcplan.certificate.verify import verify
from mcplan.errors import PlanningFailed, ScenarioError
from mcplan.planning.plan import Plan
from mcplan.planning.plan_file import load_plan, save_plan
from mcplan.planning.planner import plan
from mcplan.planning.sequence import complete_sequence
from mcplan.scenario.load import load_scenario
from mcplan.sim.simulate import simulate
from tests import shared

HANDS = ("left_hand", "right_hand")
WEIGHT = 5 * 9.81


@pytest.fixture(scope="module")
def lift():
    return shared.planned("lift", control__pace="slow")


@pytest.fixture(scope="module")
def simulation(lift):
    """From the hands on the box to the box on the other shelf, with the number of programs before it."""
    return shared.simulated(Plan(lift.scenario, lift.stances[2:6]))


@pytest.fixture(scope="module")
def run(simulation):
    return simulation[0].finish()


def test_programs_are_declared_before_the_run(simulation):
    after, declared = simulation
    assert len(after.controller.tasks.pool) == declared == 2  # with the box on a shelf, and in the air


def failures(checked):
    return [check.name for check in verify(checked).checks if not check.passed]


def carried(stance, **changed):
    """The stance with another box on its hands."""
    contacts = (c if c.carrier is None else replace(c, carrier=replace(c.carrier, **changed)) for c in stance.contacts)
    return replace(stance, contacts=tuple(contacts))


@pytest.mark.slow
def test_in_the_air_the_hands_bear_the_box(lift):
    report = verify(lift)
    assert report.success, report.text()
    rests = [stance.contact("left_hand").carrier.rest for stance in lift.stances[2:6]]
    assert [None if rest is None else rest.support for rest in rests] == ["shelf", None, None, "upper"]
    for stance in lift.stances[3:6]:  # put down, it is still held while its support takes over
        assert sum(stance.wrenches[hand][2] for hand in HANDS) == pytest.approx(-WEIGHT, abs=1e-6)
    heavy = [carried(stance, mass=8.0) for stance in lift.stances]
    failed = {check.name: check.failure for check in verify(replace(lift, stances=tuple(heavy))).checks}
    assert "box, stance 3: it would fall" in failed["objects: held"]


@pytest.mark.parametrize("hand", HANDS)
def test_a_hand_that_lets_go_of_a_box_in_the_air_is_named_with_its_stance(hand):
    items = load_scenario("lift").document.data["stances"][:4]
    dropped = load_scenario("lift", {"stances": [*items, {"remove": hand}]})
    with pytest.raises(PlanningFailed, match=rf"stances\[4\]: remove {hand}: .* N are missing"):
        complete_sequence(dropped)


def test_contacts_on_a_box_that_turns_turn_with_it(lift):
    before, after = (lift.stances[k].contact("left_hand") for k in (3, 4))
    yaw = np.deg2rad(8)
    turn = np.array([[np.cos(yaw), -np.sin(yaw), 0], [np.sin(yaw), np.cos(yaw), 0], [0, 0, 1]])
    np.testing.assert_allclose(after.R, turn @ before.R, atol=1e-9)
    np.testing.assert_allclose(after.normal, turn @ before.normal, atol=1e-9)


def test_a_plan_file_keeps_what_is_in_the_air(lift, tmp_path):
    save_plan(lift, tmp_path / "plan.yaml")
    report = verify(load_plan(tmp_path / "plan.yaml"))
    assert report.success, report.text()


@pytest.mark.slow
def test_the_motion_holds_its_certificate_but_for_the_start_before_it(run):
    assert not (run.qp_status > 0).any()
    # it begins with the hands on the box, which is no start of its scenario: what needs one is not judged
    assert failures(run) == ["record: stances are the plan's", "beginning", "goal", "clearance"]
    phases = [run.record.phases[i].name for i in dict.fromkeys(run.phase.tolist())]
    assert phases == ["stand", "take box", *["carry box"] * 3, "put box", "settle"]
    np.testing.assert_allclose(run.object_q[-1, 0, :3], [0.54, 0.0, 1.02], atol=2e-3)


def test_the_hands_exert_what_moves_the_box(run):
    """``m (a - g) = f``: nothing else acts on it in the air."""
    carrying = [i for i, phase in enumerate(run.record.phases) if phase.name == "carry box"]
    air = np.flatnonzero(np.isin(run.phase[:-1], carrying))
    columns = [run.patches.index(name) for name in HANDS]
    force = -run.wrench[air][:, columns, :3].sum(axis=1)
    acceleration = np.diff(run.object_v[:, 0, :3], axis=0)[air] / run.dt
    np.testing.assert_allclose(force, 5 * acceleration + np.array([0, 0, WEIGHT]), atol=1e-6)
    assert np.ptp(run.object_q[air, 0, 2]) > 0.1


def test_what_lies_on_a_shelf_presses_less_and_less_until_it_is_off(run):
    taking = [i for i, phase in enumerate(run.record.phases) if phase.name == "take box"]
    samples, box = np.flatnonzero(np.isin(run.phase, taking)), len(run.record.links)
    pressed = []
    for k in samples:
        mine = slice(run.point_start[k], run.point_start[k + 1])
        rest = (run.point_link[mine] == box) & (run.point_normal[mine][:, 2] > 0.9)
        pressed.append(run.point_force[mine][rest, 2].sum())
    assert pressed[0] > 0.5 * WEIGHT
    assert pressed[-1] < 0.1
    assert np.diff(pressed).max() < 1.0


def test_a_box_that_leaves_the_hands_is_found(run):
    q = run.object_q.copy()
    middle = len(q) // 2
    q[middle:, 0, 2] += 1e-3
    found = failures(replace(run, object_q=q))
    assert "objects: integration" in found
    free = run.point_link == len(run.record.links)
    force = run.point_force.copy()
    force[free & (run.point_sample() == middle)] *= 0.5
    assert "objects: equation of motion" in failures(replace(run, point_force=force))


def test_a_box_taken_through_a_shelf_is_found(lift):
    through = list(lift.stances)
    low = lift.stances[3].objects["box"].copy()
    low[2] -= 0.17
    through[3] = replace(through[3], objects={"box": low})
    assert "transition: objects apart" in failures(replace(lift, stances=tuple(through)))


def test_from_shelf_to_shelf_without_lifting_is_refused():
    scenario = load_scenario("lift")
    first, left, right, _, _, put, *_ = scenario.source.data["stances"]
    with pytest.raises(ScenarioError, match="box rests on shelf before and on upper after"):
        plan(load_scenario("lift", {"stances": [first, left, right, put]}))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "physics", "pace"),
    [("lift", "qp", "fast"), ("lift", "mujoco", "fast"), ("carry", "contact", "fast")],
)
def test_it_is_executed(name, physics, pace):
    report = verify(simulate(shared.planned(name, control__pace=pace), physics=physics))
    assert report.success, report.text()
