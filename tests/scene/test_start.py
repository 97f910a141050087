"""A start without contacts: what rests on a support in its posture touches."""

import numpy as np
import pytest

import mcplan as mc
from mcplan.errors import ScenarioError

HEAD = {"mcplan": 1, "name": "resting", "description": "a start that names no contacts", "robot": "hrp2"}
FLOOR = {"surfaces": [{"name": "floor", "size": [4, 4]}]}


def start(posture, **more):
    data = HEAD | {"environment": FLOOR, "goal": {"com": [0.0, 0.0, 0.75]}, "start": {"posture": posture} | more}
    return mc.load_scenario(data).start


@pytest.mark.parametrize(
    ("posture", "patches"),
    [
        ("half_sitting", {"left_sole", "right_sole"}),
        ("kneel", {"left_knee", "right_knee", "left_toe", "right_toe"}),
        ("crawl", {"left_knee", "right_knee", "left_toe", "right_toe", "left_hand", "right_hand"}),
    ],
)
def test_the_patches_that_rest_are_those_of_the_posture(posture, patches):
    found = start(posture)
    assert {contact.patch for contact in found.contacts} == patches
    robot = mc.load_robot("hrp2")
    for contact in found.contacts:
        off = robot.frame_pose(found.q, contact.patch)[:3, 3] - contact.p
        assert np.linalg.norm(off) < 0.03


def test_a_start_in_the_air_is_refused():
    with pytest.raises(ScenarioError, match=r"no contacts are given.*within 30 mm and 11 degrees of a support"):
        start("half_sitting", base={"xyz": [0, 0, 1.2]})


def test_in_python_too_and_the_plan_starts_there():
    robot = mc.load_robot("hrp2")
    scenario = mc.Scenario(robot, mc.Environment([mc.Surface("floor", size=(4, 4))]), goal={"com": [0.02, 0.02, 0.75]})
    plan = mc.plan(scenario)
    assert {contact.patch for contact in plan.stances[0].contacts} == {"left_sole", "right_sole"}
    assert mc.verify(plan).success
