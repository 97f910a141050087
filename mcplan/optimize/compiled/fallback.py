"""Fallback solvers of compiled QPs: linear costs, large residuals, infeasible and unbounded problems.

All functions take the dense QP ``minimise 1/2 z'Hz + g'z, lower <= Gz <= upper``; they are not optimized for speed.
"""

import daqp
import numpy as np

from mcplan.core.optimize.layout import BIG
from mcplan.core.optimize.warm_start import PRIMAL_TOLERANCE
from mcplan.optimize.compiled.least_distance import EQUALITY, SOLVED

FEASIBILITY_TOLERANCE = 1e-7
"""Largest violation of a row by a feasible point, relative to 1 plus the magnitudes of the row."""

UNBOUNDED_SLOPE = 1e-7
"""Slope of the cost, relative to the steepest, beyond which it counts as unbounded."""


def _scaled(G, lower, upper):
    """Scale the rows to unit length; a side without a bound becomes infinite, which no scale makes finite."""
    length = np.linalg.norm(G, axis=1)
    length[length < 1e-12] = 1.0
    low, high = np.where(lower > -BIG, lower / length, -np.inf), np.where(upper < BIG, upper / length, np.inf)
    return G / length[:, None], low, high, length


def solve_dense(H, g, G, lower, upper, equality) -> tuple[int, np.ndarray, np.ndarray]:
    """Solve by DAQP's Python function (proximal iterations when H is singular); return flag, z and multipliers.

    Linear programs are solved by HiGHS: DAQP cycles on some, or reports them as infeasible.
    """
    A, low, high, length = _scaled(G, lower, upper)
    if not np.any(H):
        return _solve_linear(g, A, low, high, length, equality)
    sense = np.where(equality, EQUALITY, 0).astype(np.intc)
    z, _, flag, info = daqp.solve(
        H, np.ascontiguousarray(g), np.ascontiguousarray(A), np.minimum(high, BIG), np.maximum(low, -BIG), sense,
        primal_tol=PRIMAL_TOLERANCE,
    )  # fmt: skip
    if flag <= 0:  # the multipliers are undefined then
        return flag, np.zeros(len(g)), np.zeros(len(length))
    return flag, np.array(z, dtype=float), np.array(info["lam"], dtype=float) / length


def polish(H, g, G, lower, upper, equality, z, multiplier) -> tuple[np.ndarray, np.ndarray]:
    """Solve the optimality conditions of the active set again, closest to ``(z, multiplier)``.

    ``[H G_a'; G_a 0] [dz; dl] = -[Hz + g + G_a' l; G_a z - d_a]`` in the least-squares sense.
    """
    scale = max(1.0, float(np.abs(multiplier).max(initial=0.0)))
    active = equality | (np.abs(multiplier) > 1e-12 * scale)
    bound = np.where(multiplier > 0.0, upper, lower)[active]
    Ga, n = G[active], len(z)
    K = np.block([[H, Ga.T], [Ga, np.zeros((len(Ga), len(Ga)))]])
    for _ in range(2):
        y = multiplier[active]
        residual = np.concatenate([H @ z + g + Ga.T @ y, Ga @ z - bound])
        step = np.linalg.lstsq(K, -residual, rcond=1e-13)[0]
        z = z + step[:n]
        multiplier = multiplier.copy()
        multiplier[active] = y + step[n:]
    wrong = ~equality & (((multiplier > 0.0) & (upper >= BIG)) | ((multiplier < 0.0) & (lower <= -BIG)))
    multiplier[wrong] = 0.0
    return z, multiplier


def _solve_linear(g, A, low, high, length, equality) -> tuple[int, np.ndarray, np.ndarray]:
    """Minimise ``g'z`` over the scaled rows by HiGHS; return as ``solve_dense`` does."""
    result, above, below = _highs(g, A, low, high, equality)
    if result.status != 0:
        return -1, np.zeros(len(g)), np.zeros(len(length))
    multiplier = np.zeros(len(length))
    marginals = result.ineqlin.marginals  # of g with respect to the bounds, not positive
    multiplier[above] -= marginals[: above.sum()]
    multiplier[below] += marginals[above.sum() :]
    multiplier[equality] = -result.eqlin.marginals
    return SOLVED, result.x, multiplier / length


