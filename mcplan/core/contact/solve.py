"""Contact solver: the velocities after a step as the minimum of a convex function, by Newton's method.

    l(v) = 1/2 (v - v*)' M (v - v*) + sum_i l_i(aim_i - J_i v),    dl_i/d(J_i v) = -impulse_i

Its gradient is ``M v - b - J' impulse`` with ``b = M v*`` the momentum without contact impulses. The second derivative
has the sparsity of the tree unless a contact couples two bodies, so that its factor has no fill; then it is dense.

The convex program would lift a sliding body, because it also restricts the velocity to a cone. Coulomb's law is a fixed
point: the target normal velocity is reduced by ``mu |s|`` until this shift no longer changes. The slip ``s = aim_t -
v_t - R_t p_t`` is zero while a contact sticks, and without load it is ``aim_t - v_t``; it is continuous between these
states. If only sliding contacts had a shift, a lightly loaded corner would alternately open and close.

Sources: A. Castro et al., IEEE T-RO 2023; V. Acary, F. Cadoux et al., ZAMM 2011 (the fixed point of De Saxce's term);
D. G. Anderson, J. ACM 1965 (acceleration of the fixed-point iteration).
"""

import math

import numpy as np

from mcplan.core.algebra.products import segment
from mcplan.core.algebra.tree_factor import dense_factor, dense_solve, tree_factor, tree_multiply, tree_solve
from mcplan.core.contact.law import cone_state, project, stiffness
from mcplan.core.contact.model import (
    APPLIED,
    BOUNDED_BY_BALL,
    FRICTION,
    FRICTION_BOUND,
    FRICTION_IMPULSE,
    GRADIENT,
    INVERSE_DIAGONAL,
    JOINT_COMPLIANCE,
    KIND,
    LAST_APPLIED,
    LAST_REQUIRED,
    LIMIT_IMPULSE,
    LIMIT_VELOCITY,
    MOMENTUM,
    NEAR_LIMIT,
    NEW_VELOCITY,
    PRODUCT,
    REQUIRED,
    SLIDE,
    SLOTS,
    STATE,
    STEP,
    STICK,
    VELOCITY_PRODUCT,
)
from mcplan.core.jit import jit, jit_inline, jit_inline_exact

SHIFT_TOLERANCE, MAX_SHIFT_ITERATIONS = 1e-5, 30
"""Tolerance of the shift of the target normal velocity (m/s), and the largest number of fixed-point iterations."""

MIN_ANDERSON_WEIGHT, MAX_ANDERSON_WEIGHT = -1.0, 0.9
"""Bounds of the weight of the previous iterate in the next one (Anderson acceleration)."""


@jit_inline
def update_impulse(contacts, c, x, y, z, keep_state):
    """Write the impulse of contact c at the velocity (x, y, z); with ``keep_state`` its state is not updated."""
    aim, mu = contacts.target, contacts.value[c, FRICTION]
    kind = contacts.index[c, KIND]
    tangential, normal = aim[c, 3], aim[c, 5]
    x = (aim[c, 0] - x) / tangential
    y = (aim[c, 1] - y) / tangential
    z = (aim[c, 2] - contacts.shift[c, APPLIED] - z) / normal
    if not keep_state:
        if kind == BOUNDED_BY_BALL:
            contacts.index[c, STATE] = STICK if x * x + y * y + z * z <= mu * mu else SLIDE
        else:
            contacts.index[c, STATE] = cone_state(x, y, z, tangential, normal, mu)
    project(kind, contacts.index[c, STATE], x, y, z, tangential, normal, mu, contacts.impulse[c])


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


@jit_inline_exact
def multiply_step(M, parent, n, count, contacts, vector):
    """Write M times the direction, and the derivatives of the contacts' speeds along it."""
    step = vector[STEP]
    tree_multiply(M, parent, n, step, vector[PRODUCT])
    for c in range(count):
        for r in range(3):
            value = 0.0
            for k in range(contacts.index[c, SLOTS]):
                value += contacts.J[c, r, k] * step[np.uint64(contacts.columns[c, k])]
            contacts.speed_slope[c, r] = value


@jit_inline_exact
def move(n, count, contacts, vector, alpha):
    """Move the velocity along the direction, with M times the velocity and the speeds of the contacts."""
    for k in range(n):
        vector[NEW_VELOCITY, k] += alpha * vector[STEP, k]
        vector[VELOCITY_PRODUCT, k] += alpha * vector[PRODUCT, k]
    for c in range(count):
        for r in range(3):
            contacts.speed[c, r] += alpha * contacts.speed_slope[c, r]


