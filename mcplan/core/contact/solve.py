"""Contact solver: the velocities after a step as the minimum of a convex function, by Newton's method.

    l(v) = 1/2 (v - v*)' M (v - v*) + sum_i l_i(aim_i - J_i v),    dl_i/d(J_i v) = -impulse_i

Its gradient is ``M v - b - J' impulse`` with ``b = M v*`` the momentum without contact impulses. The second derivative
has the sparsity of the tree unless a contact couples two bodies, so that its factor has no fill.

The convex program would lift a sliding body, because it also restricts the velocity to a cone. Coulomb's law is a fixed
point: the target normal velocity is reduced by ``mu |s|`` until this shift no longer changes. The slip ``s = aim_t -
v_t - R_t p_t`` is zero while a contact sticks, and without load it is ``aim_t - v_t``; it is continuous between these
states. If only sliding contacts had a shift, a lightly loaded corner would alternately open and close.

Sources: A. Castro et al., IEEE T-RO 2023; V. Acary, F. Cadoux et al., ZAMM 2011 (the fixed point of De Saxce's term);
D. G. Anderson, J. ACM 1965 (acceleration of the fixed-point iteration).
"""

import math

from mcplan.core.algebra.tree_factor import tree_factor, tree_multiply, tree_solve
from mcplan.core.contact.law import cone_state, project, stiffness
from mcplan.core.contact.model import (
    APPLIED,
    BALLED,
    FRICTION,
    FRICTION_BOUND,
    FRICTION_IMPULSE,
    GRADIENT,
    JOINT_COMPLIANCE,
    KIND,
    LAST_APPLIED,
    LAST_REQUIRED,
    LIMIT_IMPULSE,
    LIMIT_VELOCITY,
    MOMENTUM,
    NEAR_LIMIT,
    PRODUCT,
    REQUIRED,
    SLIDE,
    SLOTS,
    STATE,
    STATE_NOW,
    STEP,
    STICK,
)
from mcplan.core.jit import jit, jit_inline

SHIFT_TOLERANCE, SHIFTS = 1e-5, 30
"""Tolerance of the shift of the target normal velocity (m/s), and the largest number of fixed-point iterations."""

MIN_MIX, MAX_MIX = -1.0, 0.9
"""Bounds of the weight of the previous iterate in the next one (Anderson acceleration)."""


@jit_inline
def respond(touch, c, x, y, z, forced):
    """Write the impulse of contact c at the velocity (x, y, z); with ``forced`` its state is not updated."""
    aim, mu = touch.aim, touch.value[c, FRICTION]
    kind = touch.index[c, KIND]
    tangential, normal = aim[c, 3], aim[c, 5]
    x = (aim[c, 0] - x) / tangential
    y = (aim[c, 1] - y) / tangential
    z = (aim[c, 2] - touch.shift[c, APPLIED] - z) / normal
    if not forced:
        if kind == BALLED:
            touch.index[c, STATE] = STICK if x * x + y * y + z * z <= mu * mu else SLIDE
        else:
            touch.index[c, STATE] = cone_state(x, y, z, tangential, normal, mu)
    project(kind, touch.index[c, STATE], x, y, z, tangential, normal, mu, touch.impulse[c])


@jit_inline
def joint_impulses(vector, k, speed):
    """Return the impulses (two scalars) of the limit and of the friction of a joint at a speed."""
    limit, friction = 0.0, 0.0
    side = vector[NEAR_LIMIT, k]
    if side != 0.0:
        limit = side * max(0.0, (vector[LIMIT_VELOCITY, k] - side * speed) / vector[JOINT_COMPLIANCE, k])
    bound = vector[FRICTION_BOUND, k]
    if bound > 0.0:
        friction = min(max(-speed / vector[JOINT_COMPLIANCE, k], -bound), bound)
    return limit, friction


