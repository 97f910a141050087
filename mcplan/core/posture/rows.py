"""Constraint rows of a posture: their values at a configuration, and their derivatives along the manifold.

    contact     S log(X_t^-1 X(q)) = 0                         POSE: directions S of the patch relative to target X_t
                S R_t' (p - p_t) = 0                           POSITION: position only
                d . x = d . z = 0,  z . (e - p) = radius       LINE: a bar through e along d below the patch plane
                z_t . (p - p_t) = 0,  z_t . R u = 0            EDGE: an edge along u anywhere on its surface
    cell        low <= f <= high, with f by kind:
                a . [R_t' (p - p_t); log(R_t' R)]              RELATIVE_POSE: covector a of the pose in the target
                x . (e - p)                                    ACROSS_BAR: position of the bar along patch x
                d . (p - e)                                    ALONG_BAR: position along the bar
                m . R_t' R u                                   EDGE_DIRECTION: direction of the edge
                |p - p_t|                                      DISTANCE from the target
                |log(R_t' R)|                                  ANGLE from the target
                n . (p + R x)                                  POINT_HEIGHT: height along n of a point x in patch axes
    centre      a . c = d                                      centre of mass
    region      A c_xy <= b
    linear      L (q - q_0) >= l                               distances, torques: linearised by the caller at q_0

``X = (R, p)`` is the patch frame with axes x, y, z, ``X_t = (R_t, p_t)`` its target, ``c`` the centre of mass; see
`frame`.
"""

import math
from typing import NamedTuple

import numpy as np

from mcplan.core.jit import jit, jit_algebra
from mcplan.core.posture.frame import (
    cross_row,
    fill_right_jacobian,
    pose_logarithm,
    read_frame,
    rotation_covector,
    to_world,
    write_row,
)
from mcplan.core.rigid_body.com import com, com_jacobian, fill_com_jacobian
from mcplan.core.rigid_body.frame import fill_frame_jacobian
from mcplan.core.rigid_body.manifold import difference

POSE_ROWS, POSITION_ROWS, LINE_ROWS, EDGE_ROWS = range(4)
"""Modes of the rows of a contact."""

BODY, MODE, FIRST, COUNT = range(4)
"""Columns of ``PostureTargets.contact``: body, mode, first row of ``PostureTargets.select``, number of rows."""

TARGET, LINE_POINT, LINE_AXIS, LINE_RADIUS = 12, 12, 15, 18
"""Columns of ``PostureTargets.frame``. Columns 0 to 11: pose of the patch in the body. From column 12 on: rotation (9,
row-major) and position (3) of the target; for a line contact instead a point, the unit axis and the radius."""

CONTACT, KIND, COVECTOR, LOW, HIGH = 0, 1, 2, 8, 9
"""Columns of ``PostureTargets.cell``: contact, kind, covector (6), bounds."""

RELATIVE_POSE, ACROSS_BAR, ALONG_BAR, EDGE_DIRECTION, DISTANCE, ANGLE, POINT_HEIGHT = range(7)
"""Kinds of a cell row, see the module. A cell is the range of poses that a contact may have on its support; a cell row
bounds one quantity of it. The columns ``COVECTOR`` hold a (linear, angular), m and u, or n (world axes) and x."""


class PostureTargets(NamedTuple):
    """Constraints and cost of a posture search. All arrays are read-only and C-contiguous."""

    contact: np.ndarray  # (c, 4) int64, columns BODY .. COUNT
    frame: np.ndarray  # (c, 24)
    select: np.ndarray  # (e, 6) orthonormal rows in patch axes; of a line three unused rows, of an edge z and u
    cell: np.ndarray  # (k, 10), columns CONTACT .. HIGH
    centre: np.ndarray  # (e, 4) a, d of the rows of the centre of mass
    region: np.ndarray  # (r, 4) a_x, a_y, b; b of the region shrunk by the comfort margin
    linear: np.ndarray  # (l, nv + 1) L, l
    linear_q: np.ndarray  # (nq,) q_0
    guide: np.ndarray  # (nq,) preferred posture
    weight: np.ndarray  # (nv,) weight of the squared distance from it
    limit: np.ndarray  # (2, n) joint limits, reduced by the margin
    com_preference: np.ndarray  # (4,) preferred x, y of the centre of mass; weights of x, y and of the shrunk region


