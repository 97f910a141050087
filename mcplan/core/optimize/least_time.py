"""Time-optimal path parameterisation: smooth x(s) = sd² within half-planes of (u, x), u = sdd = x'(s) / 2.

    minimise  sum_i w_i / sqrt(x_i)   subject to   a_ik u_i + b_ik x_i <= c_ik,   x_i = B_i c,  u_i = D_i c

``c`` are the coefficients of a spline, ``B_i`` and ``D_i`` rows of its basis at grid point i, each with a few entries
from column ``start_i`` on; ``w_i`` are weights of a quadrature, and s is the path length. The program is convex; it is
solved by Newton's method on ``tau f(c) - sum log(slack)`` for growing ``tau``.

Source: Verscheure et al. (2009), Time-optimal path tracking for robots: a convex optimization approach, IEEE T-AC 54;
Boyd and Vandenberghe (2004), Convex Optimization, sec. 11.3.
"""

import math

from mcplan.core.algebra.cholesky import cholesky, cholesky_solve
from mcplan.core.jit import jit

OPTIMAL, OUTSIDE, STALLED = range(3)
"""Status: the minimum within the accuracy; the start violates a half-plane; the line search failed."""

TAU_GROWTH, MAX_NEWTON_STEPS, MAX_HALVINGS = 12.0, 60, 40
"""Factor of tau after each minimisation; largest numbers of Newton steps and of halvings in a line search."""

ARMIJO, MIN_DECREMENT = 0.1, 1e-9
"""Fraction of the linear decrease that a step has to reach; Newton decrement at convergence."""

MIN_PRODUCT = 1e-100
"""Slacks are multiplied until their product or its inverse falls below this, to take few logarithms."""


@jit
def barrier(tau, B, D, start, w, halfplanes, counts, c):
    """Return ``tau f(c) - sum log(slack)``, infinite outside of the half-planes."""
    value, product = 0.0, 1.0
    band = B.shape[1]
    for i in range(len(w)):
        x, u = 0.0, 0.0
        for k in range(band):
            x += B[i, k] * c[start[i] + k]
            u += D[i, k] * c[start[i] + k]
        if not x > 0.0:
            return math.inf
        value += tau * w[i] / math.sqrt(x)
        for k in range(counts[i]):
            slack = halfplanes[i, k, 2] - halfplanes[i, k, 0] * u - halfplanes[i, k, 1] * x
            if not slack > 0.0:
                return math.inf
            product *= slack
            if not MIN_PRODUCT < product < 1.0 / MIN_PRODUCT:
                value -= math.log(product)
                product = 1.0
    return value - math.log(product)


@jit
def derivatives(tau, B, D, start, w, halfplanes, counts, c, gradient, H):
    """Write gradient (n,) and, within its band, the lower triangle of the Hessian H (n, n)."""
    n, band = len(c), B.shape[1]
    for j in range(n):
        gradient[j] = 0.0
        for k in range(max(j + 1 - band, 0), j + 1):
            H[j, k] = 0.0
    for i in range(len(w)):
        x, u = 0.0, 0.0
        for k in range(band):
            x += B[i, k] * c[start[i] + k]
            u += D[i, k] * c[start[i] + k]
        gx, gu = -0.5 * tau * w[i] * x**-1.5, 0.0
        hxx, hxu, huu = 0.75 * tau * w[i] * x**-2.5, 0.0, 0.0
        for k in range(counts[i]):
            a, b = halfplanes[i, k, 0], halfplanes[i, k, 1]
            inverse = 1.0 / (halfplanes[i, k, 2] - a * u - b * x)
            gu += a * inverse
            gx += b * inverse
            huu += a * a * inverse * inverse
            hxu += a * b * inverse * inverse
            hxx += b * b * inverse * inverse
        for j in range(band):
            row = start[i] + j
            gradient[row] += gx * B[i, j] + gu * D[i, j]
            for k in range(j + 1):
                H[row, start[i] + k] += (
                    hxx * B[i, j] * B[i, k] + hxu * (B[i, j] * D[i, k] + D[i, j] * B[i, k]) + huu * D[i, j] * D[i, k]
                )


@jit
def duration(B, start, w, c):
    """Return the objective ``sum w / sqrt x``."""
    total = 0.0
    for i in range(len(w)):
        x = 0.0
        for k in range(B.shape[1]):
            x += B[i, k] * c[start[i] + k]
        total += w[i] / math.sqrt(x)
    return total


@jit
def minimise_time(B, D, start, w, halfplanes, counts, accuracy, c, step, trial, gradient, H):
    """Minimise the time from an interior point; return the status.

    Parameters
    ----------
    B, D : (m, band) rows of the basis of x and of u
    start : (m,) int64, the column of each row's first entry
    w : (m,) weights
    halfplanes, counts : (m, k, 3), (m,) rows a, b, c, and the number of valid ones at each grid point
    accuracy : relative accuracy of the minimum
    c : (n,) coefficients in and out
    step, trial, gradient : (n,) scratch; H : (n, n) scratch
    """
    n, bandwidth, total = len(c), B.shape[1] - 1, 0
    for i in range(len(w)):
        total += counts[i]
    cost = barrier(1.0, B, D, start, w, halfplanes, counts, c)
    if not cost < math.inf:
        return OUTSIDE
    tau = max(1.0, total / duration(B, start, w, c))
    while True:
        for _ in range(MAX_NEWTON_STEPS):
            derivatives(tau, B, D, start, w, halfplanes, counts, c, gradient, H)
            cholesky(H, n, bandwidth)
            for j in range(n):
                step[j] = -gradient[j]
            cholesky_solve(H, n, bandwidth, step)
            decrement = 0.0
            for j in range(n):
                decrement -= gradient[j] * step[j]
            if not decrement > MIN_DECREMENT:
                break
            value = barrier(tau, B, D, start, w, halfplanes, counts, c)
            length, accepted = 1.0, False
            for _ in range(MAX_HALVINGS):
                for j in range(n):
                    trial[j] = c[j] + length * step[j]
                if barrier(tau, B, D, start, w, halfplanes, counts, trial) <= value - ARMIJO * length * decrement:
                    accepted = True
                    break
                length *= 0.5
            if not accepted:
                break
            for j in range(n):
                c[j] = trial[j]
        objective = duration(B, start, w, c)
        if not objective < math.inf:
            return STALLED
        if total / tau <= accuracy * objective:
            return OPTIMAL
        tau *= TAU_GROWTH
