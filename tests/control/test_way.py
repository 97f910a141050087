"""Ways continue the references that hold when they begin."""

import numpy as np
import pytest

from mcplan.control.posture import PostureTrajectory
from mcplan.control.quintic import Quintic
from mcplan.control.way import Start, WayFinder
from mcplan.model.robot_file import load_robot
from mcplan.planning.posture.transit import TransitFinder
from mcplan.scene.environment import Environment, Surface
from mcplan.scene.place import make_contact
from mcplan.scene.settings import ControlSettings

SQUARE = np.array([[-2.0, -2.0], [2.0, -2.0], [2.0, 2.0], [-2.0, 2.0]])


@pytest.fixture(scope="module")
def scene():
    """HRP-2 in half sitting on a floor."""
    robot, environment = load_robot("hrp2"), Environment((Surface("floor", np.eye(3), np.zeros(3), SQUARE),))
    soles = [("left_sole", 0.095), ("right_sole", -0.095)]
    contacts = tuple(
        make_contact(robot, environment, {"patch": patch, "surface": "floor", "x": 0.0, "y": y, "yaw": 0.0})
        for patch, y in soles
    )
    return robot, environment, contacts, robot.posture("half_sitting")


def test_a_centre_of_mass_that_was_left_beside_its_posture_comes_back_without_haste(scene):
    robot, environment, contacts, q = scene
    aside, duration = np.array([0.0, 0.08, 0.0]), 2.0
    start = Start(Quintic(robot.com(q) + aside, robot.com(q) + aside, 1.0).sample(1.0),
                  PostureTrajectory(q, q, 1.0).sample(1.0), q)  # fmt: skip
    finder = WayFinder(robot, ControlSettings(), TransitFinder(robot, environment))
    way = finder.find(start, 0.0, duration, contacts)
    np.testing.assert_allclose(way.com.sample(0.0).value, robot.com(q) + aside, atol=1e-9)
    np.testing.assert_allclose(way.com.sample(duration).value, robot.com(q), atol=1e-9)
    speeds = [np.linalg.norm(way.com.sample(t).velocity) for t in np.linspace(0.0, duration, 101)]
    assert max(speeds) < 1.05 * 15 / 8 * 0.08 / duration  # that of a minimum-jerk motion
    assert way.stretch == 1.0