def _highs(g, A, low, high, equality, size=np.inf):
    """Minimise ``g'z`` over the rows and ``|z_i| <= size``; return also which sides of rows are bounded."""
    from scipy.optimize import linprog  # slow import (0.2 s), rarely needed

    above, below = ~equality & (high < BIG), ~equality & (low > -BIG)
    result = linprog(
        g, np.vstack([A[above], -A[below]]), np.concatenate([high[above], -low[below]]),
        A[equality], high[equality], (-size, size),
        options={"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9},
    )  # fmt: skip
    return result, above, below


def is_feasible(G, lower, upper, equality) -> bool:
    """Return whether some z satisfies the rows: compute the one of least norm and check its violations.

    If it violates some, HiGHS decides: least squares with weights from 1e-12 to 1 can miss a feasible point.
    """
    A, low, high, _ = _scaled(G, lower, upper)
    n = G.shape[1]
    sense = np.where(equality, EQUALITY, 0).astype(np.intc)
    z, _, flag, _ = daqp.solve(np.eye(n), np.zeros(n), A, np.minimum(high, BIG), np.maximum(low, -BIG), sense)
    if flag == SOLVED and _satisfies(z, A, low, high):
        return True
    # inconsistent to rounding is not infeasible: least squares of the violations decides
    if _satisfies(_least_violation(A, low, high), A, low, high):
        return True
    return bool(_highs(np.zeros(n), A, low, high, equality)[0].status == 0)


def _satisfies(z, A, low, high) -> bool:
    """Return whether z satisfies the rows, each relative to 1 plus its magnitudes."""
    if not np.isfinite(z).all():
        return False
    violation = np.maximum(A @ z - high, low - A @ z)
    magnitude = 1.0 + np.abs(A) @ np.abs(z) + np.minimum(np.abs(low), np.abs(high))
    return bool(np.all(violation <= FEASIBILITY_TOLERANCE * magnitude))


def _least_violation(A, low, high) -> np.ndarray:
    """Minimise ``|s|^2 + 1e-12 |z|^2`` subject to ``low <= A z + s <= high``."""
    rows, n = A.shape
    H = np.diag(np.concatenate([np.full(n, 1e-12), np.ones(rows)]))
    z, _, _, _ = daqp.solve(
        H, np.zeros(n + rows), np.hstack([A, np.eye(rows)]), np.minimum(high, BIG), np.maximum(low, -BIG),
        np.zeros(rows, np.intc),
    )  # fmt: skip
    return np.array(z[:n], dtype=float)


def is_unbounded(H, g, G, lower, upper, equality) -> bool:
    """Return whether a feasible QP is unbounded below.

    It is when ``g'd < 0`` for a direction ``d`` with ``H d = 0``, ``(G d)_i <= 0`` where an upper bound is finite and
    ``>= 0`` where a lower one is: a linear program in the null space of H, with bounds on its coordinates.
    """
    length = float(np.linalg.norm(g))
    if length == 0.0:
        return False
    values, vectors = np.linalg.eigh(H)
    N = vectors[:, np.abs(values) <= 1e-12 * max(float(np.abs(values).max(initial=0.0)), 1e-300)]
    if N.shape[1] == 0:
        return False
    A, low, high, _ = _scaled(G, lower, upper)
    high, low = np.where(high < BIG, 0.0, np.inf), np.where(low > -BIG, 0.0, -np.inf)
    result, _, _ = _highs(N.T @ g / length, A @ N, low, high, equality, 1.0)
    return bool(result.status == 0 and result.fun < -UNBOUNDED_SLOPE)
