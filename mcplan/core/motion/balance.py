"""Balance: capture point, its distance from that of a reference, its depth in a support region; speed of contacts."""

import math

from mcplan.core.jit import jit
from mcplan.core.rigid_body.terms import COM_POSITION, COM_VELOCITY, FRAME_R, FRAME_VELOCITY, MOMENTUM
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
def sliding_speeds(frames, index, B, normal, turns, speed):
    """Compute the speeds with which contacts slide along their supports; return the largest (m/s).

    It is the tangential part of the velocity of a contact's centre, ``v_c = B (v, w)``.

    Parameters
    ----------
    frames : values of all frames as ``rigid_body.terms`` fills them
    index : (k,) frames of the contacts
    B : (k, 3, 6) velocity of the centre from that of the frame, in the directions that the contact constrains
    normal : (k, 3) of the supports
    turns : (k, 2) whether B, and the normal, are given in the axes of the frame; else in world axes
    speed : (k,) out
    """
    largest = 0.0
    for k in range(len(index)):
        frame = frames[index[k]]
        v, w = frame[FRAME_VELOCITY : FRAME_VELOCITY + 3], frame[FRAME_VELOCITY + 3 : FRAME_VELOCITY + 6]
        along, square, n = 0.0, 0.0, normal[k]
        # in the axes of B the normal is R n, R'n or n, and the length of the velocity is the same
        for i in range(3):
            component, n_i = 0.0, n[i]
            for j in range(3):
                v_j, w_j = v[j], w[j]
                if turns[k, 0]:
                    v_j = frame[FRAME_R + j] * v[0] + frame[FRAME_R + 3 + j] * v[1] + frame[FRAME_R + 6 + j] * v[2]
                    w_j = frame[FRAME_R + j] * w[0] + frame[FRAME_R + 3 + j] * w[1] + frame[FRAME_R + 6 + j] * w[2]
                component += B[k, i, j] * v_j + B[k, i, 3 + j] * w_j
            if turns[k, 0] and not turns[k, 1]:
                n_i = frame[FRAME_R + i] * n[0] + frame[FRAME_R + 3 + i] * n[1] + frame[FRAME_R + 6 + i] * n[2]
            elif turns[k, 1] and not turns[k, 0]:
                first = FRAME_R + 3 * i
                n_i = frame[first] * n[0] + frame[first + 1] * n[1] + frame[first + 2] * n[2]
            along += component * n_i
            square += component * component
        speed[k] = math.sqrt(max(square - along * along, 0.0))
        largest = max(largest, speed[k])
    return largest
