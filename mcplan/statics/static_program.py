"""Linear programs over contact forces, with friction pyramids or exact cones (column generation).

    minimise  c' z   subject to   rows f + columns z = rhs,   equal f = equal_to,   0 <= z <= upper,   f admissible

The forces are combinations of rays. For exact cones, rays with negative reduced cost are added until no ray of the true
cone or ball would lower the cost (`mcplan.core.statics.program`).
"""

from dataclasses import dataclass

import numpy as np

from mcplan.core.optimize import simplex
from mcplan.core.statics import program as static_program, rays as contact_rays
from mcplan.core.statics.program import StaticWork
from mcplan.errors import SolverFailed
from mcplan.statics.contact_forces import ForceUnknowns, ball_rays

RESIDUAL_TOLERANCE = 1e-7
NEW_RAYS_PER_TRIPLE = 12
"""Number of new rays per triple of unknowns before unused ones are dropped."""


@dataclass(frozen=True)
class StaticOptimum:
    """A minimum: its value (-inf if unbounded), the forces ``f`` (size,), the variables ``z``, the dual values."""

    value: float
    f: np.ndarray
    z: np.ndarray
    y: np.ndarray


class StaticProgram:
    """The program of the module's docstring.

    Parameters
    ----------
    forces : the unknown forces and their bounds.
    rows, columns, rhs : (k, size), (k, e), (k,), scaled to the order of one.
    exact : use the true cones and balls instead of the inscribed polytopes.
    upper : (e,) bounds of ``z``; infinite by default.
    slack : (k,): index of the ``z`` that is the slack variable of an inequality row, or -1.

    Attributes
    ----------
    feasible : whether forces exist.
    basic : the variable that is the slack of each row, or -1.
    """

    def __init__(
        self,
        forces: ForceUnknowns,
        rows: np.ndarray,
        columns: np.ndarray,
        rhs: np.ndarray,
        exact: bool,
        upper: np.ndarray | None = None,
        slack: np.ndarray | None = None,
    ):
        triples, equal = forces.triples, forces.equal
        k, extra = columns.shape
        m, caps = k + len(equal), forces.caps
        ray_count = len(triples.kind) * max(forces.faces, len(ball_rays()))
        self.forces, self.exact, self._extra, self._m = forces, exact, extra, m
        first = caps + extra
        capacity = first + ray_count + (NEW_RAYS_PER_TRIPLE * len(triples.kind) + m + caps if exact else 0)
        program = simplex.allocate(m + caps, capacity)
        all_rows = np.empty((m, forces.size))
        all_rows[:k], all_rows[k:] = rows, equal / forces.unit
        A = program.A
        A[m:, :caps] = np.eye(caps)
        A[:k, caps:first] = columns
        program.b[:k], program.b[k:m], program.b[m:] = rhs, forces.equal_to / forces.unit, 1.0
        if upper is not None:
            program.upper[1 + m + caps + caps : 1 + m + caps + first] = upper
        basic = np.full(m + caps, -1)
        basic[m:] = np.arange(caps)
        if slack is not None:
            basic[:k] = np.where(slack < 0, -1, slack + caps)
        owner, ray = np.zeros(capacity, np.int64), np.zeros((capacity, 3))
        rays = contact_rays.inner_rays(triples, forces.faces, ball_rays(), owner[first:], ray[first:])
        program.count[0] = first + rays
        self.work = StaticWork(program, triples, all_rows, owner, ray, np.array([caps, first]), np.zeros(m + caps))
        self.cost = np.zeros(capacity)
        self.basic = basic
        status = static_program.start(self.work, basic)
        if exact and status == simplex.INFEASIBLE:
            status = static_program.find_feasible_exact(self.work)
        if status == simplex.STALLED:
            raise SolverFailed(f"a program of static equilibrium with {m + caps} rows reached its limit of pivots")
        self.feasible = status == simplex.OPTIMAL

    def hold_at_zero(self, first: int, last: int) -> None:
        """Fix the variables ``z`` from ``first`` to ``last - 1`` at zero, their value at the present minimum."""
        caps = int(self.work.first[0])
        simplex.fix_at_zero(self.work.program, caps + first, caps + last)

    def least_reach(self, first: int, last: int, upper: float) -> float:
        """Return the minimum over ``z`` from ``first`` to ``last - 1`` of the maximum of each one alone.

        The others are fixed at zero; values are capped at ``upper``.

        Raises
        ------
        SolverFailed
            When one of the programs is not solved.
        """
        caps = int(self.work.first[0])
        self.cost.fill(0.0)
        reach = static_program.smallest_maximum(
            self.work, self.cost, caps + first, caps + last, upper, np.zeros(len(self.cost))
        )
        if np.isnan(reach):
            raise SolverFailed(f"a program of static equilibrium with {self._m + caps} rows was not solved")
        return float(reach)

    def minimise(self, cost: np.ndarray, exact: bool | None = None) -> StaticOptimum:
        """Minimise ``cost' z``; the next call starts from the minimum. ``exact=False``: over the present rays only.

        Raises
        ------
        SolverFailed
            When the program is infeasible, or the result violates its own constraints.
        """
        if not self.feasible:
            raise SolverFailed("the program of static equilibrium has no feasible point")
        work, first = self.work, self.work.first
        program = work.program
        self.cost[first[0] : first[1]] = cost
        status = static_program.minimise(work, self.cost, self.exact if exact is None else exact)
        n, y = program.count[0], np.empty(len(program.b))
        x = np.zeros(n)
        simplex.duals(program, y, 0.0)
        if status == simplex.UNBOUNDED:
            return StaticOptimum(-np.inf, np.zeros(self.forces.size), x[first[0] : first[1]], y)
        simplex.solution(program, x)
        residual = float(np.abs(program.A[:, :n] @ x - program.b).max())
        if status == simplex.STALLED or not residual <= RESIDUAL_TOLERANCE * max(1.0, x.max()):
            raise SolverFailed(
                f"a program of static equilibrium with {len(program.b)} rows and {n} columns "
                f"ended with a residual of {residual:.1e}"
            )
        f = np.zeros((self.forces.size // 3, 3))
        np.add.at(f, work.owner[first[1] : n], x[first[1] :, None] * work.ray[first[1] : n])
        z = x[first[0] : first[1]]
        return StaticOptimum(float(cost @ z), f.ravel(), z, y)
