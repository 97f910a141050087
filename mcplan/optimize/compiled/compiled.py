"""A CVXPY QP compiled for its structure: from parameter values to a checked solution in tens of microseconds."""

from dataclasses import dataclass

import cvxpy as cp
import numpy as np
from cvxpy import settings
from cvxpy.reductions.solution import Solution

from mcplan.core.optimize import (
    layout as lay,
    least_distance,
    recover,
    warm_start,
)
from mcplan.optimize.compiled import fallback
from mcplan.optimize.compiled.data_map import (
    CannotCompile,
    DataMap,
    EntryMap,
    EntryMaps,
    build_data_map,
    canonicalise,
    find_entry_maps,
)
from mcplan.optimize.compiled.least_distance import NO_POINT, SOLVED, LeastDistance, native_available
from mcplan.optimize.compiled.program import build_program, eliminate

TOLERANCE = 1e-8
"""Largest relative residual at which a solution of the least-distance solver is accepted without refinement."""

MAX_RESIDUAL = 1e-6
"""Largest relative residual of an accepted solution."""

WORST = {settings.INFEASIBLE: np.inf, settings.INFEASIBLE_INACCURATE: np.inf, settings.UNBOUNDED: -np.inf}
"""Objective of a minimisation without solution."""

PROXIMAL_WEIGHT = 1e-6
"""Weight of the proximal term, relative to the largest diagonal entry of a singular Hessian."""

MAX_PROXIMAL_STEPS = 12
"""Largest number of proximal-point iterations."""


@dataclass(frozen=True)
class CompiledResiduals:
    """Residuals of the optimality conditions (KKT) of the original, uncondensed QP.

    Parameters
    ----------
    equality, inequality, stationarity : largest over the rows, relative to 1 plus the magnitudes of the row's terms.
    complementarity : sum of multiplier times slack, relative to 1 plus the magnitudes of the objective's terms.
    """

    equality: float
    inequality: float
    stationarity: float
    complementarity: float

    @property
    def largest(self) -> float:
        """The largest of the four; NaN if one is."""
        return float(np.max([self.equality, self.inequality, self.stationarity, self.complementarity]))


