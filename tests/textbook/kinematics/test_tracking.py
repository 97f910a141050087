"""Following a trajectory in position and orientation (S1 section 2.9.4)."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import mcplan as mc
from mcplan.errors import InputError
from mcplan.textbook.coordinates import ROTATION_VECTOR, UNIT_QUATERNION, XYZ, ZYX, pose
from mcplan.textbook.kinematics import rotation_error, track, tracking_velocity

CHARTS = [None, ZYX, XYZ, ROTATION_VECTOR, UNIT_QUATERNION]


@pytest.fixture(scope="module")
def robot():
    return mc.load_robot("hrp2")


@pytest.fixture(scope="module")
def start(robot):
    q = robot.posture("half_sitting")
    q[7 + robot.joint_names.index("RARM_JOINT3")] = -1.2
    return q


def circle(robot, q, spin=(0.2, -0.3, 0.25)):
    """A circle of 5 cm about where the hand is, while it turns at a constant angular velocity."""
    X0 = robot.frame_pose(q, "right_hand")

    def reference(t):
        p = X0[:3, 3] + 0.05 * np.array([np.cos(2 * t) - 1.0, 0.0, np.sin(2 * t)])
        v = 0.1 * np.array([-np.sin(2 * t), 0.0, np.cos(2 * t)])
        R = Rotation.from_rotvec(np.array(spin) * t).as_matrix() @ X0[:3, :3]
        return pose(R, p), np.r_[v, spin]

    return reference


@pytest.mark.parametrize("chart", CHARTS, ids=lambda c: c.name if c else "shortest turn")
def test_an_error_decays_at_the_gain_and_the_reference_is_followed(robot, start, chart):
    reference = circle(robot, start)
    q = start.copy()
    q[7 + robot.joint_names.index("RARM_JOINT0")] += 0.05
    q[7 + robot.joint_names.index("RARM_JOINT4")] += 0.08
    found = track(robot, q, "right_hand", reference, duration=1.0, dt=2e-3, gain=10.0, rotation=chart, damping=0.0)
    assert found.error[0].min() > 0.01
    assert found.error[-1].max() < 1e-3 * found.error[0].max() + 2e-5  # exp(-10), and the drift of a step
    np.testing.assert_array_equal(found.q[:, :7], np.tile(q[:7], (501, 1)))
    half = found.error[50] / found.error[0]  # after 0.1 s
    np.testing.assert_allclose(half[0], (1 - 10 * 2e-3) ** 50, rtol=0.05)
    if chart is None:
        np.testing.assert_allclose(half[1], (1 - 10 * 2e-3) ** 50, rtol=0.05)


def test_without_feedback_the_error_stays(robot, start):
    q = start.copy()
    q[7 + robot.joint_names.index("RARM_JOINT0")] += 0.05
    found = track(robot, q, "right_hand", circle(robot, start), 0.5, 2e-3, gain=0.0)
    assert found.error[-1, 0] > 0.5 * found.error[0, 0]


def test_position_or_orientation_alone(robot, start):
    X, _ = circle(robot, start)(0.4)
    v = np.array([0.05, 0.02, -0.03, 0.3, -0.1, 0.2])
    J = robot.frame_jacobian(start, "right_hand")
    rate = tracking_velocity(robot, start, "right_hand", X[:3, 3], v, 5.0)
    np.testing.assert_allclose(
        J[:3] @ rate, v[:3] + 5.0 * (X[:3, 3] - robot.frame_pose(start, "right_hand")[:3, 3]), atol=1e-12
    )
    rate = tracking_velocity(robot, start, "right_hand", X[:3, :3], v, 5.0)
    turn = rotation_error(X[:3, :3], robot.frame_pose(start, "right_hand")[:3, :3])
    np.testing.assert_allclose(J[3:] @ rate, v[3:] + 5.0 * turn, atol=1e-12)


def test_gains_that_overshoot_are_refused(robot, start):
    with pytest.raises(InputError, match="expected 0 <= gain dt < 2"):
        track(robot, start, "right_hand", circle(robot, start), 1.0, 0.1, gain=30.0)


def test_a_start_that_is_none_is_refused(robot, start):
    for given in (start[:-1], "home", np.tile(start, (2, 1))):
        with pytest.raises(InputError, match="start"):
            track(robot, given, "tool", lambda t: (np.eye(4), np.zeros(6)), 0.1, 0.01)
    for options in ({"duration": np.inf}, {"duration": 0.1, "dt": "a"}, {"duration": 0.1, "gain": np.nan}):
        with pytest.raises(InputError, match="duration, dt and gain"):
            track(robot, start, "tool", lambda t: (np.eye(4), np.zeros(6)), **options)
