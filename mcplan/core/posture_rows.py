"""The constraints of a posture as rows: their values at a configuration and their derivatives along the manifold.

    contact     S log(X_t^-1 X(q)) = 0                         POSE: directions S of the patch against the target X_t
                S R_t' (p - p_t) = 0                           PLACE: the position alone counts
                d . x = d . z = 0,  z . (e - p) = radius       LINE: a bar through e along d below the patch plane
                z_t . (p - p_t) = 0,  z_t . R u = 0            EDGE: an edge along u anywhere on its surface
    cell        low <= a . [R_t' (p - p_t); log(R_t' R)] <= high,   or of a line  x . (e - p),  d . (p - e),
                or of an edge  m . R_t' R u
    region      A c_xy <= b                                    centre of mass
    linear      L (q - q_0) >= l                               distances, torques: linearised by the caller

``X = (R, p)`` is the patch frame with axes x, y, z. Each row is a world covector (linear, angular) at the patch origin
times the frame's Jacobian.
"""

import math
from typing import NamedTuple

import numpy as np

from mcplan.core.com import com, com_jacobian
from mcplan.core.frame import fill_frame_jacobian, frame_arm
from mcplan.core.jit import jit, jit_algebra
from mcplan.core.manifold import difference
from mcplan.core.rotation import rotation_log
from mcplan.core.tree import POSE

POSE_ROWS, PLACE_ROWS, LINE_ROWS, EDGE_ROWS = range(4)
"""How the rows of a contact are made."""

BODY, MODE, FIRST, COUNT = range(4)
"""Columns of ``Task.contact``: body, mode, first row of ``Task.select``, rows there."""

TARGET, LINE_POINT, LINE_AXIS, LINE_RADIUS = 12, 12, 15, 18
"""Columns of ``Task.frame``: the patch in the body (12), then the target rotation (9, row-major) and position (3), or
of a line a point, the unit axis and the radius."""

OWNER, KIND, COVECTOR, LOW, HIGH = 0, 1, 2, 8, 9
"""Columns of ``Task.cell``: contact, kind (0 of a pose, 1 offset and 2 along of a line, 3 direction of an edge),
covector (6; of an edge m and u), bounds."""


class Task(NamedTuple):
    """A posture to find. All arrays are read-only and C-contiguous."""

    contact: np.ndarray  # (c, 4) int64, columns BODY .. COUNT
    frame: np.ndarray  # (c, 24)
    select: np.ndarray  # (e, 6) orthonormal rows in patch axes; of a line three without meaning, of an edge z, u
    cell: np.ndarray  # (k, 10), columns OWNER .. HIGH
    region: np.ndarray  # (r, 3) a_x, a_y, b
    linear: np.ndarray  # (l, nv + 1) L, l
    linear_q: np.ndarray  # (nq,) q_0
    guide: np.ndarray  # (nq,) the posture that is preferred
    weight: np.ndarray  # (nv,) price of the squared distance to it
    limit: np.ndarray  # (2, n) joint limits, less the margin
    hint: np.ndarray  # (3,) place of the centre of mass that is preferred, and its price


class Frame(NamedTuple):
    """Scratch for one frame."""

    J: np.ndarray  # (6, nv)
    R: np.ndarray  # (3, 3)
    relative: np.ndarray  # (3, 3)
    quat: np.ndarray  # (4,)
    xi: np.ndarray  # (6,)
    K: np.ndarray  # (6, 6) inverse right Jacobian
    ad: np.ndarray  # (6, 6)
    ad2: np.ndarray  # (6, 6)
    p: np.ndarray  # (3,)
    row: np.ndarray  # (6,) covector


def frame_scratch(nv: int) -> Frame:
    """Allocate it."""
    shapes = ((6, nv), (3, 3), (3, 3), (4,), (6,), (6, 6), (6, 6), (6, 6), (3,), (6,))
    return Frame(*(np.zeros(shape) for shape in shapes))


