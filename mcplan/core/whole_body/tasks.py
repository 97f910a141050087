"""Rows of the tasks in the whole-body program, from the dynamics terms and the tasks' packed numbers.

A task ``A vd = b`` has the cost ``sum_i w_i (A vd - b)_i^2``. Its parameters are ``sqrt(w) A`` and ``sqrt(w) b``; for a
diagonal task ``w`` and ``w b`` are added to the weight and to the pull (weight times target) of single accelerations.
"""

import math

from mcplan.core.algebra.rotation import rotation_error
from mcplan.core.jit import jit, jit_algebra
from mcplan.core.rigid_body.terms import (
    COM_BIAS,
    COM_POSITION,
    COM_VELOCITY,
    FRAME_BIAS,
    FRAME_P,
    FRAME_R,
    FRAME_VELOCITY,
    MOMENTUM,
    MOMENTUM_BIAS,
)
from mcplan.core.whole_body import layout as lay

COM, ANGULAR_MOMENTUM, LINK_POSE, POSTURE = range(4)
"""Codes of the tasks. Their numbers in ``values``, each followed by the weights of the selected rows:

================  ==============================================================================
COM               kp, kd, position, velocity, acceleration, 3 each
ANGULAR_MOMENTUM  kd, momentum, rate, 3 each
LINK_POSE         kp 6, kd 6, R 9 (row-major), p 3, velocity 6, acceleration 6
POSTURE           kp, kd, position, velocity, acceleration, n each
================  ==============================================================================
"""


@jit
def fill_task(task, values, q, v, rows, summary, J, frames, layout, theta, scratch):
    """Fill the rows of one task; return the constant part of its cost, which is not among the parameters.

    Parameters
    ----------
    task : its row in the table of tasks
    values : numbers of all tasks and contacts
    q, v, rows, summary, J, frames : as ``rigid_body.terms`` fills them
    layout, theta : see `layout`
    scratch : (32,)
    """
    x = values[task[lay.TASK_VALUES] :]
    b = scratch[:6]
    if task[lay.CODE] == POSTURE:
        return _fill_posture(x, q, v, layout, theta)
    if task[lay.CODE] == COM:
        _com_target(x, summary, b)
        _write_rows(task, x[15:], rows[6:], b, layout, theta)
    elif task[lay.CODE] == ANGULAR_MOMENTUM:
        for k in range(3):
            b[k] = x[6 + k] + x[k] * (x[3 + k] - summary[MOMENTUM + 3 + k]) - summary[MOMENTUM_BIAS + 3 + k]
        _write_rows(task, x[9:], rows[3:6], b, layout, theta)
    elif task[lay.CODE] == LINK_POSE:
        _link_pose_target(x, frames[task[lay.TASK_FRAME]], b, scratch[6:])
        _write_rows(task, x[36:], J[task[lay.TASK_FRAME]], b, layout, theta)
    return 0.0


@jit
def _com_target(x, summary, b):
    """Write ``b`` of the centre of mass: ``b = a* + kp (c* - c) + kd (v* - vc) - Jdot v``."""
    for k in range(3):
        b[k] = (
            x[12 + k]
            + x[k] * (x[6 + k] - summary[COM_POSITION + k])
            + x[3 + k] * (x[9 + k] - summary[COM_VELOCITY + k])
            - summary[COM_BIAS + k]
        )


@jit
def _link_pose_target(x, frame, b, scratch):
    """Write ``b`` of the pose of a frame: ``b = a* + kp e + kd (v* - J v) - Jdot v``, ``e = (p* - p, log(R* R'))``."""
    for k in range(3):
        b[k] = x[21 + k] - frame[FRAME_P + k]
    rotation_error(x[12:21], frame[FRAME_R:FRAME_P], scratch, b[3:])
    for k in range(6):
        b[k] = x[30 + k] + x[k] * b[k] + x[6 + k] * (x[24 + k] - frame[FRAME_VELOCITY + k]) - frame[FRAME_BIAS + k]


@jit_algebra
def _write_rows(task, weight, A, b, layout, theta):
    """Write the selected rows, times the square roots of their weights."""
    nv, total, first = layout[lay.NV], layout[lay.TASK_ROWS], task[lay.TASK_ROW]
    for i in range(task[lay.TASK_COUNT]):
        root, selected = math.sqrt(weight[i]), task[lay.SELECTED + i]
        theta[layout[lay.TASK_TARGET] + first + i] = root * b[selected]
        start = layout[lay.TASK_MATRIX] + first + i
        for j in range(nv):
            theta[start + total * j] = root * A[selected, j]


@jit_algebra
def _fill_posture(x, q, v, layout, theta):
    """Add ``w`` and ``w b`` of the posture, ``b = a* + kp (q* - q) + kd (v* - v)`` by joint; return ``sum w b^2``."""
    n = layout[lay.ACTUATED]
    weight, pull = layout[lay.ACCELERATION_WEIGHT] + 6, layout[lay.ACCELERATION_PULL] + 6
    constant = 0.0
    for k in range(n):
        b = x[4 * n + k] + x[k] * (x[2 * n + k] - q[7 + k]) + x[n + k] * (x[3 * n + k] - v[6 + k])
        w = x[5 * n + k]
        theta[weight + k] += w
        theta[pull + k] += w * b
        constant += w * b * b
    return constant
