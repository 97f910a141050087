"""Linear programs over contact forces, with friction pyramids or exact cones (column generation).

    minimise  c' z   subject to   rows f + columns z = rhs,   A_eq f = b_eq,   0 <= z <= upper,   f admissible

A_eq, b_eq are `ForceUnknowns.equal` and ``equal_to``. The forces are combinations of rays. For exact cones, rays with
negative reduced cost are added until no ray of the true cone or ball would lower the cost
(`mcplan.core.statics.program`).
"""

from dataclasses import dataclass

import numpy as np

from mcplan.core.optimize import simplex
from mcplan.core.statics import program as static_program, rays as contact_rays
from mcplan.core.statics.program import StaticWork
from mcplan.errors import SolverFailed
from mcplan.statics.contact_forces import ForceUnknowns, ball_rays

RESIDUAL_TOLERANCE = 1e-7
"""Largest accepted residual of the constraints, relative to the largest variable (at least 1)."""

NEW_RAYS_PER_TRIPLE = 12
"""Capacity for rays generated per triple of force unknowns; when it is exhausted, unused rays are dropped."""


@dataclass(frozen=True)
class StaticOptimum:
    """Optimal value (-inf if unbounded), forces ``f`` (size,), variables ``z`` (e,), dual variables ``y``."""

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
    feasible : whether the constraints have a solution.
    work : data and state of the simplex method; ``work.first`` has the first column of ``z`` and of the rays, after the
        slack variables of the caps (upper limits on forces).
    cost : (capacity,) cost of each column, filled by `minimise`.
    basic : for each row the column of its slack variable, or -1.
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
        triples, A_eq = forces.triples, forces.equal
        k, n_z = columns.shape
        m, caps = k + len(A_eq), forces.caps
        ray_count = len(triples.kind) * max(forces.faces, len(ball_rays()))
        self.forces, self.exact, self._n_z, self._equality_count = forces, exact, n_z, m
        first_ray = caps + n_z
        capacity = first_ray + ray_count + (NEW_RAYS_PER_TRIPLE * len(triples.kind) + m + caps if exact else 0)
        program = simplex.allocate(m + caps, capacity)
        all_rows = np.empty((m, forces.size))
        all_rows[:k], all_rows[k:] = rows, A_eq / forces.unit
        A = program.A
        A[m:, :caps] = np.eye(caps)
        A[:k, caps:first_ray] = columns
        program.b[:k], program.b[k:m], program.b[m:] = rhs, forces.equal_to / forces.unit, 1.0
        if upper is not None:
            program.upper[1 + m + caps + caps : 1 + m + caps + first_ray] = upper
        basic = np.full(m + caps, -1)
        basic[m:] = np.arange(caps)
        if slack is not None:
            basic[:k] = np.where(slack < 0, -1, slack + caps)
        owner, ray = np.zeros(capacity, np.int64), np.zeros((capacity, 3))
        rays = contact_rays.inner_rays(triples, forces.faces, ball_rays(), owner[first_ray:], ray[first_ray:])
        program.count[0] = first_ray + rays
        self.work = StaticWork(program, triples, all_rows, owner, ray, np.array([caps, first_ray]), np.zeros(m + caps))
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
        """Maximise each ``z`` from ``first`` to ``last - 1`` while the others are zero; return the smallest maximum.

        Values are capped at ``upper``.

        Raises
        ------
        SolverFailed
            One of the programs is not solved.
        """
        caps = int(self.work.first[0])
        self.cost.fill(0.0)
        reach = static_program.smallest_maximum(
            self.work, self.cost, caps + first, caps + last, upper, np.zeros(len(self.cost))
        )
        if np.isnan(reach):
            raise SolverFailed(
                f"a program of static equilibrium with {self._equality_count + caps} rows was not solved"
            )
        return float(reach)

    def minimise(self, cost: np.ndarray, exact: bool | None = None) -> StaticOptimum:
        """Minimise ``cost' z``; the next call starts from the minimum. ``exact=False`` generates no new rays.

        Raises
        ------
        SolverFailed
            The program is infeasible, or the result violates its constraints.
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