@jit
def row_count(task):
    """Return the number of rows and how many of them, at the front, are equalities."""
    equal = len(task.select)
    return equal + len(task.cell) + len(task.region) + len(task.linear), equal


@jit
def fill_bounds(task, low, high):
    """Write the bounds of all rows."""
    i = 0
    for _ in range(len(task.select)):
        low[i] = 0.0
        high[i] = 0.0
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
def _read_frame(task, i, q, work, s):
    """Write rotation ``s.R`` and position ``s.p`` of contact i's patch; return its position from the base origin."""
    body = task.contact[i, BODY]
    offset = task.frame[i, :12]
    x, y, z = frame_arm(work, body, offset)
    for a in range(3):
        for b in range(3):
            s.R[a, b] = (
                work[body, POSE + 3 * a] * offset[b]
                + work[body, POSE + 3 * a + 1] * offset[3 + b]
                + work[body, POSE + 3 * a + 2] * offset[6 + b]
            )
    s.p[0] = q[0] + x
    s.p[1] = q[1] + y
    s.p[2] = q[2] + z
    return x, y, z


@jit_algebra
def _logarithm(target, s):
    """Write ``xi = log(X_t^-1 X)`` and ``K = J_r(xi)^-1`` to the fourth power of xi (Barfoot 2017, §7.1.5).

    The linear part before the logarithm, ``R_t' (p - p_t)``, is returned.
    """
    px, py, pz = s.p[0] - target[9], s.p[1] - target[10], s.p[2] - target[11]
    ax = target[0] * px + target[3] * py + target[6] * pz
    ay = target[1] * px + target[4] * py + target[7] * pz
    az = target[2] * px + target[5] * py + target[8] * pz
    for a in range(3):
        for b in range(3):
            s.relative[a, b] = target[a] * s.R[0, b] + target[3 + a] * s.R[1, b] + target[6 + a] * s.R[2, b]
    rotation_log(s.relative, s.quat, s.xi[3:6])
    wx, wy, wz = s.xi[3], s.xi[4], s.xi[5]
    square = wx * wx + wy * wy + wz * wz
    if square < 1e-8:
        factor = 1.0 / 12.0 + square / 720.0
    else:
        angle = math.sqrt(square)
        half = 0.5 * angle
        factor = (1.0 - half * math.cos(half) / math.sin(half)) / square
    cx, cy, cz = wy * az - wz * ay, wz * ax - wx * az, wx * ay - wy * ax
    s.xi[0] = ax - 0.5 * cx + factor * (wy * cz - wz * cy)
    s.xi[1] = ay - 0.5 * cy + factor * (wz * cx - wx * cz)
    s.xi[2] = az - 0.5 * cz + factor * (wx * cy - wy * cx)
    return ax, ay, az


@jit_algebra
def _right_jacobian(s):
    """Write ``K = 1 + ad / 2 + ad^2 / 12 - ad^4 / 720`` of ``s.xi``."""
    ad, ad2, K = s.ad, s.ad2, s.K
    for a in range(6):
        for b in range(6):
            ad[a, b] = 0.0
    for block in range(2):
        o = 3 * block
        ad[o, o + 1], ad[o, o + 2] = -s.xi[5], s.xi[4]
        ad[o + 1, o], ad[o + 1, o + 2] = s.xi[5], -s.xi[3]
        ad[o + 2, o], ad[o + 2, o + 1] = -s.xi[4], s.xi[3]
    ad[0, 4], ad[0, 5] = -s.xi[2], s.xi[1]
    ad[1, 3], ad[1, 5] = s.xi[2], -s.xi[0]
    ad[2, 3], ad[2, 4] = -s.xi[1], s.xi[0]
    for a in range(6):
        for b in range(6):
            total = 0.0
            for k in range(6):
                total += ad[a, k] * ad[k, b]
            ad2[a, b] = total
    for a in range(6):
        for b in range(6):
            total = 0.0
            for k in range(6):
                total += ad2[a, k] * ad2[k, b]
            K[a, b] = 0.5 * ad[a, b] + ad2[a, b] / 12.0 - total / 720.0
        K[a, a] += 1.0


