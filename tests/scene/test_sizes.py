"""Scenarios that scale with the robot: sizes in expressions, and feet by whatever names they have."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mcplan.errors import ScenarioError
from mcplan.robot.anatomy import find_hands
from mcplan.robot.robot_file import load_robot
from mcplan.scenario.load import check_file, load_scenario
from mcplan.scenario.parameters import SIZE_NAMES, robot_sizes
from mcplan.scenario.scenario import Scenario
from tests.sim.other_robots import humanoid, quadruped

SCENARIO = {
    "mcplan": 1,
    "name": "scaled",
    "parameters": {"far": "=2*robot.leg"},
    "environment": {"surfaces": [{"name": "floor", "size": ["=4*far", "=robot.leg+robot.width+1"]}]},
    "start": {
        "posture": "ready",
        "contacts": [{"patch": "feet", "surface": "floor", "x": "=-far", "y": 0.1, "yaw": 0}],
    },
    "goal": {"contacts": [{"patch": "feet", "surface": "floor"}], "only": True},
    "planner": {"patches": ["feet", "left_hand"]},
}


def scaled(tmp_path_factory, scale):
    folder = tmp_path_factory.mktemp("robot")
    path = humanoid(folder, scale)
    return str(path)


@pytest.fixture(scope="module", params=[0.5, 1.0, 2.0])
def robot_path(request, tmp_path_factory):
    return request.param, scaled(tmp_path_factory, request.param)


def test_sizes_scale_with_the_robot(robot_path):
    scale, path = robot_path
    found = robot_sizes(load_robot(path))
    # 0.28 and 0.28 of the legs, and from the ankle 0.07 down and 0.03 ahead; 0.22 and 0.2 of the arms
    expected = {
        "leg": 0.63616,
        "reach": 0.42,
        "width": 0.16,
        "foot": 0.2,
        "front": 0.13,
        "height": 0.64143,
        "breadth": 0.36,
    }
    for name, value in expected.items():
        assert found[name] == pytest.approx(scale * value, abs=6e-3), name
    assert set(found) == set(SIZE_NAMES)


def test_hrp2_is_the_measure_of_the_bundled_scenarios():
    """They are divided by its sizes; what comes out for it are the plain numbers that they were written with."""
    robot = load_robot("hrp2")
    assert robot_sizes(robot)["leg"] == 0.707
    assert robot_sizes(robot)["reach"] == 0.607
    walk = load_scenario("walk")
    floor = walk.environment.surfaces[0]
    np.testing.assert_array_equal(np.ptp(floor.polygon, axis=0), [6, 3])
    assert [(c.patch, c.given["x"], c.given["y"]) for c in walk.goal[0].contacts] == [
        ("left_sole", 1.01, 0.095),
        ("right_sole", 1.01, -0.095),
    ]


def test_feet_stand_for_the_patches_that_the_robot_stands_on(robot_path):
    scale, path = robot_path
    scenario = load_scenario(SCENARIO, {"robot": path})
    assert [contact.patch for contact in scenario.start.contacts] == ["left_sole", "right_sole"]
    assert [contact.patch for contact in scenario.goal[0].contacts] == ["left_sole", "right_sole"]
    assert scenario.planner.patches == ("left_sole", "right_sole", "left_hand")
    leg = robot_sizes(scenario.robot)["leg"]
    assert np.ptp(scenario.environment.surfaces[0].polygon[:, 0]) == pytest.approx(8 * leg)
    # about the point that is given, each at its place below the base
    places = np.array([contact.p[:2] for contact in scenario.start.contacts])
    np.testing.assert_allclose(
        places.mean(axis=0), [-2 * leg + np.mean([x for x, _ in scenario.robot.feet.values()]), 0.1]
    )
    assert np.ptp(places[:, 1]) == pytest.approx(0.16 * scale, abs=5.1e-3)


def test_four_feet_are_four_contacts(tmp_path):
    path = quadruped(tmp_path)
    data = {**SCENARIO, "start": {**SCENARIO["start"], "posture": "stand"}, "planner": {"patches": ["feet"]}}
    scenario = load_scenario(data, {"robot": str(path)})
    assert [contact.patch for contact in scenario.start.contacts] == ["fl_foot", "fr_foot", "hl_foot", "hr_foot"]
    with pytest.raises(ScenarioError, match=r"=robot.reach: unknown name `robot.reach`"):
        load_scenario({**data, "parameters": {"far": "=robot.reach"}}, {"robot": str(path)})


def test_sides_and_hands_are_groups_too(tmp_path):
    place = {"surface": "floor", "x": 0, "y": 0, "yaw": 0}
    start = {"posture": "ready", "contacts": [{"patch": "right_feet", **place}, {"patch": "left_feet", **place}]}
    planner = {"patches": ["feet", "hands"], "require": [["hands"]]}
    scenario = load_scenario({**SCENARIO, "start": start, "planner": planner}, {"robot": str(humanoid(tmp_path))})
    assert [contact.patch for contact in scenario.start.contacts] == ["right_sole", "left_sole"]
    assert scenario.planner.patches == ("left_sole", "right_sole", "left_hand", "right_hand")
    assert scenario.planner.require == (("left_hand", "right_hand"),)


def test_hands_that_a_robot_does_not_have_are_unknown_where_they_are_asked_for(tmp_path):
    path = str(quadruped(tmp_path))
    data = {**SCENARIO, "start": {**SCENARIO["start"], "posture": "stand"}, "planner": {"patches": ["feet", "hands"]}}
    assert len(load_scenario(data, {"robot": path}).planner.patches) == 4
    for changed in (
        {"planner": {"patches": ["feet"], "require": [["hands"]]}},
        {"goal": {"contacts": [{"patch": "hands", "surface": "floor"}]}},
    ):
        with pytest.raises(ScenarioError, match="unknown patch `hands`; there are: fl_foot"):
            load_scenario({**data, **changed}, {"robot": path})


def test_a_palm_that_ends_a_limb_is_a_hand_and_a_forearm_is_none():
    assert find_hands(load_robot("hrp2")) == ("left_hand", "right_hand", "left_grip", "right_grip")


def test_a_robot_that_cannot_be_read_is_the_only_mistake():
    with pytest.raises(ScenarioError) as caught:
        load_scenario(SCENARIO, {"robot": "nobody"})
    assert len(caught.value.problems) == 1
    assert "nobody" in str(caught.value)


def test_sizes_are_those_of_the_robot_that_is_at_hand(tmp_path):
    """Its file is not read again: by then it may be another, or gone."""
    path = humanoid(tmp_path)
    scenario = load_scenario(SCENARIO, {"robot": str(path)})
    path.unlink()
    again = Scenario.of(scenario.source, robot=scenario.robot)
    assert again.digest == scenario.digest
    assert [contact.patch for contact in again.start.contacts] == ["left_sole", "right_sole"]


def _contacts(robot, place):
    start = {"posture": "ready", "contacts": [{"patch": "feet", "surface": "floor", "x": 0.3, "y": 0.1, **place}]}
    return load_scenario({**SCENARIO, "start": start}, {"robot": str(robot)}).start.contacts


@pytest.mark.parametrize("yaw", [np.pi / 2, -0.7, "=pi"])
def test_a_group_is_turned_about_its_point_as_its_patches_are(tmp_path, yaw):
    path, point = humanoid(tmp_path), np.array([0.3, 0.1, 0.0])
    angle = np.pi if isinstance(yaw, str) else yaw
    turn = Rotation.from_euler("z", angle).as_matrix()
    for plain, turned in zip(_contacts(path, {"yaw": 0}), _contacts(path, {"yaw": yaw}), strict=True):
        assert plain.patch == turned.patch
        np.testing.assert_allclose(turned.p - point, turn @ (plain.p - point), atol=1e-8)
        np.testing.assert_allclose(turned.R, turn @ plain.R, atol=1e-12)


def test_of_a_group_whose_y_is_left_open_x_is_that_of_the_turned_places(tmp_path):
    robot = load_robot(humanoid(tmp_path))
    goal = {"contacts": [{"patch": "feet", "surface": "floor", "x": 0.3, "yaw": np.pi / 2}]}
    asked = load_scenario({**SCENARIO, "goal": goal}, {"robot": str(robot.path)}).goal[0].contacts
    for contact in asked:
        assert contact.given["x"] == pytest.approx(0.3 - robot.feet[contact.patch][1], abs=1e-8)
        assert "y" not in contact.given


def test_a_mistake_behind_a_group_has_its_own_line_and_index(tmp_path):
    text = """\
