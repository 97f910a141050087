from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mcplan.collision.model import CollisionModel
from mcplan.document.document import dump_document
from mcplan.errors import PlanningFailed, ScenarioError
from mcplan.planning.plan import PlannedStance
from mcplan.planning.plan_file import is_plan_file, load_plan, plan_document, save_plan
from mcplan.planning.planner import plan
from mcplan.planning.sequence import StanceSequence, _change
from mcplan.planning.transition.transition import BoundaryState
from mcplan.scenario.load import load_scenario
from mcplan.scenario.schema import StanceItem
from tests.contact_error import contact_error

STAND = [{"contacts": [{"patch": "left_sole", "surface": "floor"}, {"patch": "right_sole", "surface": "floor"}]}]
SCENARIOS = ("sway", "single_support", "step", "table_hand", "handstand")


@pytest.fixture(scope="module")
def plans():
    return {name: plan(load_scenario(name)) for name in SCENARIOS}


def in_place(stances, k):
    """Contacts of the larger of stances k - 1 and k."""
    before = stances[k - 1].contacts if k else ()
    now = stances[k].contacts
    return now if len(now) >= len(before) else before


def test_a_place_that_is_left_out_is_nearest_to_the_posture_that_the_item_names():
    scenario = load_scenario("table_hand")
    joints = {"RARM_JOINT0": -1.5, "RARM_JOINT3": -0.2}
    places = []
    for further in ({}, {"posture": {"joints": joints}}):
        sequence = StanceSequence(scenario)
        item = StanceItem.model_validate({"add": {"patch": "right_hand", "surface": "table"}, **further})
        change = _change(
            sequence.linker, item, sequence.stances[0],
            item.posture and item.posture.apply(scenario.robot, sequence.linker.reference)[7:],
        )  # fmt: skip
        (hand,) = (contact for contact in change.contacts if contact.patch == "right_hand")
        places.append(hand.p)
    assert places[1][0] > places[0][0] + 0.1  # the arm is stretched out ahead


@pytest.mark.parametrize("name", SCENARIOS)
def test_bundled_sequences_become_plans_whose_every_stance_holds(plans, name):
    robot, stances = plans[name].scenario.robot, plans[name].stances
    for k, stance in enumerate(stances):
        for contact in in_place(stances, k):
            assert np.abs(contact_error(robot, stance.q, contact)).max() < 1e-6
        assert stance.margins["position"] >= 0.03 - 1e-9
        assert stance.margins["torque"] <= 0.9 + 1e-6
        assert stance.margins["equilibrium"] > 10.0
        assert stance.margins["clearance"] > 0.0
        shared = set(stance.patches) & set(stances[k - 1].patches) if k else set(stance.patches)
        for patch, wrench in stance.wrenches.items():
            assert patch in shared or not wrench.any()
        rest = robot.nonlinear_effects(stance.q, np.zeros(robot.nv))
        rest[6:] -= stance.tau
        rest -= sum(robot.frame_jacobian(stance.q, patch).T @ wrench for patch, wrench in stance.wrenches.items())
        assert np.abs(rest).max() < 1e-6


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_plan_file_keeps_every_bit(plans, name, tmp_path):
    save_plan(plans[name], tmp_path / "plan.yaml")
    assert is_plan_file(tmp_path / "plan.yaml")
    again = load_plan(tmp_path / "plan.yaml")
    save_plan(again, tmp_path / "again.yaml")
    assert (tmp_path / "plan.yaml").read_bytes() == (tmp_path / "again.yaml").read_bytes()
    for one, two in zip(plans[name].stances, again.stances, strict=True):
        assert np.array_equal(one.q, two.q)
        assert np.array_equal(one.tau, two.tau)
        assert (one.change, one.moved, one.margins) == (two.change, two.moved, two.margins)
        assert all(np.array_equal(one.wrenches[patch], two.wrenches[patch]) for patch in one.wrenches)
        for a, b in zip(one.contacts, two.contacts, strict=True):
            assert np.array_equal(a.R, b.R)
            assert np.array_equal(a.p, b.p)
            assert a.coordinates == b.coordinates


