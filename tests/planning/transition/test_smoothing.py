"""Joints stay inside their limits between knots, not at the knots alone."""

import numpy as np
import pytest

from mcplan.motion.spline import Spline
from mcplan.planning.transition.knots import move_off_limits
from mcplan.robot.robot_file import load_robot


def highest(q, joint):
    curve = Spline(np.arange(len(q) * 1.0), q[:, 7:])
    return max(float(curve.sample(t)[0][joint]) for t in np.linspace(0, len(q) - 1, 4001))


@pytest.mark.parametrize("shift", [0.0, 0.25, 0.5, 0.75])
def test_a_sharp_turn_near_a_limit_is_drawn_inside_wherever_its_top_is(shift):
    """The shape of an ankle that passed its limit by 2.3 mrad, 0.6 of the way from one knot to the next."""
    robot = load_robot("hrp2")
    joint = list(robot.joint_names).index("RLEG_JOINT5")
    below = np.array([0.30, 0.30, 0.19, 0.1834, 0.4352, 0.3074, 0.1391, 0.0506, 0.0345, 0.3898, 0.4348, 0.3851, 0.33])
    # the top moves along the piece as the knots beside it go up and down
    below[7] += 0.016 * (1 - 2 * shift)
    below[8] -= 0.016 * (1 - 2 * shift)
    limit = robot.limits.upper[joint]
    q = np.tile(robot.posture("half_sitting"), (len(below), 1))
    q[:, 7 + joint] = limit - below
    q[:, 7 + joint] += limit + 0.002 - highest(q, joint)
    drawn = q.copy()
    move_off_limits(robot, drawn)
    assert highest(drawn, joint) <= limit
    assert np.abs(drawn - q).max() < 0.02
    np.testing.assert_array_equal(drawn[[0, -1]], q[[0, -1]])
