"""Every field of a goal item is reached, or refused with the reason; what is reached is read from the plan alone.

The readings take the robot's description by another path (`mcplan.certificate.independent`) and numpy: no word
of the planner's own about its goals is believed.
"""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest
import yaml
from scipy.spatial.transform import Rotation

from mcplan.certificate.independent import Mechanism
from mcplan.certificate.verify import verify
from mcplan.cli.main import main
from mcplan.errors import PlanningFailed, ScenarioError
from mcplan.planning.goal.item import measure
from mcplan.planning.plan_file import load_plan, save_plan
from mcplan.planning.planner import plan
from mcplan.record.recording import record_robot
from mcplan.scenario.load import load_scenario

HRP2 = """
mcplan: 1
name: goals
robot: hrp2
environment:
  surfaces:
    - {name: floor, size: [5, 4]}
    - {name: shelf, pose: {xyz: [1.5, 0, 0.73]}, size: [0.3, 1.2], thickness: 0.03}
start:
  posture: half_sitting
  base: {xyz: [0, 0, 0.649]}
  contacts:
    - {patch: left_sole, surface: floor, x: 0.01, y: 0.095, yaw: 0}
    - {patch: right_sole, surface: floor, x: 0.01, y: -0.095, yaw: 0}
planner: {patches: [left_sole, right_sole], max_calls: 600}
"""
FEET = "contacts: [{patch: left_sole, surface: floor}, {patch: right_sole, surface: floor}]"
EXACT = (
    "contacts: [{patch: left_sole, surface: floor, x: -0.3, y: 0.1, yaw: 0.1}, "
    "{patch: right_sole, surface: floor, x: -0.3, y: -0.1, yaw: 0.1}]"
)
TURNED = "rpy: [0, 0, 0.6], angle_tolerance: 0.1"
RAISED = "posture: {joints: {RARM_JOINT0: -0.9, LARM_JOINT0: -0.9}}, posture_tolerance: 0.05"
ON_THE_SPOT = (
    "contacts: [{patch: left_sole, surface: floor, x: 0.01, y: 0.095, yaw: 0.25}, "
    "{patch: right_sole, surface: floor, x: 0.01, y: -0.095, yaw: 0.25}]"
)
GOALS = {
    "turned on the spot": f"{{{ON_THE_SPOT}, only: true}}",
    "contacts": f"{{{EXACT}, only: true}}",
    "base": "{base: {xyz: [-0.35, 0, 0.649], tolerance: 0.04}}",
    "base turned": f"{{base: {{xyz: [-0.3, 0.1, 0.649], tolerance: 0.04, {TURNED}}}}}",
    "base low": "{base: {xyz: [0, 0, 0.55], tolerance: 0.02}}",
    "posture": f"{{{RAISED}}}",
    "named posture": "{posture: squat}",
    "posture there": f"{{posture: half_sitting, base: {{xyz: [-0.3, 0, 0.649], tolerance: 0.04, {TURNED}}}}}",
    "com": "{com: [0.02, 0.03]}",
    "com low, on contacts": f"{{{FEET}, com: [0.02, 0.02, 0.7], com_tolerance: 0.002, only: true}}",
    "base on contacts": f"{{{FEET}, base: {{xyz: [-0.3, 0, 0.64], tolerance: 0.03, {TURNED}}}}}",
    "items": f"[{{base: {{xyz: [0, 0, 0.58], tolerance: 0.02}}}}, {{{FEET}, posture: half_sitting, com: [0.0, 0.02]}}]",
}
SMALL = {
    "base": "{base: {xyz: [0.5, 0, Z], tolerance: 0.03}}",
    "base turned": "{base: {xyz: [0.3, 0.1, Z], tolerance: 0.03, rpy: [0, 0, -0.8], angle_tolerance: 0.1}}",
    "posture": "{posture: ready, base: {xyz: [-0.3, 0, Z], tolerance: 0.03}, com: [-0.3, 0.0], com_tolerance: 0.02}",
    "com": "{com: [0.01, 0.02, 0.42], com_tolerance: 0.001}",
}


def module(name):
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def scenario_file(directory, goal, text=HRP2):
    path = directory / "scenario.yaml"
    path.write_text(f"{text}goal: {goal}\n")
    return path


