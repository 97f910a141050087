"""Single steps of the recursive algorithms: pose, inertia, motion and inertial force of one body.

Spatial vectors are linear then angular, in world axes, about the base origin, taken as a point at rest. With one frame
for all bodies the recursions need no coordinate transforms.

    V_i = V_p + s_i v_i                                  velocity
    a_i = a_p + s_i vd_i + V_i x s_i v_i                 acceleration
    f_i = I_i a_i + V_i x* I_i V_i                       force   (Featherstone 2008, table 5.1)

``jit_algebra`` fuses and re-orders sums only; a NaN of the input reaches the output.
"""

import math

from mcplan.core.jit import jit_algebra, jit_inline
from mcplan.core.rigid_body.ball import write_ball_motion, write_ball_pose
from mcplan.core.rigid_body.tree import (
    ACCELERATION,
    AXIS,
    BALL,
    COM,
    DEGREE,
    FORCE,
    INERTIA,
    MASS,
    MULTIPLIER,
    OFFSET,
    ORIGIN,
    PARENT,
    POSE,
    REVOLUTE,
    SCREW,
    SPATIAL,
    TYPE,
    VELOCITY,
    Q,
    V,
)


@jit_algebra
def write_base_pose(q, work):
    """Write pose and screws of body 0. The quaternion is normalised, so that R is always a rotation."""
    w, x, y, z = q[3], q[4], q[5], q[6]
    s = 2.0 / (w * w + x * x + y * y + z * z)
    work[0, POSE] = 1.0 - s * (y * y + z * z)
    work[0, POSE + 1] = s * (x * y - w * z)
    work[0, POSE + 2] = s * (x * z + w * y)
    work[0, POSE + 3] = s * (x * y + w * z)
    work[0, POSE + 4] = 1.0 - s * (x * x + z * z)
    work[0, POSE + 5] = s * (y * z - w * x)
    work[0, POSE + 6] = s * (x * z - w * y)
    work[0, POSE + 7] = s * (y * z + w * x)
    work[0, POSE + 8] = 1.0 - s * (x * x + y * y)
    for k in range(3):
        work[0, POSE + 9 + k] = 0.0
    for d in range(6):
        for k in range(6):
            work[d, SCREW + k] = 1.0 if d == k else 0.0


@jit_inline
def write_body_pose(tree, q, work, i):
    """Write pose and screw of body i > 0 from its parent's pose.

    ``R = cos t A + (1 - cos t) a u' + sin t A [u]``  with A the joint frame in the world, u its axis, ``a = A u``
    """
    if tree.topology[i, TYPE] >= BALL:
        write_ball_pose(tree, q, work, i)
        return
    joint = tree.joint
    parent = tree.topology[i, PARENT]
    position = joint[i, MULTIPLIER] * q[tree.topology[i, Q]] + joint[i, OFFSET]
    revolute = tree.topology[i, TYPE] == REVOLUTE
    if revolute:
        cosine, sine, slide = math.cos(position), math.sin(position), 0.0
    else:
        cosine, sine, slide = 1.0, 0.0, position
    versine = 1.0 - cosine
    ux, uy, uz = joint[i, AXIS], joint[i, AXIS + 1], joint[i, AXIS + 2]
    for r in range(3):
        x, y, z = work[parent, POSE + 3 * r], work[parent, POSE + 3 * r + 1], work[parent, POSE + 3 * r + 2]
        a = x * joint[i, 0] + y * joint[i, 3] + z * joint[i, 6]
        b = x * joint[i, 1] + y * joint[i, 4] + z * joint[i, 7]
        c = x * joint[i, 2] + y * joint[i, 5] + z * joint[i, 8]
        axis = a * ux + b * uy + c * uz
        turn = versine * axis
        work[i, POSE + 3 * r] = cosine * a + turn * ux + sine * (b * uz - c * uy)
        work[i, POSE + 3 * r + 1] = cosine * b + turn * uy + sine * (c * ux - a * uz)
        work[i, POSE + 3 * r + 2] = cosine * c + turn * uz + sine * (a * uy - b * ux)
        work[i, POSE + 9 + r] = (
            work[parent, POSE + 9 + r]
            + x * joint[i, ORIGIN]
            + y * joint[i, ORIGIN + 1]
            + z * joint[i, ORIGIN + 2]
            + axis * slide
        )
    m = joint[i, MULTIPLIER]  # the axis does not change with the rotation, a = R u
    ax = m * (work[i, POSE] * ux + work[i, POSE + 1] * uy + work[i, POSE + 2] * uz)
    ay = m * (work[i, POSE + 3] * ux + work[i, POSE + 4] * uy + work[i, POSE + 5] * uz)
    az = m * (work[i, POSE + 6] * ux + work[i, POSE + 7] * uy + work[i, POSE + 8] * uz)
    d = tree.topology[i, DEGREE]
    if revolute:
        px, py, pz = work[i, POSE + 9], work[i, POSE + 10], work[i, POSE + 11]
        work[d, SCREW] = py * az - pz * ay
        work[d, SCREW + 1] = pz * ax - px * az
        work[d, SCREW + 2] = px * ay - py * ax
        work[d, SCREW + 3] = ax
        work[d, SCREW + 4] = ay
        work[d, SCREW + 5] = az
    else:
        work[d, SCREW] = ax
        work[d, SCREW + 1] = ay
        work[d, SCREW + 2] = az
        work[d, SCREW + 3] = 0.0
        work[d, SCREW + 4] = 0.0
        work[d, SCREW + 5] = 0.0