class CompiledProblem:
    """The compiled form of one CVXPY problem; made by ``compile_problem``.

    The flat parameter vector is the source of truth: fill ``parameter_view(parameter)`` in place or call ``set``;
    ``load`` copies the values of the CVXPY parameters.

    Attributes
    ----------
    problem : the CVXPY problem.
    theta : (parameters + 1,) the flat parameter vector, matrices in Fortran order, the last entry 1.
    status : CVXPY's status of the last ``solve``.
    x : (size,) the variables of CVXPY's cone form (a view that the next ``solve`` overwrites).
    dual : multipliers of its rows, lower bounds and upper bounds (also a view).
    condensed : the condensed dense QP with its workspace.
    fallbacks : number of solves by the fallback solver.
    warm : whether a solve starts from the active set of the previous one. That is faster, but the last bits of the
        solution then depend on earlier solves.
    active_set_failed : whether that active set is known not to lead to the next solution; set before ``solve``.
    """

    def __init__(self, problem: cp.Problem):
        self.problem = problem
        data, self._chain, inverse = canonicalise(problem)
        program = data[settings.PARAM_PROB]
        self._program = program
        self.data_map: DataMap = build_data_map(program, program.total_param_size + 1)
        self._entry_maps: EntryMaps = find_entry_maps(problem, program, self._chain, inverse, self.data_map)
        self.elimination = eliminate(self.data_map)
        self.condensed = build_program(self.data_map, self.elimination)
        self.theta = np.zeros(program.total_param_size + 1)
        self.theta[-1] = 1.0
        self.status: str | None = None
        self.fallbacks = 0
        self.warm = self.active_set_failed = False
        self._sign = -1.0 if isinstance(problem.objective, cp.Maximize) else 1.0
        part = self.condensed.part
        self.x, self.dual, self._residual = part(lay.X), part(lay.DUAL), part(lay.RESIDUAL)
        self._z, self._multiplier = part(lay.Z), np.zeros(self.condensed.rows)
        self._solver = self._make_solver()
        if all(p.value is not None for p in problem.parameters()):
            self.load()

    def _make_solver(self) -> LeastDistance | None:
        c = self.condensed
        if not native_available() or c.variables == 0 or c.rows == 0:
            return None
        M = c.part(lay.M).reshape(c.rows, c.variables)
        return LeastDistance(M, c.part(lay.LDP_LOWER), c.part(lay.LDP_UPPER), c.equality)

    def parameter_view(self, parameter: cp.Parameter) -> np.ndarray:
        """Return the parameter's entries of ``theta`` in its shape (Fortran order): writing to it sets the value."""
        start = self._program.param_id_to_col.get(parameter.id)
        if start is None:
            raise CannotCompile(
                f"parameter {parameter.name()} is not used in the problem, or CVXPY stores it in reduced form "
                "(symmetric, diagonal, sparse); use set() or load()"
            )
        return self.theta[start : start + parameter.size].reshape(parameter.shape, order="F")

    def set(self, parameter: cp.Parameter, value) -> None:
        """Set one parameter; the shape must be the same. A NaN is detected by the residual check."""
        if parameter.id in self._program.param_id_to_col:
            self.parameter_view(parameter)[...] = value
        else:
            parameter.value = value
            self.load()

    def share(self) -> dict[str, np.ndarray]:
        """Store the CVXPY parameters in ``theta``; return the shared arrays by name.

        Writing to these arrays in place sets the value both for ``solve`` here and for ``problem.solve()``.
        Parameters in reduced form are not shared.
        """
        views = {}
        for parameter in self.problem.parameters():
            if parameter.id in self._program.param_id_to_col:
                views[parameter.name()] = self.parameter_view(parameter)
                parameter.save_value(views[parameter.name()])
        return views

    def load(self) -> None:
        """Copy the values of all CVXPY parameters into ``theta``."""
        for reduction in self._chain.reductions:
            reduction.update_parameters(self.problem)
        for parameter in self._program.parameters:
            if parameter.value is None:
                raise CannotCompile(f"parameter {parameter.name()} has no value")
            start = self._program.param_id_to_col[parameter.id]
            value = parameter.value
            value = value.toarray() if hasattr(value, "toarray") else np.asarray(value)
            self.theta[start : start + parameter.size] = value.flatten(order="F")

    def solve(self, write: bool = True, prove: bool = True) -> str:
        """Solve at the current ``theta``; return CVXPY's status.

        Parameters
        ----------
        write : also set ``value`` of the CVXPY variables; multipliers and ``problem.value`` are set by ``write_back``.
        prove : whether to prove infeasibility by linear programs, which takes twenty times as long as a solve. Without
            a proof the result of DAQP is returned as ``infeasible_inaccurate``.
        """
        c, solver, status = self.condensed, self._solver, settings.SOLVER_ERROR
        is_tried, self.active_set_failed = self.active_set_failed, False
        if solver is not None:
            if self.warm and not is_tried and self._solve_previous_active_set(solver):
                status = settings.OPTIMAL
            elif least_distance.prepare(c.program, c.work, self.theta) == 0:
                status = self._solve_regular(solver, prove)
            elif self._solve_singular(solver):
                status = settings.OPTIMAL
        if status == settings.SOLVER_ERROR:
            status = self._solve_dense(prove)
        self.status = status
        if write:
            x = self.x.copy() if status == settings.OPTIMAL else None
            for variable, entry_map in self._entry_maps.variables:
                variable.save_value(None if x is None else entry_map(x))
        return status

    @property
    def objective(self) -> float:
        """Objective of the last solution, as ``problem.value``; infinite or NaN without one."""
        if self.status == settings.OPTIMAL:
            return self._sign * self._residual.item(recover.OBJECTIVE)
        return self._sign * WORST.get(self.status or "", np.nan)

    @property
    def stationarity(self) -> float:
        """The residual of that name of the last solution, see `CompiledResiduals`."""
        return self._residual.item(recover.STATIONARITY)

    def rehearse(self) -> None:
        """Solve once at the current ``theta`` by every method of ``solve``, and discard the results.

        The first call of compiled code loads it from disk, which takes a hundred times as long as a solve.
        """
        c, solver = self.condensed, self._solver
        if solver is not None:
            self._solve_previous_active_set(solver)
            if least_distance.prepare(c.program, c.work, self.theta) == 0:
                self._solve_regular(solver, True)
            self._solve_singular(solver)
            solver.start_cold()
        self._solve_dense(True)
        self.fallbacks -= 1

    def warm_arguments(self) -> tuple:
        """Return the arguments of ``solve_with_active_set`` but ``theta``, and the tolerance; none without DAQP."""
        if self._solver is None:
            return ()
        return self.condensed.program, self.condensed.work, self._solver.sense, self._solver.multiplier, TOLERANCE

    def accept_warm(self) -> None:
        """Take over the solution that a kernel has found with the previous active set."""
        self.status = settings.OPTIMAL

    def _solve_previous_active_set(self, solver: LeastDistance) -> bool:
        """Solve from the previous active set on; it is mostly that of this solution, too, but for a few rows."""
        c = self.condensed
        return (
            warm_start.solve_with_active_set(c.program, c.work, self.theta, solver.sense, solver.multiplier)
            <= TOLERANCE
        )

    def _solve_regular(self, solver: LeastDistance, prove: bool) -> str:
        """Solve, with a warm start if requested; if that fails, with a cold start. Return CVXPY's status."""
        for is_cold in (False, True) if self.warm else (True,):
            if is_cold:
                solver.start_cold()
            flag = solver.solve()
            if flag == SOLVED and self._finish(solver) <= TOLERANCE:
                return settings.OPTIMAL
            if flag == NO_POINT and not prove:
                break
        solver.start_cold()
        return settings.INFEASIBLE_INACCURATE if flag == NO_POINT and not prove else settings.SOLVER_ERROR

    def _finish(self, solver: LeastDistance) -> float:
        """Recover the QP solution from the least-distance solution; return the largest residual."""
        c = self.condensed
        return recover.finish(c.program, c.work, solver.u, solver.multiplier, solver.sense)

    def _solve_singular(self, solver: LeastDistance) -> bool:
        """Solve by proximal-point iterations: variables without a quadratic cost make the Hessian singular."""
        c = self.condensed
        if least_distance.prepare_shifted(c.program, c.work, self.theta, PROXIMAL_WEIGHT) != 0:
            return False
        solver.start_cold()
        for _ in range(MAX_PROXIMAL_STEPS):
            if solver.solve() != SOLVED:
                return False
            if self._finish(solver) <= TOLERANCE:
                return True
            least_distance.recentre(c.program, c.work)
        return False

    def _solve_dense(self, prove: bool) -> str:
        """Solve by the fallback solver; if that fails, find out whether the QP is infeasible or unbounded."""
        self.fallbacks += 1
        c = self.condensed
        least_distance.condense(c.program, c.work, self.theta)
        H, g, G, lower, upper = self.dense()
        if not all(np.isfinite(array).all() for array in (H, g, G)) or np.isnan(lower).any() or np.isnan(upper).any():
            return settings.SOLVER_ERROR
        if not c.rows:
            z, multiplier = np.linalg.lstsq(H, -g, rcond=1e-13)[0], np.zeros(0)
            if self._accept(z, multiplier) <= MAX_RESIDUAL:
                return settings.OPTIMAL
            falls = fallback.is_unbounded(H, g, G, lower, upper, c.equality)
            return settings.UNBOUNDED if falls else settings.SOLVER_ERROR
        if not c.variables:
            z, multiplier, flag = np.zeros(0), np.zeros(c.rows), SOLVED
        else:
            flag, z, multiplier = fallback.solve_dense(H, g, G, lower, upper, c.equality)
        if flag > 0:
            before = self._accept(z, multiplier)
            if before <= TOLERANCE:
                return settings.OPTIMAL
            if c.variables:
                after = self._accept(*fallback.polish(H, g, G, lower, upper, c.equality, z, multiplier))
                if not after < before:
                    after = self._accept(z, multiplier)
                if after <= MAX_RESIDUAL:
                    return settings.OPTIMAL
        elif flag == NO_POINT and not prove:
            return settings.INFEASIBLE_INACCURATE
        if not c.variables or not fallback.is_feasible(G, lower, upper, c.equality):
            return settings.INFEASIBLE
        if fallback.is_unbounded(H, g, G, lower, upper, c.equality):
            return settings.UNBOUNDED
        return settings.SOLVER_ERROR

    def _accept(self, z, multiplier) -> float:
        """Store a solution of the dense QP; return its largest residual on the original QP."""
        c = self.condensed
        self._z[:] = z
        recover.recover(c.program, c.work, np.ascontiguousarray(multiplier))
        recover.check(c.program, c.work)
        return self.residuals.largest

    def dense(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return ``H, g, G, lower, upper`` of the condensed QP at ``theta``."""
        c = self.condensed
        least_distance.condense(c.program, c.work, self.theta)
        upper_triangle = np.triu(c.part(lay.H).reshape(c.variables, c.variables))
        H = upper_triangle + np.triu(upper_triangle, 1).T
        G = np.ascontiguousarray(c.part(lay.COLUMNS).reshape(c.variables, c.rows).T)
        return H, c.part(lay.G).copy(), G, c.part(lay.ROW_LOWER).copy(), c.part(lay.ROW_UPPER).copy()

    @property
    def residuals(self) -> CompiledResiduals:
        """Residuals of the last solution on the uncondensed QP."""
        return CompiledResiduals(*self._residual[: recover.OBJECTIVE].tolist())

    def entry_map(self, variable: cp.Variable) -> EntryMap:
        """Return the map from ``x`` to the value of a variable."""
        return self._entry_maps.variable(variable)

    def value(self, variable: cp.Variable) -> np.ndarray:
        """Return the last solution's value of a variable."""
        return self.entry_map(variable)(self.x.copy())

    def dual_value(self, constraint) -> np.ndarray:
        """Return the last solution's multiplier of a constraint, with CVXPY's sign and shape."""
        return self._entry_maps.constraint(constraint)(self.dual.copy())

    def write_back(self) -> None:
        """Set what ``problem.solve()`` sets: primal and dual variables, ``problem.status``, ``problem.value``."""
        primal, dual = {}, {}
        if self.status == settings.OPTIMAL:
            primal = {variable.id: self.value(variable) for variable, _ in self._entry_maps.variables}
            dual = {constraint.id: self.dual_value(constraint) for constraint, _ in self._entry_maps.constraints}
        self.problem.unpack(Solution(self.status, self.objective, primal, dual, {}))
