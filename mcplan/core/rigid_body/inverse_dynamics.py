"""Forces that a motion takes: recursive Newton-Euler (Featherstone 2008, table 5.1).

force = M(q) vd + h(q, v)
"""

from mcplan.core.jit import jit_algebra
from mcplan.core.rigid_body.body import along, load_body, move_base, move_body, place_base, place_body, weigh_body
from mcplan.core.rigid_body.tree import DEGREE, FORCE, GRAVITY, PARENT, V


@jit_algebra
def newton_euler(tree, q, v, vd, scale, gravity, work):
    """Fill pose, screw, velocity, acceleration, inertia and force of every single body, for accelerations ``scale vd``.

    Parameters
    ----------
    scale : 0 leaves vd out, so that any array of its shape will do
    gravity : upward acceleration of the base that stands for gravity, m/s²
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
