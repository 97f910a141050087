"""Contacts of other programs end where those have them, and sequences are carried over step by step."""

import json
import re

import numpy as np
import pytest

import mcplan as mc
from mcplan.errors import InputError
from mcplan.robot.pose import rotation_from_rpy

STANCE = {
    "com": {"pos": [0.0, 0.0, 0.8], "mass": 62.0},
    "left_foot": {"shape": [0.12, 0.065], "friction": 0.5, "pos": [0.1, 0.12, 0.1], "rpy": [0.2, 0, 0.3]},
    "right_foot": {"shape": [0.12, 0.065], "friction": 0.6, "pos": [-0.1, -0.12, 0.0], "robot_link": 13},
}

STEPS = """\
states:
  MCC::Initial_: {base: MCC::Initial, configs: {autoStartTime: 2.0}}
  MCC::ConfigMotion_:
    base: MCC::ConfigMotion
    configs:
      baseTime: Relative
      stepCommandList:
        - {limb: LeftFoot, type: Add, startTime: 2.0, endTime: 3.0,
           pose: {translation: [0.15, 0.1, 0]}, constraint: {type: Surface, fricCoeff: 0.5}}
        - {limb: RightFoot, type: Add, startTime: 3.5, endTime: 4.5,
           pose: {translation: [0.33, -0.1, 0.05], rotation: [0, 0, 0.1]}, constraint: {type: Surface, fricCoeff: 0.5}}
        - limb: LeftHand
          pose: {translation: [0.4, 0.35, 0.9]}
          swingCommand: {type: Add, startTime: 5.0, endTime: 7.0}
          contactCommandList:
            - {time: 7.0, constraint: {type: Empty}}
            - {time: 8.0, constraint: {type: Grasp, fricCoeff: 0.5}}
        - limb: LeftHand
          swingCommand: {type: Remove, startTime: 9.0, endTime: 10.0}
          contactCommandList: [{time: 9.0, constraint: {}}]
"""


@pytest.fixture(scope="module")
def robot():
    return mc.load_robot("hrp2")


def middle(contact):
    """The middle (3,) of a contact's points in the world."""
    return (contact.world_points.min(axis=0) + contact.world_points.max(axis=0)) / 2.0


def test_a_pymanoid_stance_has_its_contacts_where_pymanoid_has_them(robot, tmp_path):
    file = tmp_path / "double.json"
    file.write_text(json.dumps(STANCE))
    stance = mc.read_pymanoid_stance(file, robot)
    assert isinstance(stance, mc.ImportedStance)
    assert [contact.patch for contact in stance.contacts] == ["left_sole", "right_sole"]
    for contact, name in zip(stance.contacts, ("left_foot", "right_foot"), strict=True):
        turn = rotation_from_rpy(np.array(STANCE[name].get("rpy", (0.0, 0.0, 0.0))))
        corners = (contact.world_points - STANCE[name]["pos"]) @ turn  # in pymanoid's frame of the contact
        np.testing.assert_allclose(corners.min(axis=0) + corners.max(axis=0), 0.0, atol=1e-12)
        np.testing.assert_allclose(corners[:, 2], 0.0, atol=1e-12)
        assert np.ptp(corners[:, 0]) > np.ptp(corners[:, 1]), "the foot points along x"
        np.testing.assert_allclose(contact.R[:, 0], turn[:, 0], atol=1e-12)
        np.testing.assert_allclose(contact.R[:, 2], -turn[:, 2], atol=1e-12)
        assert contact.friction == STANCE[name]["friction"]
    np.testing.assert_array_equal(stance.com, STANCE["com"]["pos"])
    assert stance.mass == 62.0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"tail": {"pos": [0, 0, 0], "friction": 0.5}}, "tail: is not assigned to a patch; assign one"),
        ({"left_foot": {"friction": 0.5}}, "left_foot: expected pos, rpy and friction"),
        ({"left_foot": {"pos": [0, 0], "friction": 0.5}}, r"double\.json: left_foot: expected three numbers.*\[0, 0\]"),
        ({"left_foot": [1, 2]}, r"left_foot: expected pos, rpy and friction, not \[1, 2\]"),
        ({"left_foot": {"pos": [10**400, 0, 0], "friction": 0.5}}, "left_foot: expected three numbers each"),
        ({"left_foot": {"pos": [0, 0, 0], "rpy": "up", "friction": 0.5}}, "expected three numbers each.*rpy: 'up'"),
        ({"left_foot": {"pos": [0, 0, 0], "friction": "much"}}, r"left_foot\.friction: expected a number.*'much'"),
        ({"left_foot": {"pos": [0, 0, 0], "friction": -0.5}}, r"left_foot\.friction: expected a number from 0.*-0\.5"),
        ({"com": [0, 0, 1]}, r"com: expected pos and mass, not \[0, 0, 1\]"),
        ({"com": {"pos": [0, "x", 1]}}, r"com\.pos: expected three numbers, not \[0, 'x', 1\]"),
        ({"com": {"mass": None}}, r"com\.mass: expected a number from 0 on, in kg, not None"),
    ],
)
def test_a_stance_that_is_not_one_is_refused(change, said, robot, tmp_path):
    file = tmp_path / "double.json"
    file.write_text(json.dumps(STANCE | change))
    with pytest.raises(InputError, match=said):
        mc.read_pymanoid_stance(file, robot)
    for text in ("{", "[" * 100_000):
        file.write_text(text)
        with pytest.raises(InputError, match="is not JSON"):
            mc.read_pymanoid_stance(file, robot)


