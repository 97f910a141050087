import numpy as np
import pytest

from mcplan.core.rigid_body.tree import GRAVITY
from mcplan.motion.pendulum import Pendulum, frequency
from tests.statics.contacts import surface_contact

OMEGA, REST = 3.4, np.array([0.3, -0.1])
COM, VELOCITY = np.array([0.1, 0.02, 0.8]), np.array([0.5, -0.2, 0.3])


def capture_point(x):
    return x.value[:2] + x.velocity[:2] / OMEGA


def pressure(x):
    """Where the centre of pressure has to be for ``c'' = w² (c - u)``."""
    return x.value[:2] - x.acceleration[:2] / OMEGA**2


@pytest.mark.parametrize("rate", [-3.39, 0.0, 1.5])
def test_it_begins_as_the_robot_moves_and_keeps_its_height(rate):
    x = Pendulum(COM, VELOCITY, REST, OMEGA, rate, 2.0).sample(2.0)
    np.testing.assert_allclose(x.value, COM, atol=1e-12)
    np.testing.assert_allclose(x.velocity, [*VELOCITY[:2], 0.0], atol=1e-12)


@pytest.mark.parametrize("rate", [-3.39, 0.0, 1.5])
def test_its_derivatives_are_those_of_its_value(rate):
    path, h = Pendulum(COM, VELOCITY, REST, OMEGA, rate, 2.0), 1e-5
    before, here, after = (path.sample(2.3 + k * h) for k in (-1, 0, 1))
    np.testing.assert_allclose((after.value - before.value) / (2 * h), here.velocity, atol=1e-8)
    np.testing.assert_allclose((after.velocity - before.velocity) / (2 * h), here.acceleration, atol=1e-7)


@pytest.mark.parametrize("rate", [-3.39, 0.0, 1.5])
def test_its_capture_point_nears_or_leaves_the_point_at_the_rate_that_it_was_given(rate):
    path = Pendulum(COM, VELOCITY, REST, OMEGA, rate, 2.0)
    begin, later = (capture_point(path.sample(t)) - REST for t in (2.0, 2.4))
    np.testing.assert_allclose(later, begin * np.exp(-0.4 * rate), atol=1e-12)


def test_a_fall_has_its_pressure_at_its_pivot():
    path = Pendulum(COM, VELOCITY, REST, OMEGA, -0.999 * OMEGA, 2.0)
    off = np.abs(capture_point(path.sample(2.3)) - REST)
    assert np.all(np.abs(pressure(path.sample(2.3)) - REST) <= 0.0011 * off)


def test_with_no_rate_the_pressure_stays_at_the_capture_point_and_the_robot_comes_to_rest_there():
    path = Pendulum(COM, VELOCITY, REST, OMEGA, 0.0, 2.0)
    goal = COM[:2] + VELOCITY[:2] / OMEGA
    np.testing.assert_allclose(pressure(path.sample(2.5)), goal, atol=1e-12)
    np.testing.assert_allclose(path.sample(7.0).value[:2], goal, atol=1e-6)


@pytest.mark.parametrize("floor", [0.0, -0.3])
def test_its_frequency_is_that_of_its_height_above_the_lowest_contact(floor):
    """A hand on a table, or a foot on a step, does not make the robot fall faster."""
    foot, step, hand = (surface_contact(str(z), (0.2, z, floor + z)) for z in (0.0, 0.2, 0.7))
    com = COM + np.array([0.0, 0.0, floor])
    for contacts in ([foot], [foot, step], [step, foot], [foot, hand], [hand, step, foot]):
        assert frequency(com, contacts) == pytest.approx(np.sqrt(GRAVITY / COM[2]))
    assert frequency(com, [hand, step]) == pytest.approx(np.sqrt(GRAVITY / (COM[2] - 0.2)))
