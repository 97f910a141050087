"""Lagrangian dynamics in the base coordinates of S0 (Bouyarmane and Kheddar 2012), for comparison, not for speed.

    M(q) qddot + N(q, qdot) qdot = M(q) [g; 0; 0] + [0; 0; u] + sum J' f + S'S q lambda          (eq. 32)

``q = (x0, theta0, joints)`` with any chart theta0 of d numbers: a chart enters only through ``J_omega`` (3, d), which
maps its rate to the angular velocity in world axes, and the rate of ``J_omega``. With the identity for ``J_omega`` the
matrices are those of the mixed velocity. Charts: ``mcplan.textbook.coordinates``.
"""

from mcplan.core.jit import jit_algebra
from mcplan.core.rigid_body.ball import screw_rate
from mcplan.core.rigid_body.body import (
    write_base_motion,
    write_base_pose,
    write_body_inertia,
    write_body_motion,
    write_body_pose,
)
from mcplan.core.rigid_body.tree import BALL, DEGREE, MASS, PARENT, SCREW, SPATIAL, TYPE, VELOCITY, V


@jit_algebra
def cross_columns(x, y, z, J, k, rows, first, column):
    """Subtract ``(x, y, z) x J[:, k]`` from three rows of a column."""
    rows[first, column] -= y * J[2, k] - z * J[1, k]
    rows[first + 1, column] -= z * J[0, k] - x * J[2, k]
    rows[first + 2, column] -= x * J[1, k] - y * J[0, k]


@jit_algebra
def body_jacobians(tree, v, work, body, J, Jdot, rows):
    """Write the Jacobians of a body's centre of mass and their rates (eq. 14, 17, world axes).

    Parameters
    ----------
    v : (6 + n,) the velocity
    J, Jdot : (3, d) the chart's map to angular velocity and its rate
    rows : (12, 3 + d + n) out: ``J_t``, ``J_r``, rate of ``J_t``, rate of ``J_r``
    """
    d = J.shape[1]
    m = work[body, SPATIAL]
    scale = 1.0 / m if m > 0.0 else 0.0  # a massless body has no effect, whatever its centre
    x, y, z = scale * work[body, SPATIAL + 1], scale * work[body, SPATIAL + 2], scale * work[body, SPATIAL + 3]
    wx, wy, wz = work[body, VELOCITY + 3], work[body, VELOCITY + 4], work[body, VELOCITY + 5]
    vx = work[body, VELOCITY] + wy * z - wz * y
    vy = work[body, VELOCITY + 1] + wz * x - wx * z
    vz = work[body, VELOCITY + 2] + wx * y - wy * x
    rows[:, :] = 0.0
    for k in range(3):
        rows[k, k] = 1.0
    for k in range(d):
        cross_columns(x, y, z, J, k, rows, 0, 3 + k)
        cross_columns(x, y, z, Jdot, k, rows, 6, 3 + k)
        ux, uy, uz = vx - work[0, VELOCITY], vy - work[0, VELOCITY + 1], vz - work[0, VELOCITY + 2]
        cross_columns(ux, uy, uz, J, k, rows, 6, 3 + k)
        for r in range(3):
            rows[3 + r, 3 + k] = J[r, k]
            rows[9 + r, 3 + k] = Jdot[r, k]
    i = body
    while i > 0:
        s, column = tree.topology[i, DEGREE], tree.topology[i, V] - 3 + d
        lx, ly, lz = work[s, SCREW], work[s, SCREW + 1], work[s, SCREW + 2]
        ax, ay, az = work[s, SCREW + 3], work[s, SCREW + 4], work[s, SCREW + 5]
        if tree.topology[i, TYPE] >= BALL:
            sx, sy, sz, bx, by, bz = screw_rate(tree, v, work, i)
        else:  # V_i x s_i
            px, py, pz = work[i, VELOCITY], work[i, VELOCITY + 1], work[i, VELOCITY + 2]
            wx, wy, wz = work[i, VELOCITY + 3], work[i, VELOCITY + 4], work[i, VELOCITY + 5]
            sx = wy * lz - wz * ly + py * az - pz * ay
            sy = wz * lx - wx * lz + pz * ax - px * az
            sz = wx * ly - wy * lx + px * ay - py * ax
            bx, by, bz = wy * az - wz * ay, wz * ax - wx * az, wx * ay - wy * ax
        rows[0, column] += lx + ay * z - az * y
        rows[1, column] += ly + az * x - ax * z
        rows[2, column] += lz + ax * y - ay * x
        rows[3, column] += ax
        rows[4, column] += ay
        rows[5, column] += az
        rows[6, column] += sx + by * z - bz * y + ay * vz - az * vy
        rows[7, column] += sy + bz * x - bx * z + az * vx - ax * vz
        rows[8, column] += sz + bx * y - by * x + ax * vy - ay * vx
        rows[9, column] += bx
        rows[10, column] += by
        rows[11, column] += bz
        i = tree.topology[i, PARENT]