def scene(robot):
    floor = mc.Surface("floor", size=(2, 2))
    soles = [mc.contact(robot, "left_sole", floor, x=0.0, y=0.1), mc.contact(robot, "right_sole", floor, x=0.0, y=-0.1)]
    return soles, mc.Environment([floor])


def test_a_step_list_becomes_a_sequence_that_can_be_planned(robot, tmp_path):
    file = tmp_path / "steps.yaml"
    file.write_text(STEPS)
    soles, environment = scene(robot)
    scenario = mc.read_step_list(file, robot, soles, environment, name="steps")
    said = [
        "start" if item.contacts is not None else f"-{item.remove}" if item.remove else f"+{item.add.patch}"
        for item in scenario.stances
    ]
    feet = ["-left_sole", "+left_sole", "-right_sole", "+right_sole"]
    assert said == ["start", *feet, "+left_grip", "-left_grip"]
    assert scenario.stances[2].add.surface == "floor", "a step onto what is there makes no second surface"
    made = scenario.environment.support(scenario.stances[4].add.surface)
    assert made.p[2] == 0.05
    bar = scenario.environment.support(scenario.stances[5].add.surface)
    np.testing.assert_allclose(bar.ends.mean(axis=0), [0.4, 0.35, 0.9])
    feet_only = scenario.document.data["stances"][:5]
    plan = mc.plan(mc.Scenario(robot, scenario.environment, start=soles, stances=feet_only))
    np.testing.assert_allclose(middle(plan.stances[2].contact("left_sole")), [0.15, 0.1, 0.0], atol=1e-9)
    np.testing.assert_allclose(middle(plan.stances[4].contact("right_sole")), [0.33, -0.1, 0.05], atol=1e-9)


@pytest.mark.parametrize("rpy", [(0.0, 0.0, 0.0), (0.2, -0.4, 1.1)])
def test_a_bar_for_a_grasp_lies_along_the_first_axis_of_its_pose_and_around_its_place(rpy, robot, tmp_path):
    file = tmp_path / "steps.yaml"
    place = "{translation: [0.4, 0.35, 0.9]"
    file.write_text(STEPS.replace(place, f"{place}, rotation: {list(rpy)}"))
    scenario = mc.read_step_list(file, robot, *scene(robot))
    bar = scenario.environment.support(scenario.stances[5].add.surface)
    np.testing.assert_allclose(bar.ends.mean(axis=0), [0.4, 0.35, 0.9])
    np.testing.assert_allclose(np.cross(bar.direction, rotation_from_rpy(np.array(rpy))[:, 0]), 0.0, atol=1e-9)


def test_step_lists_one_after_the_other_keep_their_places(robot, tmp_path):
    """The second adds a surface and a bar beside those that the first has made; what lies on these stays there."""
    file = tmp_path / "steps.yaml"
    file.write_text(STEPS)
    soles, environment = scene(robot)
    first = mc.read_step_list(file, robot, soles, environment).environment
    file.write_text(STEPS.replace("[0.15, 0.1, 0]", "[0.15, 0.1, 0.2]"))
    second = mc.read_step_list(file, robot, soles, first)
    names = [thing.name for thing in second.environment.things]
    assert len(set(names)) == len(names)
    right = second.stances[4].add
    assert right.surface == next(thing.name for thing in first.surfaces if thing.name != "floor")
    contact = mc.contact(robot, "right_sole", second.environment.support(right.surface), x=right.x, y=right.y)
    np.testing.assert_allclose(middle(contact)[2], 0.05, atol=1e-9)


