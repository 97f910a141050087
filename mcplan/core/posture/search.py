"""Inverse kinematics with constraints: the posture nearest to a guide, by sequential quadratic programming.

    minimise   1/2 |q - guide|^2_W + w/2 |c_xy - c_p|^2 + v/2 sum max(0, A c_xy - comfort)^2
    subject to low <= rows(q) <= high,   joint limits

with c the centre of mass, c_p its preferred position, and ``A c_xy <= comfort`` a region that it should not leave.

Each step solves the program with linearised hard rows and the Hessian ``W + J_c' (w + v A' A) J_c``, with the exceeded
rows of A. If the rows contradict each other, the violated ones become a penalty ``rho/2 |J step - error|^2``, while
satisfied rows stay hard: such a step always exists. A step is scaled as a whole.

Once the steps are short, or if they do not become short in time, the cost is dropped and the search settles: it takes
the shortest steps onto the rows (Newton's method for an underdetermined system), which also works with redundant rows.
"""

import math
from typing import NamedTuple

import numpy as np

from mcplan.core.jit import jit, jit_algebra
from mcplan.core.optimize.active_set import SOLVED, solve_qp
from mcplan.core.posture.frame import FrameScratch
from mcplan.core.posture.rows import evaluate, fill_bounds, row_count
from mcplan.core.rigid_body.manifold import integrate

FOUND, NOT_FOUND = range(2)
"""Status of a search: all rows are satisfied within the tolerance, or not."""

MAX_STEPS, TRUST, TOLERANCE, STEP_TOLERANCE, MIN_DECREASE, PENALTY, RULE_SIZE = range(7)
"""Entries of ``rule``: largest number of steps; bound of a step in each coordinate (m, rad); largest violation that
counts as satisfied (m, rad); size of a step below which the search settles on its rows (m, rad). For conflicting rows:
smallest relative decrease of the violation in three steps, and penalty of a squared violation."""

STEP_COUNT, WORST_VIOLATION, COST, SOFT_STEPS, LAST_STEP, REPORT_SIZE = range(6)
"""Entries of ``report``: number of steps; largest violation (m, rad); cost; number of steps with violated rows as
penalties; size of the last step (m, rad)."""

ERROR_LIMIT = 0.3
"""m, rad: a row's error is reduced by at most this much in one step."""

MAX_FREE_VIOLATION = 2e-3
"""m, rad: a step is accepted whatever its cost if the sum of all violations is below this before and after it."""

SETTLING_PENALTY = 1e4
"""Factor on the penalty while the search settles on its rows."""

MAX_SETTLING_VIOLATION = 2e-2
"""m, rad: the search settles on its rows only if the sum of all violations is below this."""


class PostureScratch(NamedTuple):
    """Work space of a search with at most ``rows`` rows."""

    work: np.ndarray
    frame: FrameScratch
    value: np.ndarray  # (rows,) values of the rows
    low: np.ndarray  # (rows,) their bounds
    high: np.ndarray  # (rows,)
    J: np.ndarray  # (rows, nv)
    c: np.ndarray  # (3,) centre of mass
    J_c: np.ndarray  # (3, nv)
    away: np.ndarray  # (nv,) q - guide
    H: np.ndarray  # (nv, nv)
    matrices: np.ndarray  # (2, nv, >= nv): T and R of the quadratic program
    program: np.ndarray  # (2, rows): bounds of the rows in a step
    point: np.ndarray  # (4, nv): gradient, step, its bounds
    dual: np.ndarray  # (rows + nv,)
    vectors: np.ndarray  # (7, >= rows + nv + 1)
    active_rows: np.ndarray  # (2, nv + 1) int64: active rows of the quadratic program
    trial: np.ndarray  # (nq,)


@jit_algebra
def _violation(value, low, high, m):
    """Return the sum and the largest of the violations."""
    total, worst = 0.0, 0.0
    for i in range(m):
        amount = max(low[i] - value[i], value[i] - high[i])
        if amount > 0.0:
            total += amount
            worst = max(worst, amount)
    return total, worst


