"""Inverse differential kinematics: S1 example 2.9.1 number by number, and what each inverse minimises."""

import numpy as np
import pytest
from scipy.optimize import lsq_linear, minimize

from mcplan.errors import InputError
from mcplan.textbook.kinematics import (
    VelocityTask,
    damped_inverse,
    null_space,
    prioritised,
    pseudo_inverse,
    stacked,
    weighted_inverse,
    with_null_space,
)
from tests.textbook.kinematics.arms import at, planar_arm


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """The two tasks of example 2.9.1: move the tool by (1, 1) m/s, keep the first two joints still."""
    robot = planar_arm(tmp_path_factory.mktemp("arms"))
    q = at(robot, [np.pi / 6, np.pi / 3, np.pi / 3])
    J = robot.frame_jacobian(q, "tool")[[0, 2], 6:]
    return VelocityTask(J, np.ones(2)), VelocityTask(np.eye(3)[:2], np.zeros(2))


def squared(error):
    return float(error @ error)


def test_the_jacobian_of_the_example(example):
    """Eq. 2.211."""
    expected = 0.5 * np.array([[0, -np.sqrt(3), -np.sqrt(3)], [-4, -3, -1]])
    np.testing.assert_allclose(example[0].J, expected, atol=1e-14)


def test_the_single_task(example):
    """Eq. 2.212, 2.221, 2.222."""
    rate = pseudo_inverse(example[0].J) @ example[0].w
    np.testing.assert_allclose(rate, [0.069, -0.560, -0.595], atol=5e-4)
    np.testing.assert_allclose(example[0].error(rate), 0.0, atol=1e-14)
    assert squared(example[1].error(rate)) == pytest.approx(0.319, abs=5e-4)


def test_tasks_side_by_side(example):
    """Eq. 2.217 to 2.220."""
    rate = stacked(example)
    np.testing.assert_allclose(rate, [-0.133, -0.067, -1.132], atol=5e-4)
    found = np.concatenate([task.J @ rate for task in example])
    np.testing.assert_allclose(found, [1.039, 0.933, -0.133, -0.067], atol=5e-4)
    assert squared(example[0].error(rate)) == pytest.approx(0.0059, abs=1e-4)
    # the document prints 0.0223; 0.133^2 + 0.067^2 of its own numbers is 0.0222
    assert squared(example[1].error(rate)) == pytest.approx(0.0223, abs=1e-4)


def test_tasks_in_order(example):
    """Eq. 2.224 to 2.227."""
    N1 = np.array([[1, -2, 2], [-2, 4, -4], [2, -4, 4]]) / 9
    np.testing.assert_allclose(null_space(example[0].J), N1, atol=1e-14)
    rate = prioritised(example)
    np.testing.assert_allclose(rate, [-0.169, -0.085, -1.070], atol=5e-4)
    np.testing.assert_allclose(example[0].error(rate), 0.0, atol=1e-14)
    assert squared(example[1].error(rate)) == pytest.approx(0.036, abs=5e-4)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_the_pseudo_inverse_is_numpys(rng):
    for shape, rank in (((3, 7), 3), ((7, 3), 3), ((6, 6), 6), ((5, 7), 2)):
        J = rng.normal(size=(shape[0], rank)) @ rng.normal(size=(rank, shape[1]))
        np.testing.assert_allclose(pseudo_inverse(J), np.linalg.pinv(J), atol=1e-12)


def test_the_damped_inverse_minimises_error_and_rate(rng):
    """A plus before the damping: with the minus that eq. 2.195 prints this would be no minimum."""
    J, w, damping = rng.normal(size=(3, 7)), rng.normal(size=3), 0.3
    expected = lsq_linear(np.vstack([J, damping * np.eye(7)]), np.r_[w, np.zeros(7)], tol=1e-14).x
    np.testing.assert_allclose(damped_inverse(J, damping) @ w, expected, atol=1e-9)
    singular = np.outer([1.0, 2.0, 3.0], rng.normal(size=7))
    assert np.linalg.norm(damped_inverse(singular, 0.1) @ w) < np.linalg.norm(w) / 0.2