def test_lists_of_several_states_follow_one_another(robot, tmp_path):
    """Times begin again in each state: a later one comes later, and within each the order is that of times."""
    _, first, second, *hand = re.split(r"(?m)^(?= {8}- )", STEPS)
    said = []
    for text in (
        STEPS,
        f"states:\n  a:\n    stepCommandList:\n{first}{second}  b:\n    stepCommandList:\n{''.join(hand)}",
        f"states:\n  a:\n    stepCommandList:\n{second}{first}  b:\n    stepCommandList:\n{''.join(hand)}".replace(
            "startTime: 5.0, endTime: 7.0", "startTime: 0.0, endTime: 1.0"
        ),
    ):
        file = tmp_path / "steps.yaml"
        file.write_text(text)
        stances = mc.read_step_list(file, robot, *scene(robot)).stances
        said.append([item.remove or item.add.patch for item in stances if item.contacts is None])
    assert said[0] == said[1] == said[2]


def test_steps_follow_one_another_as_they_begin_whenever_they_end(robot, tmp_path):
    """A hand that moves beside both feet, and begins before them."""
    file = tmp_path / "steps.yaml"
    file.write_text(STEPS.replace("startTime: 5.0, endTime: 7.0", "startTime: 1.0, endTime: 8.5"))
    stances = mc.read_step_list(file, robot, *scene(robot)).stances[1:]
    feet = ["left_sole", "left_sole", "right_sole", "right_sole"]
    assert [item.remove or item.add.patch for item in stances] == ["left_grip", *feet, "left_grip"]


@pytest.mark.parametrize("frictions", [(0.5, 0.8), (0.8, 0.5)])
def test_a_surface_that_is_made_holds_all_its_contacts_and_has_the_least_of_their_frictions(robot, frictions, tmp_path):
    feet = {
        name: {"friction": friction, "pos": [0.0, y, 0.3]}
        for name, y, friction in (("left_foot", 0.6, frictions[0]), ("right_foot", -0.6, frictions[1]))
    }
    file = tmp_path / "double.json"
    file.write_text(json.dumps(feet))
    stance = mc.read_pymanoid_stance(file, robot)
    (surface,) = stance.environment.surfaces
    assert surface.friction == 0.5
    for contact, friction in zip(stance.contacts, frictions, strict=True):
        assert contact.friction == friction
        inside = (contact.world_points - surface.p) @ surface.R[:, :2]
        assert np.all(np.abs(inside - surface.polygon.mean(axis=0)) < np.ptp(surface.polygon, axis=0) / 2)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("limb: LeftFoot", "limb: Tail", "`Tail` is not assigned to a patch of hrp2"),
        ("type: Add, startTime: 2.0", "type: Hop, startTime: 2.0", "expected Add or Remove, got 'Hop'"),
        ("startTime: 3.5", "startTime: 2.5", "both feet are in the air at once"),
        ("startTime: 2.0, ", "", "expected startTime and endTime"),
        ("stepCommandList", "steps", "has no stepCommandList"),
        ("startTime: 2.0", "startTime: soon", r"steps\.yaml:8: .*startTime and endTime, in s, not 'soon' and 3"),
        ("swingCommand: {type: Add, startTime: 5.0, endTime: 7.0}", "swingCommand: soon", "and endTime, .*'soon'"),
        ("fricCoeff: 0.5", "fricCoeff: much", r"stepCommandList\[0\]: fricCoeff: expected a number.*'much'"),
        ("constraint: {type: Surface, fricCoeff: 0.5}}", "constraint: Surface}", "expected a constraint.*'Surface'"),
        ("[{time: 9.0, constraint: {}}]", "5", r"contactCommandList: expected a list.*5"),
        ("[{time: 9.0, constraint: {}}]", "[5]", r"contactCommandList\[0\]: expected a constraint.*5"),
        ("[{time: 9.0, constraint: {}}]", "[{constraint: x}]", r"\[0\]\.constraint: expected a constraint.*'x'"),
        ("{translation: [0.15, 0.1, 0]}", "[0.15, 0.1]", r"pose: expected translation.*\[0\.15, 0\.1\]"),
        ("[0.15, 0.1, 0]", "[0.15, 0.1, high]", r"pose: expected translation.*'high'"),
        ("rotation: [0, 0, 0.1]", "rotation: {}", "pose: expected translation.*rotation"),
    ],
)
def test_a_step_list_that_cannot_be_is_refused(old, new, said, robot, tmp_path):
    assert old in STEPS
    file = tmp_path / "steps.yaml"
    file.write_text(STEPS.replace(old, new))
    with pytest.raises(InputError, match=said):
        mc.read_step_list(file, robot, *scene(robot))
