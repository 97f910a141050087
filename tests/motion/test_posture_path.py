import numpy as np
import pytest

from mcplan.motion.limb_path import PosturePath, Timing
from mcplan.motion.spline import PostureSpline
from mcplan.robot.robot_file import load_robot

LIFT, APPROACH = np.array([0.0, 0.0, 0.05]), np.array([-0.03, 0.0, 0.04])


@pytest.fixture(scope="module")
def robot():
    return load_robot("hrp2")


@pytest.fixture(scope="module", params=[0.0, 0.4], ids=["sharp", "round"])
def path(robot, request):
    timing = Timing(share=request.param)
    start = robot.posture("half_sitting")
    end = robot.integrate(start, 0.15 * np.random.default_rng(2).uniform(-1, 1, robot.nv), 1.0)
    posture = PostureSpline.to_rest(start, end, 1.5, start_time=1.2)
    X0, X1 = robot.frame_pose(start, "right_hand"), robot.frame_pose(end, "right_hand")
    goal = X1[:3, :3], X1[:3, 3] + 1e-3
    return (
        PosturePath(robot, "right_hand", posture, X0[:3, 3] + 2e-3, goal, LIFT, APPROACH, timing, 1.0, (1.0, 0.0)),
        X0[:3, 3] + 2e-3,
        goal,
    )


def test_it_leaves_where_the_patch_is_and_arrives_at_rest_where_it_should(path):
    trajectory, start, (R, p) = path
    first, last = trajectory.sample(1.0), trajectory.sample(trajectory.end_time - 1e-6)
    np.testing.assert_allclose(first.p, start, atol=1e-12)
    np.testing.assert_allclose(first.velocity, 0.0, atol=1e-9)
    np.testing.assert_allclose(last.p, p, atol=1e-9)
    np.testing.assert_allclose(last.R, R, atol=1e-9)
    np.testing.assert_allclose(last.velocity, 0.0, atol=1e-4)
    assert (first.tightness, last.tightness) == (1.0, 0.0)


def test_its_derivatives_are_those_of_its_pose(path):
    trajectory, step = path[0], 1e-5
    for t in np.linspace(1.02, trajectory.end_time - 0.02, 12):
        before, here, after = (trajectory.sample(t + k * step) for k in (-1, 0, 1))
        np.testing.assert_allclose((after.p - before.p) / (2 * step), here.velocity[:3], atol=1e-6)
        np.testing.assert_allclose((after.velocity - before.velocity) / (2 * step), here.acceleration, atol=3e-3)


def test_it_is_lifted_before_the_posture_moves_and_comes_down_along_the_normal_after(path):
    trajectory, start, _ = path
    np.testing.assert_allclose(np.cross(trajectory.sample(1.15).p - start, LIFT), 0.0, atol=1e-12)
    last = trajectory.sample(trajectory.approach_time + 0.3 * (trajectory.end_time - trajectory.approach_time))
    assert -(last.velocity[:3] @ APPROACH) == pytest.approx(
        np.linalg.norm(last.velocity[:3]) * np.linalg.norm(APPROACH)
    )


def test_it_meets_its_support_when_the_body_arrives(path):
    """The approach ends with the posture, and is over nothing but the normal from before that on."""
    trajectory = path[0]
    assert trajectory.end_time == pytest.approx(trajectory.posture.end_time)
    assert trajectory.approach_time < trajectory.end_time - 0.05