@jit_algebra
def lagrangian_matrices(tree, q, v, J, Jdot, work, rows, M, N):
    """Write the matrices of eq. 25 and 26, body by body from Jacobians about the centres of mass.

    ``M = sum J_t' m J_t + J_r' I J_r``
    ``N = sum J_t' m Jdot_t + J_r' I Jdot_r - J_r' [I w x] J_r``      (rotational terms in body axes)

    In world axes ``Jdot_r`` of the body is ``R' (Jdot_r - [w x] J_r)``. The armature is added to M.

    Parameters
    ----------
    q : (7 + n,), v : (6 + n,) the state, with the quaternion and the mixed velocity whatever the chart
    J, Jdot : (3, d) the chart's map to the angular velocity, world axes, and its rate
    work : workspace; rows : (12, 3 + d + n) scratch
    M, N : (3 + d + n, 3 + d + n) out
    """
    size, nv = len(M), len(v)
    M[:, :] = 0.0
    N[:, :] = 0.0
    write_base_pose(q, work)
    write_body_inertia(tree, work, 0)
    write_base_motion(v, v, 0.0, 0.0, work)
    for i in range(len(tree.topology)):
        if i > 0:
            write_body_pose(tree, q, work, i)
            write_body_inertia(tree, work, i)
            write_body_motion(tree, v, v, 0.0, work, i)
        body_jacobians(tree, v, work, i, J, Jdot, rows)
        m = tree.inertia[i, MASS]
        share = 1.0 / m if m > 0.0 else 0.0
        hx, hy, hz = work[i, SPATIAL + 1], work[i, SPATIAL + 2], work[i, SPATIAL + 3]
        xx = work[i, SPATIAL + 4] - share * (hy * hy + hz * hz)
        yy = work[i, SPATIAL + 5] - share * (hx * hx + hz * hz)
        zz = work[i, SPATIAL + 6] - share * (hx * hx + hy * hy)
        xy = work[i, SPATIAL + 7] + share * hx * hy
        xz = work[i, SPATIAL + 8] + share * hx * hz
        yz = work[i, SPATIAL + 9] + share * hy * hz
        wx, wy, wz = work[i, VELOCITY + 3], work[i, VELOCITY + 4], work[i, VELOCITY + 5]
        lx, ly, lz = xx * wx + xy * wy + xz * wz, xy * wx + yy * wy + yz * wz, xz * wx + yz * wy + zz * wz
        for k in range(size):
            ax, ay, az = rows[3, k], rows[4, k], rows[5, k]
            bx = rows[9, k] - (wy * az - wz * ay)
            by = rows[10, k] - (wz * ax - wx * az)
            bz = rows[11, k] - (wx * ay - wy * ax)
            ix, iy, iz = xx * ax + xy * ay + xz * az, xy * ax + yy * ay + yz * az, xz * ax + yz * ay + zz * az
            nx = xx * bx + xy * by + xz * bz - (ly * az - lz * ay)
            ny = xy * bx + yy * by + yz * bz - (lz * ax - lx * az)
            nz = xz * bx + yz * by + zz * bz - (lx * ay - ly * ax)
            for j in range(size):
                M[j, k] += rows[3, j] * ix + rows[4, j] * iy + rows[5, j] * iz
                M[j, k] += m * (rows[0, j] * rows[0, k] + rows[1, j] * rows[1, k] + rows[2, j] * rows[2, k])
                N[j, k] += rows[3, j] * nx + rows[4, j] * ny + rows[5, j] * nz
                N[j, k] += m * (rows[0, j] * rows[6, k] + rows[1, j] * rows[7, k] + rows[2, j] * rows[8, k])
    for k in range(6, nv):
        M[k + size - nv, k + size - nv] += tree.armature[k]