@jit
def row_count(task):
    """Return the number of rows, and the number of equalities, which come first."""
    equal = len(task.select) + len(task.centre)
    return equal + len(task.cell) + len(task.region) + len(task.linear), equal


@jit
def fill_bounds(task, low, high):
    """Write the bounds of all rows."""
    i = 0
    for _ in range(len(task.select)):
        low[i] = 0.0
        high[i] = 0.0
        i += 1
    for k in range(len(task.centre)):
        low[i] = task.centre[k, 3]
        high[i] = task.centre[k, 3]
        i += 1
    for k in range(len(task.cell)):
        low[i] = task.cell[k, LOW]
        high[i] = task.cell[k, HIGH]
        i += 1
    for k in range(len(task.region)):
        low[i] = -math.inf
        high[i] = task.region[k, 2]
        i += 1
    for k in range(len(task.linear)):
        low[i] = task.linear[k, task.linear.shape[1] - 1]
        high[i] = math.inf
        i += 1


@jit_algebra
def _direction(s, target, m, u, derivative):
    """Return ``m . R_t' R u`` and write its covector ``R u x R_t m``."""
    x = s.R[0, 0] * u[0] + s.R[0, 1] * u[1] + s.R[0, 2] * u[2]
    y = s.R[1, 0] * u[0] + s.R[1, 1] * u[1] + s.R[1, 2] * u[2]
    z = s.R[2, 0] * u[0] + s.R[2, 1] * u[1] + s.R[2, 2] * u[2]
    a = target[0] * m[0] + target[1] * m[1] + target[2] * m[2]
    b = target[3] * m[0] + target[4] * m[1] + target[5] * m[2]
    c = target[6] * m[0] + target[7] * m[1] + target[8] * m[2]
    if derivative:
        s.row[0] = 0.0
        s.row[1] = 0.0
        s.row[2] = 0.0
        s.row[3] = y * c - z * b
        s.row[4] = z * a - x * c
        s.row[5] = x * b - y * a
    return x * a + y * b + z * c


@jit_algebra
def _length_row(s, target, row_index, ax, ay, az, derivative, value, J):
    """Write the row of ``|p - p_t|``, from its components in the target's axes; at 0 its derivative is set to 0."""
    length = math.sqrt(ax * ax + ay * ay + az * az)
    value[row_index] = length
    if derivative:
        scale = 1.0 / length if length > 0.0 else 0.0
        to_world(target[:9].reshape((3, 3)), scale * ax, scale * ay, scale * az, 0.0, 0.0, 0.0, s.row)
        write_row(s, J, row_index)


@jit_algebra
def _point_row(s, cell, row_index, derivative, value, J):
    """Write the row of ``n . (p + R x)``, whose covector is ``n, R x cross n``."""
    n, x = cell[COVECTOR : COVECTOR + 3], cell[COVECTOR + 3 : COVECTOR + 6]
    for a in range(3):
        s.row[a] = s.R[a, 0] * x[0] + s.R[a, 1] * x[1] + s.R[a, 2] * x[2]
    rx, ry, rz = s.row[0], s.row[1], s.row[2]
    value[row_index] = n[0] * (s.p[0] + rx) + n[1] * (s.p[1] + ry) + n[2] * (s.p[2] + rz)
    if derivative:
        s.row[0], s.row[1], s.row[2] = n[0], n[1], n[2]
        s.row[3] = ry * n[2] - rz * n[1]
        s.row[4] = rz * n[0] - rx * n[2]
        s.row[5] = rx * n[1] - ry * n[0]
        write_row(s, J, row_index)


@jit_algebra
def _edge_rows(task, row_index, target, az, derivative, s, value, J):
    """Write the rows of an edge on a surface: its origin lies on the surface, its direction in the surface."""
    up, u = task.select[row_index, :3], task.select[row_index + 1, 3:]
    value[row_index] = az
    value[row_index + 1] = _direction(s, target, up, u, derivative)
    if derivative:
        write_row(s, J, row_index + 1)
        for a in range(3):
            s.row[a] = target[3 * a + 2]
            s.row[3 + a] = 0.0
        write_row(s, J, row_index)


