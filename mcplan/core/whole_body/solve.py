"""One tick of the whole-body program in one call: fill, solution with the last active set, residual check."""

from mcplan.core.jit import jit
from mcplan.core.optimize import layout as condensed
from mcplan.core.optimize.layout import part
from mcplan.core.optimize.warm_start import solve_with_active_set
from mcplan.core.whole_body.check import check_solution
from mcplan.core.whole_body.fill import FILLED, fill

SOLVED = 3
"""Status of ``solve_tick`` besides those of ``fill``; FILLED means that the last active set is not the solution's."""


@jit
def solve_tick(
    q, v, M, h, rows, summary, J, frames, inputs, layout, constants, tasks, contacts, values, references, limits, lower,
    theta, scratch, basis, program, work, sense, multiplier, tolerance, first, vd, tau, f, residual, forces, wrenches,
):  # fmt: skip
    """Fill ``theta``, solve with the active set of ``sense``, and check the solution; return the status.

    Parameters
    ----------
    q .. basis : as for `fill.fill`
    program, work : the condensed program
    sense, multiplier : as for `warm_start.solve_with_active_set`
    tolerance : largest residual of an accepted solution
    first : (3,) first entries of accelerations, torques and force unknowns in the solution of the condensed program
    vd, tau, f : (nv,), (n,), (forces,) out: the solution
    residual, forces, wrenches : out, as for `check.check_solution`
    """
    status = fill(
        q, v, M, h, rows, summary, J, frames, inputs, layout, constants, tasks, contacts, values, references, limits,
        lower, theta, scratch, basis,
    )  # fmt: skip
    if status != FILLED:
        return status
    if not solve_with_active_set(program, work, theta, sense, multiplier) <= tolerance:
        return FILLED
    x = part(program, work, condensed.X)
    for k in range(vd.size):
        vd[k] = x[first[0] + k]
    for k in range(tau.size):
        tau[k] = x[first[1] + k]
    for k in range(f.size):
        f[k] = x[first[2] + k]
    check_solution(layout, constants, contacts, values, theta, scratch, vd, tau, f, residual, forces, wrenches)
    return SOLVED
