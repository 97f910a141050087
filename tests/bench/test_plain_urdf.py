"""The URDF that all sides read is the robot itself: same masses, same dynamics, locked joints where they are locked."""

import numpy as np
import pytest

from mcplan.bench.growth import linearity, plain_urdf, roll_pitch_yaw, write_chains
from mcplan.bench.reference_tick import without_armature
from mcplan.robot.pose import rotation_from_quat, rotation_from_rpy
from mcplan.robot.robot_file import load_robot
from tests.robot.conftest import ARM, GRIPPER


def written(robot, directory):
    path = directory / "plain.urdf"
    path.write_text(plain_urdf(robot.description, robot.locked))
    return load_robot(path)


def assert_same_mechanism(ours, theirs, rng):
    assert theirs.joint_names == ours.joint_names
    assert theirs.mass == pytest.approx(ours.mass, rel=1e-14)
    for field in ("lower", "upper", "velocity", "torque"):
        np.testing.assert_array_equal(getattr(theirs.limits, field), getattr(ours.limits, field))
    for _ in range(5):
        q, v = ours.random_configuration(rng), rng.standard_normal(ours.nv)
        np.testing.assert_allclose(theirs.mass_matrix(q), ours.mass_matrix(q), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(theirs.nonlinear_effects(q, v), ours.nonlinear_effects(q, v), rtol=1e-9, atol=1e-10)


def test_hrp2_keeps_its_masses_and_its_dynamics(tmp_path):
    hrp2 = without_armature(load_robot("hrp2"))
    robot = written(hrp2, tmp_path)
    assert hrp2.locked
    assert not set(hrp2.locked) & set(robot.joint_names)
    for name in hrp2.locked:
        assert robot.description.joints[name].type == "fixed"
    for name, link in hrp2.description.links.items():
        other = robot.description.links[name].inertia
        assert other.mass == link.inertia.mass
        np.testing.assert_array_equal(other.com, link.inertia.com)
        np.testing.assert_array_equal(other.matrix, link.inertia.matrix)
    assert_same_mechanism(hrp2, robot, np.random.default_rng(3))


def test_a_joint_locked_off_zero_is_fixed_there(tmp_path):
    hrp2 = load_robot("hrp2")
    other = tmp_path / "other.urdf"
    other.write_text(plain_urdf(hrp2.description, dict.fromkeys(hrp2.locked, 0.7)))
    link = hrp2.description.joints[next(iter(hrp2.locked))].child
    q = hrp2.neutral()
    here, there = hrp2.frame_pose(q, link), load_robot(other).frame_pose(q, link)
    turned = here[:3, :3].T @ there[:3, :3]
    assert np.arccos((np.trace(turned) - 1) / 2) == pytest.approx(0.6, abs=1e-9)
    np.testing.assert_allclose(here[:3, 3], there[:3, 3], atol=1e-12)


@pytest.mark.parametrize("text", [ARM, GRIPPER])
def test_turned_frames_prismatic_and_mimic_joints_survive(text, tmp_path):
    path = tmp_path / "robot.urdf"
    path.write_text(text)
    robot = load_robot(path)
    assert_same_mechanism(robot, written(robot, tmp_path), np.random.default_rng(4))


def test_angles_give_the_rotation_back_also_at_a_right_angle():
    rng = np.random.default_rng(5)
    rotations = [rotation_from_quat(rng.standard_normal(4)) for _ in range(50)]
    rotations += [rotation_from_rpy([rng.uniform(-3, 3), sign * np.pi / 2, rng.uniform(-3, 3)]) for sign in (-1, 1)]
    for R in rotations:
        np.testing.assert_allclose(rotation_from_rpy(roll_pitch_yaw(R)), R, atol=1e-9)


def test_chains_have_the_bodies_they_say(tmp_path):
    for count, path in write_chains(tmp_path, (2, 7)).items():
        robot = load_robot(path)
        assert len(robot.tree.topology) == count
        assert robot.mass == pytest.approx(count)


def test_linear_growth_is_told_from_quadratic():
    sizes = (10, 30, 100, 300)
    assert linearity({str(n): 2 + 0.3 * n for n in sizes}) < 1e-9
    assert linearity({str(n): 2 + 0.01 * n * n for n in sizes}) > 0.2