@jit_inline_exact
def update_impulses(n, count, contacts, vector, keep_states):
    """Write impulses and gradient at the present speeds; return the squares of gradient and momentum, over M_kk."""
    v, g, inverse = vector[NEW_VELOCITY], vector[GRADIENT], vector[INVERSE_DIAGONAL]
    scale = 0.0
    for k in range(n):
        scale += vector[MOMENTUM, k] * vector[MOMENTUM, k] * inverse[k]
        limit, friction = joint_impulses(vector, k, v[k])
        vector[LIMIT_IMPULSE, k] = limit
        vector[FRICTION_IMPULSE, k] = friction
        g[k] = vector[VELOCITY_PRODUCT, k] - vector[MOMENTUM, k] - (limit + friction)
    for c in range(count):
        update_impulse(contacts, c, contacts.speed[c, 0], contacts.speed[c, 1], contacts.speed[c, 2], keep_states)
        p = contacts.impulse[c]
        for k in range(contacts.index[c, SLOTS]):
            column = np.uint64(contacts.columns[c, k])
            push = contacts.J[c, 0, k] * p[0] + contacts.J[c, 1, k] * p[1] + contacts.J[c, 2, k] * p[2]
            g[column] -= push
            scale += push * push * inverse[column]
    residual = 0.0
    for k in range(n):
        residual += g[k] * g[k] * inverse[k]
    return residual, scale


@jit_inline_exact
def hessian(M, n, count, contacts, vector, G, H):
    """Write the Hessian at the present contact states to the lower triangle of H."""
    entries, copied = segment(M, 0, n * n), segment(H, 0, n * n)
    for k in range(n * n):
        copied[k] = entries[k]
    for i in range(n):
        if vector[LIMIT_IMPULSE, i] != 0.0:
            H[i, i] += 1.0 / vector[JOINT_COMPLIANCE, i]
        if abs(vector[FRICTION_IMPULSE, i]) < vector[FRICTION_BOUND, i]:
            H[i, i] += 1.0 / vector[JOINT_COMPLIANCE, i]
    for c in range(count):
        aim, speed, slots = contacts.target, contacts.speed, contacts.index[c, SLOTS]
        stiffness(
            contacts.index[c, KIND],
            contacts.index[c, STATE],
            (aim[c, 0] - speed[c, 0]) / aim[c, 3],
            (aim[c, 1] - speed[c, 1]) / aim[c, 3],
            (aim[c, 2] - contacts.shift[c, APPLIED] - speed[c, 2]) / aim[c, 5],
            aim[c, 3],
            aim[c, 5],
            contacts.value[c, FRICTION],
            G,
        )
        J0, J1, J2, columns = contacts.J[c, 0], contacts.J[c, 1], contacts.J[c, 2], contacts.columns[c]
        for i in range(slots):
            x, y, z = J0[i], J1[i], J2[i]
            u = G[0, 0] * x + G[0, 1] * y + G[0, 2] * z
            v = G[1, 0] * x + G[1, 1] * y + G[1, 2] * z
            w = G[2, 0] * x + G[2, 1] * y + G[2, 2] * z
            row = segment(H, n * columns[i], n)
            for j in range(i + 1):  # an unsigned index is not tested for being negative
                row[np.uint64(columns[j])] += u * J0[j] + v * J1[j] + w * J2[j]


@jit
def slope_at(n, count, contacts, vector, alpha, smooth_slope, curvature):
    """Return the derivative of l along the direction, with ``smooth_slope + alpha curvature`` from M and b."""
    slope = smooth_slope + alpha * curvature
    for k in range(n):
        if vector[NEAR_LIMIT, k] != 0.0 or vector[FRICTION_BOUND, k] > 0.0:
            limit, friction = joint_impulses(vector, k, vector[NEW_VELOCITY, k] + alpha * vector[STEP, k])
            slope -= (limit + friction) * vector[STEP, k]
    for c in range(count):
        speed, change, p = contacts.speed[c], contacts.speed_slope[c], contacts.impulse[c]
        update_impulse(
            contacts, c, speed[0] + alpha * change[0], speed[1] + alpha * change[1], speed[2] + alpha * change[2], False
        )
        slope -= p[0] * change[0] + p[1] * change[1] + p[2] * change[2]
    return slope


@jit
def line_search(n, count, contacts, vector):
    """Return the step length at the minimum of l along the direction, or 1 if the slope there is negative or small.

    A slope below a twentieth of the initial one suffices: Newton's method needs no exact minimum.
    """
    step = vector[STEP]
    smooth_slope, curvature, initial_slope = 0.0, 0.0, 0.0
    for k in range(n):
        curvature += step[k] * vector[PRODUCT, k]
        initial_slope += step[k] * vector[GRADIENT, k]
        smooth_slope += step[k] * (vector[VELOCITY_PRODUCT, k] - vector[MOMENTUM, k])
    low, high = 0.0, 1.0
    low_slope = initial_slope
    high_slope = slope_at(n, count, contacts, vector, 1.0, smooth_slope, curvature)
    if high_slope <= 0.05 * abs(initial_slope):
        return 1.0
    side = 0
    alpha = 1.0
    for _ in range(30):
        # regula falsi with the Illinois rule: the slope grows along the line because l is convex
        alpha = (low * high_slope - high * low_slope) / (high_slope - low_slope)
        slope = slope_at(n, count, contacts, vector, alpha, smooth_slope, curvature)
        if abs(slope) <= 0.05 * abs(initial_slope):
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