@jit_algebra
def _write(s, J, i):
    """Write row i of J: the covector ``s.row`` times the frame's Jacobian."""
    a, b, c, d, e, f = s.row[0], s.row[1], s.row[2], s.row[3], s.row[4], s.row[5]
    for k in range(J.shape[1]):
        J[i, k] = a * s.J[0, k] + b * s.J[1, k] + c * s.J[2, k] + d * s.J[3, k] + e * s.J[4, k] + f * s.J[5, k]


@jit_algebra
def _to_world(R, lx, ly, lz, ax, ay, az, row):
    """Write the covector given in the axes R (its rows are those of the matrix, row-major or as an array)."""
    for a in range(3):
        row[a] = R[a, 0] * lx + R[a, 1] * ly + R[a, 2] * lz
        row[3 + a] = R[a, 0] * ax + R[a, 1] * ay + R[a, 2] * az


@jit_algebra
def _cross_row(s, column, ux, uy, uz):
    """Write the covector of ``u . axis``, with axis a column of the frame: angular part ``axis x u``."""
    x, y, z = s.R[0, column], s.R[1, column], s.R[2, column]
    s.row[0] = 0.0
    s.row[1] = 0.0
    s.row[2] = 0.0
    s.row[3] = y * uz - z * uy
    s.row[4] = z * ux - x * uz
    s.row[5] = x * uy - y * ux


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
def _edge_rows(task, at, target, az, derivative, s, value, J):
    """Rows of an edge that may lie anywhere on its surface: its origin is on it, and its direction lies in it."""
    up, u = task.select[at, :3], task.select[at + 1, 3:]
    value[at] = az
    value[at + 1] = _direction(s, target, up, u, derivative)
    if derivative:
        _write(s, J, at + 1)
        for a in range(3):
            s.row[a] = target[3 * a + 2]
            s.row[3 + a] = 0.0
        _write(s, J, at)


@jit_algebra
def _line_rows(task, i, at, derivative, s, value, J):
    """Rows of a line contact: the bar is parallel to patch y, ``radius`` beyond the patch plane."""
    t = task.frame[i]
    dx, dy, dz = t[LINE_AXIS], t[LINE_AXIS + 1], t[LINE_AXIS + 2]
    ex, ey, ez = t[LINE_POINT] - s.p[0], t[LINE_POINT + 1] - s.p[1], t[LINE_POINT + 2] - s.p[2]
    value[at] = dx * s.R[0, 0] + dy * s.R[1, 0] + dz * s.R[2, 0]
    value[at + 1] = dx * s.R[0, 2] + dy * s.R[1, 2] + dz * s.R[2, 2]
    value[at + 2] = ex * s.R[0, 2] + ey * s.R[1, 2] + ez * s.R[2, 2] - t[LINE_RADIUS]
    if derivative:
        _cross_row(s, 0, dx, dy, dz)
        _write(s, J, at)
        _cross_row(s, 2, dx, dy, dz)
        _write(s, J, at + 1)
        _cross_row(s, 2, ex, ey, ez)
        for a in range(3):
            s.row[a] = -s.R[a, 2]
        _write(s, J, at + 2)


