"""Forward dynamics: the articulated-body algorithm (Featherstone 2008, table 7.1), armature included."""

from mcplan.core.algebra.cholesky import cholesky, cholesky_solve
from mcplan.core.jit import jit, jit_algebra
from mcplan.core.rigid_body.body import screw_product
from mcplan.core.rigid_body.inverse_dynamics import gather_forces, newton_euler
from mcplan.core.rigid_body.mass_matrix import add_inertias, fill_mass_matrix
from mcplan.core.rigid_body.tree import (
    ACCELERATION,
    ARTICULATED,
    DEGREE,
    FORCE,
    GRAVITY,
    JOINT_SPACE,
    PARENT,
    SCREW,
    SPATIAL,
    V,
)


@jit_algebra
def write_articulated_inertia(work, i):
    """Write the lower triangle of body i's articulated inertia (6x6) from its own spatial inertia."""
    a = ARTICULATED
    m, x, y, z = work[i, SPATIAL], work[i, SPATIAL + 1], work[i, SPATIAL + 2], work[i, SPATIAL + 3]
    for k in range(36):
        work[i, a + k] = 0.0
    for k in range(3):
        work[i, a + 7 * k] = m
        work[i, a + 21 + 7 * k] = work[i, SPATIAL + 4 + k]
    work[i, a + 19] = -z
    work[i, a + 20] = y
    work[i, a + 24] = z
    work[i, a + 26] = -x
    work[i, a + 30] = -y
    work[i, a + 31] = x
    work[i, a + 27] = work[i, SPATIAL + 7]
    work[i, a + 33] = work[i, SPATIAL + 8]
    work[i, a + 34] = work[i, SPATIAL + 9]


@jit_algebra
def multiply_inertia(work, i, row, column, k):
    """Return row k of body i's articulated inertia, whose lower triangle is filled, times six entries of a row."""
    value = 0.0
    for j in range(6):
        entry = ARTICULATED + (6 * k + j if j <= k else 6 * j + k)
        value += work[i, entry] * work[row, column + j]
    return value


@jit_algebra
def articulated_body(tree, q, v, force, work, vd):
    """Write the acceleration ``vd = M^-1 (force - h)`` of a tree without mimic joints.

    Accelerations in the workspace are relative to the motion at zero ``vd``, whose forces recursive Newton-Euler has
    written. So the recursion has no velocity products.

    Parameters
    ----------
    q : (nq,), v : (nv,) state
    force : (nv,) generalized force, N and N m
    work : workspace
    vd : (nv,) out
    """
    bodies = len(tree.topology)
    newton_euler(tree, q, v, v, 0.0, GRAVITY, work)
    for i in range(bodies):
        write_articulated_inertia(work, i)
    for i in range(bodies - 1, 0, -1):
        parent, d, k = tree.topology[i, PARENT], tree.topology[i, DEGREE], tree.topology[i, V]
        for r in range(6):
            work[i, JOINT_SPACE + r] = multiply_inertia(work, i, d, SCREW, r)
        inertia = screw_product(work, d, JOINT_SPACE, i) + tree.armature[k]
        remaining = force[k] - screw_product(work, d, FORCE, i)
        work[i, JOINT_SPACE + 6] = inertia
        work[i, JOINT_SPACE + 7] = remaining
        share = 1.0 / inertia
        for r in range(6):
            gain = share * work[i, JOINT_SPACE + r]
            work[parent, FORCE + r] += work[i, FORCE + r] + gain * remaining
            for c in range(r + 1):
                entry = ARTICULATED + 6 * r + c
                work[parent, entry] += work[i, entry] - gain * work[i, JOINT_SPACE + c]
    solve_base(force, work)
    for r in range(6):
        vd[r] = work[0, ACCELERATION + r]
    for i in range(1, bodies):
        parent, d, k = tree.topology[i, PARENT], tree.topology[i, DEGREE], tree.topology[i, V]
        remaining = work[i, JOINT_SPACE + 7]
        for r in range(6):
            remaining -= work[i, JOINT_SPACE + r] * work[parent, ACCELERATION + r]
        acceleration = remaining / work[i, JOINT_SPACE + 6]
        vd[k] = acceleration
        for r in range(6):
            work[i, ACCELERATION + r] = work[parent, ACCELERATION + r] + work[d, SCREW + r] * acceleration


@jit_algebra
def solve_base(force, work):
    """Write the base's acceleration under the remaining force, by the Cholesky factor of its articulated inertia."""
    a = ARTICULATED
    for j in range(6):
        for i in range(j, 6):
            value = work[0, a + 6 * i + j]
            for k in range(j):
                value -= work[0, a + 6 * i + k] * work[0, a + 6 * j + k]
            work[0, a + 6 * i + j] = value**0.5 if i == j else value / work[0, a + 7 * j]
    for i in range(6):
        value = force[i] - work[0, FORCE + i]
        for k in range(i):
            value -= work[0, a + 6 * i + k] * work[0, ACCELERATION + k]
        work[0, ACCELERATION + i] = value / work[0, a + 7 * i]
    for i in range(5, -1, -1):
        value = work[0, ACCELERATION + i]
        for k in range(i + 1, 6):
            value -= work[0, a + 6 * k + i] * work[0, ACCELERATION + k]
        work[0, ACCELERATION + i] = value / work[0, a + 7 * i]


@jit_algebra
def factorised_dynamics(tree, q, v, force, work, M, vd):
    """Write the acceleration by the Cholesky factor of M (nv, nv), which is overwritten; also with mimic joints."""
    newton_euler(tree, q, v, v, 0.0, GRAVITY, work)
    gather_forces(tree, work, vd)
    add_inertias(tree, work)
    fill_mass_matrix(tree, work, M)
    n = len(vd)
    for k in range(n):
        vd[k] = force[k] - vd[k]
    cholesky(M, n, n)
    cholesky_solve(M, n, n, vd)


@jit
def forward_dynamics(tree, q, v, force, work, M, vd):
    """Write the acceleration ``vd = M^-1 (force - h)``.

    Parameters
    ----------
    q : (nq,), v : (nv,) state
    force : (nv,) generalized force: on the base, then joint torques; N and N m
    work : workspace
    M : (nv, nv) scratch, used only for trees with mimic joints
    vd : (nv,) out, must not be ``force``
    """
    if len(tree.topology) + 5 == len(tree.armature):
        articulated_body(tree, q, v, force, work, vd)
    else:
        factorised_dynamics(tree, q, v, force, work, M, vd)