@jit_algebra
def _line_rows(task, i, row_index, derivative, s, value, J):
    """Write the rows of a line contact: the bar is parallel to patch y, ``radius`` beyond the patch plane."""
    t = task.frame[i]
    dx, dy, dz = t[LINE_AXIS], t[LINE_AXIS + 1], t[LINE_AXIS + 2]
    ex, ey, ez = t[LINE_POINT] - s.p[0], t[LINE_POINT + 1] - s.p[1], t[LINE_POINT + 2] - s.p[2]
    value[row_index] = dx * s.R[0, 0] + dy * s.R[1, 0] + dz * s.R[2, 0]
    value[row_index + 1] = dx * s.R[0, 2] + dy * s.R[1, 2] + dz * s.R[2, 2]
    value[row_index + 2] = ex * s.R[0, 2] + ey * s.R[1, 2] + ez * s.R[2, 2] - t[LINE_RADIUS]
    if derivative:
        cross_row(s, 0, dx, dy, dz)
        write_row(s, J, row_index)
        cross_row(s, 2, dx, dy, dz)
        write_row(s, J, row_index + 1)
        cross_row(s, 2, ex, ey, ez)
        for a in range(3):
            s.row[a] = -s.R[a, 2]
        write_row(s, J, row_index + 2)


@jit_algebra
def _cell_row(task, k, row_index, derivative, ax, ay, az, s, value, J):
    """Write a cell row; ``(ax, ay, az)`` is the patch's position in the target's axes."""
    cell, t = task.cell[k], task.frame[int(task.cell[k, CONTACT])]
    kind = cell[KIND]
    if kind == RELATIVE_POSE:
        c = COVECTOR
        value[row_index] = (
            cell[c] * ax
            + cell[c + 1] * ay
            + cell[c + 2] * az
            + cell[c + 3] * s.xi[3]
            + cell[c + 4] * s.xi[4]
            + cell[c + 5] * s.xi[5]
        )
        if derivative:
            R = t[TARGET : TARGET + 9].reshape((3, 3))
            to_world(R, cell[c], cell[c + 1], cell[c + 2], 0.0, 0.0, 0.0, s.row)
            rotation_covector(s, cell[c + 3], cell[c + 4], cell[c + 5])
            write_row(s, J, row_index)
        return
    if kind == EDGE_DIRECTION:
        c = COVECTOR
        value[row_index] = _direction(s, t[TARGET:], cell[c : c + 3], cell[c + 3 : c + 6], derivative)
        if derivative:
            write_row(s, J, row_index)
        return
    if kind == DISTANCE:
        _length_row(s, t[TARGET:], row_index, ax, ay, az, derivative, value, J)
        return
    if kind == ANGLE:
        angle = math.sqrt(s.xi[3] * s.xi[3] + s.xi[4] * s.xi[4] + s.xi[5] * s.xi[5])
        value[row_index] = angle
        if derivative:
            scale = 1.0 / angle if angle > 0.0 else 0.0
            # the logarithm is the axis of its own derivative: J_r w = w
            to_world(s.R, 0.0, 0.0, 0.0, scale * s.xi[3], scale * s.xi[4], scale * s.xi[5], s.row)
            write_row(s, J, row_index)
        return
    if kind == POINT_HEIGHT:
        _point_row(s, cell, row_index, derivative, value, J)
        return
    dx, dy, dz = t[LINE_AXIS], t[LINE_AXIS + 1], t[LINE_AXIS + 2]
    ex, ey, ez = t[LINE_POINT] - s.p[0], t[LINE_POINT + 1] - s.p[1], t[LINE_POINT + 2] - s.p[2]
    if kind == ACROSS_BAR:
        value[row_index] = ex * s.R[0, 0] + ey * s.R[1, 0] + ez * s.R[2, 0]
        if derivative:
            cross_row(s, 0, ex, ey, ez)
            for a in range(3):
                s.row[a] = -s.R[a, 0]
            write_row(s, J, row_index)
    else:
        value[row_index] = -(ex * dx + ey * dy + ez * dz)
        if derivative:
            s.row[0], s.row[1], s.row[2] = dx, dy, dz
            s.row[3], s.row[4], s.row[5] = 0.0, 0.0, 0.0
            write_row(s, J, row_index)


