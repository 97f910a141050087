"""Contact forces and wrenches of a solution of the whole-body program, and its residuals in the declared rows."""

from mcplan.core.jit import jit, jit_algebra
from mcplan.core.whole_body import layout as lay
from mcplan.core.whole_body.contacts import unknowns

MOTION, CONTACT, INEQUALITY, BIAS_SIZE, ACCELERATION_SIZE, RESIDUALS = range(6)
"""Entries of ``residual``: largest entry of ``M vd + h - S'tau - J_f f`` and of ``J_c vd - a_c``, largest violation of
a bound or of a direction without force; largest entry of ``h`` and of ``a_c``; then scratch, as long as the largest
number of rows of one kind."""

BALL_FACES = 26


@jit
def answer(layout, constants, contacts, values, theta, G, vd, tau, f, residual, forces, wrenches):
    """Check a point and fill its forces and wrenches at the contacts.

    Parameters
    ----------
    layout, constants, contacts, values, theta, G : as in the preceding call of ``fill.fill``
    vd, tau, f : (nv,), (n,), (forces,) the point
    residual : out, see ``MOTION`` ..
    forces : (vectors, 3) out: of each contact point, world axes; of a grasp its force at the origin
    wrenches : (contacts, 6) out: at the patch origins, world axes
    """
    residual[MOTION] = _motion(layout, theta, vd, tau, f, residual[RESIDUALS:])
    residual[CONTACT] = _contact(layout, theta, vd, residual[RESIDUALS:])
    worst = _release(layout, theta, f, residual[RESIDUALS:])
    worst = _larger(worst, _bounds(layout, constants, theta, vd, tau))
    worst = _larger(worst, _limits(layout, theta, vd, residual[RESIDUALS:]))
    for k in range(len(contacts)):
        contact = contacts[k]
        x = values[contact[lay.CONTACT_VALUES] :]
        if contact[lay.IS_GRASP]:
            worst = _larger(worst, _grasp(contact, x, layout, constants, theta, f))
        else:
            worst = _larger(worst, _cone(contact, layout, constants, theta, f))
        _unpack(contact, x, G, f, forces, wrenches[k])
    residual[INEQUALITY] = worst
    residual[BIAS_SIZE] = _largest(theta[layout[lay.BIAS] :], layout[lay.NV])
    residual[ACCELERATION_SIZE] = _largest(theta[layout[lay.CONTACT_ACCELERATION] :], layout[lay.CONTACT_ROWS])


@jit
def _larger(a, b):
    """Return the larger number, or NaN if one is."""
    return a if a > b or a != a else b


@jit
def _largest(array, count):
    """Return the largest magnitude of the first ``count`` entries, or NaN if one is."""
    worst = 0.0
    for k in range(count):
        worst = _larger(worst, abs(array[k]))
    return worst


@jit_algebra
def _add_product(theta, first, rows, vector, total):
    """Add to ``total`` the product of a matrix in ``theta`` with a vector, column by column."""
    for j in range(len(vector)):
        factor = vector[j]
        at = first + rows * j
        for i in range(rows):
            total[i] += theta[at + i] * factor


@jit
def _motion(layout, theta, vd, tau, f, scratch):
    nv = layout[lay.NV]
    for i in range(nv):
        scratch[i] = 0.0
    if len(f):
        _add_product(theta, layout[lay.FORCE_MAP], nv, f, scratch)
    for i in range(nv):
        scratch[i] = theta[layout[lay.BIAS] + i] - scratch[i]
    for i in range(len(tau)):
        scratch[6 + i] -= tau[i]
    _add_product(theta, layout[lay.MASS], nv, vd, scratch)
    return _largest(scratch, nv)


@jit
def _contact(layout, theta, vd, scratch):
    rows = layout[lay.CONTACT_ROWS]
    for i in range(rows):
        scratch[i] = -theta[layout[lay.CONTACT_ACCELERATION] + i]
    if rows:
        _add_product(theta, layout[lay.CONTACT_JACOBIAN], rows, vd, scratch)
    return _largest(scratch, rows)


@jit
def _release(layout, theta, f, scratch):
    rows = layout[lay.RELEASE_ROWS]
    for i in range(rows):
        scratch[i] = 0.0
    if rows:
        _add_product(theta, layout[lay.RELEASE], rows, f, scratch)
    return _largest(scratch, rows)


