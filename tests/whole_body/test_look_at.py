"""The look-at task against finite differences and the second-order dynamics of the angle that it promises."""

import numpy as np
import pytest

from mcplan.robot.terms import Terms
from mcplan.whole_body.tasks.look_at import LookAtTask
from tests.whole_body.closed_loop import critically_damped, follow, rate
from tests.whole_body.conftest import random_state

EYE = [0.1, 0.0, 0.05]


def angle(terms, task, target):
    link = terms.frame(task.frame)
    d = target - link.p - link.R @ task.eye
    return np.arccos(np.clip((link.R @ task.axis) @ d / np.linalg.norm(d), -1, 1))


def test_the_error_is_the_angle_and_zero_on_target(standing):
    task, link = LookAtTask("BODY", eye=EYE), standing.terms.frame("BODY")
    for _ in range(10):
        task.target = link.p + standing.rng.normal(size=3)
        assert np.linalg.norm(task.error(standing.terms)) == pytest.approx(angle(standing.terms, task, task.target))
    task.target = link.p + link.R @ (task.eye + 2 * task.axis)
    np.testing.assert_allclose(task.error(standing.terms), 0, atol=1e-12)
    np.testing.assert_allclose(task.rows(standing.terms)[1], 0, atol=1e-12)


def test_a_target_behind_or_in_the_eye_is_no_accident(standing):
    """At 180 degrees the error is half a turn, also next to it; in the eye itself the rows stay finite."""
    task, link = LookAtTask("BODY", eye=EYE), standing.terms.frame("BODY")
    for offset in (0.0, 1e-12, 1e-7, 1e-3):
        task.target = link.p + link.R @ (task.eye - task.axis + [0, offset, 0])
        assert np.linalg.norm(task.error(standing.terms)) == pytest.approx(np.pi, abs=2e-3)
    task.target = link.p + link.R @ task.eye
    A, b = task.rows(standing.terms)
    assert np.all(np.isfinite(A))
    assert np.all(np.isfinite(b))


@pytest.mark.parametrize("target_frame", [None, "left_hand"])
@pytest.mark.parametrize("seed", range(2))
def test_motion_is_the_derivative(standing, seed, target_frame):
    """The angle falls at the rate that the rows say, and J vd + c is the rate of w - w_s."""
    standing.rng = np.random.default_rng(seed)
    random_state(standing)
    robot, terms, q, v = standing.robot, standing.terms, standing.q, standing.v
    task = LookAtTask("BODY", [1, 0.2, 0], EYE, target_frame)
    task.target = np.array([0.02, 0.01, 0.1]) if target_frame else np.array([0.8, 0.4, 1.0])
    J, relative, bias = (part.copy() for part in task.motion(terms))
    np.testing.assert_allclose(J @ v, relative + np.zeros(3), atol=1e-12)
    e = task.error(terms)
    B = terms.frame("BODY").R @ task._plane
    closing = -float(e @ (B.T @ relative)) / np.linalg.norm(e)
    assert rate(robot, terms, q, v, lambda t: np.linalg.norm(task.error(t))) == pytest.approx(closing, abs=1e-7)
    np.testing.assert_allclose(rate(robot, terms, q, v, lambda t: task.motion(t)[1]), bias, atol=1e-6)

    # the rows themselves: their rate with the link's axes turning
    def y(t):
        return (t.frame("BODY").R @ task._plane).T @ task.motion(t)[1]

    task.kp = 0.0
    _, b = task.rows(terms)
    np.testing.assert_allclose(rate(robot, terms, q, v, y), -b - task.kd * y(terms), atol=1e-6)


@pytest.mark.parametrize("start", [0.7, 2.0, np.pi])
def test_angle_decays_as_promised(standing, start):
    """From rest the angle falls as (1 + w t) exp(-w t), from straight behind as well."""
    task, link = LookAtTask("BODY", eye=EYE), standing.terms.frame("BODY")
    direction = np.cos(start) * task.axis + np.sin(start) * np.array([0, 0.6, 0.8])
    task.target = link.p + link.R @ (task.eye + direction)
    times, errors, _, _ = follow(standing.robot, task, standing.q, standing.v, 1.0)
    angles = np.linalg.norm(errors, axis=1)
    np.testing.assert_allclose(angles, start * critically_damped(times, task.kp), atol=0.02 * start)
    assert angles[-1] < 2e-3 * start


def test_a_moving_target_is_followed(standing):
    """With the target's velocity and acceleration the angle stays small although nothing pulls it back."""
    task, link = LookAtTask("BODY", eye=EYE, kp=25.0), standing.terms.frame("BODY")
    start = link.p + link.R @ (task.eye + 0.8 * task.axis)

    def move(t):
        task.target = start + np.array([0, 0.3, 0.1]) * (1 - np.cos(3 * t))
        task.velocity = 3 * np.array([0, 0.3, 0.1]) * np.sin(3 * t)
        task.acceleration = 9 * np.array([0, 0.3, 0.1]) * np.cos(3 * t)

    _, errors, _, _ = follow(standing.robot, task, standing.q, standing.v, 0.6, before=move)
    assert np.max(np.abs(errors)) < 3e-3


def test_an_axis_without_direction_is_refused(hrp2):
    with pytest.raises(ValueError, match="no direction"):
        LookAtTask("BODY", [0, 0, 0])
    assert LookAtTask("BODY", target_frame="left_hand").frames == ("BODY", "left_hand")
    Terms(hrp2, LookAtTask("BODY", target_frame="left_hand").frames)