def test_what_was_changed_of_the_start_is_kept_in_the_plan_file_until_it_is_planned_anew(tmp_path):
    raised = {"start.posture": {"name": "half_sitting", "joints": {"LARM_JOINT1": -0.05}}}
    made = plan(load_scenario("sway", overrides=raised))
    (notice,) = made.notices
    assert notice.startswith("start: to put its contacts in place")
    assert "LARM_JOINT1 by +0.0" in notice
    save_plan(made, tmp_path / "plan.yaml")
    assert load_plan(tmp_path / "plan.yaml").notices == (notice,)
    quiet = plan(load_scenario(tmp_path / "plan.yaml", overrides={"start.posture": "half_sitting", "stances": STAND}))
    assert quiet.notices == ()
    assert "notices" not in plan_document(quiet)["plan"]


def test_a_plan_that_is_planned_anew_honours_what_its_items_ask_for(plans, tmp_path):
    save_plan(plans["sway"], tmp_path / "sway.plan.yaml")
    anew = plan(load_scenario(tmp_path / "sway.plan.yaml"))
    for stance, before in zip(anew.stances, plans["sway"].stances, strict=True):
        np.testing.assert_allclose(stance.q, before.q, atol=1e-9)
    assert "posture" in plan_document(plans["handstand"])["stances"][-1]


def test_steps_of_a_walk_are_not_those_of_the_items_even_if_there_are_as_many(plans):
    stances = list(plans["handstand"].stances)
    stances[1] = replace(stances[1], passing=BoundaryState(*[np.zeros(plans["handstand"].scenario.robot.nv)] * 4))
    walk = replace(plans["handstand"], stances=tuple(stances))
    assert not any("posture" in item or "com" in item for item in plan_document(walk)["stances"])


def test_a_plan_whose_notices_are_no_texts_is_refused(plans, tmp_path):
    data = plan_document(plans["sway"], tmp_path) | {"plan": {"notices": [3]}}
    (tmp_path / "plan.yaml").write_text(dump_document(data))
    with pytest.raises(ScenarioError, match=r"plan.yaml:\d+: plan.notices"):
        load_plan(tmp_path / "plan.yaml")


@pytest.mark.parametrize("variant", [0, 1, 4, 2502])
def test_arms_that_push_keep_off_the_chest(variant):
    """In the last of them an elbow is on the wrong side of it, from where the guide and the posture before lead."""
    scenario = load_scenario("push", variant=variant)
    sequence = StanceSequence(scenario)
    for item in scenario.stances[1:]:
        sequence.add(item)
    for k, stance in enumerate(sequence.stances):
        model = CollisionModel(scenario.robot, scenario.environment.placed(stance.objects))
        assert model.smallest(stance.q, contacts=in_place(sequence.stances, k)).distance > 0.0025


def test_the_same_scenario_gives_the_same_plan_to_the_byte(plans):
    again = plan(load_scenario("table_hand"), seed=0)
    assert dump_document(plan_document(again)) == dump_document(plan_document(plans["table_hand"]))


def test_the_posture_and_the_centre_of_mass_of_an_item_are_honoured(plans):
    robot = plans["sway"].scenario.robot
    for item, stance in zip(plans["sway"].scenario.stances[1:], plans["sway"].stances[1:], strict=True):
        assert np.allclose(robot.com(stance.q), item.com, atol=1e-6)
    lifted = plans["single_support"].stances[2]
    joint = 7 + robot.joint_names.index("RLEG_JOINT3")
    assert lifted.q[joint] == pytest.approx(1.45, abs=0.1)


def test_a_free_foot_is_clear_of_the_floor(plans):
    robot = plans["single_support"].scenario.robot
    for stance in plans["single_support"].stances[2:5]:
        assert stance.change == "shift"
        X = robot.frame_pose(stance.q, "right_sole")
        assert (X[:3, 3] + robot.patches["right_sole"].points @ X[:3, :3].T)[:, 2].min() >= 0.05 - 1e-6


def test_a_free_foot_stays_beside_the_other(plans):
    robot = plans["single_support"].scenario.robot
    for stance in plans["single_support"].stances[2:5]:
        edges = {}
        for patch in ("left_sole", "right_sole"):
            X = robot.frame_pose(stance.q, patch)
            edges[patch] = (X[:3, 3] + robot.patches[patch].points @ X[:3, :3].T)[:, 1]
        assert edges["left_sole"].min() - edges["right_sole"].max() >= 0.04 - 1e-6


