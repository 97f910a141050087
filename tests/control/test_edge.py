"""A contact along an edge: the controller lays the edge flat onto its support, from however it touched."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mcplan.control.handled import HandledObjects
from mcplan.control.held_contacts import align_with_support
from mcplan.control.motion import Motion
from mcplan.control.task_set import TaskSet
from mcplan.robot.robot_file import load_robot
from mcplan.robot.terms import Terms
from mcplan.scene.environment import Environment, Surface
from mcplan.scene.placement import make_contact
from mcplan.settings.control import ControlSettings

ROBOT = load_robot("hrp2")
SQUARE = np.array([[-2.0, -2.0], [2.0, -2.0], [2.0, 2.0], [-2.0, 2.0]])
SCENE = Environment((Surface("floor", np.eye(3), np.zeros(3), SQUARE),), (), (), ())
PATCHES = ["left_knee", "left_toe", "right_knee", "right_toe"]


@pytest.fixture(scope="module")
def kneeling():
    """A posture on knees and toes, and its contacts."""
    q, contacts = ROBOT.posture("kneel"), []
    for patch in PATCHES:
        X = ROBOT.frame_pose(q, patch)
        place = {"x": X[0, 3], "y": X[1, 3], "yaw": np.arctan2(X[1, 0], X[0, 0])}
        contacts.append(make_contact(ROBOT, SCENE, {"patch": patch, "surface": "floor", **place}))
    return q, contacts


def direction(R, contact):
    """Direction of an edge (3,)."""
    edge = R @ (contact.points[1] - contact.points[0])
    return edge / np.linalg.norm(edge)


def test_an_edge_is_levelled_by_the_least_turn(kneeling):
    contact = kneeling[1][0]
    flat = direction(contact.R, contact)
    R = Rotation.from_rotvec(0.03 * np.cross(flat, contact.normal)).as_matrix() @ contact.R
    assert abs(direction(R, contact) @ contact.normal) == pytest.approx(np.sin(0.03))
    np.testing.assert_allclose(align_with_support(R, contact), contact.R, atol=1e-12)
    np.testing.assert_allclose(align_with_support(contact.R, contact), contact.R, atol=1e-12)


@pytest.mark.parametrize("roll", [-0.02, 0.02])
def test_edges_that_touched_with_one_end_are_turned_down_to_the_other(kneeling, roll):
    """The whole robot leans to a side: as it touched, so it would stay, were it not for the support."""
    q, contacts = kneeling
    settings = ControlSettings().under("mujoco")
    motion = Motion(ROBOT, SCENE, settings, q)
    lean = np.zeros(ROBOT.nv)
    lean[3] = roll
    terms = Terms(ROBOT, [ROBOT.link_names[0], *PATCHES])
    terms.update(ROBOT.integrate(q, lean, 1.0), np.zeros(ROBOT.nv))
    for contact in contacts:
        frame = terms.frame(contact.patch)
        motion.close(contact, -1.0, 0.0, place=(frame.R.copy(), frame.p.copy()))
    plan = SimpleNamespace(stances=(), scenario=SimpleNamespace(robot=ROBOT, environment=SCENE))
    tasks = TaskSet(ROBOT, SCENE, settings, 1e-3, q, HandledObjects(plan, settings))
    tasks.follow(0.0, terms, motion)
    solution = tasks.solve(0.0, terms, motion)
    for contact in contacts:
        frame = terms.frame(contact.patch)
        edge = direction(frame.R, contact)
        turn = frame.J[3:] @ solution.vd + frame.bias[3:]
        height = edge @ contact.normal
        assert abs(height) > 0.01
        assert np.cross(turn, edge) @ contact.normal == pytest.approx(-settings.gains.contact_kp * height, rel=0.02)