@jit_algebra
def com_cost(task, c):
    """Return the cost of the position of the centre of mass, its gradient x, y and its Hessian xx, xy, yy."""
    x, y, weight = c[0] - task.com_preference[0], c[1] - task.com_preference[1], task.com_preference[2]
    cost, gx, gy, xx, xy, yy = 0.5 * weight * (x * x + y * y), weight * x, weight * y, weight, 0.0, weight
    weight = task.com_preference[3]
    if weight > 0.0:
        for r in range(len(task.region)):
            a, b = task.region[r, 0], task.region[r, 1]
            excess = a * c[0] + b * c[1] - task.region[r, 3]
            if excess > 0.0:
                cost += 0.5 * weight * excess * excess
                gx, gy = gx + weight * excess * a, gy + weight * excess * b
                xx, xy, yy = xx + weight * a * a, xy + weight * a * b, yy + weight * b * b
    return cost, gx, gy, xx, xy, yy


@jit_algebra
def _cost(task, away, c):
    total = 0.0
    for k in range(len(away)):
        total += task.weight[k] * away[k] * away[k]
    return 0.5 * total + com_cost(task, c)[0]


@jit_algebra
def _quadratic(task, s, zero_gradient):
    """Write Hessian (lower triangle) and gradient of the cost; with ``zero_gradient`` the gradient is zero."""
    nv = len(s.away)
    _, gx, gy, xx, xy, yy = com_cost(task, s.c)
    for i in range(nv):
        jx, jy = s.J_c[0, i], s.J_c[1, i]
        s.point[0, i] = task.weight[i] * s.away[i] + gx * jx + gy * jy
        a, b = xx * jx + xy * jy, xy * jx + yy * jy
        for j in range(i + 1):
            s.H[i, j] = a * s.J_c[0, j] + b * s.J_c[1, j]
        s.H[i, i] += task.weight[i]
        if zero_gradient:
            s.point[0, i] = 0.0


@jit_algebra
def _penalise(s, m, equal, rho):
    """Turn violated rows and all equalities from constraints into penalties of the cost."""
    nv = len(s.away)
    for i in range(m):
        below, above = s.program[0, i], s.program[1, i]
        error = below if below > 0.0 else (above if above < 0.0 else 0.0)
        if i >= equal and error == 0.0:
            continue
        row = s.J[i]
        for a in range(nv):
            factor = rho * row[a]
            if factor != 0.0:
                s.point[0, a] -= factor * error
                for b in range(a + 1):
                    s.H[a, b] += factor * row[b]
        if i >= equal and above < 0.0:
            s.program[1, i] = math.inf
        elif i >= equal:
            s.program[0, i] = -math.inf


