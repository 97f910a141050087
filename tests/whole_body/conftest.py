from types import SimpleNamespace

import numpy as np
import pytest

from mcplan.robot.terms import Terms
from mcplan.scene.contact import Contact
from mcplan.whole_body.tasks.com import AngularMomentumTask, ComTask
from mcplan.whole_body.tasks.pose import LinkPoseTask
from mcplan.whole_body.tasks.posture import PostureTask

FRAMES = ("left_sole", "right_sole", "left_hand", "right_hand", "left_grip", "BODY")


def contact_at(robot, patch, q, kind="surface", friction=0.7, selection=None, **options):
    """A contact of a patch where it is at q."""
    terms = Terms(robot, [patch])
    terms.update(q, np.zeros(robot.nv))
    frame, points = terms.frame(patch), robot.patches[patch].points
    n = -frame.R[:, 2]
    axes = frame.R if kind == "grasp" else np.column_stack([frame.R[:, 0], np.cross(n, frame.R[:, 0]), n])
    if kind != "surface":
        points = np.zeros((1, 3))
    if selection is None:
        selection = np.eye(6)[:3] if kind == "point" else np.eye(6)
    values = {"max_force": np.inf, "max_moment": np.inf} | options
    return Contact(patch, "here", kind, frame.R, frame.p, points, axes, friction, selection=selection, **values)


@pytest.fixture
def standing(hrp2):
    """HRP-2 in half-sitting, with terms for its soles and hands."""
    q, v = hrp2.posture("half_sitting"), np.zeros(hrp2.nv)
    terms = Terms(hrp2, FRAMES)
    terms.update(q, v)
    return SimpleNamespace(robot=hrp2, q=q, v=v, terms=terms, rng=np.random.default_rng(7))


def standing_tasks(state, com_shift=(0.0, 0.0, 0.0), swing=None):
    """The tasks of a controller that keeps the posture of the state, its CoM shifted."""
    com, trunk = ComTask(), LinkPoseTask("BODY", position=False, weight=5, kp=100)
    com.position = state.terms.com + np.array(com_shift)
    trunk.R = state.terms.frame("BODY").R.copy()
    return [com, PostureTask(state.q[7:]), trunk, AngularMomentumTask()]


def random_state(state, size=1.0):
    """Move the state at random near half-sitting."""
    rng, robot = state.rng, state.robot
    v = size * np.r_[0.1 * rng.normal(size=3), 0.2 * rng.normal(size=3), 0.3 * rng.normal(size=robot.n)]
    state.q, state.v = robot.integrate(robot.posture("half_sitting"), v, 0.3), v
    state.terms.update(state.q, state.v)
