from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mcplan.planning.posture.contact_error import contact_error, inverse_right_jacobian, pose_logarithm


def at_posture(scene, patch, q, kind="surface", **changes):
    """A contact whose target is where the patch is at ``q``."""
    X = scene.ROBOT.frame_pose(q, patch)
    return replace(scene.contact("left_sole", x=0.0, y=0.0, yaw=0.0), patch=patch, R=X[:3, :3], p=X[:3, 3], **changes)


@pytest.mark.parametrize("patch", ["left_sole", "right_hand", "left_knee"])
@pytest.mark.parametrize("rows", [np.eye(6), np.eye(6)[:3], np.eye(6)[[0, 1, 2, 3, 5]]])
def test_jacobian_agrees_with_finite_differences(scene, patch, rows):
    robot, rng = scene.ROBOT, np.random.default_rng(0)
    for _ in range(5):
        q0 = robot.random_configuration(rng)
        contact = at_posture(scene, patch, q0, selection=rows)
        q = robot.integrate(q0, rng.normal(size=robot.nv) * 0.1, 1.0)
        error, J = contact_error(robot, q, contact)
        v = rng.normal(size=robot.nv)
        h = 1e-6
        ahead, behind = (contact_error(robot, robot.integrate(q, v, s), contact)[0] for s in (h, -h))
        # central difference: h^2 and rounding / h, about 1e-9; the series of J_r^-1 leaves |xi|^6 / 30240
        assert np.allclose((ahead - behind) / (2 * h), J @ v, atol=1e-6)
        assert np.abs(error).max() > 1e-3


def test_a_turn_about_a_free_axis_is_no_error(scene):
    robot = scene.ROBOT
    q = robot.posture("half_sitting")
    base = at_posture(scene, "left_toe", q, selection=np.eye(6)[[0, 1, 2, 3, 5]])
    for angle in (0.3, 1.2, 2.5):
        turned = replace(base, R=base.R @ Rotation.from_euler("y", angle).as_matrix())
        assert np.abs(contact_error(robot, q, turned)[0]).max() < 1e-12
        tilted = replace(base, R=base.R @ Rotation.from_euler("x", 0.1).as_matrix())
        assert np.abs(contact_error(robot, q, tilted)[0]).max() > 0.05


def test_logarithm_undoes_the_exponential():
    rng = np.random.default_rng(1)
    for size in (1e-9, 1e-5, 0.1, 1.7):
        xi = rng.uniform(-1.0, 1.0, 6) * size
        w = xi[3:]
        W = np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
        terms, power = np.eye(3), np.eye(3)
        for k in range(1, 40):
            power = power @ W / (k + 1)
            terms = terms + power
        assert np.allclose(
            pose_logarithm(Rotation.from_rotvec(w).as_matrix(), terms @ xi[:3]), xi, atol=1e-9 * max(1, size)
        )
    assert np.allclose(inverse_right_jacobian(np.zeros(6)), np.eye(6))