def test_weights_minimise_the_weighted_error(rng):
    J, w, weights = rng.normal(size=(6, 3)), rng.normal(size=6), rng.uniform(0.1, 10, 6)
    best = minimize(lambda x: np.sum(weights * (w - J @ x) ** 2), np.zeros(3), tol=1e-12).x
    np.testing.assert_allclose(weighted_inverse(J, weights) @ w, best, atol=1e-5)
    tasks = [VelocityTask(J[:2], w[:2]), VelocityTask(J[2:], w[2:])]
    spread = np.repeat([3.0, 0.5], [2, 4])
    np.testing.assert_allclose(stacked(tasks, [3.0, 0.5]), weighted_inverse(J, spread) @ w, atol=1e-12)


def test_the_null_space_moves_no_task(rng):
    J, w, wish = rng.normal(size=(3, 7)), rng.normal(size=3), rng.normal(size=7)
    rate = with_null_space(VelocityTask(J, w), wish)
    np.testing.assert_allclose(J @ rate, w, atol=1e-13)
    # of all rates that do the task it is the nearest to the wish
    other = rate + null_space(J) @ rng.normal(size=7)
    assert np.linalg.norm(other - wish) > np.linalg.norm(rate - wish)


@pytest.mark.parametrize("damping", [0.0, 0.2])
def test_priorities_never_disturb_what_came_before(rng, damping):
    for _ in range(20):
        tasks = [VelocityTask(rng.normal(size=(m, 9)), rng.normal(size=m)) for m in (3, 2, 6)]
        alone = prioritised(tasks[:2], damping)
        all_three = prioritised(tasks, damping)
        for task in tasks[:2]:
            np.testing.assert_allclose(task.J @ all_three, task.J @ alone, atol=1e-12)
        if not damping:
            np.testing.assert_allclose(tasks[0].error(all_three), 0.0, atol=1e-12)
            np.testing.assert_allclose(tasks[1].error(all_three), 0.0, atol=1e-11)
            # the third is as good as it can be with the first two kept
            fixed = np.vstack([tasks[0].J, tasks[1].J])
            basis = np.linalg.svd(fixed)[2][5:].T
            best = alone + basis @ np.linalg.lstsq(tasks[2].J @ basis, tasks[2].error(alone), rcond=None)[0]
            np.testing.assert_allclose(tasks[2].error(all_three), tasks[2].error(best), atol=1e-11)


def test_a_task_that_says_the_opposite_of_the_first_is_ignored(rng):
    J = rng.normal(size=(2, 5))
    rate = prioritised([VelocityTask(J, np.ones(2)), VelocityTask(J, -np.ones(2))])
    np.testing.assert_allclose(J @ rate, 1.0, atol=1e-13)


def test_tasks_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match=r"a task has a Jacobian \(2, 3\) and a velocity \(3,\)"):
        VelocityTask(np.zeros((2, 3)), np.zeros(3))
    with pytest.raises(InputError, match="Jacobians of tasks: none; expected at least one"):
        stacked([])


@pytest.mark.parametrize("weights", [[1.0], [1.0, -1.0], [1.0, np.nan], "ab", [[1.0], [1.0, 2.0]]])
def test_weights_that_are_none_are_refused(weights):
    task = VelocityTask(np.eye(3), np.zeros(3))
    with pytest.raises(InputError, match="weights"):
        stacked([task, task], weights)


def test_what_is_no_jacobian_is_refused():
    for J in ([[1.0, 2.0], [1.0]], "J", [[np.nan, 1.0]], np.zeros((2, 2, 2))):
        with pytest.raises(InputError, match="J"):
            pseudo_inverse(J)
    with pytest.raises(InputError, match="w of a task"):
        VelocityTask(np.eye(2), "ab")
    with pytest.raises(InputError, match=r"damping has the shape \(3,\); expected one number or 1"):
        prioritised([VelocityTask(np.eye(2), [1.0, 2.0])], [0.1, 0.1, 0.1])
