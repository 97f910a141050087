"""A step of HRP-2 past an obstacle, for the tests of ways."""

import numpy as np

from mcplan.collision.model import CollisionModel
from mcplan.planning.posture.generator import PostureGenerator
from mcplan.robot.description import Box
from mcplan.robot.robot_file import load_robot
from mcplan.scene.environment import Environment, Obstacle, Surface
from mcplan.scene.placement import make_contact


def step_past(size, centre):
    """Robot, environment, contacts (standing, left, reached) and the postures at both ends of a step of 0.36 m.

    The right foot stands; the left one steps past a box of this size (m) at ``centre``.
    """
    robot = load_robot("hrp2")
    square = np.array([[-2, -2], [2, -2], [2, 2], [-2, 2.0]])
    bar = Obstacle("bar", Box(size), np.eye(3), np.array(centre))
    environment = Environment((Surface("floor", np.eye(3), np.zeros(3), square),), (), (bar,), ())

    def sole(patch, x, y):
        return make_contact(robot, environment, {"patch": patch, "surface": "floor", "x": x, "y": y, "yaw": 0.0})

    right, before, after = (
        sole("right_sole", 0.0, -0.095), sole("left_sole", 0.0, 0.095), sole("left_sole", 0.36, 0.095),
    )  # fmt: skip
    generator = PostureGenerator(robot, environment, collisions=CollisionModel(robot, environment))
    found = [
        generator.generate([right, left], ["right_sole"], robot.posture("half_sitting")) for left in (before, after)
    ]
    assert all(posture.found for posture in found)
    return robot, environment, right, before, after, found[0].q, found[1].q
