"""The angular momentum that a planned motion has about its centre of mass."""

import numpy as np

from mcplan.model.robot import Robot
from mcplan.motion.spline import Rates, Spline
from mcplan.planning.transition.transition import Segment

STEP = 1e-3
"""Part of its time within which a motion that does not begin or end at rest is looked at for the derivatives there."""


def spin_along(robot: Robot, segment: Segment) -> Spline:
    """Return the angular momentum about the centre of mass along a segment, per unit of its rate.

    It is zero at rest, and so are its derivatives there.
    """
    h = STEP * segment.duration
    begin = None if segment.begin is None else _rates(_spin(robot, segment, h * np.arange(3)), h)
    finish = None
    if segment.finish is not None:
        finish = _rates(_spin(robot, segment, segment.duration - h * np.arange(3)), -h)
    return Spline(segment.times, _spin(robot, segment, segment.times), begin, finish)


def _spin(robot: Robot, segment: Segment, s: np.ndarray) -> np.ndarray:
    samples = [segment.posture.sample(at) for at in s.tolist()]
    maps = robot.centroidal_momentum_matrix(np.array([x.q for x in samples]))[:, 3:]
    return np.einsum("kij,kj->ki", maps, np.array([x.v for x in samples]))


def _rates(y: np.ndarray, h: float) -> Rates:
    """Return the derivatives of a curve at the first of three places h apart."""
    return (-1.5 * y[0] + 2.0 * y[1] - 0.5 * y[2]) / h, (y[0] - 2.0 * y[1] + y[2]) / h**2