@jit
def search_posture(tree, task, rule, q, s, report):
    """Move q (nq,) to a posture that satisfies the rows; return FOUND or MISSED.

    Parameters
    ----------
    rule : (RULE_SIZE,), see ``MAX_STEPS`` ..
    s : PostureScratch; overwritten. Its ``value, low, high`` are the rows at the q that is returned.
    report : (REPORT_SIZE,) out.
    """
    m, equal = row_count(task)
    nv, n = len(s.away), len(s.away) - 6
    lower, upper = task.limit[0], task.limit[1]
    fill_bounds(task, s.low, s.high)
    for j in range(n):
        q[7 + j] = min(max(q[7 + j], lower[j]), upper[j])
    evaluate(tree, task, q, True, False, s.work, s.frame, s.value, s.J, s.c, s.J_c, s.away)
    total, worst = _violation(s.value, s.low, s.high, m)
    cost = _cost(task, s.away, s.c)
    gradient, step, step_low, step_high = s.point[0], s.point[1], s.point[2], s.point[3]
    multiplier = 20.0  # weight of violations in the merit function: at least that of the rows' dual variables
    soft_steps = 0
    before_soft = math.inf
    tolerance, step_tolerance = rule[TOLERANCE], rule[STEP_TOLERANCE]
    step_size = math.inf
    steps = 0
    settling = False
    converges_slowly = False  # as hard rows do that nearly repeat others
    status = NOT_FOUND
    if worst <= tolerance and step_tolerance == math.inf:
        status = FOUND
    while status == NOT_FOUND and steps < rule[MAX_STEPS]:
        steps += 1
        trust = rule[TRUST]
        for j in range(nv):
            step_low[j], step_high[j] = -trust, trust
        for j in range(n):
            step_low[6 + j] = max(-trust, min(lower[j] - q[7 + j], 0.0))
            step_high[6 + j] = min(trust, max(upper[j] - q[7 + j], 0.0))
        for i in range(m):
            s.program[0, i] = min(s.low[i] - s.value[i], ERROR_LIMIT)
            s.program[1, i] = max(s.high[i] - s.value[i], -ERROR_LIMIT)
        for i in range(equal):
            s.program[0, i] = max(s.program[0, i], -ERROR_LIMIT)
        _quadratic(task, s, settling)
        soft = converges_slowly
        converges_slowly = False
        if not soft:
            qp_status = solve_qp(
                nv, m, equal, s.H, gradient, s.J, s.program[0], s.program[1], step_low, step_high,
                step, s.dual, s.matrices[0], s.matrices[1], s.vectors, s.active_rows,
            )  # fmt: skip
            soft = qp_status != SOLVED
        if soft:
            soft_steps += 1
            _quadratic(task, s, settling)
            _penalise(s, m, equal, rule[PENALTY] * (SETTLING_PENALTY if settling else 1.0))
            # the equalities come first and are now in the cost, so only the rows after them are passed
            qp_status = solve_qp(
                nv, m - equal, 0, s.H, gradient, s.J[equal:], s.program[0, equal:], s.program[1, equal:],
                step_low, step_high, step, s.dual, s.matrices[0], s.matrices[1], s.vectors, s.active_rows,
            )  # fmt: skip
            if qp_status != SOLVED:
                break
        else:
            for i in range(m):
                multiplier = max(multiplier, min(2.0 * abs(s.dual[i]), 1e4))
        scale = 1.0
        accepted = False
        merit = cost + multiplier * total
        new_total, new_worst, new_cost = total, worst, cost
        while scale > 0.02:
            integrate(q, step, scale, s.trial)
            for j in range(n):
                s.trial[7 + j] = min(max(s.trial[7 + j], lower[j]), upper[j])
            evaluate(tree, task, s.trial, False, False, s.work, s.frame, s.value, s.J, s.c, s.J_c, s.away)
            new_total, new_worst = _violation(s.value, s.low, s.high, m)
            new_cost = _cost(task, s.away, s.c)
            if soft or settling:
                accepted = new_total < total
            else:
                accepted = (
                    new_cost + multiplier * new_total < merit
                    or new_total < 0.3 * total
                    or (total < MAX_FREE_VIOLATION and new_total < MAX_FREE_VIOLATION)
                )
            if accepted:
                break
            scale *= 0.5
        if settling and not soft and new_total > 0.5 * total:
            converges_slowly = True
        if not accepted and converges_slowly and not soft:
            evaluate(tree, task, q, True, False, s.work, s.frame, s.value, s.J, s.c, s.J_c, s.away)
            continue
        if not accepted:
            break
        for k in range(len(q)):
            q[k] = s.trial[k]
        step_size = 0.0
        for j in range(nv):
            step_size = max(step_size, scale * abs(step[j]))
        total, worst, cost = new_total, new_worst, new_cost
        if worst <= tolerance and (settling or (not soft and step_size <= step_tolerance)):
            status = FOUND
            break
        if total < MAX_SETTLING_VIOLATION and (step_size <= step_tolerance or soft or 2 * steps >= rule[MAX_STEPS]):
            settling = True
        if soft and soft_steps % 3 == 0:
            if total > (1.0 - rule[MIN_DECREASE]) * before_soft:
                break
            before_soft = total
        evaluate(tree, task, q, True, True, s.work, s.frame, s.value, s.J, s.c, s.J_c, s.away)
    if status == NOT_FOUND:
        evaluate(tree, task, q, True, False, s.work, s.frame, s.value, s.J, s.c, s.J_c, s.away)
        total, worst = _violation(s.value, s.low, s.high, m)
        cost = _cost(task, s.away, s.c)
        if worst <= tolerance:
            status = FOUND
    report[STEP_COUNT] = steps
    report[WORST_VIOLATION] = worst
    report[COST] = cost
    report[SOFT_STEPS] = soft_steps
    report[LAST_STEP] = step_size
    return status


@jit
def row_violations(tree, task, q, s, missed):
    """Write the violation of each row of a task at q (nq,).

    Parameters
    ----------
    s : PostureScratch; overwritten.
    missed : (rows,) out, m or rad.
    """
    fill_bounds(task, s.low, s.high)
    evaluate(tree, task, q, False, False, s.work, s.frame, s.value, s.J, s.c, s.J_c, s.away)
    for i in range(len(missed)):
        missed[i] = np.maximum(0.0, np.maximum(s.low[i] - s.value[i], s.value[i] - s.high[i]))
