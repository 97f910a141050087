import json
from itertools import pairwise

import pytest

from mcplan.certificate.verify import verify
from mcplan.errors import PlanningFailed
from mcplan.planning.plan_file import save_plan
from mcplan.planning.planner import plan
from mcplan.scenario.load import load_scenario
from tests import shared


@pytest.fixture(scope="module", params=["walk", "stairs"])
def planned(request):
    return shared.planned(request.param)


def test_a_plan_from_start_and_goal_alone_is_certified(planned, tmp_path):
    save_plan(planned, tmp_path / "plan.yaml")
    report = verify(tmp_path / "plan.yaml")
    assert report.success, report.failures


def test_stances_differ_by_one_contact_and_end_in_the_goal(planned):
    start, goal = planned.scenario.start, planned.scenario.goal[-1]
    assert set(planned.stances[0].patches) == {contact.patch for contact in start.contacts}
    for before, after in pairwise(planned.stances):
        assert len(set(before.patches) ^ set(after.patches)) == (0 if after.change == "shift" else 1)
    for spec in goal.contacts:
        contact = planned.stances[-1].contact(spec.patch)
        assert contact.support == spec.surface
        assert all(abs(contact.coordinates[name] - value) < 1e-6 for name, value in spec.given.items())
    for stance in planned.stances[1:]:
        assert stance.margins["clearance"] > 0.0


def test_the_record_holds_the_way_that_was_found(planned):
    tree = json.loads(json.dumps(planned.tree.to_data()))
    assert tree["calls"] > 0
    moved = sum(stance.change != "shift" for stance in planned.stances[1:])
    assert len(tree["nodes"]) > moved / 2
    for node in tree["nodes"][1:]:
        assert 0 <= node["parent"] < node["index"]


GAP = """
mcplan: 1
name: gap
robot: hrp2
environment:
  surfaces:
    - {name: floor, size: [2, 2]}
    - {name: far, pose: {xyz: [5, 0, 0]}, size: [2, 2]}
start:
  posture: half_sitting
  base: {xyz: [0, 0, 0.649]}
  contacts:
    - {patch: left_sole, surface: floor, x: 0.01, y: 0.095, yaw: 0}
    - {patch: right_sole, surface: floor, x: 0.01, y: -0.095, yaw: 0}
goal:
  contacts: [{patch: left_sole, surface: far}, {patch: right_sole, surface: far}]
"""


def test_a_gap_is_refused_before_the_search_with_what_is_missing(tmp_path):
    (tmp_path / "gap.yaml").write_text(GAP)
    with pytest.raises(PlanningFailed, match=r"left_sole cannot come to far: from floor.* m are missing"):
        plan(load_scenario(tmp_path / "gap.yaml"))


def test_a_goal_inside_an_obstacle_is_refused():
    post = [{"name": "post", "box": {"size": [0.5, 0.5, 1]}, "pose": {"xyz": [2.0, 0.1, 0.5]}}]
    with pytest.raises(PlanningFailed, match=r"left_sole is .* m inside: LLEG_LINK5 and post overlap"):
        plan(load_scenario("walk", {"environment.obstacles": post}))


def test_the_record_of_a_search_that_fails_is_kept_with_reasons():
    with pytest.raises(PlanningFailed) as failure:
        plan(load_scenario("stairs_rail", {"planner.max_calls": 20}))
    tree = failure.value.tree
    assert len(tree.nodes) > 1
    assert tree.calls >= 20
    assert tree.rejected
    assert all(rejected["reason"] for rejected in tree.rejected)