@jit_inline_exact
def solve_program(M, parent, coupled, n, count, contacts, scratch, tolerance, iterations, keep_states):
    """Move the velocity to the minimum of l; return the number of Newton steps.

    The speeds of the contacts, and M times the velocity, are known.

    Parameters
    ----------
    parent : (n,) int64, sparsity of M: next velocity towards the root, -1 at a root.
    coupled : whether the Hessian is dense, because contacts couple bodies.
    n, count : number of velocities and of contacts.
    tolerance, iterations : see ``GRADIENT_TOLERANCE, MAX_NEWTON_STEPS`` in `step`.
    keep_states : whether the first step keeps the present contact states, a warm start that is often exact.
    """
    vector, H = scratch.vector, scratch.H
    residual, scale = update_impulses(n, count, contacts, vector, keep_states)
    steps = 0
    while steps < iterations and (keep_states or residual > tolerance * tolerance * scale):
        hessian(M, n, count, contacts, vector, scratch.G, H)
        for k in range(n):
            vector[STEP, k] = -vector[GRADIENT, k]
        if coupled:
            dense_factor(H, n)
            dense_solve(H, n, vector[STEP])
        else:
            tree_factor(H, parent, scratch.root, n)
            tree_solve(H, parent, scratch.root, n, vector[STEP])
        multiply_step(M, parent, n, count, contacts, vector)
        move(n, count, contacts, vector, 1.0 if keep_states else line_search(n, count, contacts, vector))
        keep_states = False
        steps += 1
        last_residual = residual
        residual, scale = update_impulses(n, count, contacts, vector, False)
        if steps > 3 and residual >= last_residual and residual <= 1e-10 * scale:
            break  # rounding errors prevent further progress
    return steps


@jit_inline
def required_shift(contacts, c):
    """Return the shift ``mu |s|`` (m/s) of contact c at the present velocity; 0 for grasps and sticking contacts."""
    has_no_slip = contacts.index[c, KIND] == BOUNDED_BY_BALL or contacts.index[c, STATE] == STICK
    if has_no_slip or contacts.value[c, FRICTION] == math.inf:
        return 0.0
    aim, speed, impulse = contacts.target[c], contacts.speed[c], contacts.impulse[c]
    return contacts.value[c, FRICTION] * math.hypot(
        aim[0] - speed[0] - aim[3] * impulse[0], aim[1] - speed[1] - aim[4] * impulse[1]
    )


@jit_inline_exact
def solve_contacts(M, parent, coupled, n, count, contacts, scratch, tolerance, iterations):
    """Solve the step with Coulomb's law: the convex program whose ``shift`` equals ``mu |s|`` for the resulting slip s.

    Returns
    -------
    steps : number of Newton steps.
    max_error : change of the shift in the last iteration, m/s.
    """
    steps, max_error, shift = 0, 0.0, contacts.shift
    for iteration in range(MAX_SHIFT_ITERATIONS):
        steps += solve_program(M, parent, coupled, n, count, contacts, scratch, tolerance, iterations, iteration == 0)
        max_error, product, square = 0.0, 0.0, 0.0
        for c in range(count):
            shift[c, REQUIRED] = required_shift(contacts, c)
            error = shift[c, REQUIRED] - shift[c, APPLIED]
            max_error = max(max_error, abs(error))
            if iteration > 0:
                change = error - (shift[c, LAST_REQUIRED] - shift[c, LAST_APPLIED])
                product += error * change
                square += change * change
        if max_error <= SHIFT_TOLERANCE:
            break
        # Anderson acceleration: the mix of the last two iterates that minimises the linearised error
        weight = min(max(product / square, MIN_ANDERSON_WEIGHT), MAX_ANDERSON_WEIGHT) if square > 0.0 else 0.0
        for c in range(count):
            next_shift = (
                (1.0 - weight) * shift[c, REQUIRED] + weight * shift[c, LAST_REQUIRED]
                if iteration > 0
                else shift[c, REQUIRED]
            )
            shift[c, LAST_APPLIED], shift[c, LAST_REQUIRED] = shift[c, APPLIED], shift[c, REQUIRED]
            shift[c, APPLIED] = max(next_shift, 0.0)
    return steps, max_error