@jit_inline
def write_body_inertia(tree, work, i):
    """Write the spatial inertia of body i alone: ``m``, ``m c``, ``R I R' + m (c'c 1 - c c')``."""
    body = tree.inertia
    a, b, c = work[i, POSE], work[i, POSE + 1], work[i, POSE + 2]
    d, e, f = work[i, POSE + 3], work[i, POSE + 4], work[i, POSE + 5]
    g, h, k = work[i, POSE + 6], work[i, POSE + 7], work[i, POSE + 8]
    m = body[i, MASS]
    x, y, z = body[i, COM], body[i, COM + 1], body[i, COM + 2]
    cx = work[i, POSE + 9] + a * x + b * y + c * z
    cy = work[i, POSE + 10] + d * x + e * y + f * z
    cz = work[i, POSE + 11] + g * x + h * y + k * z
    xx, yy, zz = body[i, INERTIA], body[i, INERTIA + 1], body[i, INERTIA + 2]
    xy, xz, yz = body[i, INERTIA + 3], body[i, INERTIA + 4], body[i, INERTIA + 5]
    ra, rb, rc = a * xx + b * xy + c * xz, a * xy + b * yy + c * yz, a * xz + b * yz + c * zz
    rd, re, rf = d * xx + e * xy + f * xz, d * xy + e * yy + f * yz, d * xz + e * yz + f * zz
    rg, rh, rk = g * xx + h * xy + k * xz, g * xy + h * yy + k * yz, g * xz + h * yz + k * zz
    mx, my, mz = m * cx, m * cy, m * cz
    work[i, SPATIAL] = m
    work[i, SPATIAL + 1] = mx
    work[i, SPATIAL + 2] = my
    work[i, SPATIAL + 3] = mz
    work[i, SPATIAL + 4] = ra * a + rb * b + rc * c + my * cy + mz * cz
    work[i, SPATIAL + 5] = rd * d + re * e + rf * f + mx * cx + mz * cz
    work[i, SPATIAL + 6] = rg * g + rh * h + rk * k + mx * cx + my * cy
    work[i, SPATIAL + 7] = ra * d + rb * e + rc * f - mx * cy
    work[i, SPATIAL + 8] = ra * g + rb * h + rc * k - mx * cz
    work[i, SPATIAL + 9] = rd * g + re * h + rf * k - my * cz


@jit_algebra
def write_base_motion(v, vd, scale, gravity, work):
    """Write velocity and acceleration of body 0: ``a = [scale vd_lin - w x v_lin + gravity z; scale wd]``."""
    x, y, z, wx, wy, wz = v[0], v[1], v[2], v[3], v[4], v[5]
    for k in range(6):
        work[0, VELOCITY + k] = v[k]
        work[0, ACCELERATION + k] = scale * vd[k]
    work[0, ACCELERATION] -= wy * z - wz * y
    work[0, ACCELERATION + 1] -= wz * x - wx * z
    work[0, ACCELERATION + 2] += gravity - (wx * y - wy * x)


@jit_inline
def write_body_motion(tree, v, vd, scale, work, i):
    """Write velocity of body i > 0, and its acceleration for the joint accelerations ``scale vd``."""
    if tree.topology[i, TYPE] >= BALL:
        write_ball_motion(tree, v, vd, scale, work, i)
        return
    parent, d, k = tree.topology[i, PARENT], tree.topology[i, DEGREE], tree.topology[i, V]
    rate, acceleration = v[k], scale * vd[k]
    s0, s1, s2 = work[d, SCREW], work[d, SCREW + 1], work[d, SCREW + 2]
    s3, s4, s5 = work[d, SCREW + 3], work[d, SCREW + 4], work[d, SCREW + 5]
    x, y, z = work[parent, VELOCITY], work[parent, VELOCITY + 1], work[parent, VELOCITY + 2]
    wx, wy, wz = work[parent, VELOCITY + 3], work[parent, VELOCITY + 4], work[parent, VELOCITY + 5]
    work[i, VELOCITY] = x + s0 * rate
    work[i, VELOCITY + 1] = y + s1 * rate
    work[i, VELOCITY + 2] = z + s2 * rate
    work[i, VELOCITY + 3] = wx + s3 * rate
    work[i, VELOCITY + 4] = wy + s4 * rate
    work[i, VELOCITY + 5] = wz + s5 * rate
    # V_i x s_i = V_p x s_i, since s_i x s_i = 0
    a = ACCELERATION
    work[i, a] = work[parent, a] + s0 * acceleration + rate * (wy * s2 - wz * s1 + y * s5 - z * s4)
    work[i, a + 1] = work[parent, a + 1] + s1 * acceleration + rate * (wz * s0 - wx * s2 + z * s3 - x * s5)
    work[i, a + 2] = work[parent, a + 2] + s2 * acceleration + rate * (wx * s1 - wy * s0 + x * s4 - y * s3)
    work[i, a + 3] = work[parent, a + 3] + s3 * acceleration + rate * (wy * s5 - wz * s4)
    work[i, a + 4] = work[parent, a + 4] + s4 * acceleration + rate * (wz * s3 - wx * s5)
    work[i, a + 5] = work[parent, a + 5] + s5 * acceleration + rate * (wx * s4 - wy * s3)