@jit
def respond_all(M, parent, n, count, touch, vector, forced):
    """Write impulses and gradient at the present velocity; return squares of gradient and momentum, over the masses."""
    v, g = vector[STATE_NOW], vector[GRADIENT]
    tree_multiply(M, parent, n, v, g)
    total = 0.0
    for k in range(n):
        g[k] -= vector[MOMENTUM, k]
        total += vector[MOMENTUM, k] * vector[MOMENTUM, k] / M[k, k]
        limit, friction = joint_impulses(vector, k, v[k])
        vector[LIMIT_IMPULSE, k] = limit
        vector[FRICTION_IMPULSE, k] = friction
        g[k] -= limit + friction
    for c in range(count):
        slots = touch.index[c, SLOTS]
        for r in range(3):
            value = 0.0
            for k in range(slots):
                value += touch.J[c, r, k] * v[touch.where[c, k]]
            touch.speed[c, r] = value
        respond(touch, c, touch.speed[c, 0], touch.speed[c, 1], touch.speed[c, 2], forced)
        p = touch.impulse[c]
        for k in range(slots):
            push = touch.J[c, 0, k] * p[0] + touch.J[c, 1, k] * p[1] + touch.J[c, 2, k] * p[2]
            g[touch.where[c, k]] -= push
            total += push * push / M[touch.where[c, k], touch.where[c, k]]
    left = 0.0
    for k in range(n):
        left += g[k] * g[k] / M[k, k]
    return left, total


@jit
def hessian(M, n, count, touch, vector, G, H):
    """Write the Hessian at the present contact states to the lower triangle of H."""
    for i in range(n):
        for j in range(i + 1):
            H[i, j] = M[i, j]
        if vector[LIMIT_IMPULSE, i] != 0.0:
            H[i, i] += 1.0 / vector[JOINT_COMPLIANCE, i]
        if abs(vector[FRICTION_IMPULSE, i]) < vector[FRICTION_BOUND, i]:
            H[i, i] += 1.0 / vector[JOINT_COMPLIANCE, i]
    for c in range(count):
        aim, speed, slots = touch.aim, touch.speed, touch.index[c, SLOTS]
        stiffness(
            touch.index[c, KIND],
            touch.index[c, STATE],
            (aim[c, 0] - speed[c, 0]) / aim[c, 3],
            (aim[c, 1] - speed[c, 1]) / aim[c, 3],
            (aim[c, 2] - touch.shift[c, APPLIED] - speed[c, 2]) / aim[c, 5],
            aim[c, 3],
            aim[c, 5],
            touch.value[c, FRICTION],
            G,
        )
        for i in range(slots):
            x, y, z = touch.J[c, 0, i], touch.J[c, 1, i], touch.J[c, 2, i]
            u = G[0, 0] * x + G[0, 1] * y + G[0, 2] * z
            v = G[1, 0] * x + G[1, 1] * y + G[1, 2] * z
            w = G[2, 0] * x + G[2, 1] * y + G[2, 2] * z
            row = touch.where[c, i]
            for j in range(i + 1):
                H[row, touch.where[c, j]] += u * touch.J[c, 0, j] + v * touch.J[c, 1, j] + w * touch.J[c, 2, j]


@jit
def slope_at(n, count, touch, vector, alpha, rise, bend):
    """Return the derivative of l along the direction; ``rise + alpha bend`` is the part without contacts."""
    slope = rise + alpha * bend
    for k in range(n):
        if vector[NEAR_LIMIT, k] != 0.0 or vector[FRICTION_BOUND, k] > 0.0:
            limit, friction = joint_impulses(vector, k, vector[STATE_NOW, k] + alpha * vector[STEP, k])
            slope -= (limit + friction) * vector[STEP, k]
    for c in range(count):
        speed, climb, p = touch.speed[c], touch.climb[c], touch.impulse[c]
        respond(touch, c, speed[0] + alpha * climb[0], speed[1] + alpha * climb[1], speed[2] + alpha * climb[2], False)
        slope -= p[0] * climb[0] + p[1] * climb[1] + p[2] * climb[2]
    return slope


