"""The relative pose task against finite differences and against the second-order dynamics that it promises."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mcplan.whole_body.contact import ContactConstraint, rotation_error
from mcplan.whole_body.settings import QPSettings
from mcplan.whole_body.tasks.pose import RelativePoseTask
from mcplan.whole_body.whole_body import WholeBodyQP
from tests.whole_body.closed_loop import critically_damped, follow, rate
from tests.whole_body.conftest import contact_at, random_state, standing_tasks


def relative(terms, task):
    A, B = terms.frame(task.frame), terms.frame(task.reference)
    return B.R.T @ (A.p - B.p), B.R.T @ A.R


def aimed(task, state):
    task.p, task.R = relative(state.terms, task)
    return task


def test_no_error_and_no_wish_at_the_target(standing):
    task = aimed(RelativePoseTask("left_hand", "right_hand"), standing)
    np.testing.assert_allclose(task.error(standing.terms), 0, atol=1e-12)
    np.testing.assert_allclose(task.rows(standing.terms)[1], 0, atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_velocity_and_bias_are_derivatives(standing, seed):
    """v_BA is the rate of the pose, and J vd + bias that of v_BA, by differences along the motion."""
    standing.rng = np.random.default_rng(seed)
    random_state(standing)
    robot, terms, q, v = standing.robot, standing.terms, standing.q, standing.v
    task = RelativePoseTask("left_hand", "BODY")
    J, velocity, bias = (part.copy() for part in task.motion(terms))
    np.testing.assert_allclose(J @ v, velocity, atol=1e-12)
    np.testing.assert_allclose(rate(robot, terms, q, v, lambda t: relative(t, task)[0]), velocity[:3], atol=1e-8)
    R = relative(terms, task)[1].copy()
    turned = rate(robot, terms, q, v, lambda t: rotation_error(relative(t, task)[1], R))
    np.testing.assert_allclose(turned, velocity[3:], atol=1e-8)
    np.testing.assert_allclose(rate(robot, terms, q, v, lambda t: task.motion(t)[1]), bias, atol=1e-7)


@pytest.mark.parametrize("half", ["position", "orientation"])
def test_error_decays_as_promised(standing, half):
    """From rest the error falls as (1 + w t) exp(-w t), up to the integration's error of order dt."""
    task = aimed(RelativePoseTask("left_hand", "right_hand", half == "position", half == "orientation"), standing)
    task.p = task.p + np.array([0.03, -0.05, 0.06])
    task.R = Rotation.from_rotvec([0.2, -0.3, 0.2]).as_matrix() @ task.R
    times, errors, _, _ = follow(standing.robot, task, standing.q, standing.v, 0.4)
    expected = errors[0] * critically_damped(times, task.kp)[:, None]
    np.testing.assert_allclose(errors, expected, atol=0.02 * np.max(np.abs(errors[0])))
    assert np.linalg.norm(errors[-1]) < 5e-3 * np.linalg.norm(errors[0])


def test_moving_reference_is_followed_by_its_feed_forward(standing):
    """With the derivatives of the reference the error stays at the integration's: v+ = v + dt a is dt v late."""
    task = aimed(RelativePoseTask("left_hand", "BODY", orientation=False, kp=100.0), standing)
    start, size = task.p.copy(), np.array([0.04, 0.0, 0.05])

    def move(t):
        task.p = start + size * (1 - np.cos(5 * t))
        task.velocity[:3] = 5 * size * np.sin(5 * t)
        task.acceleration[:3] = 25 * size * np.cos(5 * t)

    _, errors, _, _ = follow(standing.robot, task, standing.q, standing.v, 0.5, before=move)
    assert np.max(np.abs(errors)) < 2e-3


def test_hands_keep_their_place_in_the_trunk_within_the_program(standing):
    """In the whole-body program the rows are met: a heavy weight gives the accelerations asked for."""
    task = aimed(RelativePoseTask("left_hand", "right_hand", weight=1e4), standing)
    task.acceleration[:] = [0.3, 0.1, 0.2, 0.4, 0.0, -0.2]
    contacts = [ContactConstraint(contact_at(standing.robot, p, standing.q)) for p in ("left_sole", "right_sole")]
    tasks = [*standing_tasks(standing), task]
    qp = WholeBodyQP(standing.robot, contacts, tasks, QPSettings())
    qp.update(standing.terms, contacts, tasks)
    s = qp.solve()
    assert s.ok, s.message
    J, _, bias = task.motion(standing.terms)
    np.testing.assert_allclose(J @ s.vd + bias, task.acceleration, atol=5e-3)


def test_neither_half_is_refused():
    with pytest.raises(ValueError, match="neither"):
        RelativePoseTask("a", "b", False, False)
