"""Capture points of a robot, and what of them its controller asks."""

import numpy as np
import pytest

from mcplan.core.motion.balance import capture_point_depth, capture_point_error
from mcplan.core.rigid_body.terms import COM_POSITION, COM_VELOCITY, MOMENTUM, SUMMARY_SIZE
from mcplan.core.rigid_body.tree import GRAVITY


def centroidal(com, velocity, momentum=(0.0, 0.0, 0.0)):
    """Return centre of mass, its velocity and the angular momentum as the terms hold them."""
    summary = np.zeros(SUMMARY_SIZE)
    summary[COM_POSITION : COM_POSITION + 3], summary[COM_VELOCITY : COM_VELOCITY + 3] = com, velocity
    summary[MOMENTUM + 3 : MOMENTUM + 6] = momentum
    return summary


@pytest.mark.parametrize(("lost", "height", "ground"), [(0.0, 0.8, 0.0), (0.05, 0.8, 0.0), (-0.05, 0.2, -0.3)])
def test_a_robot_is_behind_by_what_its_capture_point_is(lost, height, ground):
    """An inverted pendulum of this height that is stopped there stands still above that point."""
    state = centroidal([0.098, 0.0, height + ground], [0.2 - lost, 0.0, 0.0])
    reference = np.array([0.1, 0.0, height + ground]), np.array([0.2, 0.0, 0.0])
    error = capture_point_error(state, *reference, ground, 1.0)
    assert error == pytest.approx(abs(-0.002 - lost * np.sqrt(height / GRAVITY)), abs=1e-12)


def test_the_depth_of_a_capture_point_is_its_distance_from_the_nearest_edge_and_counts_turning():
    """Angular momentum L about the centre of mass displaces it by w / (m g) (L_y, -L_x)."""
    edges = np.array([[1.0, 0.0, 0.1], [-1.0, 0.0, 0.1], [0.0, 1.0, 0.05], [0.0, -1.0, 0.05]])
    w, weight = np.sqrt(GRAVITY / 0.7), 500.0
    resting, moving = centroidal([0.02, 0.01, 0.9], np.zeros(3)), centroidal([0.02, 0.01, 0.9], [0.05 * w, 0.0, 0.0])
    turning = centroidal([0.02, 0.01, 0.9], np.zeros(3), np.array([0.08, 0.0, 0.0]) * weight / w)
    depths = [capture_point_depth(state, 0.2, 1.0, weight, edges) for state in (resting, moving, turning)]
    assert depths == pytest.approx([0.04, 0.03, 0.05 - 0.07])
