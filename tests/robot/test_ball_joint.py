"""Joints of several coordinates in a URDF: what they become, and what they are refused for."""

from pathlib import Path

import numpy as np
import pytest
import yaml
from scipy.spatial.transform import Rotation

from mcplan.errors import RobotError
from mcplan.robot.robot_file import load_robot
from mcplan.robot.urdf import parse_urdf
from tests.ball_robot import write_ball_robot

INERTIA = '<inertia ixx=".1" iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/>'
LINK = '<link name="{}"><inertial><mass value="2"/>' + INERTIA + "</inertial></link>"
BALL = '<limit lower="-1 -0.5 -0.25" upper="0.5" velocity="2 3 4" effort="10"/>'


def robot(kind, inside, directory=None):
    joint = f'<joint name="hip" type="{kind}"><origin xyz="0 0 1" rpy="0 0 0.3"/><parent link="trunk"/>'
    links = LINK.format("trunk") + LINK.format("leg")
    text = f'<robot name="two">{links}{joint}<child link="leg"/>{inside}</joint></robot>'
    if directory is None:
        return parse_urdf(text.encode(), Path("two.urdf"))
    (directory / "two.urdf").write_text(text)
    return load_robot(directory / "two.urdf")


@pytest.mark.parametrize("kind", ["ball", "spherical"])
def test_a_ball_joint_has_three_coordinates_each_with_its_limits(kind, tmp_path):
    found = robot(kind, BALL, tmp_path)
    assert found.joint_names == ("hip_x", "hip_y", "hip_z")
    assert found.ball_columns == (0,)
    assert found.limits.lower.tolist() == [-1.0, -0.5, -0.25]
    assert found.limits.upper.tolist() == [0.5, 0.5, 0.5]
    assert found.limits.velocity.tolist() == [2.0, 3.0, 4.0]
    assert found.limits.torque.tolist() == [10.0, 10.0, 10.0]
    q = found.neutral()
    q[7:] = phi = np.array([0.4, -0.3, 0.2])
    X = found.frame_pose(q, "leg")
    turn = Rotation.from_euler("z", 0.3) * Rotation.from_rotvec(phi)
    np.testing.assert_allclose(X[:3, :3], turn.as_matrix(), atol=1e-14)
    np.testing.assert_allclose(X[:3, 3], [0, 0, 1], atol=1e-14)


def test_a_ball_joint_without_limits_goes_by_half_a_turn(tmp_path):
    found = robot("ball", "", tmp_path)
    assert found.limits.lower.tolist() == [-np.pi] * 3
    assert found.limits.upper.tolist() == [np.pi] * 3
    assert np.isinf(found.limits.torque).all()


def test_a_universal_joint_is_two_hinges(tmp_path):
    axes = '<axis xyz="0 1 0"/><axis2 xyz="1 0 0"/><limit lower="-1 -2" upper="1 2" velocity="5" effort="6 7"/>'
    found = robot("universal", axes, tmp_path)
    assert found.joint_names == ("hip_1", "hip_2")
    assert found.limits.upper.tolist() == [1.0, 2.0]
    assert found.limits.torque.tolist() == [6.0, 7.0]
    q = found.neutral()
    q[7:] = 0.4, -0.7
    turn = Rotation.from_euler("ZYX", [0.3, 0.4, -0.7])
    np.testing.assert_allclose(found.frame_pose(q, "leg")[:3, :3], turn.as_matrix(), atol=1e-14)


@pytest.mark.parametrize(
    ("kind", "inside", "message"),
    [
        ("ball", BALL + '<mimic joint="other"/>', "a joint of 3 coordinates has no <mimic>"),
        ("ball", BALL + '<dynamics damping="1"/>', "a joint of 3 coordinates has no <dynamics>"),
        ("ball", '<limit lower="-4" upper="4"/>', "its limits let it turn by 6.93 rad, more than 5.5"),
        ("ball", '<limit lower="-1 -1" upper="1"/>', "should be 3 numbers"),
        ("ball", '<limit lower="1" upper="-1"/>', "a lower limit is above its upper limit"),
        ("ball", '<limit effort="-1"/>', "a limit of velocity or effort is negative"),
        ("universal", '<axis xyz="0 1 0"/>', "needs a <axis2>"),
        ("universal", '<axis xyz="0 1 0"/><axis2 xyz="0 2 0"/>', "its two axes are parallel"),
        ("balls", "", "joint type 'balls' is not one of revolute, continuous, prismatic, ball, fixed, spherical, univ"),
    ],
)
def test_what_makes_no_joint_is_refused(kind, inside, message):
    with pytest.raises(RobotError) as refused:
        robot(kind, inside)
    assert message in str(refused.value)
    assert "hip" in str(refused.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"locked": {"RLEG_JOINT0_y": 0.1}}, "'RLEG_JOINT0_y' is part of a ball joint: make the joint fixed"),
        ({"armature": {"RLEG_JOINT0_y": 0.1}}, "'RLEG_JOINT0_y' is part of a ball joint, whose motors have no inertia"),
        ({"base": "RLEG_LINK5"}, "cannot be reversed"),
        (
            {"limits": {"RLEG_JOINT0_y": {"lower": -5.4}, "RLEG_JOINT0_z": {"upper": 5.4}}},
            "limits.RLEG_JOINT0_y: 'RLEG_JOINT0_y' is part of a ball joint: its limits let it turn by ",
        ),
    ],
)
def test_what_a_ball_joint_cannot_do_is_said(change, message, tmp_path):
    path = write_ball_robot(tmp_path)
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | change, sort_keys=False))
    with pytest.raises(RobotError) as refused:
        load_robot(path)
    assert message in str(refused.value)
