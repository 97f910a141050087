"""The optimality conditions of a QP in CVXPY's own data, with NumPy: no number comes from the compiled form's kernels.

minimise 1/2 x'Px + q'x + d   subject to   A_e x + b_e = 0,  A_i x + b_i >= 0,  lower <= x <= upper
"""

from dataclasses import dataclass

import cvxpy as cp
import numpy as np
from scipy.optimize import linprog


@dataclass
class Program:
    """The data at one value of the parameters; the first ``equalities`` rows of ``A`` are equalities."""

    P: np.ndarray
    q: np.ndarray
    A: np.ndarray
    b: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    equalities: int

    def magnitude(self, x) -> float:
        """Sum of the magnitudes of the cost's terms: what rounding in the cost is relative to."""
        return float(np.abs(x) @ (0.5 * np.abs(self.P) @ np.abs(x) + np.abs(self.q)))

    def residual(self, x, y_e, y_i, y_low, y_high) -> float:
        """Largest violation of a condition, each row relative to 1 plus the magnitudes of its terms."""
        m = self.equalities
        value, size = self.A @ x + self.b, 1.0 + np.abs(self.A) @ np.abs(x) + np.abs(self.b)
        y = np.r_[y_e, -y_i]
        gradient = self.P @ x + self.q + self.A.T @ y - y_low + y_high
        scale = 1.0 + np.abs(self.P) @ np.abs(x) + np.abs(self.q) + np.abs(self.A).T @ np.abs(y) + y_low + y_high
        gaps = [np.where(np.isfinite(bound), side, 0.0) for bound, side in self._sides(x)]
        worst = [
            np.abs(value[:m]) / size[:m],
            -value[m:] / size[m:],
            np.abs(gradient) / scale,
            -gaps[0] / (1.0 + np.abs(x)),
            -gaps[1] / (1.0 + np.abs(x)),
        ]
        total = np.abs(y_i * value[m:]).sum() + np.abs(y_low * gaps[0]).sum() + np.abs(y_high * gaps[1]).sum()
        negative = max(float(-np.min(part, initial=0.0)) for part in (y_i, y_low, y_high))
        largest = max(float(np.max(part, initial=0.0)) for part in worst)
        return max(largest, total / (1.0 + self.magnitude(x)), negative / float(np.max(scale)))

    def _sides(self, x):
        with np.errstate(invalid="ignore"):
            return (self.lower, x - self.lower), (self.upper, self.upper - x)


def program_at(compiled) -> Program:
    """CVXPY's own numbers, from its own map, at the present parameters of a compiled problem."""
    program = compiled._program
    values = {p.id: compiled.parameter_view(p).copy() for p in program.parameters}
    P, q, _, A, b = program.apply_parameters(id_to_param_value=values, quad_obj=True)
    n = len(q)
    lower = np.full(n, -np.inf) if program.lower_bounds is None else np.asarray(program.lower_bounds)
    upper = np.full(n, np.inf) if program.upper_bounds is None else np.asarray(program.upper_bounds)
    P = P.toarray()
    return Program(0.5 * (P + P.T), np.asarray(q), A.toarray(), np.asarray(b), lower, upper, program.cone_dims.zero)


def residuals_of_compiled(data: Program, x, dual):
    """Largest residual of the compiled solution, and the inequalities with multipliers (-1: a bound of a variable)."""
    rows, n = len(data.b), len(x)
    y_e, y_i = dual[: data.equalities], dual[data.equalities : rows]
    y_low, y_high = dual[rows : rows + n], dual[rows + n :]
    active = set(np.flatnonzero(y_i > 1e-9).tolist()) | ({-1} if max(y_low.max(), y_high.max()) > 1e-9 else set())
    return data.residual(x, y_e, y_i, y_low, y_high), active


def residuals_of_daqp(data: Program, raw) -> float:
    """Largest residual of what DAQP returned to CVXPY: multipliers of [bounds, equalities, inequalities]."""
    x, lam = np.array(raw[0]), np.array(raw[3]["lam"])
    n, m = len(x), data.equalities
    bound, y_e, y_i = lam[:n], lam[n : n + m], lam[n + m :]
    return data.residual(x, y_e, y_i, np.maximum(-bound, 0.0), np.maximum(bound, 0.0))


def classify(data: Program) -> str:
    """Tell by linear programs (HiGHS) whether there is a point, and whether the cost falls for ever from it."""
    m, n = data.equalities, len(data.q)
    size = np.maximum(np.linalg.norm(data.A, axis=1), 1e-12)
    A, b = data.A / size[:, None], data.b / size
    bounds = np.column_stack([data.lower, data.upper])
    if linprog(np.zeros(n), -A[m:], b[m:], A[:m], -b[:m], bounds).status != 0:
        return cp.INFEASIBLE
    # a direction of the recession cone along which nothing is curved
    low, high = np.where(np.isfinite(data.lower), 0.0, -1.0), np.where(np.isfinite(data.upper), 0.0, 1.0)
    bounds = np.column_stack([low, high])
    straight = np.vstack([A[:m], data.P])
    falls = linprog(data.q, -A[m:], np.zeros(len(b) - m), straight, np.zeros(len(straight)), bounds)
    return cp.UNBOUNDED if falls.fun < -1e-7 * np.linalg.norm(data.q) else cp.OPTIMAL


def multipliers_are_unique(data: Program, x) -> bool:
    """Whether the gradients of the active rows are linearly independent."""
    m, value = data.equalities, data.A @ x + data.b
    rows = [data.A[:m], data.A[m:][value[m:] < 1e-6]]
    rows += [np.eye(len(x))[np.abs(x - bound) < 1e-6] for bound in (data.lower, data.upper)]
    active = np.vstack(rows)
    active = active / np.maximum(np.linalg.norm(active, axis=1), 1e-12)[:, None]
    return len(active) == 0 or (len(active) <= len(x) and float(np.linalg.svd(active, compute_uv=False)[-1]) > 1e-6)