@pytest.fixture(scope="module")
def planned(tmp_path_factory):
    """Plans by the name of their goal, each made once."""
    made = {}

    def make(name):
        if name not in made:
            made[name] = plan(load_scenario(scenario_file(tmp_path_factory.mktemp("goals"), GOALS[name])))
        return made[name]

    return make


@pytest.fixture(scope="module")
def small_planned(tmp_path_factory):
    """The same for a robot of boxes."""
    humanoid = module("small_humanoid")
    made = {}

    def make(name, goal=None):
        if name not in made:
            directory = tmp_path_factory.mktemp("small")
            humanoid.write(directory)
            floor = "    - {name: floor, size: [4, 2]}"
            text = re.sub(r"(?m)^goal:.*$", "", humanoid.scenario("goals", "", floor))
            goal = (goal or SMALL[name]).replace("Z", str(humanoid.STANDING))
            made[name] = plan(load_scenario(scenario_file(directory, goal, text)))
        return made[name]

    return make


def assert_met(planned, item, k):
    """Read stance ``k`` of a plan by numpy and the robot's description, and hold it against an item's own words."""
    stance, robot = planned.stances[k], planned.scenario.robot
    motion = Mechanism(record_robot(robot)).motion(stance.q[None], patches=list(stance.patches))
    if base := item.get("base"):
        assert np.linalg.norm(stance.q[:3] - base["xyz"]) <= base.get("tolerance", 0.05)
        if "rpy" in base:
            turn = Rotation.from_euler("xyz", base["rpy"]).inv() * Rotation.from_quat(stance.q[[4, 5, 6, 3]])
            assert turn.magnitude() <= base["angle_tolerance"]
    if posture := item.get("posture"):
        if isinstance(posture, str):
            asked = dict(zip(robot.joint_names, robot.posture(posture)[7:], strict=True))
        else:
            asked = posture["joints"]
        for joint, value in asked.items():
            at = stance.q[7 + robot.joint_names.index(joint)]
            assert abs(at - value) <= item.get("posture_tolerance", 0.2), joint
    if com := item.get("com"):
        assert np.linalg.norm(motion.com[0, : len(com)] - com) <= item.get("com_tolerance", 0.01)
    for spec in item.get("contacts", ()):
        surface = planned.scenario.environment.support(spec["surface"])
        local = surface.R.T @ (motion.p[spec["patch"]][0] - surface.p)
        assert abs(local[2]) < 1e-5
        given = [(axis, spec[name]) for axis, name in enumerate("xy") if name in spec]
        assert all(abs(local[axis] - value) < 1e-5 for axis, value in given)
    if item.get("only"):
        assert set(stance.patches) == {spec["patch"] for spec in item["contacts"]}


def assert_reached(found, goals):
    """Every item in its order, the last one at the end; each contact of the plan where the plan says."""
    items = yaml.safe_load(goals)
    items = items if isinstance(items, list) else [items]
    stances = [reached.stance for reached in found.goals]
    assert stances == sorted(stances)
    assert stances[-1] == len(found.stances) - 1
    for reached, item in zip(found.goals, items, strict=True):
        assert_met(found, item, reached.stance)
    report = verify(found)
    assert report.success, report.failures
    assert found.goal_reached


def test_feet_that_stand_in_their_places_are_turned_there(planned):
    """Each is lifted once and put down again; none steps away and comes back."""
    assert [s.change for s in planned("turned on the spot").stances].count("add") == 2


@pytest.mark.parametrize("name", GOALS)
def test_a_goal_is_reached(planned, name):
    assert_reached(planned(name), GOALS[name])


@pytest.mark.parametrize("name", SMALL)
def test_another_robot_reaches_its_goal(small_planned, name):
    found = small_planned(name)
    z = found.scenario.start.q[2]
    assert_reached(found, SMALL[name].replace("Z", str(z)))


def test_a_goal_that_holds_already_takes_no_step(planned):
    for name in ("base low", "posture", "com"):
        assert {stance.change for stance in planned(name).stances[1:]} == {"shift"}


def test_a_robot_that_has_to_go_somewhere_goes_there(planned):
    for name in ("base", "base turned", "posture there", "base on contacts"):
        found = planned(name)
        moved = found.stances[-1].contact("left_sole").p - found.stances[0].contact("left_sole").p
        assert np.linalg.norm(moved) > 0.2


