"""Joint-space inertia by the composite-rigid-body algorithm (Featherstone 2008, table 6.2)."""

from mcplan.core.jit import jit_algebra
from mcplan.core.rigid_body.body import momentum_of, write_base_pose, write_body_inertia, write_body_pose
from mcplan.core.rigid_body.tree import DEGREE, PARENT, SCREW, SPATIAL, V


@jit_algebra
def composite_inertias(tree, q, work):
    """Write pose and screw of every body, and the inertia of its subtree."""
    write_base_pose(q, work)
    write_body_inertia(tree, work, 0)
    for i in range(1, len(tree.topology)):
        write_body_pose(tree, q, work, i)
        write_body_inertia(tree, work, i)
    add_inertias(tree, work)


@jit_algebra
def add_inertias(tree, work):
    """Add the inertias of the single bodies toward the base."""
    for i in range(len(tree.topology) - 1, 0, -1):
        parent = tree.topology[i, PARENT]
        for k in range(10):
            work[parent, SPATIAL + k] += work[i, SPATIAL + k]


@jit_algebra
def fill_mass_matrix(tree, work, M):
    """Write M from composite inertias and screws; further rows and columns that M may have become zero.

    ``M_jk = s_j' I_k s_k`` for j on the path from k to the base. Mimic joints add to the row and column of their joint.
    """
    nv = len(tree.armature)
    M[:, :] = 0.0
    for i in range(len(tree.topology) - 1, 0, -1):
        d, column = tree.topology[i, DEGREE], tree.topology[i, V]
        fx, fy, fz, nx, ny, nz = momentum_of(work, i, d)
        j = i
        while j > 0:
            e, row = tree.topology[j, DEGREE], tree.topology[j, V]
            value = (
                work[e, SCREW] * fx
                + work[e, SCREW + 1] * fy
                + work[e, SCREW + 2] * fz
                + work[e, SCREW + 3] * nx
                + work[e, SCREW + 4] * ny
                + work[e, SCREW + 5] * nz
            )
            M[row, column] += value
            if j != i:
                M[column, row] += value
            j = tree.topology[j, PARENT]
        M[0, column] += fx
        M[1, column] += fy
        M[2, column] += fz
        M[3, column] += nx
        M[4, column] += ny
        M[5, column] += nz
    for k in range(6):
        for row in range(6, nv):
            M[row, k] = M[k, row]
    for k in range(6):
        fx, fy, fz, nx, ny, nz = momentum_of(work, 0, k)
        M[0, k] = fx
        M[1, k] = fy
        M[2, k] = fz
        M[3, k] = nx
        M[4, k] = ny
        M[5, k] = nz
    for k in range(nv):
        M[k, k] += tree.armature[k]


@jit_algebra
def mass_matrix(tree, q, work, M):
    """Write the mass matrix for the mixed velocity, armature included.

    Parameters
    ----------
    q : (nq,)
    work : workspace
    M : (nv, nv) out, kg, kg m, kg m²
    """
    composite_inertias(tree, q, work)
    fill_mass_matrix(tree, work, M)
