"""Robots whose files say what MuJoCo takes from no file: massless links that move, inertias that no body has."""

import numpy as np
import pytest

from mcplan.robot.description import MeshShape
from mcplan.robot.robot_file import load_robot
from mcplan.scene.environment import Environment, Obstacle
from mcplan.sim.mujoco.physics import MujocoPhysics
from mcplan.sim.physics import Action

DT = 1e-3


def two_links(tmp_path, first, second, at="0 0 0"):
    """A robot of two links with a joint, their inertials as given."""
    (tmp_path / "r.urdf").write_text(
        f"""<robot name="r"><link name="a">{BODY}</link><link name="b">{first}</link><link name="c">{second}</link>
        <joint name="ab" type="revolute"><parent link="a"/><child link="b"/><origin xyz="{at}"/><axis xyz="0 0 1"/>
        <limit lower="-1" upper="1" effort="9" velocity="9"/></joint>
        <joint name="bc" type="revolute"><parent link="b"/><child link="c"/><axis xyz="1 0 0"/>
        <limit lower="-1" upper="1" effort="9" velocity="9"/></joint></robot>"""
    )
    return load_robot(tmp_path / "r.urdf")


def inertial(mass, xx, yy, zz):
    return (
        f'<inertial><mass value="{mass}"/>'
        f'<inertia ixx="{xx}" ixy="0" ixz="0" iyy="{yy}" iyz="0" izz="{zz}"/></inertial>'
    )


BODY = inertial(1, 0.01, 0.01, 0.01)


@pytest.mark.filterwarnings("ignore::mcplan.robot.description.RobotWarning")
def test_a_massless_link_between_two_axes_moves_as_dynamics_say(tmp_path):
    robot = two_links(tmp_path, "", BODY)
    q, tau = robot.neutral(), np.array([0.02, 0.01])
    physics = MujocoPhysics(robot, Environment(), q)
    outcome = physics.step(Action(tau, None, {}, {}, ()), DT)
    expected = robot.forward_dynamics(q, np.zeros(robot.nv), np.concatenate([np.zeros(6), tau]))
    np.testing.assert_allclose(outcome.vd, expected, rtol=1e-4, atol=1e-6)


def test_massless_links_weigh_nothing_however_they_are_thrown_around(tmp_path):
    """Residual of the equation of motion in the record: a certificate allows 1e-6 N m."""
    robot = two_links(tmp_path, "", inertial(0.2, 1e-5, 1e-5, 1e-5), at="0.4 0.3 0.1")
    q, tau = robot.neutral(), np.array([0.05, 0.04])
    q[:3] = 2.0
    vd = MujocoPhysics(robot, Environment(), q).step(Action(tau, None, {}, {}, ()), DT).vd
    assert np.abs(vd).max() > 500.0
    missing = robot.inverse_dynamics(q, np.zeros(robot.nv), vd) - np.append(np.zeros(6), tau)
    assert np.abs(missing).max() < 1e-8


@pytest.mark.filterwarnings("ignore::mcplan.robot.description.RobotWarning")
def test_an_inertia_that_no_body_has_is_corrected_with_a_warning(tmp_path):
    robot = two_links(tmp_path, BODY, inertial(1, 0.01, 0.01, 0.03))
    with pytest.warns(RuntimeWarning, match="moments of inertia of c violate the triangle inequality"):
        physics = MujocoPhysics(robot, Environment(), robot.neutral())
    np.testing.assert_allclose(sorted(physics.model.body_inertia[-1]), [0.02, 0.02, 0.04], rtol=1e-6)


@pytest.mark.filterwarnings("error")
def test_an_inertia_is_left_alone_that_is_off_by_its_rounding(tmp_path):
    MujocoPhysics(
        two_links(tmp_path, BODY, inertial(1, 0.01, 0.01, 0.02)), Environment(), np.r_[np.zeros(3), 1, np.zeros(5)]
    )


@pytest.mark.filterwarnings("ignore::mcplan.robot.description.RobotWarning")
def test_a_joint_without_range_and_a_motor_without_torque_are_taken(tmp_path):
    two_links(tmp_path, BODY, BODY)
    text = (tmp_path / "r.urdf").read_text()
    text = text.replace('lower="-1" upper="1" effort="9"', 'lower="0.5" upper="0.5" effort="0"', 1)
    (tmp_path / "r.urdf").write_text(text)
    robot = load_robot(tmp_path / "r.urdf")
    physics = MujocoPhysics(robot, Environment(), np.append(robot.neutral()[:7], [0.5, 0.0]))
    physics.step(Action(np.array([5.0, 0.0]), None, {}, {}, ()), DT)
    np.testing.assert_allclose(physics.q[7], 0.5, atol=1e-6)
    assert np.abs(physics.v[6:]).max() < 1e-6


def test_a_robot_of_which_nothing_moves_stands(tmp_path):
    (tmp_path / "r.urdf").write_text(
        f'<robot name="r"><link name="world"/><link name="a">{BODY}</link><joint name="j" type="fixed">'
        '<parent link="world"/><child link="a"/></joint></robot>'
    )
    robot = load_robot(tmp_path / "r.urdf")
    outcome = MujocoPhysics(robot, Environment(), robot.neutral()).step(np.zeros(0), DT)
    np.testing.assert_allclose(outcome.wrenches["fixed_base"], [0, 0, 9.81, 0, 0, 0], atol=1e-12)


def test_a_mesh_without_thickness_is_taken(tmp_path):
    corners = np.array([[1.0, 1, 0], [-1, 1, 0], [-1, -1, 0], [1, -1, 0]])
    flat = Obstacle("flat", MeshShape(corners, np.array([[0, 1, 2], [0, 2, 3]])), p=np.array([3.0, 0.0, 0.5]))
    robot = two_links(tmp_path, BODY, BODY)
    model = MujocoPhysics(robot, Environment(obstacles=(flat,)), robot.neutral()).model
    np.testing.assert_allclose(sorted(np.ptp(model.mesh_vert, axis=0)), [1e-3, 2.0, 2.0], rtol=1e-5)
