"""Ball joints in exponential coordinates: pose, velocity and acceleration of the link.

The three coordinates are the rotation vector ``phi``: the link is rotated by ``t = |phi|`` about ``phi``, with the unit
quaternion ``(cos t/2, sin t/2 phi / t)``. With the rates ``phi'`` its angular velocity in the joint's frame is

    w = J phi',    J = sinc t 1 + a [phi x] + b phi phi^T,    a = (1 - cos t) / t²,  b = (t - sin t) / t³

(S3 eq. 53 and 54). So velocities are derivatives of coordinates, as for revolute joints, and generalised forces are
``J^T`` times the moment. J is singular only at ``t = 2 pi``, beyond the range of any joint; the limits of the
coordinates keep them away from it (``robot.urdf_joint``).

A ball joint is modelled as three bodies with the same origin. The first two have the joint's frame and no mass, the
third is the link; each has one column of J as its screw.
"""

import math

from mcplan.core.jit import jit_algebra
from mcplan.core.rigid_body.tree import (
    ACCELERATION,
    BALL,
    DEGREE,
    ORIGIN,
    PARENT,
    POSE,
    ROTATION_VECTOR,
    SCREW,
    TYPE,
    VELOCITY,
    Q,
    V,
)

SMALL = 1e-2
"""rad²: below this, series are more accurate than differences; their truncation error is below 1e-13."""


@jit_algebra
def coefficients(square):
    """Return ``sinc t``, a and b for ``t² = square``."""
    if square < SMALL:
        return (
            1.0 - square / 6.0 * (1.0 - square / 20.0 * (1.0 - square / 42.0 * (1.0 - square / 72.0))),
            0.5 * (1.0 - square / 12.0 * (1.0 - square / 30.0 * (1.0 - square / 56.0 * (1.0 - square / 90.0)))),
            (1.0 - square / 20.0 * (1.0 - square / 42.0 * (1.0 - square / 72.0 * (1.0 - square / 110.0)))) / 6.0,
        )
    t = math.sqrt(square)
    sine, versine = math.sin(t), 2.0 * math.sin(0.5 * t) ** 2
    return sine / t, versine / square, (t - sine) / (square * t)


@jit_algebra
def coefficient_derivatives(square):
    """Return the derivatives of ``sinc t``, a and b by ``t² / 2``."""
    if square < SMALL:
        return (
            -1.0 / 3.0 * (1.0 - square / 10.0 * (1.0 - square / 28.0 * (1.0 - square / 54.0 * (1.0 - square / 88.0)))),
            -1.0 / 12.0 * (1.0 - square / 15.0 * (1.0 - square * 3.0 / 112.0 * (1.0 - square / 67.5))),
            -1.0 / 60.0 * (1.0 - square / 21.0 * (1.0 - square / 48.0 * (1.0 - square / 82.5))),
        )
    s, a, b = coefficients(square)
    cosine = 1.0 - a * square
    return (cosine - s) / square, (s - 2.0 * a) / square, (a - 3.0 * b) / square


@jit_algebra
def write_ball_pose(tree, q, work, i):
    """Write pose and screw of one of a ball joint's bodies from its parent's pose."""
    joint, parent = tree.joint, tree.topology[i, PARENT]
    column = tree.topology[i, TYPE] - BALL
    first = tree.topology[i, Q] - column
    x, y, z = q[first], q[first + 1], q[first + 2]
    square = x * x + y * y + z * z
    s, a, b = coefficients(square)
    coordinate = q[first + column]
    # column of J in the joint's frame: sinc e + a phi x e + b phi_c phi
    jx, jy, jz = b * coordinate * x, b * coordinate * y, b * coordinate * z
    if column == 0:
        jx, jy, jz = jx + s, jy + a * z, jz - a * y
    elif column == 1:
        jx, jy, jz = jx - a * z, jy + s, jz + a * x
    else:
        jx, jy, jz = jx + a * y, jy - a * x, jz + s
    d = tree.topology[i, DEGREE]
    for r in range(3):
        u, v, w = work[parent, POSE + 3 * r], work[parent, POSE + 3 * r + 1], work[parent, POSE + 3 * r + 2]
        work[i, POSE + 9 + r] = (
            work[parent, POSE + 9 + r] + u * joint[i, ORIGIN] + v * joint[i, ORIGIN + 1] + w * joint[i, ORIGIN + 2]
        )
        e = u * joint[i, 0] + v * joint[i, 3] + w * joint[i, 6]
        f = u * joint[i, 1] + v * joint[i, 4] + w * joint[i, 7]
        g = u * joint[i, 2] + v * joint[i, 5] + w * joint[i, 8]
        work[d, SCREW + 3 + r] = e * jx + f * jy + g * jz
        if column == 2:  # R = (1 - a t²) 1 + sinc t [phi x] + a phi phi^T, that of the unit quaternion
            c, inner = 1.0 - a * square, a * (e * x + f * y + g * z)
            e, f, g = (
                c * e + s * (f * z - g * y) + inner * x,
                c * f + s * (g * x - e * z) + inner * y,
                c * g + s * (e * y - f * x) + inner * z,
            )
        work[i, POSE + 3 * r], work[i, POSE + 3 * r + 1], work[i, POSE + 3 * r + 2] = e, f, g
    work[i, ROTATION_VECTOR], work[i, ROTATION_VECTOR + 1], work[i, ROTATION_VECTOR + 2] = x, y, z
    px, py, pz = work[i, POSE + 9], work[i, POSE + 10], work[i, POSE + 11]
    ax, ay, az = work[d, SCREW + 3], work[d, SCREW + 4], work[d, SCREW + 5]
    work[d, SCREW] = py * az - pz * ay
    work[d, SCREW + 1] = pz * ax - px * az
    work[d, SCREW + 2] = px * ay - py * ax


