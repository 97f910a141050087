"""Pose error of one frame and rows of its Jacobian, from which the constraint rows of a posture are built.

``X = (R, p)`` is the patch frame with axes x, y, z, ``X_t = (R_t, p_t)`` its target. A row is a world covector
(linear, angular) at the patch origin times the frame's Jacobian.
"""

import math
from typing import NamedTuple

import numpy as np

from mcplan.core.algebra.rotation import rotation_log
from mcplan.core.jit import jit_algebra
from mcplan.core.rigid_body.frame import frame_arm
from mcplan.core.rigid_body.tree import POSE


class FrameScratch(NamedTuple):
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


def frame_scratch(nv: int) -> FrameScratch:
    """Allocate the scratch."""
    shapes = ((6, nv), (3, 3), (3, 3), (4,), (6,), (6, 6), (6, 6), (6, 6), (3,), (6,))
    return FrameScratch(*(np.zeros(shape) for shape in shapes))


@jit_algebra
def read_frame(body, offset, q, work, s):
    """Write rotation ``s.R`` and position ``s.p`` of a frame in a body; return its position from the base origin."""
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
def pose_logarithm(target, s):
    """Write ``xi = log(X_t^-1 X)`` (Barfoot 2017, §7.1.5); return the position error ``R_t' (p - p_t)``."""
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
def fill_right_jacobian(s):
    """Write ``K = J_r(xi)^-1 = 1 + ad / 2 + ad^2 / 12 - ad^4 / 720 + ..`` of ``s.xi`` (Barfoot 2017, §7.1.5)."""
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
def write_row(s, J, i):
    """Write row i of J: the covector ``s.row`` times the frame's Jacobian."""
    a, b, c, d, e, f = s.row[0], s.row[1], s.row[2], s.row[3], s.row[4], s.row[5]
    for k in range(J.shape[1]):
        J[i, k] = a * s.J[0, k] + b * s.J[1, k] + c * s.J[2, k] + d * s.J[3, k] + e * s.J[4, k] + f * s.J[5, k]


@jit_algebra
def to_world(R, lx, ly, lz, ax, ay, az, row):
    """Write the covector with linear part l and angular part a in the axes R (3, 3), in world axes."""
    for a in range(3):
        row[a] = R[a, 0] * lx + R[a, 1] * ly + R[a, 2] * lz
        row[3 + a] = R[a, 0] * ax + R[a, 1] * ay + R[a, 2] * az


@jit_algebra
def cross_row(s, column, ux, uy, uz):
    """Write the covector of ``u . axis``, with axis a column of the frame: angular part ``axis x u``."""
    x, y, z = s.R[0, column], s.R[1, column], s.R[2, column]
    s.row[0] = 0.0
    s.row[1] = 0.0
    s.row[2] = 0.0
    s.row[3] = y * uz - z * uy
    s.row[4] = z * ux - x * uz
    s.row[5] = x * uy - y * ux


@jit_algebra
def rotation_covector(s, x, y, z):
    """Write the angular covector of ``a . w``, ``w = log(R_t' R)``, which is ``R (1 - [w] / 2 + f [w]^2) a``.

    Source: Barfoot 2017, §7.1.5; f as in `pose_logarithm`.
    """
    wx, wy, wz = s.xi[3], s.xi[4], s.xi[5]
    square = wx * wx + wy * wy + wz * wz
    if square < 1e-8:
        factor = 1.0 / 12.0 + square / 720.0
    else:
        half = 0.5 * math.sqrt(square)
        factor = (1.0 - half * math.cos(half) / math.sin(half)) / square
    cx, cy, cz = wy * z - wz * y, wz * x - wx * z, wx * y - wy * x
    x += factor * (wy * cz - wz * cy) - 0.5 * cx
    y += factor * (wz * cx - wx * cz) - 0.5 * cy
    z += factor * (wx * cy - wy * cx) - 0.5 * cz
    for a in range(3):
        s.row[3 + a] = s.R[a, 0] * x + s.R[a, 1] * y + s.R[a, 2] * z
