"""Dynamics terms of a whole-body controller at one state: M, h, momentum, CoM and frames in one pass over the tree."""

from mcplan.core.jit import jit_algebra
from mcplan.core.rigid_body.body import screw_product
from mcplan.core.rigid_body.com import fill_momentum_matrix
from mcplan.core.rigid_body.frame import fill_frame_jacobian, fill_frame_motion, frame_arm
from mcplan.core.rigid_body.inverse_dynamics import newton_euler
from mcplan.core.rigid_body.mass_matrix import fill_mass_matrix
from mcplan.core.rigid_body.tree import DEGREE, FORCE, GRAVITY, PARENT, POSE, SCREW, SPATIAL, Tree, V

COM_POSITION, COM_VELOCITY, COM_BIAS, MOMENTUM, MOMENTUM_BIAS, SUMMARY_SIZE = 0, 3, 6, 9, 15, 21
"""Index of the first entry of each quantity in the summary: position of the CoM (3), its velocity (3), its ``Jdot v``
(3), momentum (6, linear, and angular about the CoM), its ``Adot v`` (6)."""

FRAME_R, FRAME_P, FRAME_VELOCITY, FRAME_BIAS, FRAME_SIZE = 0, 9, 12, 18, 24
"""Columns of the frames' values: rotation (9, row-major), position, velocity (6), classical bias acceleration (6)."""


@jit_algebra
def fill_terms(topology, joint, inertia, armature, q, v, body, offset, work, M, h, A, summary, J, frames):
    """Write all outputs at a state.

    Gravity is added after the sums, as the weight of each joint's subtree. So one Newton-Euler pass without gravity
    yields h as well as the bias accelerations of frames and momentum.

    Parameters
    ----------
    topology .. armature : of the tree; arrays are passed to a kernel faster than tuples
    q : (nq,), v : (nv,)
    body, offset : (frames,) int64, (frames, 12): body that carries each frame, and pose in the body
    work : workspace
    M : (nv, nv) out, mass matrix
    h : (nv,) out, Coriolis, centrifugal and gravity forces
    A : (9, nv) out, momentum matrix (6), Jacobian of the centre of mass (3)
    summary : (21,) out, see ``COM_POSITION`` ..
    J : (frames, 6, nv) out, Jacobians of the frames
    frames : (frames, 24) out, see ``FRAME_R`` ..
    """
    tree = Tree(topology, joint, inertia, armature)
    # without accelerations and gravity: the scale 0 makes the second v irrelevant
    newton_euler(tree, q, v, v, 0.0, 0.0, work)
    nv = len(v)
    h[:] = 0.0
    for i in range(len(tree.topology) - 1, 0, -1):
        parent, d = tree.topology[i, PARENT], tree.topology[i, DEGREE]
        for k in range(6):
            work[parent, FORCE + k] += work[i, FORCE + k]
        for k in range(10):
            work[parent, SPATIAL + k] += work[i, SPATIAL + k]
        # force of gravity on the subtree along the screw, over g: z component of m s_lin + s_ang x m c
        weight = (
            work[i, SPATIAL] * work[d, SCREW + 2]
            + work[i, SPATIAL + 2] * work[d, SCREW + 3]
            - work[i, SPATIAL + 1] * work[d, SCREW + 4]
        )
        h[tree.topology[i, V]] += screw_product(work, d, FORCE, i) + GRAVITY * weight
    for k in range(6):
        h[k] = work[0, FORCE + k]
    m, x, y, z = work[0, SPATIAL], work[0, SPATIAL + 1], work[0, SPATIAL + 2], work[0, SPATIAL + 3]
    h[2] += GRAVITY * m
    h[3] += GRAVITY * y
    h[4] -= GRAVITY * x
    fill_mass_matrix(tree, work, M)
    fill_momentum_matrix(tree, work, A)
    scale = 1.0 / m
    for row in range(3):
        for k in range(nv):
            A[6 + row, k] = scale * A[row, k]
    x, y, z = scale * x, scale * y, scale * z
    summary[COM_POSITION] = q[0] + x
    summary[COM_POSITION + 1] = q[1] + y
    summary[COM_POSITION + 2] = q[2] + z
    for row in range(6):
        value = 0.0
        for k in range(nv):
            value += A[row, k] * v[k]
        summary[MOMENTUM + row] = value
        summary[MOMENTUM_BIAS + row] = work[0, FORCE + row]
    fx, fy, fz = work[0, FORCE], work[0, FORCE + 1], work[0, FORCE + 2]
    summary[MOMENTUM_BIAS + 3] -= y * fz - z * fy
    summary[MOMENTUM_BIAS + 4] -= z * fx - x * fz
    summary[MOMENTUM_BIAS + 5] -= x * fy - y * fx
    for row in range(3):
        summary[COM_VELOCITY + row] = scale * summary[MOMENTUM + row]
        summary[COM_BIAS + row] = scale * summary[MOMENTUM_BIAS + row]
    for f in range(len(body)):
        b = body[f]
        x, y, z = frame_arm(work, b, offset[f])
        fill_frame_jacobian(tree, work, b, x, y, z, J[f])
        fill_frame_motion(work, b, x, y, z, frames[f, FRAME_VELOCITY:FRAME_BIAS], frames[f, FRAME_BIAS:FRAME_SIZE])
        for i in range(3):
            for j in range(3):
                frames[f, 3 * i + j] = (
                    work[b, POSE + 3 * i] * offset[f, j]
                    + work[b, POSE + 3 * i + 1] * offset[f, 3 + j]
                    + work[b, POSE + 3 * i + 2] * offset[f, 6 + j]
                )
        frames[f, FRAME_P] = q[0] + x
        frames[f, FRAME_P + 1] = q[1] + y
        frames[f, FRAME_P + 2] = q[2] + z