@jit_algebra
def screw_rate(tree, v, work, i):
    """Return the rate of the screw (six scalars) of one of a ball joint's bodies.

    The screw is ``s = (p x e, e)`` with ``e = A J_c``: A is the joint frame in the world, c the body's column of J. It
    changes with the motion of the parent link P and with J:

        s' = V_P x s + (p x c, c),    c = A J_c'
        J_c' = g (sinc)' e_c + g a' phi x e_c + a phi' x e_c + g b' phi_c phi + b (phi_c' phi + phi_c phi')

    with ``g = phi . phi'``, where primes of coefficients are derivatives by ``t² / 2``.
    """
    parent, d = tree.topology[i, PARENT], tree.topology[i, DEGREE]
    column = tree.topology[i, TYPE] - BALL
    k, joint_parent = tree.topology[i, V] - column, parent
    for _ in range(column):
        joint_parent = tree.topology[joint_parent, PARENT]
    x, y, z = work[i, ROTATION_VECTOR], work[i, ROTATION_VECTOR + 1], work[i, ROTATION_VECTOR + 2]
    u, w, t = v[k], v[k + 1], v[k + 2]
    square = x * x + y * y + z * z
    _, a, b = coefficients(square)
    ds, da, db = coefficient_derivatives(square)
    g = x * u + y * w + z * t
    mx, my, mz = g * da * x + a * u, g * da * y + a * w, g * da * z + a * t
    coordinate, rate = work[i, ROTATION_VECTOR + column], v[k + column]
    phi_factor, rate_factor = g * db * coordinate + b * rate, b * coordinate
    jx, jy, jz = phi_factor * x + rate_factor * u, phi_factor * y + rate_factor * w, phi_factor * z + rate_factor * t
    if column == 0:
        jx, jy, jz = jx + g * ds, jy + mz, jz - my
    elif column == 1:
        jx, jy, jz = jx - mz, jy + g * ds, jz + mx
    else:
        jx, jy, jz = jx + my, jy - mx, jz + g * ds
    # the joint's frame is that of the first two bodies, and the parent's of the last
    r = i if column < 2 else parent
    cx = work[r, POSE] * jx + work[r, POSE + 1] * jy + work[r, POSE + 2] * jz
    cy = work[r, POSE + 3] * jx + work[r, POSE + 4] * jy + work[r, POSE + 5] * jz
    cz = work[r, POSE + 6] * jx + work[r, POSE + 7] * jy + work[r, POSE + 8] * jz
    px, py, pz = work[i, POSE + 9], work[i, POSE + 10], work[i, POSE + 11]
    s0, s1, s2 = work[d, SCREW], work[d, SCREW + 1], work[d, SCREW + 2]
    s3, s4, s5 = work[d, SCREW + 3], work[d, SCREW + 4], work[d, SCREW + 5]
    x, y, z = work[joint_parent, VELOCITY], work[joint_parent, VELOCITY + 1], work[joint_parent, VELOCITY + 2]
    wx, wy, wz = work[joint_parent, VELOCITY + 3], work[joint_parent, VELOCITY + 4], work[joint_parent, VELOCITY + 5]
    return (
        wy * s2 - wz * s1 + y * s5 - z * s4 + py * cz - pz * cy,
        wz * s0 - wx * s2 + z * s3 - x * s5 + pz * cx - px * cz,
        wx * s1 - wy * s0 + x * s4 - y * s3 + px * cy - py * cx,
        wy * s5 - wz * s4 + cx,
        wz * s3 - wx * s5 + cy,
        wx * s4 - wy * s3 + cz,
    )


@jit_algebra
def write_ball_motion(tree, v, vd, scale, work, i):
    """Write velocity of one of a ball joint's bodies, and its acceleration for the accelerations ``scale vd``."""
    parent, d, k = tree.topology[i, PARENT], tree.topology[i, DEGREE], tree.topology[i, V]
    rate, acceleration = v[k], scale * vd[k]
    for n in range(6):
        work[i, VELOCITY + n] = work[parent, VELOCITY + n] + work[d, SCREW + n] * rate
        work[i, ACCELERATION + n] = work[parent, ACCELERATION + n] + work[d, SCREW + n] * acceleration
    s0, s1, s2, s3, s4, s5 = screw_rate(tree, v, work, i)
    work[i, ACCELERATION] += s0 * rate
    work[i, ACCELERATION + 1] += s1 * rate
    work[i, ACCELERATION + 2] += s2 * rate
    work[i, ACCELERATION + 3] += s3 * rate
    work[i, ACCELERATION + 4] += s4 * rate
    work[i, ACCELERATION + 5] += s5 * rate
