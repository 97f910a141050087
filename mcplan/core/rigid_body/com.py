"""Centre of mass and its Jacobian, from composite masses (S4, CoM coordinates); centroidal momentum.

The momentum of the whole robot is linear, and angular about the centre of mass (Orin, Goswami and Lee 2013).
"""

from mcplan.core.jit import jit_algebra
from mcplan.core.rigid_body.body import momentum_of, write_base_pose, write_body_pose
from mcplan.core.rigid_body.inverse_dynamics import newton_euler
from mcplan.core.rigid_body.mass_matrix import composite_inertias
from mcplan.core.rigid_body.tree import COM, DEGREE, FORCE, MASS, PARENT, POSE, SCREW, SPATIAL, V


@jit_algebra
def composite_masses(tree, q, work):
    """Write pose and screw of every body, and mass and first moment of its subtree."""
    write_base_pose(q, work)
    body = tree.inertia
    for i in range(len(tree.topology)):
        if i > 0:
            write_body_pose(tree, q, work, i)
        m, x, y, z = body[i, MASS], body[i, COM], body[i, COM + 1], body[i, COM + 2]
        work[i, SPATIAL] = m
        for r in range(3):
            work[i, SPATIAL + 1 + r] = m * (
                work[i, POSE + 9 + r]
                + work[i, POSE + 3 * r] * x
                + work[i, POSE + 3 * r + 1] * y
                + work[i, POSE + 3 * r + 2] * z
            )
    for i in range(len(tree.topology) - 1, 0, -1):
        parent = tree.topology[i, PARENT]
        for k in range(4):
            work[parent, SPATIAL + k] += work[i, SPATIAL + k]


@jit_algebra
def com(tree, q, work, c):
    """Write the centre of mass c (3,) in the world, m."""
    composite_masses(tree, q, work)
    for k in range(3):
        c[k] = q[k] + work[0, SPATIAL + 1 + k] / work[0, SPATIAL]


@jit_algebra
def com_jacobian(tree, q, work, c, J):
    """Write the CoM and its Jacobian, ``dc/dt = J v``: column k is ``(m_k s_lin + s_ang x m_k c_k) / m`` of subtree k.

    Parameters
    ----------
    c : (3,) out, m
    J : (3, nv) out
    """
    composite_masses(tree, q, work)
    fill_com_jacobian(tree, q, work, c, J)


@jit_algebra
def fill_com_jacobian(tree, q, work, c, J):
    """Write the CoM and its Jacobian from composite masses and screws, as `com_jacobian` does."""
    scale = 1.0 / work[0, SPATIAL]
    J[:, :] = 0.0
    for i in range(1, len(tree.topology)):
        d, column = tree.topology[i, DEGREE], tree.topology[i, V]
        m, x, y, z = work[i, SPATIAL], work[i, SPATIAL + 1], work[i, SPATIAL + 2], work[i, SPATIAL + 3]
        wx, wy, wz = work[d, SCREW + 3], work[d, SCREW + 4], work[d, SCREW + 5]
        J[0, column] += scale * (m * work[d, SCREW] + wy * z - wz * y)
        J[1, column] += scale * (m * work[d, SCREW + 1] + wz * x - wx * z)
        J[2, column] += scale * (m * work[d, SCREW + 2] + wx * y - wy * x)
    x, y, z = scale * work[0, SPATIAL + 1], scale * work[0, SPATIAL + 2], scale * work[0, SPATIAL + 3]
    for k in range(3):
        J[k, k] = 1.0
    J[0, 4] = z
    J[0, 5] = -y
    J[1, 3] = -z
    J[1, 5] = x
    J[2, 3] = y
    J[2, 4] = -x
    c[0] = q[0] + x
    c[1] = q[1] + y
    c[2] = q[2] + z


@jit_algebra
def fill_momentum_matrix(tree, work, A):
    """Write A (6, nv) from composite inertias and screws: ``A_k = X_c I_k s_k`` with X_c the shift to the CoM."""
    scale = 1.0 / work[0, SPATIAL]
    cx, cy, cz = scale * work[0, SPATIAL + 1], scale * work[0, SPATIAL + 2], scale * work[0, SPATIAL + 3]
    A[:, :] = 0.0
    for d in range(6):
        add_momentum_column(work, 0, d, d, cx, cy, cz, A)
    for i in range(1, len(tree.topology)):
        add_momentum_column(work, i, tree.topology[i, DEGREE], tree.topology[i, V], cx, cy, cz, A)


@jit_algebra
def add_momentum_column(work, i, d, column, cx, cy, cz, A):
    """Add the momentum of the subtree of body i, moving along screw d, with its moment about c."""
    fx, fy, fz, nx, ny, nz = momentum_of(work, i, d)
    A[0, column] += fx
    A[1, column] += fy
    A[2, column] += fz
    A[3, column] += nx - (cy * fz - cz * fy)
    A[4, column] += ny - (cz * fx - cx * fz)
    A[5, column] += nz - (cx * fy - cy * fx)


@jit_algebra
def centroidal_momentum_matrix(tree, q, work, A):
    """Write the matrix A (6, nv) of the momentum ``A v``, kg m/s then kg m²/s, world axes."""
    composite_inertias(tree, q, work)
    fill_momentum_matrix(tree, work, A)


@jit_algebra
def centroidal_momentum_bias(tree, q, v, work, b):
    """Write the rate of momentum at zero acceleration, ``b = Adot v`` (6,), N then N m about the CoM.

    It is the sum of ``I a + V x* I V`` over the bodies, without gravity. The moment of the inertial forces about
    the moving centre of mass is the rate of the momentum about it.
    """
    newton_euler(tree, q, v, v, 0.0, 0.0, work)
    m = x = y = z = 0.0
    b[:] = 0.0
    for i in range(len(tree.topology)):
        m += work[i, SPATIAL]
        x += work[i, SPATIAL + 1]
        y += work[i, SPATIAL + 2]
        z += work[i, SPATIAL + 3]
        for k in range(6):
            b[k] += work[i, FORCE + k]
    b[3] -= (y * b[2] - z * b[1]) / m
    b[4] -= (z * b[0] - x * b[2]) / m
    b[5] -= (x * b[1] - y * b[0]) / m
