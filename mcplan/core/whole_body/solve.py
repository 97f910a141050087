"""One tick of the whole-body program in one call: fill, solution from the last active set on, residual check."""

from mcplan.core.jit import jit
from mcplan.core.optimize import layout as condensed, recover
from mcplan.core.optimize.layout import part
from mcplan.core.optimize.warm_start import solve_with_active_set
from mcplan.core.whole_body import layout as lay
from mcplan.core.whole_body.check import OBJECTIVE, REPORTED, RESIDUALS, STATIONARITY, check_solution, is_wrong
from mcplan.core.whole_body.fill import FILLED, fill

SOLVED = 3
"""Status of ``solve_tick``, as are those of ``fill``; FILLED means that the last active set does not lead there."""


@jit
def solve_tick(
    q, v, M, h, rows, summary, J, frames, inputs, layout, constants, tasks, contacts, values, planned, last, rate,
    limits, lower, torque, step, theta, scratch, basis, program, work, sense, multiplier, tolerance, first,
    max_residual, numbers, residual,
):  # fmt: skip
    """Fill ``theta``, solve from the active set of ``sense`` on, and check the solution; return the status.

    Parameters
    ----------
    q .. basis : as for `fill.fill`
    program, work : the condensed program
    sense, multiplier : as for `warm_start.solve_with_active_set`
    tolerance : largest residual of the condensed program
    first : (3,) first entries of accelerations, torques and force unknowns in the solution of the condensed program
    max_residual : largest residual of the declared rows, see `check.is_wrong`
    numbers : out: the solution vd (nv), tau (n), f (forces), forces and wrenches of `check.check_solution`, and its
        report: residuals, cost and stationarity
    residual : out, as for `check.check_solution`
    """
    status = fill(
        q, v, M, h, rows, summary, J, frames, inputs, layout, constants, tasks, contacts, values, planned, last, rate,
        limits, lower, torque, step, theta, scratch, basis,
    )  # fmt: skip
    if status != FILLED:
        return status
    if not solve_with_active_set(program, work, theta, sense, multiplier) <= tolerance:
        return FILLED
    x = part(program, work, condensed.X)
    a = layout[lay.NV]
    b = a + layout[lay.ACTUATED]
    c = b + layout[lay.FORCES]
    e = numbers.size - REPORTED
    d = e - 6 * len(contacts)
    vd, tau, f, report = numbers[:a], numbers[a:b], numbers[b:c], numbers[e:]
    forces, wrenches = numbers[c:d].reshape((-1, 3)), numbers[d:e].reshape((-1, 6))
    for k in range(vd.size):
        vd[k] = x[first[0] + k]
    for k in range(tau.size):
        tau[k] = x[first[1] + k]
    for k in range(f.size):
        f[k] = x[first[2] + k]
    check_solution(layout, constants, contacts, values, theta, scratch, vd, tau, f, residual, forces, wrenches)
    for k in range(RESIDUALS):
        report[k] = residual[k]
    reached = part(program, work, condensed.RESIDUAL)
    report[OBJECTIVE] = reached[recover.OBJECTIVE] + scratch[6, scratch.shape[1] - 1]
    report[STATIONARITY] = reached[recover.STATIONARITY]
    return FILLED if is_wrong(report, max_residual, False) else SOLVED
