"""HRP-2 pushes a box: one stroke of the arms, by the whole-body program alone, and what verification says of it."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from mcplan.certificate.recomputed_run import RecomputedRun
from mcplan.certificate.verify import verify
from mcplan.errors import ScenarioError
from mcplan.planning.plan import Plan
from mcplan.planning.plan_file import load_plan, save_plan
from mcplan.planning.planner import plan
from mcplan.record.run import Run
from mcplan.scenario.load import check_file, load_scenario
from tests import shared


@pytest.fixture(scope="module")
def whole():
    return shared.planned("push")


@pytest.fixture(scope="module")
def simulation(whole):
    """From the hands on the box to the end of the first stroke, with the number of programs before it."""
    return shared.simulated(Plan(whole.scenario, whole.stances[3:5]))


@pytest.fixture(scope="module")
def run(simulation):
    return simulation[0].finish()


def test_programs_are_declared_before_the_run(simulation):
    after, declared = simulation
    assert len(after.controller.tasks.pool) == declared == 2  # while the box rests, and while it slides


def failures(run):
    return [check.name for check in verify(run).checks if not check.passed]


def test_contacts_on_the_box_are_planned_where_it_goes(whole):
    before, after = whole.stances[3], whole.stances[4]
    shift = after.objects["box"][:3] - [0.85, 0, 0.5]
    assert np.allclose(shift, [0.2, 0, 0])
    for patch in ("left_hand", "right_hand"):
        assert np.allclose(after.contact(patch).p - before.contact(patch).p, shift)
    assert np.array_equal(after.contact("left_sole").p, before.contact("left_sole").p)
    assert np.allclose(whole.stances[-1].objects["box"][:3], [1.35, 0, 0.5])


def test_a_plan_file_keeps_the_objects(whole, tmp_path):
    save_plan(whole, tmp_path / "plan.yaml")
    assert check_file(tmp_path / "plan.yaml") == []
    again = load_plan(tmp_path / "plan.yaml")
    for one, two in zip(whole.stances, again.stances, strict=True):
        assert {name: pose.tolist() for name, pose in one.objects.items()} == {
            name: pose.tolist() for name, pose in two.objects.items()
        }
        assert all(np.allclose(a.p, b.p, atol=1e-12) for a, b in zip(one.contacts, two.contacts, strict=True))


def test_contacts_of_a_run_have_the_friction_of_its_world_and_so_has_what_they_are_on(whole):
    contact = next(c for stance in whole.stances for c in stance.contacts if c.carrier is not None)
    factors = {contact.support: 0.5, contact.carrier.name: 0.25}
    run = object.__new__(Run)
    object.__setattr__(run, "record", SimpleNamespace(world=SimpleNamespace(friction=factors)))
    found = run._actual_contact(contact)
    assert found.friction == 0.5 * contact.friction
    assert found.carrier.rest.friction == 0.25 * contact.carrier.rest.friction


@pytest.mark.slow
def test_a_plan_leans_on_the_box_only_as_far_as_that_stays(whole):
    report = verify(whole)
    assert report.success, report.text()
    light = []
    for stance in whole.stances:
        contacts = (
            c if c.carrier is None else replace(c, carrier=replace(c.carrier, mass=0.5)) for c in stance.contacts
        )
        light.append(replace(stance, contacts=tuple(contacts)))
    failed = [check for check in verify(replace(whole, stances=tuple(light))).checks if not check.passed]
    assert [check.name for check in failed] == ["objects: held", "transition: balance", "transition: dynamic balance"]
    assert ": it would slide or tip" in failed[0].failure


def test_the_stroke_holds_its_certificate_but_for_the_start_before_it(run):
    assert not (run.qp_status > 0).any()
    # it begins with the hands on the box, which is no start of its scenario: what needs one is not judged
    assert failures(run) == ["record: stances are the plan's", "beginning", "goal", "clearance"]
    assert "not those of start.contacts: left_hand, right_hand differ" in verify(run).text()
    assert run.object_q[-1, 0, 0] == pytest.approx(1.05, abs=2e-3)


def test_hands_push_as_hard_as_the_box_is_held(run):
    speed = run.object_v[:, 0, 0]
    steady = (speed > 0.05) & (np.abs(np.gradient(speed, run.dt)) < 0.02)
    assert steady.sum() > 10
    hands = [run.patches.index(name) for name in ("left_hand", "right_hand")]
    f = -run.wrench[steady][:, hands, :3].sum(axis=1)
    expected = 0.4 * (20 * 9.81 - f[:, 2]) + 20 * np.gradient(speed, run.dt)[steady]
    assert np.allclose(f[:, 0], expected, atol=0.5)


def test_a_moved_box_and_a_lost_force_are_found(run):
    sliding = int(np.argmax(run.object_v[:, 0, 0]))
    q = run.object_q.copy()
    q[sliding:, 0, 0] += 1e-3
    assert "objects: integration" in failures(replace(run, object_q=q))
    force = run.point_force.copy()
    of_box = (run.point_link == len(run.record.links)) & (run.point_sample() == sliding)
    force[of_box] *= 0.5
    assert "objects: equation of motion" in failures(replace(run, point_force=force))


@pytest.mark.parametrize(
    ("factor", "shift", "caught"), [(1.03, 1, True), (0.97, 1, True), (1.0, 1, False), (1.0, -1, True)]
)
def test_friction_of_what_slides_is_all_there_is_and_against_the_motion(run, factor, shift, caught):
    """The floor's part of what acts on the box, along its motion, scaled or turned round."""
    steady = np.flatnonzero(run.object_v[:, 0, 0] > 0.05)
    k = int(steady[len(steady) // 2])
    mine = np.flatnonzero((run.point_link == len(run.record.links)) & (run.point_sample() == k))
    floor = mine[run.point_normal[mine, 2] > 0.9]
    assert len(floor)
    force = run.point_force.copy()
    force[floor, :2] *= shift * factor
    assert ("objects: friction" in failures(replace(run, point_force=force))) == caught


def test_the_normal_of_a_support_on_the_box_turns_with_it(run):
    turned = run.object_q.copy()
    turned[:, 0, 3:] = [np.cos(0.01), 0.0, 0.0, np.sin(0.01)]
    judged = replace(run, record=run.record.model_copy(update={"physics": "contact"}))
    before, after = RecomputedRun(judged), RecomputedRun(replace(judged, object_q=turned))
    hand, sole = (before.run.point_patch == run.patches.index(name) for name in ("left_hand", "left_sole"))
    np.testing.assert_allclose(before.support_normal[hand], [[-1.0, 0.0, 0.0]] * hand.sum(), atol=1e-3)
    np.testing.assert_allclose(
        after.support_normal[hand], [[-np.cos(0.02), -np.sin(0.02), 0.0]] * hand.sum(), atol=1e-6
    )
    np.testing.assert_array_equal(after.support_normal[sole], [[0.0, 0.0, 1.0]] * sole.sum())


@pytest.mark.parametrize(
    ("before", "item", "message"),
    [
        (1, {"objects": {"box": {"xyz": [1, 0, 0.5]}}}, "nothing is in contact with box"),
        (3, {"objects": {"box": {"xyz": [0.85, 0, 0.5], "rpy": [0, 0, 0.3]}}}, "box rests on floor before and"),
        (1, {"objects": {"bax": {"xyz": [1, 0, 0.5]}}}, "did you mean `box`"),
    ],
)
def test_an_object_that_cannot_be_moved_is_refused(whole, before, item, message):
    document = whole.scenario.source
    with pytest.raises(ScenarioError, match=message):
        plan(load_scenario("push", {"stances": [*document.data["stances"][:before], item]}))
