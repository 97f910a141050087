"""Inverse dynamics, ``M(q) vd + h(q, v)``, by recursive Newton-Euler (Featherstone 2008, table 5.1).

`path_forces` evaluates the dynamics along a path q(s) of some hundred points, on one core. With tangents v = q' and
derivatives vd = q'', a motion with the path velocity sd and acceleration sdd needs the generalised force

    hold + of_u sdd + of_x sd²,   hold = h(q, 0),   of_u = M v,   of_x = M vd + h(q, v) - hold
"""

from mcplan.core.jit import jit, jit_algebra
from mcplan.core.rigid_body.body import (
    screw_product,
    write_base_motion,
    write_base_pose,
    write_body_force,
    write_body_inertia,
    write_body_motion,
    write_body_pose,
)
from mcplan.core.rigid_body.frame import fill_frame_jacobian, frame_arm, write_path_poses
from mcplan.core.rigid_body.tree import DEGREE, FORCE, GRAVITY, PARENT, V


@jit_algebra
def newton_euler(tree, q, v, vd, scale, gravity, work):
    """Write pose, screw, velocity, acceleration, inertia and force of each single body, for accelerations ``scale vd``.

    Parameters
    ----------
    scale : with 0, vd is ignored and may be any array of its shape
    gravity : upward acceleration of the base in place of gravity, m/s²
    """
    write_base_pose(q, work)
    write_body_inertia(tree, work, 0)
    write_base_motion(v, vd, scale, gravity, work)
    write_body_force(work, 0)
    for i in range(1, len(tree.topology)):
        write_body_pose(tree, q, work, i)
        write_body_inertia(tree, work, i)
        write_body_motion(tree, v, vd, scale, work, i)
        write_body_force(work, i)


@jit_algebra
def gather_forces(tree, work, force):
    """Sum the bodies' forces toward the base and project them on the joints: write ``force`` (nv,)."""
    force[:] = 0.0
    for i in range(len(tree.topology) - 1, 0, -1):
        parent = tree.topology[i, PARENT]
        force[tree.topology[i, V]] += screw_product(work, tree.topology[i, DEGREE], FORCE, i)
        for k in range(6):
            work[parent, FORCE + k] += work[i, FORCE + k]
    for k in range(6):
        force[k] = work[0, FORCE + k]


@jit_algebra
def inverse_dynamics(tree, q, v, vd, work, force):
    """Write the generalised force ``M vd + h``.

    Parameters
    ----------
    q : (nq,), v, vd : (nv,) state and acceleration, world axes at the base origin
    work : workspace
    force : (nv,) out, N and N m
    """
    newton_euler(tree, q, v, vd, 1.0, GRAVITY, work)
    gather_forces(tree, work, force)
    for k in range(len(force)):
        force[k] += tree.armature[k] * vd[k]


@jit_algebra
def nonlinear_effects(tree, q, v, work, h):
    """Write Coriolis, centrifugal and gravity forces h (nv,): inverse dynamics without acceleration."""
    newton_euler(tree, q, v, v, 0.0, GRAVITY, work)
    gather_forces(tree, work, h)


@jit
def path_forces(tree, q, v, vd, zero, work, hold, of_u, of_x):
    """Write the forces of the module's docstring, each (m, nv), at postures q (m, nq) with v and vd (m, nv).

    ``zero`` (nv,) is zero.
    """
    for i in range(len(q)):
        inverse_dynamics(tree, q[i], zero, zero, work, hold[i])
        inverse_dynamics(tree, q[i], zero, v[i], work, of_u[i])
        inverse_dynamics(tree, q[i], v[i], vd[i], work, of_x[i])
        for k in range(len(zero)):
            of_u[i, k] -= hold[i, k]
            of_x[i, k] -= hold[i, k]


@jit
def write_frame_path(tree, q, body, offset, work, position, J):
    """Write positions of a frame (m, 3), and Jacobians J (m, 6, nv) of its body's point at the world's origin.

    These Jacobians map wrenches about the world's origin to generalised forces. ``offset`` (12,) is the frame's pose in
    ``body``.
    """
    for i in range(len(q)):
        write_path_poses(tree, q[i], work, body)
        x, y, z = frame_arm(work, body, offset)
        position[i, 0], position[i, 1], position[i, 2] = q[i, 0] + x, q[i, 1] + y, q[i, 2] + z
        fill_frame_jacobian(tree, work, body, -q[i, 0], -q[i, 1], -q[i, 2], J[i])
