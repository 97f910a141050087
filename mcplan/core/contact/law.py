"""Contact law: impulse of a contact as a function of its velocity, by projection on the admissible impulses.

    y = (aim - velocity) / R,    impulse = the nearest point of K to y in the norm of R

K is the friction cone ``|p_t| <= mu p_n``, or the ball ``|p| <= bound`` of a grasp. R > 0 is a compliance so small that
the contact is rigid in practice; it makes the forces of redundant contacts unique. The impulse is minus the gradient of
a convex function of the velocity, so that a whole step is one convex program.

Source: A. Castro et al., An unconstrained convex formulation of compliant contact, IEEE T-RO 2023, sec. IV.
"""

import math

from mcplan.core.contact.model import BOUNDED_BY_BALL, OPEN, SLIDE, STICK
from mcplan.core.jit import jit_inline


@jit_inline
def cone_state(x, y, z, tangential, normal, mu):
    """Return the state of a contact with the unprojected impulse (x, y, z), from its compliances and friction.

    With infinite friction it does not slide; without friction it does not stick while separating along its normal.
    """
    tangential_norm = math.sqrt(x * x + y * y)
    if z > 0.0 and tangential_norm <= mu * z:
        return STICK
    if mu < math.inf and z > -mu * tangential / normal * tangential_norm:
        return SLIDE
    return OPEN


@jit_inline
def project(kind, state, x, y, z, tangential, normal, mu, p):
    """Write the impulse (3,) of a contact in a given state."""
    if state == OPEN:
        p[0] = 0.0
        p[1] = 0.0
        p[2] = 0.0
    elif state == STICK:
        p[0] = x
        p[1] = y
        p[2] = z
    elif kind == BOUNDED_BY_BALL:
        scale = mu / math.sqrt(x * x + y * y + z * z)
        p[0] = scale * x
        p[1] = scale * y
        p[2] = scale * z
    else:
        tangential_norm = math.sqrt(x * x + y * y)
        ratio = mu * tangential / normal
        p[2] = (z + ratio * tangential_norm) / (1.0 + mu * ratio)
        scale = mu * p[2] / tangential_norm
        p[0] = scale * x
        p[1] = scale * y


@jit_inline
def stiffness(kind, state, x, y, z, tangential, normal, mu, G):
    """Write the derivative G (3, 3), symmetric positive semidefinite, of minus the impulse by the velocity."""
    for i in range(3):
        for j in range(3):
            G[i, j] = 0.0
    if state == OPEN:
        return
    if state == STICK:
        G[0, 0] = 1.0 / tangential
        G[1, 1] = 1.0 / tangential
        G[2, 2] = 1.0 / normal
        return
    if kind == BOUNDED_BY_BALL:
        # all three compliances of a grasp are equal
        length = math.sqrt(x * x + y * y + z * z)
        scale = mu / (length * normal)
        a, b, c = x / length, y / length, z / length
        G[0, 0] = scale * (1.0 - a * a)
        G[1, 1] = scale * (1.0 - b * b)
        G[2, 2] = scale * (1.0 - c * c)
        G[0, 1] = -scale * a * b
        G[0, 2] = -scale * a * c
        G[1, 2] = -scale * b * c
    else:
        tangential_norm = math.sqrt(x * x + y * y)
        a, b = x / tangential_norm, y / tangential_norm
        ratio = mu * tangential / normal
        normal_share = 1.0 / (1.0 + mu * ratio)
        normal_impulse = max(normal_share * (z + ratio * tangential_norm), 0.0)
        turning_stiffness = mu * normal_impulse / (tangential_norm * tangential)  # the direction of friction turns
        growing_stiffness = mu * ratio * normal_share / tangential  # its magnitude follows the normal impulse
        G[2, 2] = normal_share / normal
        G[0, 2] = mu * normal_share * a / normal
        G[1, 2] = mu * normal_share * b / normal
        G[0, 0] = growing_stiffness * a * a + turning_stiffness * b * b
        G[1, 1] = growing_stiffness * b * b + turning_stiffness * a * a
        G[0, 1] = (growing_stiffness - turning_stiffness) * a * b
    G[1, 0] = G[0, 1]
    G[2, 0] = G[0, 2]
    G[2, 1] = G[1, 2]
