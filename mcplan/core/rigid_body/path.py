"""What the postures of a path take, one after the other on one core: for paths of some hundred points.

Postures q(s) with tangents v = q' and derivatives vd of these; gone with rate sd they need the generalised force

    hold + of_u sdd + of_x sd²,   hold = h(q, 0),   of_u = M v,   of_x = M vd + h(q, v) - hold
"""

from mcplan.core.jit import jit
from mcplan.core.rigid_body.frame import fill_frame_jacobian, frame_arm, place_path
from mcplan.core.rigid_body.inverse_dynamics import inverse_dynamics


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
    """Write where a frame is, place (m, 3), and Jacobians J (m, 6, nv) of the point of its body at the world's origin.

    With these a wrench about the world's origin does work: a frame has ``body`` and ``offset`` (12,).
    """
    for i in range(len(q)):
        place_path(tree, q[i], work, body)
        x, y, z = frame_arm(work, body, offset)
        place[i, 0], place[i, 1], place[i, 2] = q[i, 0] + x, q[i, 1] + y, q[i, 2] + z
        fill_frame_jacobian(tree, work, body, -q[i, 0], -q[i, 1], -q[i, 2], J[i])