@jit
def _bounds(layout, constants, theta, vd, tau):
    """Largest violation of the bounds of torques and accelerations."""
    worst, lower, upper = 0.0, layout[lay.TORQUE_MIN], layout[lay.TORQUE_MAX]
    for i in range(len(tau)):
        worst = _larger(worst, abs(tau[i]) - constants[layout[lay.TORQUE] + i])
        if lower >= 0:  # the rate of the torques is bounded, too
            worst = _larger(worst, theta[lower + i] - tau[i])
            worst = _larger(worst, tau[i] - theta[upper + i])
    for k in range(layout[lay.BOUNDED]):
        value = vd[6 + layout[lay.JOINTS + k]]
        worst = _larger(worst, theta[layout[lay.ACCELERATION_MIN] + k] - value)
        worst = _larger(worst, value - theta[layout[lay.ACCELERATION_MAX] + k])
    return worst


@jit
def _limits(layout, theta, vd, scratch):
    """Largest violation of the rows ``A vd >= b``."""
    rows, worst = layout[lay.LIMIT_ROWS], 0.0
    for i in range(rows):
        scratch[i] = -theta[layout[lay.LIMIT_LOWER] + i]
    if rows:
        _add_product(theta, layout[lay.LIMIT_MATRIX], rows, vd, scratch)
    for i in range(rows):
        worst = _larger(worst, -scratch[i])
    return worst


@jit
def _cone(contact, layout, constants, theta, f):
    """Largest violation of a contact's friction pyramids and bounds of the normal force."""
    worst, total = 0.0, 0.0
    for k in range(contact[lay.POINTS]):
        at = contact[lay.FIRST_FORCE] + 3 * k
        friction = theta[layout[lay.FRICTION] + contact[lay.FIRST_POINT] + k]
        inside = theta[layout[lay.FRICTION_MARGIN] + contact[lay.FIRST_POINT] + k]
        total += f[at + 2]
        for j in range(contact[lay.FACES]):
            face = contact[lay.FIRST_FACE] + 2 * j
            pull = constants[face] * f[at] + constants[face + 1] * f[at + 1]
            worst = _larger(worst, pull - friction * f[at + 2] + inside)
    worst = _larger(worst, theta[layout[lay.NORMAL_MIN] + contact[lay.CONE]] - total)
    return _larger(worst, total - theta[layout[lay.NORMAL_MAX] + contact[lay.CONE]])


@jit
def _grasp(contact, x, layout, constants, theta, f):
    """Largest violation of a grasp's balls."""
    worst = 0.0
    first, rows = contact[lay.FIRST_FORCE], contact[lay.ROWS]
    for half in range(2):
        radius = theta[layout[lay.GRASP_FORCE if half == 0 else lay.GRASP_MOMENT] + contact[lay.CONE]]
        a, b, c = 0.0, 0.0, 0.0
        for i in range(rows):
            s = lay.SELECTION + 6 * i + 3 * half
            a += x[s] * f[first + i]
            b += x[s + 1] * f[first + i]
            c += x[s + 2] * f[first + i]
        for j in range(BALL_FACES):
            face = layout[lay.BALL] + 3 * j
            value = constants[face] * a + constants[face + 1] * b + constants[face + 2] * c
            worst = _larger(worst, value - radius)
    return worst


@jit
def _unpack(contact, x, G, f, forces, wrench):
    """Fill forces at the points and the wrench."""
    first, at = contact[lay.FIRST_FORCE], contact[lay.FIRST_VECTOR]
    for i in range(6):
        total = 0.0
        for k in range(first, first + unknowns(contact)):
            total += G[i, k] * f[k]
        wrench[i] = total
    for k in range(contact[lay.POINTS]):
        for i in range(3):
            if contact[lay.IS_GRASP]:
                forces[at, i] = wrench[i]
            else:
                axis = lay.AXES + 3 * i
                forces[at + k, i] = (
                    x[axis] * f[first + 3 * k] + x[axis + 1] * f[first + 3 * k + 1] + x[axis + 2] * f[first + 3 * k + 2]
                )
