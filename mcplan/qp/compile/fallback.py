"""What is done off the fast path: singular Hessians, large residuals, and telling infeasible from unbounded.

All functions take the dense QP ``minimise 1/2 z'Hz + g'z, lower <= Gz <= upper``; time does not matter here.
"""

import daqp
import numpy as np

from mcplan.core.condense_layout import BIG
from mcplan.qp.compile.least_distance import EQUALITY, PRIMAL_TOLERANCE, SOLVED

FEASIBILITY_TOLERANCE = 1e-7


def _scaled(G, lower, upper):
    """Scale the rows to unit length."""
    length = np.linalg.norm(G, axis=1)
    length[length < 1e-12] = 1.0
    with np.errstate(over="ignore"):
        return G / length[:, None], lower / length, upper / length, length


def solve_dense(H, g, G, lower, upper, equality) -> tuple[int, np.ndarray, np.ndarray]:
    """Solve by DAQP's Python function (proximal iterations when H is singular); return flag, z and multipliers."""
    A, low, high, length = _scaled(G, lower, upper)
    sense = np.where(equality, EQUALITY, 0).astype(np.intc)
    hessian = H if np.any(H) else None
    z, _, flag, info = daqp.solve(
        hessian, np.ascontiguousarray(g), np.ascontiguousarray(A), np.minimum(high, BIG), np.maximum(low, -BIG), sense,
        primal_tol=PRIMAL_TOLERANCE,
    )  # fmt: skip
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


def is_feasible(G, lower, upper, equality) -> bool:
    """Tell whether some z satisfies the rows: the one of least length is sought and its violations are looked at."""
    A, low, high, _ = _scaled(G, lower, upper)
    n = G.shape[1]
    sense = np.where(equality, EQUALITY, 0).astype(np.intc)
    z, _, flag, _ = daqp.solve(np.eye(n), np.zeros(n), A, np.minimum(high, BIG), np.maximum(low, -BIG), sense)
    if flag != SOLVED:  # inconsistent to rounding is not infeasible: least squares of the violations decides
        z = _least_violation(A, low, high)
    violation = np.maximum(A @ z - high, low - A @ z)
    magnitude = 1.0 + np.abs(A) @ np.abs(z) + np.minimum(np.abs(low), np.abs(high))
    return bool((violation / magnitude).max(initial=0.0) <= FEASIBILITY_TOLERANCE)


def _least_violation(A, low, high) -> np.ndarray:
    """Minimise ``|s|^2 + 1e-12 |z|^2`` subject to ``low <= A z + s <= high``."""
    rows, n = A.shape
    H = np.diag(np.concatenate([np.full(n, 1e-12), np.ones(rows)]))
    z, _, _, _ = daqp.solve(
        H, np.zeros(n + rows), np.hstack([A, np.eye(rows)]), np.minimum(high, BIG), np.maximum(low, -BIG),
        np.zeros(rows, np.intc),
    )  # fmt: skip
    return np.array(z[:n], dtype=float)


def is_unbounded(H, g, G, lower, upper) -> bool:
    """Tell whether a feasible QP falls without bound.

    It does when the projection ``d`` of ``-g`` on the cone ``H d = 0, (G d)_i <= 0`` where an upper bound is finite,
    ``>= 0`` where a lower one is, is not zero (then ``g'd = -|d|^2 < 0``).
    """
    n = len(g)
    length = float(np.linalg.norm(g))
    if length == 0.0:
        return False
    values, vectors = np.linalg.eigh(H)
    N = vectors[:, np.abs(values) <= 1e-12 * max(float(np.abs(values).max(initial=0.0)), 1e-300)]
    if N.shape[1] == 0:
        return False
    A, low, high, _ = _scaled(G, lower, upper)
    A = A @ N
    high, low = np.where(high < BIG, 0.0, BIG), np.where(low > -BIG, 0.0, -BIG)
    d, _, flag, _ = daqp.solve(
        np.eye(N.shape[1]), N.T @ g / length, np.ascontiguousarray(A), high, low, np.zeros(len(high), np.intc)
    )
    return flag == SOLVED and float(np.linalg.norm(d)) > 1e-7 and n > 0
