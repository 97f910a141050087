"""Inverse dynamics, ``M(q) vd + h(q, v)``, by recursive Newton-Euler (Featherstone 2008, table 5.1).

`path_forces` evaluates the dynamics along a path q(s) of some hundred points, on one core. With tangents v = q' and
derivatives vd = q'', a motion with the path velocity sd needs the generalised force

    hold + of_u sdd + of_x sd²,   hold = h(q, 0),   of_u = M v,   of_x = M vd + h(q, v) - hold
"""

from mcplan.core.jit import jit, jit_algebra
from mcplan.core.rigid_body.body import along, load_body, move_base, move_body, place_base, place_body, weigh_body
from mcplan.core.rigid_body.frame import fill_frame_jacobian, frame_arm, place_path
from mcplan.core.rigid_body.tree import DEGREE, FORCE, GRAVITY, PARENT, V


@jit_algebra
def newton_euler(tree, q, v, vd, scale, gravity, work):
    """Fill pose, screw, velocity, acceleration, inertia and force of every single body, for accelerations ``scale vd``.

    Parameters
    ----------
    scale : with 0, vd is ignored and may be any array of its shape
    gravity : upward acceleration of the base in place of gravity, m/s²
    """
    place_base(q, work)
    weigh_body(tree, work, 0)
    move_base(v, vd, scale, gravity, work)
    load_body(work, 0)
    for i in range(1, len(tree.topology)):
        place_body(tree, q, work, i)
        weigh_body(tree, work, i)
        move_body(tree, v, vd, scale, work, i)
        load_body(work, i)


@jit_algebra
def gather_forces(tree, work, force):
    """Sum the bodies' forces toward the base and project them on the joints; overwrites ``force`` (nv,)."""
    force[:] = 0.0
    for i in range(len(tree.topology) - 1, 0, -1):
        parent = tree.topology[i, PARENT]
        force[tree.topology[i, V]] += along(work, tree.topology[i, DEGREE], FORCE, i)
        for k in range(6):
            work[parent, FORCE + k] += work[i, FORCE + k]
    for k in range(6):
        force[k] = work[0, FORCE + k]


@jit_algebra
def inverse_dynamics(tree, q, v, vd, work, force):
    """Generalized force ``M vd + h``.

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
    """Coriolis, centrifugal and gravity forces h (nv,): inverse dynamics without acceleration."""
    newton_euler(tree, q, v, v, 0.0, GRAVITY, work)
    gather_forces(tree, work, h)


@jit
def path_forces(tree, q, v, vd, still, work, hold, of_u, of_x):
    """Write the forces of the module's docstring, each (m, nv), at postures q (m, nq) with v and vd (m, nv).

    ``still`` (nv,) is zero.
    """
    for i in range(len(q)):
        inverse_dynamics(tree, q[i], still, still, work, hold[i])
        inverse_dynamics(tree, q[i], still, v[i], work, of_u[i])
        inverse_dynamics(tree, q[i], v[i], vd[i], work, of_x[i])
        for k in range(len(still)):
            of_u[i, k] -= hold[i, k]
            of_x[i, k] -= hold[i, k]


@jit
def path_of_frame(tree, q, body, offset, work, place, J):
    """Write positions of a frame, place (m, 3), and Jacobians J (m, 6, nv) of its body's point at the world's origin.

    These Jacobians map wrenches about the world's origin to generalised forces. ``offset`` (12,) is the frame's pose in
    ``body``.
    """
    for i in range(len(q)):
        place_path(tree, q[i], work, body)
        x, y, z = frame_arm(work, body, offset)
        place[i, 0], place[i, 1], place[i, 2] = q[i, 0] + x, q[i, 1] + y, q[i, 2] + z
        fill_frame_jacobian(tree, work, body, -q[i, 0], -q[i, 1], -q[i, 2], J[i])
