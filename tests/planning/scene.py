"""HRP-2 on a floor, for the tests of planning."""

import numpy as np

from mcplan.robot.robot_file import load_robot
from mcplan.scene.environment import Environment, Surface
from mcplan.scene.placement import make_contact

ROBOT = load_robot("hrp2")
CORNERS = np.array([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]])


def plane(name, p, size, R=None):
    return Surface(name, np.eye(3) if R is None else R, np.array(p, dtype=float), CORNERS * size)


ENVIRONMENT = Environment(
    surfaces=(plane("floor", [0, 0, 0], [4, 2]), plane("table", [0.65, 0, 0.73], [0.6, 1.2])),
)


def contact(patch, surface="floor", **place):
    return make_contact(ROBOT, ENVIRONMENT, {"patch": patch, "surface": surface, **place})


def feet(x=0.01):
    return contact("left_sole", x=x, y=0.095, yaw=0.0), contact("right_sole", x=x, y=-0.095, yaw=0.0)
