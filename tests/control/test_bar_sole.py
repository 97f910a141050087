"""A sole that stands on a bar: the controller keeps its angle, and its friction turns along where it rolls."""

from types import SimpleNamespace

import numpy as np
import pytest

from mcplan.control.handled import HandledObjects
from mcplan.control.motion import Motion
from mcplan.control.task_set import TaskSet
from mcplan.planning.posture.generator import PostureGenerator
from mcplan.robot.robot_file import load_robot
from mcplan.robot.terms import Terms
from mcplan.scene.environment import Bar, Environment, Surface
from mcplan.scene.placement import make_contact
from mcplan.settings.control import ControlSettings

ROBOT = load_robot("hrp2")
SQUARE = np.array([[-2.0, -2.0], [2.0, -2.0], [2.0, 2.0], [-2.0, 2.0]])
RUNG = Bar("rung", np.array([[0.2, -0.3, 0.1], [0.2, 0.0, 0.1]]), 0.015, 0.7)
SCENE = Environment((Surface("floor", np.eye(3), np.zeros(3), SQUARE),), (RUNG,), (), ())


@pytest.mark.parametrize("pitch", [-0.1, 0.1])
def test_a_sole_that_has_rolled_is_turned_back_and_pushes_along_its_own_normal(pitch):
    left = {"patch": "left_sole", "surface": "floor", "x": 0.01, "y": 0.095, "yaw": 0.0}
    right = {"patch": "right_sole", "surface": "rung", "along": 0.2, "offset": 0.02, "angle": 0.0, "flip": True}
    contacts = tuple(make_contact(ROBOT, SCENE, spec) for spec in (left, right))
    q = PostureGenerator(ROBOT, SCENE).generate(contacts, None, ROBOT.posture("half_sitting")).q
    settings = ControlSettings()
    motion = Motion(ROBOT, SCENE, settings, q)
    for contact in contacts:
        motion.close(contact, -1.0, 0.0)
    plan = SimpleNamespace(stances=(), scenario=SimpleNamespace(robot=ROBOT, environment=SCENE))
    tasks = TaskSet(ROBOT, SCENE, settings, 1e-3, q, HandledObjects(plan, settings))
    rolled = q.copy()
    rolled[7 + ROBOT.joint_names.index("RLEG_JOINT4")] += pitch
    terms = Terms(ROBOT, [ROBOT.link_names[0], "left_sole", "right_sole"])
    terms.update(rolled, np.zeros(ROBOT.nv))
    tasks.follow(0.0, terms, motion)
    solution = tasks.solve(0.0, terms, motion)
    frame, force = terms.frame("right_sole"), solution.wrenches["right_sole"][:3]
    turn = frame.R @ contacts[1].R.T
    axis = np.array([turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]])
    assert (frame.J[3:] @ solution.vd + frame.bias[3:]) @ axis < 0.0
    normal = -frame.R[:, 2] @ force
    assert normal > 0.0
    assert np.linalg.norm(force + normal * frame.R[:, 2]) <= 0.7 * normal + 1e-5
    assert np.allclose(tasks.held._closed_contacts["right_sole"].constraint.axes[:, 2], -frame.R[:, 2], atol=1e-12)
