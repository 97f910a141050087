"""Balance: capture point, its distance from that of a reference, its depth in a support region; speed of contacts."""

import math

from mcplan.core.jit import jit
from mcplan.core.rigid_body.terms import COM_POSITION, COM_VELOCITY, FRAME_VELOCITY, MOMENTUM
from mcplan.core.rigid_body.tree import GRAVITY

MIN_COM_HEIGHT_M = 0.1
"""Lower bound of the CoM height above the lowest contact (m, for a robot of HRP-2's size)."""


@jit
def pendulum_frequency(height, size):
    """Return w (1/s), ``w² = g / z``, at a CoM height z (m); ``size`` is relative to HRP-2."""
    return math.sqrt(GRAVITY / max(height, size * MIN_COM_HEIGHT_M))


@jit
def capture_point_error(summary, com, velocity, ground, size):
    """Return the distance (m) between the capture points of the robot and of a reference.

    It is the norm of ``e + e' / w`` with the CoM error e. It shows the speed lost in an impact at once, long before the
    CoM is off.

    Parameters
    ----------
    summary : as ``rigid_body.terms`` fills it
    com, velocity : (3,) of the reference
    ground : height of the lowest contact (m)
    size : of the robot, relative to HRP-2
    """
    w = pendulum_frequency(summary[COM_POSITION + 2] - ground, size)
    total = 0.0
    for k in range(3):
        error = summary[COM_POSITION + k] - com[k] + (summary[COM_VELOCITY + k] - velocity[k]) / w
        total += error * error
    return math.sqrt(total)


@jit
def capture_point_depth(summary, ground, size, weight, edges):
    """Return the smallest distance (m) of the capture point from the lines of a region's edges; negative outside.

    Parameters
    ----------
    summary, ground, size : as for ``capture_point_error``
    weight : of the robot (N)
    edges : (k, 3) rows a (2), b of the half planes ``a . xi <= b``
    """
    w = pendulum_frequency(summary[COM_POSITION + 2] - ground, size)
    factor = w / weight
    x = summary[COM_POSITION] + summary[COM_VELOCITY] / w + factor * summary[MOMENTUM + 4]
    y = summary[COM_POSITION + 1] + summary[COM_VELOCITY + 1] / w - factor * summary[MOMENTUM + 3]
    depth = math.inf
    for k in range(len(edges)):
        depth = min(depth, edges[k, 2] - (edges[k, 0] * x + edges[k, 1] * y))
    return depth


@jit
def largest_speed(frames, index, factor):
    """Return the largest product of a factor (k,) and the speed ``|(v, w)|`` of a frame, of frames ``index`` (k,).

    ``frames`` are the values of all frames as ``rigid_body.terms`` fills them.
    """
    largest = 0.0
    for k in range(len(index)):
        total = 0.0
        for i in range(FRAME_VELOCITY, FRAME_VELOCITY + 6):
            total += frames[index[k], i] ** 2
        largest = max(largest, factor[k] * math.sqrt(total))
    return largest
