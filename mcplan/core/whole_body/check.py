"""Contact forces and wrenches of a solution of the whole-body program, and its residuals in the declared rows."""

from mcplan.core.jit import jit, jit_algebra
from mcplan.core.whole_body import layout as lay
from mcplan.core.whole_body.contacts import force_count

MOTION, CONTACT, INEQUALITY, BIAS_SIZE, ACCELERATION_SIZE, RESIDUALS = range(6)
"""Entries of ``residual``: largest entry of ``M vd + h - S'tau - J_f f`` and of ``J_c vd - a_c``; largest violation
of a bound or of a direction without force; largest entry of ``h`` and of ``a_c``, for relative tolerances; then
scratch, as long as the largest number of rows of one kind."""

OBJECTIVE, STATIONARITY, REPORTED = range(RESIDUALS, RESIDUALS + 3)
"""Entries of the report of a solution after the residuals: the cost, and the relative gradient of the Lagrangian."""

MAX_STATIONARITY = 1e-4
"""Largest relative gradient of the Lagrangian with which a point is accepted as the minimiser."""

BALL_FACES = 26
"""Faces of the polytope in place of a ball."""


@jit
def check_solution(layout, constants, contacts, values, theta, G, vd, tau, f, residual, forces, wrenches):
    """Write the residuals of a solution, and its forces and wrenches at the contacts.

    Parameters
    ----------
    layout, constants, contacts, values, theta, G : as in the preceding call of ``fill.fill``
    vd, tau, f : (nv,), (n,), (forces,) the solution
    residual : out, see ``MOTION`` ..
    forces : (vectors, 3) out: of each contact point, world axes; of a grasp its force at the origin
    wrenches : (contacts, 6) out: at the patch origins, world axes
    """
    residual[MOTION] = _motion_residual(layout, theta, vd, tau, f, residual[RESIDUALS:])
    residual[CONTACT] = _contact_residual(layout, theta, vd, residual[RESIDUALS:])
    worst = _force_free_residual(layout, theta, f, residual[RESIDUALS:])
    worst = _max_or_nan(worst, _bound_violation(layout, constants, theta, vd, tau))
    worst = _max_or_nan(worst, _limit_violation(layout, theta, vd, residual[RESIDUALS:]))
    for k in range(len(contacts)):
        contact = contacts[k]
        x = values[contact[lay.CONTACT_VALUES] :]
        if contact[lay.IS_GRASP]:
            worst = _max_or_nan(worst, _grasp_violation(contact, x, layout, constants, theta, f))
        else:
            worst = _max_or_nan(worst, _cone_violation(contact, layout, constants, theta, f))
        _write_forces(contact, x, G, f, forces, wrenches[k])
    residual[INEQUALITY] = worst
    residual[BIAS_SIZE] = _largest(theta[layout[lay.BIAS] :], layout[lay.NV])
    residual[ACCELERATION_SIZE] = _largest(theta[layout[lay.CONTACT_ACCELERATION] :], layout[lay.CONTACT_ROWS])


@jit
def is_wrong(report, tolerance, hard_only):
    """Return whether a solution fails the residual check; with ``hard_only`` only the equation of motion counts."""
    fails = not report[MOTION] <= tolerance * max(1.0, report[BIAS_SIZE])
    if not hard_only:
        allowed = tolerance * max(1.0, report[ACCELERATION_SIZE])
        fails = fails or not report[CONTACT] <= allowed or not report[INEQUALITY] <= 2.0 * allowed
    return fails or report[STATIONARITY] > MAX_STATIONARITY


@jit
def _max_or_nan(a, b):
    """Return the larger number, or NaN if one is."""
    return a if a > b or a != a else b


@jit
def _largest(array, count):
    """Return the largest magnitude of the first ``count`` entries, or NaN if one is."""
    worst = 0.0
    for k in range(count):
        worst = _max_or_nan(worst, abs(array[k]))
    return worst


@jit_algebra
def _add_product(theta, first, rows, vector, total):
    """Add to ``total`` the product of a matrix in ``theta`` with a vector, column by column."""
    for j in range(len(vector)):
        factor = vector[j]
        start = first + rows * j
        for i in range(rows):
            total[i] += theta[start + i] * factor


@jit
def _motion_residual(layout, theta, vd, tau, f, scratch):
    """Return the largest entry of ``M vd + h - S'tau - J_f f``."""
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
def _contact_residual(layout, theta, vd, scratch):
    """Return the largest entry of ``J_c vd - a_c``."""
    rows = layout[lay.CONTACT_ROWS]
    for i in range(rows):
        scratch[i] = -theta[layout[lay.CONTACT_ACCELERATION] + i]
    if rows:
        _add_product(theta, layout[lay.CONTACT_JACOBIAN], rows, vd, scratch)
    return _largest(scratch, rows)


