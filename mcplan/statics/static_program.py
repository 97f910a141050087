"""A linear program over contact forces, with pyramids or with the exact friction cones.

    minimise  c' z   subject to   rows f + columns z = rhs,   free f = 0,   z >= 0,   f admissible

The forces are expanded in rays. For the exact cones, rays are added where the duals ask for them: with the row prices
``y`` a unit of ``f`` is worth ``rows' y``, and a ray that is worth more than its caps cost enters. At the end no ray of
the true cone or ball would lower the cost, so the optimum is the exact one.

Source: Dantzig & Wolfe (1960), applied to the cones of one contact point each.
"""

from dataclasses import dataclass

import numpy as np

from mcplan.statics.contact_forces import ContactForces
from mcplan.statics.linear_program import LinearProgram

GAIN_TOLERANCE = 1e-9
ROUNDS = 60


@dataclass(frozen=True)
class StaticOptimum:
    """A minimum: its value (-inf when unbounded), the forces ``f`` (size,), the other variables ``z``."""

    value: float
    f: np.ndarray
    z: np.ndarray


class StaticProgram:
    """The program of the module's docstring.

    Parameters
    ----------
    forces : the unknown forces and what bounds them.
    rows, columns, rhs : (k, size), (k, e), (k,), scaled to the order of one.
    exact : use the true cones and balls instead of the inscribed polytopes.
    """

    def __init__(self, forces: ContactForces, rows: np.ndarray, columns: np.ndarray, rhs: np.ndarray, exact: bool):
        V, C = forces.ray_columns()
        caps, rays = C.shape
        unforced = len(forces.free)
        rows = np.vstack([rows, forces.free / forces.unit])
        columns = np.vstack([columns, np.zeros((unforced, columns.shape[1]))])
        rhs = np.concatenate([rhs, np.zeros(unforced)])
        k, extra = columns.shape
        self.forces, self.exact = forces, exact
        self._rows = rows
        self._V = V
        self._first_ray = caps + extra
        self._extra = extra
        A = np.zeros((k + caps, caps + extra + rays))
        A[k:, :caps] = np.eye(caps)
        A[:k, caps : self._first_ray] = columns
        A[:k, self._first_ray :] = rows @ V
        A[k:, self._first_ray :] = C
        self._program = LinearProgram(A, np.concatenate([rhs, np.ones(caps)]), A.shape[1] + 64)
        self._caps = caps

    @property
    def feasible(self) -> bool:
        """Whether forces exist (within the pyramids, for the rays that are there now)."""
        return self._program.feasible

    def with_column(self, column: np.ndarray) -> "StaticProgram":
        """Return the program with one more variable ``z`` (cost last in `minimise`), growing on its own."""
        other = object.__new__(StaticProgram)
        other.__dict__.update(self.__dict__)
        other._program = self._program.copy()
        whole = np.zeros((len(self._program.b), 1))
        whole[: len(column), 0] = column
        other._program.append(whole)
        other._V = np.hstack([self._V, np.zeros((self.forces.size, 1))])
        other._last = other._program.n - 1
        return other

    _last = -1

    def without(self, part: slice) -> "StaticProgram":
        """Return the program without these variables ``z``, starting from all rays that have been found."""
        other = object.__new__(StaticProgram)
        other.__dict__.update(self.__dict__)
        gone = np.arange(self._caps, self._first_ray)[part]
        A = np.delete(self._program.A, gone, axis=1)
        other._program = LinearProgram(A, self._program.b, A.shape[1] + 64)
        other._extra -= len(gone)
        other._first_ray -= len(gone)
        return other

    def minimise(self, cost: np.ndarray) -> StaticOptimum:
        """Minimise ``cost' z``, where a variable of `with_column` comes last."""
        k = len(self._rows)
        for _ in range(ROUNDS):
            full = np.zeros(self._program.n)
            full[self._caps : self._first_ray] = cost[: self._extra]
            if self._last >= 0:
                full[self._last] = cost[-1]
            optimum = self._program.minimise(full)
            if not self.exact or optimum.value == -np.inf:
                break
            value = self._rows.T @ optimum.y[:k]
            V, C = self.forces.price(value, -optimum.y[k:], GAIN_TOLERANCE)
            if not V.shape[1]:
                break
            self._program.append(np.vstack([self._rows @ V, C]))
            self._V = np.hstack([self._V, V])
        z = optimum.x[self._caps : self._first_ray]
        if self._last >= 0:
            z = np.append(z, optimum.x[self._last])
        return StaticOptimum(optimum.value, self._V @ optimum.x[self._first_ray :], z)
