"""The camera looks past the environment."""

import numpy as np

from mcplan.scene import Environment, Surface
from mcplan.view.drawing import Drawing
from mcplan.view.environment import set_stage

PATH = np.array([[0.0, 0.0, 0.8], [0.1, 0.0, 0.8]])


def wall(name, R, p):
    corners = np.array([[-2.0, -2.0], [2.0, -2.0], [2.0, 2.0], [-2.0, 2.0]])
    return Surface(name, R, np.array(p), corners, 0.05, 0.7)


def test_it_stands_in_front_on_the_left_when_nothing_is_in_the_way():
    drawing = Drawing()
    set_stage(drawing, PATH, Environment())
    target, eye = drawing.camera
    assert np.all(eye[:2] > target[:2])


def test_a_wall_on_the_left_makes_it_look_from_the_right():
    drawing = Drawing()
    along_x = np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])  # its normal is -y
    set_stage(drawing, PATH, Environment(surfaces=(wall("left", along_x, [0.0, 0.6, 0.8]),)))
    target, eye = drawing.camera
    assert eye[1] < target[1]