@jit_algebra
def evaluate(tree, task, q, derivative, posed, work, s, value, J, c, J_c, away):
    """Write the values of all rows at q and, with ``derivative``, their derivatives.

    Parameters
    ----------
    tree, q, work : tree of the robot, configuration (nq,), and scratch of the forward kinematics.
    task : PostureTargets.
    derivative : bool; without it ``J`` and ``J_c`` do not change.
    posed : bool; whether ``work`` has the forward kinematics at q, from the last call.
    s : FrameScratch.
    value, J : (rows,), (rows, nv) out.
    c, J_c : (3,), (3, nv) out, centre of mass.
    away : (nv,) out, ``q - guide``; before that scratch for ``q - q_0``.
    """
    nv = len(away)
    if derivative and posed:
        fill_com_jacobian(tree, q, work, c, J_c)
    elif derivative:
        com_jacobian(tree, q, work, c, J_c)
    else:
        com(tree, q, work, c)
    first_cell = len(task.select) + len(task.centre)
    k = 0
    for i in range(len(task.contact)):
        mode, first, count = task.contact[i, MODE], task.contact[i, FIRST], task.contact[i, COUNT]
        body = task.contact[i, BODY]
        x, y, z = read_frame(body, task.frame[i, :12], q, work, s)
        if derivative:
            fill_frame_jacobian(tree, work, body, x, y, z, s.J)
        ax, ay, az = 0.0, 0.0, 0.0
        if mode == LINE_ROWS:
            _line_rows(task, i, first, derivative, s, value, J)
        else:
            target = task.frame[i, TARGET:]
            ax, ay, az = pose_logarithm(target, s)
            if mode == EDGE_ROWS:
                _edge_rows(task, first, target, az, derivative, s, value, J)
                count = 0  # already written
            elif mode == POSITION_ROWS:
                s.xi[0], s.xi[1], s.xi[2] = ax, ay, az
            elif derivative:
                fill_right_jacobian(s)
            for r in range(first, first + count):
                S = task.select[r]
                total = 0.0
                for a in range(6):
                    total += S[a] * s.xi[a]
                value[r] = total
                if derivative and mode == POSE_ROWS:
                    for a in range(6):
                        total = 0.0
                        for b in range(6):
                            total += S[b] * s.K[b, a]
                        s.ad[0, a] = total
                    m = s.ad[0]
                    to_world(s.R, m[0], m[1], m[2], m[3], m[4], m[5], s.row)
                    write_row(s, J, r)
                elif derivative:
                    R = target[:9].reshape((3, 3))
                    to_world(R, S[0], S[1], S[2], 0.0, 0.0, 0.0, s.row)
                    write_row(s, J, r)
        while k < len(task.cell) and task.cell[k, CONTACT] == i:
            _cell_row(task, k, first_cell + k, derivative, ax, ay, az, s, value, J)
            k += 1
    row_index = len(task.select)
    for r in range(len(task.centre)):
        total = 0.0
        for a in range(3):
            total += task.centre[r, a] * c[a]
        value[row_index + r] = total
        if derivative:
            for j in range(nv):
                total = 0.0
                for a in range(3):
                    total += task.centre[r, a] * J_c[a, j]
                J[row_index + r, j] = total
    row_index = first_cell + len(task.cell)
    for r in range(len(task.region)):
        a, b = task.region[r, 0], task.region[r, 1]
        value[row_index + r] = a * c[0] + b * c[1]
        if derivative:
            for j in range(nv):
                J[row_index + r, j] = a * J_c[0, j] + b * J_c[1, j]
    row_index += len(task.region)
    if len(task.linear):
        difference(task.linear_q, q, away)
        for r in range(len(task.linear)):
            total = 0.0
            for j in range(nv):
                total += task.linear[r, j] * away[j]
            value[row_index + r] = total
            if derivative:
                for j in range(nv):
                    J[row_index + r, j] = task.linear[r, j]
    difference(task.guide, q, away)