def test_hands_and_knees_bent_so_far_that_the_search_comes_to_no_rest_still_end_on_their_contacts():
    made = plan(load_scenario("push", variant=2))
    robot, stances = made.scenario.robot, made.stances
    for k, stance in enumerate(stances):
        for contact in in_place(stances, k):
            assert np.abs(contact_error(robot, stance.q, contact)).max() <= 1e-7


def test_a_step_too_long_names_the_item_the_foot_and_the_distance():
    scenario = load_scenario("step", overrides={"stances[2].add.x": 1.2})
    with pytest.raises(PlanningFailed, match=r"stances\[2\]: add right_sole: .*stays [\d.]+ mm or [\d.]+ deg away"):
        plan(scenario)


def test_a_scenario_without_a_sequence_is_refused(plans):
    scenario = load_scenario("step", overrides={"stances": []})
    with pytest.raises(ScenarioError, match="stances"):
        plan(scenario)


def test_a_scenario_is_no_plan(tmp_path):
    assert not is_plan_file("step")
    with pytest.raises(ScenarioError, match="plan the scenario first"):
        load_plan("step")


@pytest.mark.parametrize(("key", "value"), [("moved", "left_sole"), ("change", "remove"), ("change", "shift")])
def test_an_edited_plan_that_contradicts_itself_is_refused(plans, tmp_path, key, value):
    data = plan_document(plans["step"], tmp_path)
    assert data["stances"][2] | {key: value} != data["stances"][2]
    data["stances"][2][key] = value
    (tmp_path / "plan.yaml").write_text(dump_document(data))
    with pytest.raises(ScenarioError, match=r"plan.yaml:\d+: stances\[2\]"):
        load_plan(tmp_path / "plan.yaml")


def test_poses_of_contacts_in_a_plan_file_are_those_of_the_patches(plans, tmp_path):
    for name in ("step", "table_hand"):
        data = plan_document(plans[name], tmp_path)
        for item, stance in zip(data["stances"], plans[name].stances, strict=True):
            for spec in item["contacts"]:
                X = plans[name].scenario.robot.frame_pose(stance.q, spec["patch"])
                turn = Rotation.from_quat(spec["pose"]["quat_wxyz"], scalar_first=True).as_matrix()
                contact = stance.contact(spec["patch"])
                assert turn == pytest.approx(contact.R, abs=1e-9)
                assert spec["pose"]["xyz"] == pytest.approx(contact.p)
                if stance.change != "add":
                    assert turn == pytest.approx(X[:3, :3], abs=1e-5)


def test_the_summary_says_each_margin_by_its_name(plans):
    lines = plans["step"].summary().splitlines()
    for line, stance in zip(lines, plans["step"].stances, strict=False):
        assert f"push {stance.margins['equilibrium']:.0f} N, torque {stance.margins['torque']:.0%}" in line


def test_a_contact_that_is_listed_elsewhere_while_it_is_closed_is_refused():
    left = {"patch": "left_sole", "surface": "floor", "x": 0.2, "y": 0.1, "yaw": 0.0}
    moved = {"contacts": [left, STAND[0]["contacts"][1]]}
    with pytest.raises(ScenarioError, match=r"stances\[1\]: left_sole moves while it is in contact; remove it"):
        plan(load_scenario("sway", overrides={"stances": [*STAND, moved]}))


def test_what_limbs_left_is_remembered_until_they_touch_again_themselves(plans):
    """A foot in the air stays near its old place while a hand comes and goes."""
    scenario = plans["table_hand"].scenario
    hand = next(item.add for item in scenario.stances if item.add is not None)
    sequence, seen = StanceSequence(scenario), []

    def link(change, before, left, *asked):
        seen.append({contact.patch for contact in left})
        return PlannedStance(change.contacts, change.change, change.moved, before.q, {}, None, {})

    sequence.linker.link = link
    there = {"add": sequence.stances[0].contact("right_sole").to_data()}
    for item in ({"remove": "right_sole"}, {"add": hand}, {"remove": hand.patch}, {"add": hand}, there):
        sequence.add(StanceItem.model_validate(item))
    assert seen == [set(), {"right_sole"}, {"right_sole"}, {"right_sole", hand.patch}, {"right_sole"}]
    assert sequence.try_items([StanceItem.model_validate({"posture": "squat"})]) == ""
    assert seen[-1] == set()
