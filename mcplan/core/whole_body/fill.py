"""Parameters of the whole-body program from the dynamics terms of the state, in one kernel call."""

from mcplan.core.algebra.consistent_rows import drop_determined, make_consistent
from mcplan.core.algebra.joint_bounds import RECOVERY, viable_acceleration
from mcplan.core.jit import jit, jit_algebra
from mcplan.core.whole_body import layout as lay
from mcplan.core.whole_body.contacts import fill_contact
from mcplan.core.whole_body.tasks import fill_task

FILLED, STATE_NOT_FINITE, NOT_FINITE = range(3)
"""Status of ``fill``: done; q or v is not finite; an input or a parameter is not finite."""

SCRATCH = 80
"""Minimum length of the scratch row."""

DETERMINED_FRACTION = 1e-2
"""A limit row counts as determined by the contact equations if its part independent of them is at most this fraction of
its norm."""


@jit
def fill(
    q, v, M, h, rows, summary, J, frames, external, layout, constants, tasks,
    contacts, values, planned, last, rate, limits, lower, torque, step, theta, G, basis,
):  # fmt: skip
    """Fill ``theta``; return FILLED, STATE_NOT_FINITE or NOT_FINITE.

    Parameters
    ----------
    q, v, M, h, rows, summary, J, frames : as ``rigid_body.terms`` fills them
    external : (3, nv): row 0: external generalised force; rows 1 and 2: for each coordinate the weight, and the weight
        times the target, of acceleration tasks that are evaluated in Python
    layout, constants, tasks, contacts : see `layout`; rows of ``tasks`` with the code -1 are filled in Python
    values : numbers of all tasks and contacts
    planned, last, rate : (forces,) planned and last forces, and the weight r of the change from the last; their cost
        ``w |f - f_planned|^2 + r |f - f_last|^2`` is ``(w + r) |f|^2 - 2 (w f_planned + r f_last)' f`` and a constant
    limits, lower : (limit rows, nv), (limit rows,) A and b of the limits ``A vd >= b``
    torque, step : (n,) centre and half width of the interval of the torques; empty without an interval
    theta : (parameters,) out
    G : (7, max(forces, contact rows, SCRATCH)) out: wrenches of the force unknowns in the first six rows; the last row
        is scratch, with the constant part of the cost in its last entry
    basis : (twice the contact rows and one more, nv) scratch
    """
    nv = layout[lay.NV]
    if not (_is_finite(q) and _is_finite(v)):
        return STATE_NOT_FINITE
    mass, bias = layout[lay.MASS], layout[lay.BIAS]
    weight, pull = layout[lay.ACCELERATION_WEIGHT], layout[lay.ACCELERATION_PULL]
    for j in range(nv):
        for i in range(nv):
            theta[mass + nv * j + i] = M[j, i]  # symmetric, so columns are rows
        theta[bias + j] = h[j] - external[0, j]
        theta[weight + j] = constants[lay.ACCELERATION_COST] + external[1, j]
        theta[pull + j] = external[2, j]
    scratch = G[6]
    constant = 0.0
    for k in range(len(tasks)):
        constant += fill_task(tasks[k], values, q, v, rows, summary, J, frames, layout, theta, scratch)
    for k in range(len(contacts)):
        fill_contact(k, contacts, values, J, frames, planned, last, rate, layout, constants, theta, G, scratch)
    _write_limits(limits, lower, layout, theta)
    if layout[lay.TORQUE_MIN] >= 0:
        _write_torque_interval(torque, step, layout, constants, theta)
    if len(contacts) > 1:
        # contacts of one link, or along a chain with few joints, have redundant rows; drift makes them inconsistent
        total, A = layout[lay.CONTACT_ROWS], theta[layout[lay.CONTACT_JACOBIAN] :]
        _fill_thresholds(contacts, values, scratch)
        rows = basis.reshape(basis.size)
        rank = make_consistent(A, theta[layout[lay.CONTACT_ACCELERATION] :], total, nv, rows, scratch)
        matrix, bounds = theta[layout[lay.LIMIT_MATRIX] :], theta[layout[lay.LIMIT_LOWER] :]
        limit_rows = layout[lay.LIMIT_ROWS]
        drop_determined(matrix, bounds, limit_rows, DETERMINED_FRACTION, A, total, nv, rows, rank, scratch)
    _fill_bounds(q, v, layout, constants, theta)
    scratch[len(scratch) - 1] = constant
    return FILLED if _is_valid(layout, values, theta) else NOT_FINITE


@jit
def _write_limits(limits, lower, layout, theta):
    """Write the rows of the limits."""
    count = len(lower)
    for i in range(count):
        theta[layout[lay.LIMIT_LOWER] + i] = lower[i]
        for j in range(layout[lay.NV]):
            theta[layout[lay.LIMIT_MATRIX] + i + count * j] = limits[i, j]


@jit
def _write_torque_interval(torque, step, layout, constants, theta):
    """Write the bounds of the interval of the torques; without one they are infinite."""
    for i in range(layout[lay.ACTUATED]):
        low, high = -constants[lay.LARGE], constants[lay.LARGE]
        if step.size:
            low, high = torque[i] - step[i], torque[i] + step[i]
        theta[layout[lay.TORQUE_MIN] + i], theta[layout[lay.TORQUE_MAX] + i] = low, high


@jit_algebra
def _fill_thresholds(contacts, values, threshold):
    """Write the smallest independent fraction of each contact row, from the directions that the row constrains."""
    for k in range(len(contacts)):
        x = values[contacts[k, lay.CONTACT_VALUES] :]
        for a in range(contacts[k, lay.ROWS]):
            fraction = 0.0
            for c in range(6):
                s = x[lay.SELECTION + 6 * a + c]
                fraction += s * s * x[lay.MIN_INDEPENDENT + c]
            threshold[contacts[k, lay.FIRST_ROW] + a] = fraction


@jit
def _is_valid(layout, values, theta):
    """Return whether all parameters are finite, and no input is NaN.

    A limit may be infinite, but taking a minimum could hide a NaN in it.
    """
    for k in range(len(values)):
        if values[k] != values[k]:
            return False
    for k in range(lay.JOINTS - lay.SIZES):  # the parameters: offsets from MASS on, sizes from SIZES on
        first = layout[lay.MASS + k]
        if first >= 0 and not _is_finite(theta[first : first + layout[lay.SIZES + k]]):
            return False
    return True


@jit
def _fill_bounds(q, v, layout, constants, theta):
    """Fill the acceleration bounds of the joints that have limits."""
    bounded, limits = layout[lay.BOUNDED], layout[lay.LIMITS]
    for k in range(bounded):
        joint = layout[lay.JOINTS + k]
        low, high = viable_acceleration(
            q[7 + joint],
            v[6 + joint],
            constants[limits + 3 * k],
            constants[limits + 3 * k + 1],
            constants[limits + 3 * k + 2],
            constants[lay.DT],
            constants[lay.BRAKING],
            constants[lay.CEILING],
            RECOVERY,
        )
        theta[layout[lay.ACCELERATION_MIN] + k] = low
        theta[layout[lay.ACCELERATION_MAX] + k] = high


@jit_algebra
def _is_finite(array):
    """Return whether all entries are finite: zero times infinity or NaN is NaN."""
    total = 0.0
    for k in range(len(array)):
        total += 0.0 * array[k]
    return total == 0.0
