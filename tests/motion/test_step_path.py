import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mcplan.motion.limb_path import StepPath

UP = np.array([0.0, 0.0, 1.0])
START = np.eye(3), np.array([0.0, 0.1, 0.02])
END = Rotation.from_euler("z", 0.3).as_matrix(), np.array([0.3, 0.15, 0.0])


@pytest.fixture
def path():
    return StepPath(START, END, UP, 0.05, 0.4, 0.1, 1.0)


def test_it_goes_from_its_start_over_a_bump_to_its_place_and_on_down(path):
    for t, p in ((1.0, START[1]), (1.2, [0.15, 0.125, 0.06]), (1.4, END[1]), (1.6, END[1] - 0.02 * UP)):
        np.testing.assert_allclose(path.sample(t).p, p, atol=1e-9)
    np.testing.assert_allclose(path.sample(1.4).R, END[0], atol=1e-12)
    np.testing.assert_allclose(path.sample(1.5).velocity[:3], -0.1 * UP)


@pytest.mark.parametrize("t", [1.05, 1.2, 1.31, 1.5])
def test_its_derivatives_are_those_of_its_place(path, t):
    h = 1e-5
    before, here, after = (path.sample(t + k * h) for k in (-1, 0, 1))
    np.testing.assert_allclose((after.p - before.p) / (2 * h), here.velocity[:3], atol=1e-6)
    np.testing.assert_allclose((after.velocity - before.velocity) / (2 * h), here.acceleration, atol=2e-4)


def test_aimed_elsewhere_it_goes_on_as_it_moves_and_arrives_there_at_the_same_time(path):
    before = path.sample(1.15)
    goal = END[0], END[1] + [0.1, -0.02, 0.01]
    path.aim(goal, 1.15)
    after = path.sample(1.15)
    np.testing.assert_allclose(after.p, before.p, atol=1e-12)
    np.testing.assert_allclose(after.velocity, before.velocity, atol=1e-12)
    np.testing.assert_allclose(after.acceleration, before.acceleration, atol=1e-9)
    np.testing.assert_allclose(path.sample(1.4).p, goal[1], atol=1e-9)


@pytest.mark.parametrize("later", [1.3, 1.4, 1.5])
def test_what_was_asked_before_it_was_aimed_elsewhere_does_not_matter(path, later):
    """Neither a time that is still to come nor the one of the aim."""
    goal = END[0], END[1] + [0.1, -0.02, 0.01]
    asked, fresh = path, StepPath(START, END, UP, 0.05, 0.4, 0.1, 1.0)
    asked.sample(later)
    for each in (asked, fresh):
        each.aim(goal, 1.15)
    for found, expected in zip(asked.sample(later), fresh.sample(later), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert np.linalg.norm(asked.sample(later).p - StepPath(START, END, UP, 0.05, 0.4, 0.1, 1.0).sample(later).p) > 0.01


def test_from_the_air_it_goes_on_as_the_foot_moves():
    velocity = np.array([0.5, -0.2, 0.1])
    path = StepPath(START, END, UP, 0.05, 0.4, 0.1, 1.0, velocity)
    np.testing.assert_allclose(path.sample(1.0).velocity[:3], velocity, atol=1e-12)
    np.testing.assert_allclose(path.sample(1.0).p, START[1], atol=1e-12)
    np.testing.assert_allclose(path.sample(1.4).p, END[1], atol=1e-12)
    np.testing.assert_allclose(path.sample(1.4 - 1e-9).velocity[:3], 0.0, atol=1e-6)