mcplan: 1
name: groups
robot: hrp2
environment: {surfaces: [{name: floor, size: [4, 4]}, {name: table, size: [1, 1], pose: {xyz: [0.5, 0, 0.8]}}]}
start:
  contacts:
    - {patch: feet, surface: floor}
    - {patch: left_hand, surface: tabel}
    - {patch: right_hand, surface: table}
planner:
  patches:
    - feet
    - right_hnd
"""
    path = tmp_path / "groups.yaml"
    path.write_text(text)
    expected = [(8, "start.contacts[1].surface"), (13, "planner.patches[1]")]
    assert [(problem.line, problem.key) for problem in check_file(path)] == expected
    path.write_text(text.replace("floor}", "flor}").replace("tabel", "table").replace("hnd", "hand"))
    (problem,) = check_file(path)  # of two patches, but one item of the file
    assert (problem.line, problem.key) == (7, "start.contacts[0].surface")


def test_groups_in_a_dictionary_keep_the_index_of_what_follows_them():
    contacts = [{"patch": "feet", "surface": "floor"}, {"patch": "left_hand", "surface": "flor"}]
    with pytest.raises(ScenarioError, match=r"goal.contacts\[1\].surface: unknown surface or bar `flor`"):
        load_scenario({**SCENARIO, "start": {}, "goal": {"contacts": contacts}}, {"robot": "hrp2"})