@jit_inline
def write_body_force(work, i):
    """Write the spatial force that causes the motion of body i alone: ``f = I a + V x* I V``."""
    m, hx, hy, hz = work[i, SPATIAL], work[i, SPATIAL + 1], work[i, SPATIAL + 2], work[i, SPATIAL + 3]
    xx, yy, zz = work[i, SPATIAL + 4], work[i, SPATIAL + 5], work[i, SPATIAL + 6]
    xy, xz, yz = work[i, SPATIAL + 7], work[i, SPATIAL + 8], work[i, SPATIAL + 9]
    x, y, z = work[i, VELOCITY], work[i, VELOCITY + 1], work[i, VELOCITY + 2]
    wx, wy, wz = work[i, VELOCITY + 3], work[i, VELOCITY + 4], work[i, VELOCITY + 5]
    px, py, pz = m * x + wy * hz - wz * hy, m * y + wz * hx - wx * hz, m * z + wx * hy - wy * hx
    lx = xx * wx + xy * wy + xz * wz + hy * z - hz * y
    ly = xy * wx + yy * wy + yz * wz + hz * x - hx * z
    lz = xz * wx + yz * wy + zz * wz + hx * y - hy * x
    ax, ay, az = work[i, ACCELERATION], work[i, ACCELERATION + 1], work[i, ACCELERATION + 2]
    bx, by, bz = work[i, ACCELERATION + 3], work[i, ACCELERATION + 4], work[i, ACCELERATION + 5]
    work[i, FORCE] = m * ax + by * hz - bz * hy + wy * pz - wz * py
    work[i, FORCE + 1] = m * ay + bz * hx - bx * hz + wz * px - wx * pz
    work[i, FORCE + 2] = m * az + bx * hy - by * hx + wx * py - wy * px
    work[i, FORCE + 3] = xx * bx + xy * by + xz * bz + hy * az - hz * ay + wy * lz - wz * ly + y * pz - z * py
    work[i, FORCE + 4] = xy * bx + yy * by + yz * bz + hz * ax - hx * az + wz * lx - wx * lz + z * px - x * pz
    work[i, FORCE + 5] = xz * bx + yz * by + zz * bz + hx * ay - hy * ax + wx * ly - wy * lx + x * py - y * px


@jit_algebra
def momentum_of(work, i, d):
    """Return the momentum ``I_i s_d`` (six scalars) of the inertia in row i moving along the screw in row d."""
    m, hx, hy, hz = work[i, SPATIAL], work[i, SPATIAL + 1], work[i, SPATIAL + 2], work[i, SPATIAL + 3]
    x, y, z = work[d, SCREW], work[d, SCREW + 1], work[d, SCREW + 2]
    wx, wy, wz = work[d, SCREW + 3], work[d, SCREW + 4], work[d, SCREW + 5]
    xy, xz, yz = work[i, SPATIAL + 7], work[i, SPATIAL + 8], work[i, SPATIAL + 9]
    return (
        m * x + wy * hz - wz * hy,
        m * y + wz * hx - wx * hz,
        m * z + wx * hy - wy * hx,
        work[i, SPATIAL + 4] * wx + xy * wy + xz * wz + hy * z - hz * y,
        xy * wx + work[i, SPATIAL + 5] * wy + yz * wz + hz * x - hx * z,
        xz * wx + yz * wy + work[i, SPATIAL + 6] * wz + hx * y - hy * x,
    )


@jit_algebra
def screw_product(work, d, column, i):
    """Return the inner product of the screw in row d with the six numbers from ``column`` on in row i."""
    return (
        work[d, SCREW] * work[i, column]
        + work[d, SCREW + 1] * work[i, column + 1]
        + work[d, SCREW + 2] * work[i, column + 2]
        + work[d, SCREW + 3] * work[i, column + 3]
        + work[d, SCREW + 4] * work[i, column + 4]
        + work[d, SCREW + 5] * work[i, column + 5]
    )
