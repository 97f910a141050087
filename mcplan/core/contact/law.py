"""Contact law: impulse of a contact as a function of its velocity, by projection on the admissible impulses.

    y = (aim - velocity) / R,    impulse = the nearest point of K to y in the norm of R

K is the friction cone ``|p_t| <= mu p_n``, or the ball ``|p| <= bound`` of a grasp. R > 0 is a compliance so small that
the contact is rigid in practice; it makes the forces of redundant contacts unique. The impulse is minus the gradient of
a convex function of the velocity, so that a whole step is one convex program.

Source: A. Castro et al., An unconstrained convex formulation of compliant contact, IEEE T-RO 2023, sec. IV.
"""

import math

from mcplan.core.contact.model import BALLED, OPEN, SLIDE, STICK
from mcplan.core.jit import jit_inline


@jit_inline
def cone_state(x, y, z, tangential, normal, mu):
    """Return the state of a contact with the unprojected impulse (x, y, z), from its compliances and friction.

    With infinite friction it does not slide; without friction it does not stick while separating along its normal.
    """
    reach = math.sqrt(x * x + y * y)
    if z > 0.0 and reach <= mu * z:
        return STICK
    if mu < math.inf and z > -mu * tangential / normal * reach:
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
    elif kind == BALLED:
        scale = mu / math.sqrt(x * x + y * y + z * z)
        p[0] = scale * x
        p[1] = scale * y
        p[2] = scale * z
    else:
        reach = math.sqrt(x * x + y * y)
        ratio = mu * tangential / normal
        p[2] = (z + ratio * reach) / (1.0 + mu * ratio)
        scale = mu * p[2] / reach
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
    if kind == BALLED:
        # all three compliances of a grasp are equal
        size = math.sqrt(x * x + y * y + z * z)
        scale = mu / (size * normal)
        a, b, c = x / size, y / size, z / size
        G[0, 0] = scale * (1.0 - a * a)
        G[1, 1] = scale * (1.0 - b * b)
        G[2, 2] = scale * (1.0 - c * c)
        G[0, 1] = -scale * a * b
        G[0, 2] = -scale * a * c
        G[1, 2] = -scale * b * c
    else:
        reach = math.sqrt(x * x + y * y)
        a, b = x / reach, y / reach
        ratio = mu * tangential / normal
        share = 1.0 / (1.0 + mu * ratio)
        pressure = max(share * (z + ratio * reach), 0.0)
        turn = mu * pressure / (reach * tangential)  # the direction of friction turns
        grow = mu * ratio * share / tangential  # its magnitude follows the normal impulse
        G[2, 2] = share / normal
        G[0, 2] = mu * share * a / normal
        G[1, 2] = mu * share * b / normal
        G[0, 0] = grow * a * a + turn * b * b
        G[1, 1] = grow * b * b + turn * a * a
        G[0, 1] = (grow - turn) * a * b
    G[1, 0] = G[0, 1]
    G[2, 0] = G[0, 2]
    G[2, 1] = G[1, 2]
