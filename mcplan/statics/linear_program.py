"""A small linear program that is solved for many costs, and may grow by columns between them."""

from dataclasses import dataclass

import numpy as np

from mcplan.core import simplex
from mcplan.errors import SolverFailed

RESIDUAL_TOLERANCE = 1e-7


@dataclass(frozen=True)
class Optimum:
    """A minimum of a linear program.

    Attributes
    ----------
    value : the minimum; -inf when there is no lower bound.
    x : (n,) the variables, all >= 0.
    y : (m,) the duals: the reduced cost of a column ``a`` with cost ``c`` is ``c - y' a``.
    """

    value: float
    x: np.ndarray
    y: np.ndarray


class LinearProgram:
    """``minimise c' x`` subject to ``A x = b, x >= 0``.

    Parameters
    ----------
    A, b : (m, n), (m,), with entries of the order of one.
    capacity : how many columns may be held, appended ones included.

    Attributes
    ----------
    feasible : whether any ``x`` exists.
    """

    def __init__(self, A: np.ndarray, b: np.ndarray, capacity: int | None = None):
        m, n = A.shape
        capacity = max(n, capacity or n)
        self.b = np.ascontiguousarray(b, dtype=float)
        self._A = np.zeros((m, capacity))
        self._A[:, :n] = A
        self._T = np.empty((m + 1, 1 + m + capacity))
        self._basis = np.empty(m, dtype=np.int64)
        self._sign = np.empty(m)
        self.n = n
        status = simplex.start(np.ascontiguousarray(A, dtype=float), self.b, self._T, self._basis, self._sign)
        if status == simplex.STALLED:
            raise SolverFailed(f"a linear program of {m} rows and {n} columns reached its limit of pivots")
        self.feasible = status == simplex.OPTIMAL

    @property
    def A(self) -> np.ndarray:
        """The columns that the program has now, (m, n)."""
        return self._A[:, : self.n]

    def append(self, columns: np.ndarray) -> None:
        """Add variables with these columns (m, k)."""
        m, k = columns.shape
        if self.n + k > self._A.shape[1]:
            room = max(k, self.n)
            self._A = np.hstack([self._A, np.zeros((m, room))])
            self._T = np.hstack([self._T, np.zeros((m + 1, room))])
        simplex.append(self._T, self._sign, np.ascontiguousarray(columns, dtype=float), 1 + m + self.n)
        self._A[:, self.n : self.n + k] = columns
        self.n += k

    def copy(self) -> "LinearProgram":
        """Return a program that grows on its own from the same basis."""
        other = object.__new__(LinearProgram)
        other.b, other.n, other.feasible = self.b, self.n, self.feasible
        other._A, other._T = self._A.copy(), self._T.copy()
        other._basis, other._sign = self._basis.copy(), self._sign
        return other

    def minimise(self, cost: np.ndarray) -> Optimum:
        """Return the minimum of ``cost' x``; the next call starts from it.

        Raises
        ------
        SolverFailed
            When the program is infeasible, or the result violates its own constraints.
        """
        if not self.feasible:
            raise SolverFailed("the linear program has no feasible point")
        m = len(self.b)
        cost = np.ascontiguousarray(cost, dtype=float)
        status = simplex.minimise(self._T, self._basis, cost, 1 + m + self.n)
        x = np.zeros(self.n)
        y = -self._sign * self._T[m, 1 : 1 + m]
        if status == simplex.UNBOUNDED:
            return Optimum(-np.inf, x, y)
        basic = self._basis > m
        x[self._basis[basic] - 1 - m] = np.maximum(self._T[:m, 0][basic], 0.0)
        residual = float(np.abs(self.A @ x - self.b).max())
        if status == simplex.STALLED or not residual <= RESIDUAL_TOLERANCE:
            raise SolverFailed(
                f"a linear program of {m} rows and {self.n} columns ended with a residual of {residual:.1e}"
            )
        return Optimum(float(cost @ x), x, y)
