"""Poses and rotations against their definitions."""

import numpy as np
import pytest
from scipy.linalg import expm

from mcplan.model.pose import cross_matrix, pose_logarithm


@pytest.mark.parametrize("angle", [0.0, 1e-6, 0.4, 2.0, 3.0])
def test_the_logarithm_of_a_pose_is_the_velocity_that_leads_to_it_in_a_second(angle):
    rng = np.random.default_rng(4)
    for _ in range(10):
        v, w = rng.normal(size=(2, 3))
        w *= angle / np.linalg.norm(w)
        pose = expm(np.block([[cross_matrix(w), v[:, None]], [np.zeros((1, 4))]]))
        np.testing.assert_allclose(pose_logarithm(pose[:3, :3], pose[:3, 3]), [*v, *w], atol=1e-9)