REFUSED = {
    "apart": (
        "{contacts: [{patch: left_sole, surface: floor, x: 0, y: 1, yaw: 0}, "
        "{patch: right_sole, surface: floor, x: 0, y: -1, yaw: 0}]}",
        r"no posture has all its contacts in place: .*_sole stays \d{3} mm or .* deg away.*; bring them closer",
    ),
    "too high": (
        "{base: {xyz: [0.2, 0, 2.0], tolerance: 0.05}}",
        r"no contacts are found .* base.*the base stays [\d.]+ m",
    ),
    "beyond the floor": ("{base: {xyz: [-4.0, 0, 0.65]}}", r"no contacts are found .* base"),
    "upside down": (
        "{base: {xyz: [0, 0, 0.65], rpy: [3.14, 0, 0], angle_tolerance: 0.1}}",
        r"no contacts are found .*the base stays \d+ deg outside",
    ),
    "com outside": (
        f"{{{EXACT}, com: [0.4, 0.0], only: true}}",
        r"centre of mass stays [3-9]\d\d mm outside its support region",
    ),
    "posture on contacts": (f"{{{EXACT}, posture: half_kneel, only: true}}", r"posture .* off by .* allowed"),
    "posture on other patches": (
        "{posture: kneel}",
        r"kneel stands on left_knee, left_toe, .* which planner.patches does not list",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_posture_holds_is_refused_at_once_with_what_is_missing(name, tmp_path):
    goal, reason = REFUSED[name]
    with pytest.raises(PlanningFailed, match=reason) as failure:
        plan(load_scenario(scenario_file(tmp_path, goal)))
    tree = failure.value.tree
    assert len(tree.nodes) == 0  # before any search
    assert tree.calls < 200


def test_another_robot_is_told_what_is_missing(small_planned):
    with pytest.raises(PlanningFailed, match=r"no contacts are found .* base.*the base stays [\d.]+ m"):
        small_planned("refused", "{base: {xyz: [0.2, 0, 2], tolerance: 0.05}}")


CRATE = "  objects: [{name: crate, box: {size: [0.4, 0.4, 0.4]}, mass: 5, pose: {xyz: [1.5, 0, 0.2]}}]\n"


def test_objects_that_have_to_move_are_refused_and_others_are_met(tmp_path):
    text = HRP2.replace("start:\n", CRATE + "start:\n")
    with pytest.raises(PlanningFailed, match=r"crate has no surface that faces against the push .* under `stances:`"):
        plan(load_scenario(scenario_file(tmp_path, "{objects: {crate: {xyz: [2, 0, 0.2]}}}", text)))
    goal = "{objects: {crate: {xyz: [1.5, 0, 0.2]}}, com: [0.02, 0.02]}"
    found = plan(load_scenario(scenario_file(tmp_path, goal, text)))
    assert_met(found, {"com": [0.02, 0.02]}, -1)
    assert found.goal_reached


@pytest.mark.parametrize(
    ("goal", "key"),
    [
        ("{}", "goal: asks for nothing"),
        ("[{com: [0, 0]}, {only: true, posture: squat}]", "goal[1]: only"),
        ("{posture: {}}", "goal: posture"),
        ("{com: [0, 0], posture_tolerance: 0.1}", "goal: posture_tolerance without posture"),
        ("{posture: squatt}", "did you mean `squat`"),
        ("{base: {xyz: [0, 0, 0], tolerance: 0}}", "goal.base.tolerance"),
        ("{com: [0]}", "goal.com"),
        ("{objects: {crate: {}}}", "goal.objects.crate"),
    ],
)
def test_a_goal_that_cannot_be_understood_is_bad_input(goal, key, tmp_path, capsys):
    path = scenario_file(tmp_path, goal)
    line = path.read_text().splitlines().index(f"goal: {goal}") + 1
    with pytest.raises(ScenarioError):
        load_scenario(path)
    assert main(["plan", str(path), "-o", str(tmp_path / "plan.yaml")]) == 2
    told = capsys.readouterr().err
    assert f"scenario.yaml:{line}: " in told
    assert key in told
    assert not (tmp_path / "plan.yaml").exists()


def test_a_plan_file_names_each_item_and_reads_back_the_same(planned, tmp_path):
    found = planned("items")
    save_plan(found, tmp_path / "plan.yaml")
    said = yaml.safe_load((tmp_path / "plan.yaml").read_text())["plan"]["goal"]
    assert [(one["item"], one["met"]) for one in said] == [(0, True), (1, True)]
    assert {field["field"] for field in said[1]["fields"]} == {"contacts", "posture", "com"}
    again = load_plan(tmp_path / "plan.yaml")
    assert again.goals == found.goals
    save_plan(again, tmp_path / "again.yaml")
    assert (tmp_path / "again.yaml").read_bytes() == (tmp_path / "plan.yaml").read_bytes()
    for item in found.goals:
        assert str(item) in found.summary()


def test_a_plan_file_without_the_measures_is_read_and_a_cut_one_has_not_reached_its_goal(planned, tmp_path):
    save_plan(planned("items"), tmp_path / "plan.yaml")
    data = yaml.safe_load((tmp_path / "plan.yaml").read_text())
    del data["plan"]
    (tmp_path / "old.yaml").write_text(yaml.safe_dump(data))
    assert load_plan(tmp_path / "old.yaml").goal_reached
    data["stances"] = data["stances"][:-1]
    (tmp_path / "cut.yaml").write_text(yaml.safe_dump(data))
    cut = load_plan(tmp_path / "cut.yaml")
    assert [item.met for item in cut.goals] == [True, False]
    assert "NOT MET" in cut.summary()


def test_a_sequence_that_does_not_reach_the_goal_ends_with_status_1_and_its_file(tmp_path, capsys):
    text = HRP2 + f"stances:\n  - {{{FEET}}}\n  - {{com: [0.02, 0.03]}}\n"
    path = scenario_file(tmp_path, "{com: [0.02, -0.03]}", text)
    assert main(["plan", str(path), "-o", str(tmp_path / "plan.yaml")]) == 1
    assert (tmp_path / "plan.yaml").exists()
    assert re.search(r"plan: goal.*com|plan: goal.*centre of mass", capsys.readouterr().err)
    assert (
        main(["plan", str(scenario_file(tmp_path, "{com: [0.02, 0.03]}", text)), "-o", str(tmp_path / "b.yaml")]) == 0
    )


@pytest.mark.parametrize("field", ["base", "turn", "posture", "com", "place", "only"])
def test_a_field_counts_as_met_up_to_its_tolerance_and_not_beyond(planned, field):
    """Each field in both directions: the stance is moved by a little less, and by a little more, than is allowed."""
    found = planned("contacts")
    robot, stance = found.scenario.robot, found.stances[-1]
    goals = {
        "base": "{base: {xyz: [0, 0, 0], tolerance: 0.03}}",
        "turn": "{base: {xyz: [0, 0, 0], rpy: [0, 0, 0], angle_tolerance: 0.2}}",
        "posture": "{posture: {joints: {RARM_JOINT0: 0}}, posture_tolerance: 0.1}",
        "com": "{com: [0, 0, 0], com_tolerance: 0.02}",
        "place": f"{{{EXACT}}}",
        "only": f"{{{EXACT}, only: true}}",
    }
    for sign in (-1.0, 1.0):
        for share, expected in ((0.99, True), (1.01, False)):
            q, contacts, data = stance.q.copy(), stance.contacts, yaml.safe_load(goals[field])
            if field == "base":
                data["base"]["xyz"] = (q[:3] + sign * share * 0.03 * np.array([0.6, 0.0, 0.8])).tolist()
            elif field == "turn":
                data["base"]["xyz"] = q[:3].tolist()
                R = Rotation.from_quat(q[[4, 5, 6, 3]]) * Rotation.from_rotvec(
                    sign * share * np.array([0.0, 0.12, 0.16])
                )
                data["base"]["rpy"] = R.as_euler("xyz").tolist()
            elif field == "posture":
                at = q[7 + robot.joint_names.index("RARM_JOINT0")]
                data["posture"]["joints"]["RARM_JOINT0"] = float(at + sign * share * 0.1)
            elif field == "com":
                data["com"] = (robot.com(q) + sign * share * 0.02 * np.array([0.0, 0.6, 0.8])).tolist()
            elif field == "place":
                data["contacts"][0]["yaw"] += sign * share * 1e-6
            elif not expected:
                data["contacts"] = data["contacts"][:1]
            item = type(found.scenario.goal[0]).model_validate(data)
            assert all(one.met for one in measure(item, robot, contacts, q, {})) == expected
