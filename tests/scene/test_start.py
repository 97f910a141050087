"""A start without contacts: what rests on a support in its posture touches."""

import numpy as np
import pytest

import mcplan as mc
from mcplan.errors import ScenarioError
from mcplan.robot.pose import rotation_from_rpy
from mcplan.scenario.assemble import START_TOLERANCE
from mcplan.scene.posture_contacts import PoseTolerance, resting_contacts
from tests.sim.other_robots import BALL, humanoid, quadruped

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


@pytest.mark.parametrize("rpy", [(0.0, 0.0, 2.5), (0.1, -0.2, 0.3)])
def test_a_base_that_is_turned_with_its_floor_rests_on_the_same_patches(rpy):
    level, q = start("half_sitting"), mc.load_robot("hrp2").posture("half_sitting")
    R = rotation_from_rpy(np.array(rpy))
    floor = {"surfaces": [{"name": "floor", "size": [4, 4], "pose": {"rpy": list(rpy)}}]}
    base = {"xyz": (R @ q[:3]).tolist(), "rpy": list(rpy)}
    turned = mc.load_scenario(HEAD | {"environment": floor, "start": {"posture": "half_sitting", "base": base}}).start
    robot = mc.load_robot("hrp2")
    for patch in robot.patches:
        X, Y = robot.frame_pose(level.q, patch), robot.frame_pose(turned.q, patch)
        np.testing.assert_allclose(Y[:3, :3], R @ X[:3, :3], atol=1e-9)
        np.testing.assert_allclose(Y[:3, 3], R @ X[:3, 3], atol=1e-9)
    assert [contact.patch for contact in turned.contacts] == [contact.patch for contact in level.contacts]


def test_a_start_in_the_air_is_refused():
    with pytest.raises(ScenarioError, match=r"no contacts are given.*within 30 mm and 11 degrees of a support"):
        start("half_sitting", base={"xyz": [0, 0, 1.2]})


def test_in_python_too_and_the_plan_starts_there():
    robot = mc.load_robot("hrp2")
    scenario = mc.Scenario(robot, mc.Environment([mc.Surface("floor", size=(4, 4))]), goal={"com": [0.02, 0.02, 0.75]})
    plan = mc.plan(scenario)
    assert {contact.patch for contact in plan.stances[0].contacts} == {"left_sole", "right_sole"}
    assert mc.verify(plan).success


def test_balls_rest_where_their_lowest_points_do(tmp_path):
    """Their centres are farther from the floor than a patch of a start may be."""
    robot = mc.load_robot(quadruped(tmp_path))
    assert START_TOLERANCE.times(robot.scale.leg).distance < BALL
    X, height = robot.frame_pose(robot.posture("stand"), "fl_foot"), robot.posture("stand")[2]
    start = {"posture": "stand", "base": {"xyz": [0.0, 0.0, float(height + BALL - X[2, 3])]}}
    data = HEAD | {"robot": str(robot.path), "environment": FLOOR, "goal": {"com": [0.0, 0.0]}, "start": start}
    found = mc.load_scenario(data).start
    assert {contact.patch for contact in found.contacts} == {"fl_foot", "fr_foot", "hl_foot", "hr_foot"}
    assert max(abs(contact.ground) for contact in found.contacts) < 1e-12


@pytest.mark.parametrize("bend", [-1.2, -0.5, 0.5])
@pytest.mark.parametrize("height", [-0.012, 0.0, 0.012])
def test_a_ball_rests_however_its_link_is_turned(tmp_path, bend, height):
    robot = mc.load_robot(quadruped(tmp_path))
    q = robot.posture("stand")
    q[[7 + robot.joint_names.index(f"{leg}_b") for leg in ("fl", "fr", "hl", "hr")]] += bend
    q[2] += BALL + height - robot.frame_pose(q, "fl_foot")[2, 3]
    environment, near = mc.Environment([mc.Surface("floor", size=(4, 4))]), PoseTolerance(0.01, 0.1)
    found = resting_contacts(robot, environment, q, robot.patches, near)
    assert len(found) == (4 if height == 0.0 else 0)


def test_a_point_rests_however_its_link_is_turned_but_not_on_the_inside_of_a_support(tmp_path):
    robot = mc.load_robot(humanoid(tmp_path))
    q = robot.posture("ready")
    X = robot.frame_pose(q, "left_hand")
    assert 0.4 < np.arccos(-X[2, 2]) < 0.6  # the angle of the forearm to the vertical
    for rpy, patches in (((0, 0, 0), {"left_hand"}), ((np.pi, 0, 0), set())):
        shelf = mc.Surface("shelf", xyz=X[:3, 3] - [0, 0, 0.005], rpy=rpy, size=(0.1, 0.1))
        found = resting_contacts(robot, mc.Environment([shelf]), q, ["left_hand"], PoseTolerance(0.01, 0.1))
        assert {contact.patch for contact in found} == patches
