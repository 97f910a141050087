"""Contacts with free directions, as scenarios declare them: a foot that slides along x, a hand that turns on a bar."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mcplan.scene.environment import Bar, Environment, Surface
from mcplan.scene.placement import make_contact
from mcplan.whole_body.contact import ContactConstraint, rotation_error
from mcplan.whole_body.tasks.pose import LinkPoseTask
from mcplan.whole_body.tasks.posture import PostureTask
from tests.whole_body.closed_loop import ticks
from tests.whole_body.conftest import standing_tasks

CORNERS = np.array([[-2.0, -2.0], [2.0, -2.0], [2.0, 2.0], [-2.0, 2.0]])


def contact(state, patch, **spec):
    """The contact that a scenario would make of the patch where it is: on the floor, or on a bar along the grip's y."""
    frame = state.terms.frame(patch)
    if patch.endswith("sole"):
        environment = Environment(surfaces=(Surface("floor", np.eye(3), np.array([0, 0, frame.p[2]]), CORNERS),))
        spec["surface"] = "floor"
    else:
        ends = frame.p + np.array([[-0.3], [0.3]]) * frame.R[:, 1]
        environment, spec["surface"] = Environment(bars=(Bar("bar", ends, 0.015),)), "bar"
    return ContactConstraint(make_contact(state.robot, environment, {"patch": patch, **spec}, (frame.R, frame.p)))


def frame_at_start(state, patch):
    frame = state.terms.frame(patch)
    return frame.R.copy(), frame.p.copy()


@pytest.mark.parametrize("slide", [True, False])
def test_a_sliding_foot_moves_along_x_only_and_bears_no_force_along_it(standing, slide):
    left = contact(standing, "left_sole", **({"slide": ["x"]} if slide else {}))
    right = contact(standing, "right_sole")
    R, p = frame_at_start(standing, "left_sole")
    right_R, right_p = frame_at_start(standing, "right_sole")
    pull = LinkPoseTask("left_sole", orientation=False, weight=100.0, kp=60.0)
    pull.p = p + [0.05, 0.0, 0.0] @ R.T
    carried = []
    for tick in ticks(standing, [left, right], [*standing_tasks(standing), pull], 900):
        foot, w, f = (
            tick.terms.frame("left_sole"),
            tick.wrenches["left_sole"],
            tick.unknowns["left_sole"].reshape(-1, 3),
        )
        carried.append(f[:, 2].sum())
        if slide:
            assert abs(w[:3] @ R[:, 0]) < 1e-6
        assert np.all(np.hypot(f[:, 0], f[:, 1]) <= left.friction * f[:, 2])
        np.testing.assert_allclose(R.T @ (foot.p - p) * [not slide, 1, 1], 0, atol=1e-5)
        np.testing.assert_allclose(rotation_error(R, foot.R), 0, atol=1e-5)
    assert min(carried) > 50
    assert R[:, 0] @ (foot.p - p) == pytest.approx(0.05 if slide else 0.0, abs=3e-3)
    np.testing.assert_allclose(tick.terms.frame("right_sole").p, right_p, atol=1e-5)
    np.testing.assert_allclose(tick.terms.frame("right_sole").R, right_R, atol=1e-5)


@pytest.mark.parametrize("hinge", [True, False])
def test_a_hand_turns_on_its_bar_only_by_a_hinge_and_bears_no_moment_about_it(standing, hinge):
    """The grip is asked to turn by 0.15 rad about the bar; its place and the bar's direction in it stay."""
    grip = contact(standing, "left_grip", **({"hinge": "y"} if hinge else {}))
    contacts = [contact(standing, "left_sole"), contact(standing, "right_sole"), grip]
    R, p = frame_at_start(standing, "left_grip")
    turn = LinkPoseTask("left_grip", position=False, weight=100.0, kp=60.0)
    turn.R = R @ Rotation.from_euler("y", 0.15).as_matrix()
    tasks = [*standing_tasks(standing), turn, PostureTask(standing.q[7:], weight=1e-3)]
    moments = []
    for tick in ticks(standing, contacts, tasks, 900):
        hand = tick.terms.frame("left_grip")
        moments.append(abs(tick.wrenches["left_grip"][3:] @ hand.R[:, 1]))
        np.testing.assert_allclose(hand.p, p, atol=1e-5)
        np.testing.assert_allclose(hand.R[:, 1], R[:, 1], atol=1e-5)
    angle = rotation_error(hand.R, R) @ R[:, 1]
    if hinge:
        assert max(moments) < 1e-9
        assert angle > 0.1
    else:
        assert max(moments) > 0.01
        assert abs(angle) < 1e-4