@jit_algebra
def _cell_row(task, k, at, derivative, ax, ay, az, s, value, J):
    """One bound on where in its cell the patch is; ``(ax, ay, az)`` is its position in the target's axes."""
    cell, t = task.cell[k], task.frame[int(task.cell[k, OWNER])]
    if cell[KIND] == 0.0:
        c = COVECTOR
        value[at] = (
            cell[c] * ax
            + cell[c + 1] * ay
            + cell[c + 2] * az
            + cell[c + 3] * s.xi[3]
            + cell[c + 4] * s.xi[4]
            + cell[c + 5] * s.xi[5]
        )
        if derivative:
            _to_world(
                t[TARGET : TARGET + 9].reshape((3, 3)),
                cell[c], cell[c + 1], cell[c + 2], cell[c + 3], cell[c + 4], cell[c + 5], s.row,
            )  # fmt: skip
            _write(s, J, at)
        return
    if cell[KIND] == 3.0:
        c = COVECTOR
        value[at] = _direction(s, t[TARGET:], cell[c : c + 3], cell[c + 3 : c + 6], derivative)
        if derivative:
            _write(s, J, at)
        return
    dx, dy, dz = t[LINE_AXIS], t[LINE_AXIS + 1], t[LINE_AXIS + 2]
    ex, ey, ez = t[LINE_POINT] - s.p[0], t[LINE_POINT + 1] - s.p[1], t[LINE_POINT + 2] - s.p[2]
    if cell[KIND] == 1.0:
        value[at] = ex * s.R[0, 0] + ey * s.R[1, 0] + ez * s.R[2, 0]
        if derivative:
            _cross_row(s, 0, ex, ey, ez)
            for a in range(3):
                s.row[a] = -s.R[a, 0]
            _write(s, J, at)
    else:
        value[at] = -(ex * dx + ey * dy + ez * dz)
        if derivative:
            s.row[0], s.row[1], s.row[2] = dx, dy, dz
            s.row[3], s.row[4], s.row[5] = 0.0, 0.0, 0.0
            _write(s, J, at)


@jit_algebra
def evaluate(tree, task, q, derivative, work, s, value, J, c, J_c, away):
    """Write the values of all rows at q and, if asked, their derivatives.

    Parameters
    ----------
    derivative : bool; otherwise ``J`` and ``J_c`` are left alone.
    s : Frame scratch.
    value, J : (rows,), (rows, nv) out.
    c, J_c : (3,), (3, nv) out, centre of mass.
    away : (nv,) out, ``q - guide``.
    """
    nv = len(away)
    if derivative:
        com_jacobian(tree, q, work, c, J_c)
    else:
        com(tree, q, work, c)
    cells = len(task.select)
    k = 0
    for i in range(len(task.contact)):
        mode, first, count = task.contact[i, MODE], task.contact[i, FIRST], task.contact[i, COUNT]
        x, y, z = _read_frame(task, i, q, work, s)
        if derivative:
            fill_frame_jacobian(tree, work, task.contact[i, BODY], x, y, z, s.J)
        ax, ay, az = 0.0, 0.0, 0.0
        if mode == LINE_ROWS:
            _line_rows(task, i, first, derivative, s, value, J)
        else:
            target = task.frame[i, TARGET:]
            ax, ay, az = _logarithm(target, s)
            if mode == EDGE_ROWS:
                _edge_rows(task, first, target, az, derivative, s, value, J)
                count = 0
            elif mode == PLACE_ROWS:
                s.xi[0], s.xi[1], s.xi[2] = ax, ay, az
            elif derivative:
                _right_jacobian(s)
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
                    _to_world(s.R, m[0], m[1], m[2], m[3], m[4], m[5], s.row)
                    _write(s, J, r)
                elif derivative:
                    R = target[:9].reshape((3, 3))
                    _to_world(R, S[0], S[1], S[2], 0.0, 0.0, 0.0, s.row)
                    _write(s, J, r)
        while k < len(task.cell) and task.cell[k, OWNER] == i:
            _cell_row(task, k, cells + k, derivative, ax, ay, az, s, value, J)
            k += 1
    at = cells + len(task.cell)
    for r in range(len(task.region)):
        a, b = task.region[r, 0], task.region[r, 1]
        value[at + r] = a * c[0] + b * c[1]
        if derivative:
            for j in range(nv):
                J[at + r, j] = a * J_c[0, j] + b * J_c[1, j]
    at += len(task.region)
    if len(task.linear):
        difference(task.linear_q, q, away)
        for r in range(len(task.linear)):
            total = 0.0
            for j in range(nv):
                total += task.linear[r, j] * away[j]
            value[at + r] = total
            if derivative:
                for j in range(nv):
                    J[at + r, j] = task.linear[r, j]
    difference(task.guide, q, away)
