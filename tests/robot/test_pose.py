"""Poses and rotations against their definitions."""

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

from mcplan.robot.pose import cross_matrix, pose_logarithm, quat_from_rotation, rotate_z, rotation_from_quat


@pytest.mark.parametrize("angle", [0.0, 1e-6, 0.4, 2.0, 3.0])
def test_the_logarithm_of_a_pose_is_the_velocity_that_leads_to_it_in_a_second(angle):
    rng = np.random.default_rng(4)
    for _ in range(10):
        v, w = rng.normal(size=(2, 3))
        w *= angle / np.linalg.norm(w)
        pose = expm(np.block([[cross_matrix(w), v[:, None]], [np.zeros((1, 4))]]))
        np.testing.assert_allclose(pose_logarithm(pose[:3, :3], pose[:3, 3]), [*v, *w], atol=1e-9)


def test_the_quaternion_of_a_rotation_leads_back_to_it_however_far_it_turns():
    rng = np.random.default_rng(2)
    axes = np.vstack([rng.normal(size=(40, 3)), np.eye(3), -np.eye(3)])
    for axis in axes / np.linalg.norm(axes, axis=1, keepdims=True):
        for angle in (0.0, 1e-8, 1.0, 2.2, 3.0, np.pi):
            R = Rotation.from_rotvec(angle * axis).as_matrix()
            quat = quat_from_rotation(R)
            assert quat[0] >= 0.0
            np.testing.assert_allclose(np.linalg.norm(quat), 1.0)
            np.testing.assert_allclose(rotation_from_quat(quat), R, atol=1e-12)


@pytest.mark.parametrize("yaw", [-2.0, 0.3, np.pi / 2])
def test_an_offset_turns_with_the_heading_about_the_vertical(yaw):
    offset = np.array([0.2, -0.1, -0.6])
    assert rotate_z(yaw, offset) == pytest.approx(Rotation.from_euler("z", yaw).apply(offset))
