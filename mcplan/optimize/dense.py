"""Dense quadratic programs, solved by DAQP with a residual check: for posture generator, statics and tests."""

from dataclasses import dataclass
from typing import Final

import daqp
import numpy as np
from numpy.typing import NDArray

from mcplan.errors import InputError

EQUALITY: Final = 5
"""DAQP's ``sense`` of a row that is always active."""

EXIT_MESSAGES: Final = {
    1: "solved",
    2: "solved, soft rows violated",
    -1: "infeasible",
    -2: "the active set cycles",
    -3: "unbounded",
    -4: "iteration limit",
    -5: "not convex",
    -6: "the equalities contradict each other",
}
"""Meaning of DAQP's exit flags."""


@dataclass(frozen=True)
class DenseSolution:
    """Result of ``solve_dense``.

    Parameters
    ----------
    x : (n,) minimiser (last iterate of the solver if not ``ok``).
    dual : (n or 0 + rows,) multipliers of the bounds, if given, then of the rows: ``H x + g + A' dual = 0``, positive
        where the upper side is active.
    objective : ``1/2 x' H x + g' x``.
    status : ``solved`` or the reason of the failure.
    ok : whether the solver reports a solution and the residuals are small.
    primal_residual : largest violation of a row or bound.
    stationarity : largest entry of ``H x + g + A' dual``.
    """

    x: NDArray[np.float64]
    dual: NDArray[np.float64]
    objective: float
    status: str
    ok: bool
    primal_residual: float
    stationarity: float
    iterations: int


def solve_dense(
    H: NDArray[np.float64] | None,
    g: NDArray[np.float64],
    A: NDArray[np.float64] | None = None,
    lower: NDArray[np.float64] | None = None,
    upper: NDArray[np.float64] | None = None,
    *,
    x_lower: NDArray[np.float64] | None = None,
    x_upper: NDArray[np.float64] | None = None,
    tolerance: float = 1e-6,
) -> DenseSolution:
    """Minimise ``1/2 x' H x + g' x`` subject to ``lower <= A x <= upper`` and ``x_lower <= x <= x_upper``.

    Parameters
    ----------
    H : (n, n) symmetric, positive semi-definite; None for a linear program.
    g : (n,)
    A : (rows, n); lower, upper : (rows,), infinite where a side is absent, equal for an equality.
    x_lower, x_upper : (n,) bounds on the unknowns.
    tolerance : of the solver. Accepted errors are ``tolerance * max(1, |bound|)`` in a row, and ``100 * tolerance`` of
        the gradient's size in stationarity; beyond, the result is not ``ok``, whatever the solver's status.

    Raises
    ------
    InputError : shapes that do not match, or a value that is not a number.
    """
    n = len(g)
    rows = 0 if A is None else len(A)
    P = np.zeros((n, n)) if H is None else np.ascontiguousarray(H, dtype=np.float64)
    matrix = np.zeros((0, n)) if A is None else np.ascontiguousarray(A, dtype=np.float64)
    bounded = x_lower is not None or x_upper is not None
    low = np.concatenate([_side(x_lower, n, -np.inf) if bounded else np.empty(0), _side(lower, rows, -np.inf)])
    up = np.concatenate([_side(x_upper, n, np.inf) if bounded else np.empty(0), _side(upper, rows, np.inf)])
    if P.shape != (n, n) or matrix.shape != (rows, n):
        raise InputError(f"quadratic program: H {P.shape}, g ({n},) and A {matrix.shape} do not fit")
    _check_finite(P, g, matrix, low, up)
    if np.any(low > up):
        violation = low - up
        return DenseSolution(
            np.zeros(n), np.zeros(len(low)), np.inf, EXIT_MESSAGES[-1], False, float(np.max(violation)), np.inf, 0
        )

    sense = np.where(low == up, EQUALITY, 0).astype(np.int32)
    gradient = np.ascontiguousarray(g, dtype=np.float64)
    full = np.vstack([np.eye(n), matrix]) if bounded else matrix
    # a negative eps_prox regularises only if the Hessian is singular; the second attempt always does
    for eps_prox in (-1e-5, 1e-5):
        if len(low) == 0:
            x, dual, flag, iterations = _unconstrained(P, gradient)
        else:
            options = {"eps_prox": eps_prox, "primal_tol": tolerance}
            x, _, flag, info = daqp.solve(P, gradient, matrix, up, low, sense.copy(), **options)
            x, dual, iterations = np.asarray(x), np.asarray(info["lam"]), int(info["iterations"])
            if not (np.isfinite(x).all() and np.isfinite(dual).all()):
                # numerical breakdown, whatever the exit flag: the residuals at zero show it, too
                x, dual = np.zeros(n), np.zeros(len(low))
        value = full @ x
        primal = float(np.max(np.maximum(low - value, value - up), initial=0.0))
        row_scale = max(1.0, float(np.max(np.abs(np.concatenate([low[low == up], value])), initial=0.0)))
        pull = full.T @ dual  # gradient of the constraints
        stationarity = float(np.max(np.abs(P @ x + gradient + pull), initial=0.0))
        scale = max(1.0, float(np.max(np.abs(gradient), initial=0.0)), float(np.max(np.abs(pull), initial=0.0)))
        sound = primal <= tolerance * row_scale and stationarity <= 100 * tolerance * scale
        ok = flag > 0 and sound
        if ok or flag in (-1, -6):
            break
    status = EXIT_MESSAGES.get(flag, f"DAQP exit flag {flag}")
    if flag > 0 and not sound:
        status = f"residual too large: rows {primal:.2g}, stationarity {stationarity:.2g}"
    objective = float(0.5 * x @ P @ x + gradient @ x)
    return DenseSolution(x, dual, objective, status, ok, primal, stationarity, iterations)


def _side(side: NDArray[np.float64] | None, size: int, absent: float) -> NDArray[np.float64]:
    """Return one side of the bounds as a vector of the right length."""
    if side is None:
        return np.full(size, absent)
    vector = np.ascontiguousarray(side, dtype=np.float64)
    if vector.shape != (size,):
        raise InputError(f"quadratic program: a bound has shape {vector.shape}, expected ({size},)")
    return vector


def _check_finite(P, g, A, low, up) -> None:
    for name, array in (("H", P), ("g", g), ("A", A)):
        if not np.all(np.isfinite(array)):
            raise InputError(f"quadratic program: {name} has a value that is not finite")
    if np.any(np.isnan(low)) or np.any(np.isnan(up)) or np.any(low == np.inf) or np.any(up == -np.inf):
        raise InputError("quadratic program: a bound is not a number, or infinite on the wrong side")


def _unconstrained(P, g):
    """Minimise without rows (not supported by DAQP); unbounded if a descent direction has zero curvature."""
    x = -np.linalg.lstsq(P, g, rcond=1e-12)[0]
    unbounded = np.max(np.abs(P @ x + g), initial=0.0) > 1e-6 * max(1.0, float(np.max(np.abs(g), initial=0.0)))
    return x, np.zeros(0), -3 if unbounded else 1, 0
