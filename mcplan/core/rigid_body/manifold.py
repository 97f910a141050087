"""The configuration manifold R3 x SO(3) x Rn: integration and difference."""

import math

from mcplan.core.algebra.rotation import quaternion_normalise
from mcplan.core.jit import jit


@jit
def integrate(q, v, dt, out):
    """Move for the time dt at the constant velocity v; ``out`` may be ``q``.

    ``p + dt v_lin``, ``exp(dt w) quat``, ``joints + dt rate``

    Parameters
    ----------
    q, out : (nq,) position, quaternion w x y z, joints
    v : (nv,) velocity in world axes
    dt : s, float
    """
    x, y, z = dt * v[3], dt * v[4], dt * v[5]
    square = x * x + y * y + z * z
    if square < 1e-8:
        scale = 0.5 - square * (1.0 / 48.0 - square / 3840.0)
        w = 1.0 - square * (0.125 - square / 384.0)
    else:
        angle = math.sqrt(square)
        scale = math.sin(0.5 * angle) / angle
        w = math.cos(0.5 * angle)
    x, y, z = scale * x, scale * y, scale * z
    a, b, c, d = q[3], q[4], q[5], q[6]
    for k in range(3):
        out[k] = q[k] + dt * v[k]
    out[3] = w * a - x * b - y * c - z * d
    out[4] = w * b + x * a + y * d - z * c
    out[5] = w * c + y * a + z * b - x * d
    out[6] = w * d + z * a + x * c - y * b
    quaternion_normalise(out[3:7], out[3:7])
    for k in range(7, len(q)):
        out[k] = q[k] + dt * v[k - 1]


@jit
def difference(q0, q1, out):
    """Write the velocity from q0 to q1 in unit time, with the shorter base rotation: ``integrate(q0, out, 1) = q1``.

    Parameters
    ----------
    q0, q1 : (nq,) with unit quaternions
    out : (nv,)
    """
    a, b, c, d = q0[3], -q0[4], -q0[5], -q0[6]
    w, x, y, z = q1[3], q1[4], q1[5], q1[6]
    real = w * a - x * b - y * c - z * d
    e1 = w * b + x * a + y * d - z * c
    e2 = w * c + y * a + z * b - x * d
    e3 = w * d + z * a + x * c - y * b
    sign = 1.0 if real >= 0.0 else -1.0
    sine = math.sqrt(e1 * e1 + e2 * e2 + e3 * e3)
    scale = 2.0 / real if sine < 1e-12 else sign * 2.0 * math.atan2(sine, sign * real) / sine
    for k in range(3):
        out[k] = q1[k] - q0[k]
    out[3] = scale * e1
    out[4] = scale * e2
    out[5] = scale * e3
    for k in range(7, len(q0)):
        out[k - 1] = q1[k] - q0[k]


@jit
def nearest_configuration(candidates, q, weight, out):
    """Return the index of the candidate nearest to q: smallest ``|weight * difference|``.

    Parameters
    ----------
    candidates : (k, nq) with unit quaternions, k > 0
    q : (nq,)
    weight : (nv,)
    out : (nv,) scratch
    """
    index, min_square = 0, math.inf
    for i in range(len(candidates)):
        difference(candidates[i], q, out)
        square = 0.0
        for k in range(len(out)):
            square += (weight[k] * out[k]) ** 2
        if square < min_square:
            index, min_square = i, square
    return index