@jit
def line_search(M, parent, n, count, touch, vector):
    """Return the step length at the minimum of l along the direction, or 1 if the slope at 1 is negative or small."""
    step = vector[STEP]
    tree_multiply(M, parent, n, step, vector[PRODUCT])
    rise, bend, start = 0.0, 0.0, 0.0
    for k in range(n):
        bend += step[k] * vector[PRODUCT, k]
        start += step[k] * vector[GRADIENT, k]
    tree_multiply(M, parent, n, vector[STATE_NOW], vector[PRODUCT])
    for k in range(n):
        rise += step[k] * (vector[PRODUCT, k] - vector[MOMENTUM, k])
    for c in range(count):
        for r in range(3):
            value = 0.0
            for k in range(touch.index[c, SLOTS]):
                value += touch.J[c, r, k] * step[touch.where[c, k]]
            touch.climb[c, r] = value
    low, high = 0.0, 1.0
    low_slope = start
    high_slope = slope_at(n, count, touch, vector, 1.0, rise, bend)
    if high_slope <= 0.05 * abs(start):
        return 1.0
    side = 0
    alpha = 1.0
    for _ in range(30):
        # regula falsi with the Illinois rule: the slope grows along the line because l is convex
        alpha = (low * high_slope - high * low_slope) / (high_slope - low_slope)
        slope = slope_at(n, count, touch, vector, alpha, rise, bend)
        if abs(slope) <= 0.05 * abs(start):
            break
        if slope > 0.0:
            high, high_slope = alpha, slope
            low_slope *= 0.5 if side == 1 else 1.0
            side = 1
        else:
            low, low_slope = alpha, slope
            high_slope *= 0.5 if side == -1 else 1.0
            side = -1
    return alpha


@jit
def solve_program(M, parent, n, count, touch, scratch, tolerance, iterations, forced):
    """Move the velocity to the minimum of l; return the number of Newton steps.

    Parameters
    ----------
    parent : sparsity of the Hessian
    forced : whether the first step keeps the present contact states, a warm start that is often exact
    """
    vector, H = scratch.vector, scratch.H
    left, total = respond_all(M, parent, n, count, touch, vector, forced)
    steps = 0
    while steps < iterations and (forced or left > tolerance * tolerance * total):
        hessian(M, n, count, touch, vector, scratch.G, H)
        tree_factor(H, parent, n)
        for k in range(n):
            vector[STEP, k] = -vector[GRADIENT, k]
        tree_solve(H, parent, n, vector[STEP])
        alpha = 1.0 if forced else line_search(M, parent, n, count, touch, vector)
        for k in range(n):
            vector[STATE_NOW, k] += alpha * vector[STEP, k]
        forced = False
        steps += 1
        before = left
        left, total = respond_all(M, parent, n, count, touch, vector, False)
        if steps > 3 and left >= before and left <= 1e-10 * total:
            break  # rounding errors prevent further progress
    return steps


@jit_inline
def required_shift(touch, c):
    """Return the shift ``mu |s|`` (m/s) of contact c at the present velocity; 0 for grasps and sticking contacts."""
    holds = touch.index[c, KIND] == BALLED or touch.index[c, STATE] == STICK
    if holds or touch.value[c, FRICTION] == math.inf:
        return 0.0
    aim, speed, impulse = touch.aim[c], touch.speed[c], touch.impulse[c]
    return touch.value[c, FRICTION] * math.hypot(
        aim[0] - speed[0] - aim[3] * impulse[0], aim[1] - speed[1] - aim[4] * impulse[1]
    )


@jit
def solve_contacts(M, parent, n, count, touch, scratch, tolerance, iterations):
    """Solve the step with Coulomb's law: the convex program whose ``shift`` equals ``mu |s|`` for the resulting slip s.

    Returns
    -------
    steps : number of Newton steps.
    left : change of the shift in the last iteration, m/s.
    """
    steps, left, shift = 0, 0.0, touch.shift
    for turn in range(SHIFTS):
        steps += solve_program(M, parent, n, count, touch, scratch, tolerance, iterations, turn == 0)
        left, along, length = 0.0, 0.0, 0.0
        for c in range(count):
            shift[c, REQUIRED] = required_shift(touch, c)
            error = shift[c, REQUIRED] - shift[c, APPLIED]
            left = max(left, abs(error))
            if turn > 0:
                gain = error - (shift[c, LAST_REQUIRED] - shift[c, LAST_APPLIED])
                along += error * gain
                length += gain * gain
        if left <= SHIFT_TOLERANCE:
            break
        # Anderson acceleration: the mix of the last two iterates that minimises the linearised error
        mix = min(max(along / length, MIN_MIX), MAX_MIX) if length > 0.0 else 0.0
        for c in range(count):
            following = (
                (1.0 - mix) * shift[c, REQUIRED] + mix * shift[c, LAST_REQUIRED] if turn > 0 else shift[c, REQUIRED]
            )
            shift[c, LAST_APPLIED], shift[c, LAST_REQUIRED] = shift[c, APPLIED], shift[c, REQUIRED]
            shift[c, APPLIED] = max(following, 0.0)
    return steps, left