@jit
def _force_free_residual(layout, theta, f, scratch):
    """Return the largest total force along a direction without force."""
    rows = layout[lay.RELEASE_ROWS]
    for i in range(rows):
        scratch[i] = 0.0
    if rows:
        _add_product(theta, layout[lay.RELEASE], rows, f, scratch)
    return _largest(scratch, rows)


@jit
def _bound_violation(layout, constants, theta, vd, tau):
    """Return the largest violation of the bounds of torques and accelerations."""
    worst, lower, upper = 0.0, layout[lay.TORQUE_MIN], layout[lay.TORQUE_MAX]
    for i in range(len(tau)):
        worst = _max_or_nan(worst, abs(tau[i]) - constants[layout[lay.TORQUE] + i])
        if lower >= 0:  # the rate of the torques is bounded, too
            worst = _max_or_nan(worst, theta[lower + i] - tau[i])
            worst = _max_or_nan(worst, tau[i] - theta[upper + i])
    for k in range(layout[lay.BOUNDED]):
        value = vd[6 + layout[lay.JOINTS + k]]
        worst = _max_or_nan(worst, theta[layout[lay.ACCELERATION_MIN] + k] - value)
        worst = _max_or_nan(worst, value - theta[layout[lay.ACCELERATION_MAX] + k])
    return worst


@jit
def _limit_violation(layout, theta, vd, scratch):
    """Return the largest violation of the rows ``A vd >= b``."""
    rows, worst = layout[lay.LIMIT_ROWS], 0.0
    for i in range(rows):
        scratch[i] = -theta[layout[lay.LIMIT_LOWER] + i]
    if rows:
        _add_product(theta, layout[lay.LIMIT_MATRIX], rows, vd, scratch)
    for i in range(rows):
        worst = _max_or_nan(worst, -scratch[i])
    return worst


@jit
def _cone_violation(contact, layout, constants, theta, f):
    """Return the largest violation of a contact's friction pyramids and bounds of the normal force."""
    worst, total = 0.0, 0.0
    for k in range(contact[lay.POINTS]):
        index = contact[lay.FIRST_FORCE] + 3 * k
        friction = theta[layout[lay.FRICTION] + contact[lay.FIRST_POINT] + k]
        margin = theta[layout[lay.FRICTION_MARGIN] + contact[lay.FIRST_POINT] + k]
        total += f[index + 2]
        for j in range(contact[lay.FACES]):
            face = contact[lay.FIRST_FACE] + 2 * j
            tangential = constants[face] * f[index] + constants[face + 1] * f[index + 1]
            worst = _max_or_nan(worst, tangential - friction * f[index + 2] + margin)
    worst = _max_or_nan(worst, theta[layout[lay.NORMAL_MIN] + contact[lay.CONE]] - total)
    return _max_or_nan(worst, total - theta[layout[lay.NORMAL_MAX] + contact[lay.CONE]])


@jit
def _grasp_violation(contact, x, layout, constants, theta, f):
    """Return the largest violation of the balls (their polytopes) that bound force and moment of a grasp."""
    worst = 0.0
    first, rows = contact[lay.FIRST_FORCE], contact[lay.ROWS]
    for angular in range(2):
        radius = theta[layout[lay.GRASP_FORCE if angular == 0 else lay.GRASP_MOMENT] + contact[lay.CONE]]
        a, b, c = 0.0, 0.0, 0.0
        for i in range(rows):
            s = lay.SELECTION + 6 * i + 3 * angular
            a += x[s] * f[first + i]
            b += x[s + 1] * f[first + i]
            c += x[s + 2] * f[first + i]
        for j in range(BALL_FACES):
            face = layout[lay.BALL] + 3 * j
            value = constants[face] * a + constants[face + 1] * b + constants[face + 2] * c
            worst = _max_or_nan(worst, value - radius)
    return worst


@jit
def _write_forces(contact, x, G, f, forces, wrench):
    """Write the forces at the points and the wrench."""
    first, row = contact[lay.FIRST_FORCE], contact[lay.FIRST_VECTOR]
    for i in range(6):
        total = 0.0
        for k in range(first, first + force_count(contact)):
            total += G[i, k] * f[k]
        wrench[i] = total
    for k in range(contact[lay.POINTS]):
        for i in range(3):
            if contact[lay.IS_GRASP]:
                forces[row, i] = wrench[i]
            else:
                axis = lay.AXES + 3 * i
                forces[row + k, i] = (
                    x[axis] * f[first + 3 * k] + x[axis + 1] * f[first + 3 * k + 1] + x[axis + 2] * f[first + 3 * k + 2]
                )
