"""Whole-body quadratic program of one tick: accelerations, torques and contact forces (S0: docs/sources.md, eq. 36-37).

It is declared once per structure, filled at each tick from the terms of the state, solved and checked. An infeasible
program is explained, then replaced by its slack form, then by a damped hold; the status tells which one was solved.
"""

import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np

from mcplan.core.whole_body.fill import FILLED
from mcplan.core.whole_body.solve import SOLVED as WARM_SOLVED
from mcplan.errors import InputError, SimulationFailed
from mcplan.robot.terms import Terms
from mcplan.util.qp_status import HOLD, SLACK
from mcplan.whole_body.collision_avoidance import AccelerationLimit
from mcplan.whole_body.contact import ContactConstraint
from mcplan.whole_body.declaration import Declaration, Extra, check_convex
from mcplan.whole_body.explain import Explanation, SlackForm, damped_hold, slack_problem
from mcplan.whole_body.forms import BaseChart
from mcplan.whole_body.packed import is_unchanged
from mcplan.whole_body.problem_data import Structure
from mcplan.whole_body.rows.accelerations import limit_names
from mcplan.whole_body.rows.block import Array, Conflict
from mcplan.whole_body.rows.forces import TorqueBand
from mcplan.whole_body.settings import MIXED, HasLimits, QPSettings, bounds, solver_options
from mcplan.whole_body.solution import Solution, stationarity
from mcplan.whole_body.tables import (
    EXTERNAL,
    PULL,
    WEIGHT,
    BoundTables,
    FastForm,
    StructureTable,
    allocate_parameters,
    fast_form,
)
from mcplan.whole_body.tasks.effort_terms import fill_efforts, row_counts, split_tasks
from mcplan.whole_body.tasks.task import Task, checked_rows, weights

CALM_TICKS = 100
"""With ``explain: first``, a failure after this many consecutive solutions is explained again."""


def sort_contacts(contacts: Sequence[ContactConstraint]) -> list[ContactConstraint]:
    """Return the contacts in the order of the declared problem: by shape, then by patch."""
    return sorted(contacts, key=lambda contact: contact.sort_key)


def structure_of(
    robot: HasLimits,
    contacts: Sequence[ContactConstraint],
    tasks: Sequence[Task],
    settings: QPSettings,
    limits: Sequence[AccelerationLimit] = (),
) -> Structure:
    """Return the structure of the declared problem: numbers of rows by kind, limits and settings."""
    joint = robot.limits
    torque = joint.torque - settings.torque_margin if settings.torque_limits else np.full_like(joint.torque, np.inf)
    bounded = np.zeros(len(torque), dtype=bool)
    if settings.velocity_limits:
        bounded |= np.isfinite(joint.velocity)
    if settings.position_limits:
        bounded |= np.isfinite(joint.lower) | np.isfinite(joint.upper)
    task_rows, force_rows, torque_task, limit_rows = row_counts(tasks, limits, len(torque))
    return Structure(
        robot.nv,
        tuple(contact.shape for contact in sort_contacts(contacts)),
        task_rows,
        tuple(np.maximum(torque, 0.0)),
        tuple(int(i) for i in np.flatnonzero(bounded)),
        settings,
        force_rows,
        torque_task,
        limit_rows,
    )


MAX_BINDINGS = 512
"""Largest number of sets of contacts and tasks whose kernel tables a program keeps."""


class _Binding(NamedTuple):
    """Kernel tables of contacts and tasks; ``arguments`` are kept, because the tables are found by their identity."""

    arguments: tuple
    tables: BoundTables
    contacts: list[ContactConstraint]
    efforts: list[Any]


class WholeBodyQP:
    """The program ``min sum_i w_i |A_i vd - b_i|^2`` over ``vd, tau, f``, subject to the rows of ``Declaration``.

    Parameters
    ----------
    robot, contacts, tasks, settings : define the structure. Values of contacts and tasks are set by ``update``.
    extra : called once with this object; returns terms of the cost and constraints in CVXPY, on ``vd``, ``tau``,
        ``force`` or ``force_of(patch)`` and user-defined parameters.
    limits : inequalities on the accelerations, such as ``CollisionAvoidance``; only their sizes are stored.

    Attributes
    ----------
    problem : the CVXPY problem.
    parameters : name -> Parameter; data : name -> array of the Parameter, written in place.
    vd, tau, force : the variables.
    fast : the compiled form; None: CVXPY solves the problem.
    """

    def __init__(
        self,
        robot: HasLimits,
        contacts: Sequence[ContactConstraint],
        tasks: Sequence[Task],
        settings: QPSettings | None = None,
        extra: Extra | None = None,
        limits: Sequence[AccelerationLimit] = (),
    ):
        self.robot, self.settings = robot, settings or QPSettings()
        self.structure = structure_of(robot, contacts, tasks, self.settings, limits)
        self.declaration = d = Declaration(self.structure)
        self.vd, self.tau, self.force, self.parameters = d.vd, d.tau, d.force, d.parameters
        self.contacts = sort_contacts(contacts)
        self._chart = BaseChart(d, robot) if self.settings.form != MIXED else None
        self._rows = {rows.name: rows.constraint() for rows in d.rows}
        if self._chart:
            self._rows |= {rows.name: rows.constraint() for rows in self._chart.rows}
        terms_added, constraints_added = extra(self) if extra else ((), ())
        self._extra = list(constraints_added)
        self._has_only_declared_rows = not terms_added and not self._extra and not self._chart
        self.cost = d.objective + sum(terms_added)
        self.problem = cp.Problem(cp.Minimize(self.cost), [*self._rows.values(), *self._extra])
        check_convex(self.problem, self._extra)
        self._options = solver_options(self.settings.solver)
        self._slack: SlackForm | None = None
        self._explanation: Explanation | None = None
        self._is_explained, self._successes = False, CALM_TICKS
        compiled = self.settings.compiled and self.settings.solver == "DAQP" and not self._chart
        self.fast = fast_form(self.problem, d) if compiled else None
        self.data = self.fast.data if self.fast else {}
        theta = self.fast.theta if self.fast else allocate_parameters(d, self.data)
        self._layout = StructureTable(d, theta, self.data, bounds(robot, self.structure.bounded, self.settings))
        self._tables: BoundTables | None = None
        self._bound_arguments: tuple = ()
        self._efforts: list[Any] = []
        self._bindings: dict[tuple[int, ...], _Binding] = {}
        self._limits: Sequence[AccelerationLimit] = ()
        self._constant = 0.0
        self._filled = False

    def force_of(self, patch: str) -> cp.Expression:
        """Return the force unknowns of a contact: (3k,) along its axes ``(t1, t2, n)`` point by point, or a wrench."""
        for contact, force_slice in zip(self.contacts, self.structure.slices(), strict=True):
            if contact.patch == patch:
                return self.force[force_slice]
        raise InputError(f"no contact of {patch!r}: {', '.join(c.patch for c in self.contacts) or 'none'}")

    def update(
        self,
        terms: Terms,
        contacts: Sequence[ContactConstraint],
        tasks: Sequence[Task],
        tau_ext: Array | None = None,
        previous: Mapping[str, Array] | Solution | None = None,
        limits: Sequence[AccelerationLimit] = (),
        planned: Mapping[str, Array] | None = None,
        torque_band: TorqueBand | None = None,
    ) -> None:
        """Fill all parameters of the program from state, contacts, tasks and limits.

        Parameters
        ----------
        terms : terms of the state, with the frames of the contacts and tasks.
        contacts, tasks, limits : objects of the declared structure, with their present gains, bounds and targets. The
            part of a limit row that the contacts determine is removed: no unknown changes it.
        tau_ext : (nv,) known external generalised force.
        previous : the last solution, or its force unknowns by patch, for the force rate.
        planned : patch -> reference of the force unknowns in the cost; default zero.
        torque_band : interval of the torques, to bound their rate; None: torques may jump.

        Raises
        ------
        InputError : contacts, tasks or limits have another structure than the declared one.
        SimulationFailed : a value is not a number; the message names it.
        """
        tables = self._set_inputs(terms, contacts, tasks, tau_ext, previous, limits, planned, torque_band)
        self._finish_fill(tables.fill(), tables, terms, tasks)
        if self._chart:
            self._chart.fill(terms, tau_ext, self.data)

    def update_and_attempt(
        self,
        terms: Terms,
        contacts: Sequence[ContactConstraint],
        tasks: Sequence[Task],
        previous: Mapping[str, Array] | Solution | None = None,
        limits: Sequence[AccelerationLimit] = (),
        planned: Mapping[str, Array] | None = None,
        torque_band: TorqueBand | None = None,
    ) -> Solution | None:
        """Fill and solve, see `update` and `attempt`; in one kernel call if the last active set leads there."""
        start, last_tables = time.perf_counter(), self._tables
        if self.fast is None or not self.fast.warm_arguments or self._extra:
            self.update(terms, contacts, tasks, None, previous, limits, planned, torque_band)
            return self.attempt()
        tables = self._set_inputs(terms, contacts, tasks, None, previous, limits, planned, torque_band)
        solution = Solution(tables)
        # with new contacts, or after a failure, other rows are active: exchanging one by one takes longer than DAQP
        is_near = tables is last_tables and self.fast.compiled.status == cp.OPTIMAL
        status = tables.fill_and_solve(self.fast, solution.numbers) if is_near else tables.fill()
        return self.conclude(status, solution, tasks, start)

    def kernel_tables(self) -> BoundTables | None:
        """Return the tables of the last solution if a kernel alone may fill and solve the program next; else None."""
        fast, tables = self.fast, self._tables
        if fast is None or tables is None or not fast.warm_arguments or fast.compiled.status != cp.OPTIMAL:
            return None
        by_kernel = not (self._extra or self._efforts or tables.python_tasks or tables.has_external)
        return tables if by_kernel and tables.has_last else None

    def kernel_arguments(self, planned: Array, step: Array) -> tuple:
        """Return the arguments of ``core.whole_body.tick.respond`` from the state to ``residual``.

        ``planned`` are the planned force unknowns, and ``step`` (n,) the half width of the interval of the torques.
        """
        assert self.fast is not None
        assert self._tables is not None
        return self._tables.kernel_arguments(self.fast, planned, step)

    def begin(self) -> None:
        """Forget the last fill: a kernel fills the program next, see `kernel_tables` and `conclude`."""
        self._filled, self._constant = False, 0.0

    def conclude(self, status: int, solution: Solution, tasks: Sequence[Task], start: float) -> Solution | None:
        """Return the solution of a kernel with this status; if it has none, solve the program that it has filled.

        ``start`` is the time (s) at which the fill began. The result may be None, see `attempt`.
        """
        assert self.fast is not None
        assert self._tables is not None
        if status == WARM_SOLVED:
            self._filled = True
            self.fast.compiled.accept_warm()
            return self._accept(solution, start)
        self._finish_fill(status, self._tables, self._tables.terms, tasks)
        self.fast.compiled.active_set_failed = True
        return self.attempt()

    def _set_inputs(
        self,
        terms: Terms,
        contacts: Sequence[ContactConstraint],
        tasks: Sequence[Task],
        tau_ext: Array | None,
        previous: Mapping[str, Array] | Solution | None,
        limits: Sequence[AccelerationLimit],
        planned: Mapping[str, Array] | None,
        torque_band: TorqueBand | None,
    ) -> BoundTables:
        """Set the inputs of the kernel that fills the parameters, and the parameters that it does not fill."""
        self._filled = False
        tables = self.bind(terms, contacts, tasks, limits)
        if tau_ext is not None or tables.has_external:
            tables.inputs[EXTERNAL], tables.has_external = 0.0 if tau_ext is None else tau_ext, tau_ext is not None
        self._constant = self._fill_python_tasks(tables, terms) if tables.python_tasks else 0.0
        if self._efforts:
            self._constant += fill_efforts(self.data, tables.force_slices, self.contacts, terms, self._efforts)
        self._limits = limits
        if limits:
            tables.set_limits(terms, limits)
        self._set_force_references(tables, previous, planned or {})
        tables.set_torque_band(torque_band)
        return tables

    def _finish_fill(self, status: int, tables: BoundTables, terms: Terms, tasks: Sequence[Task]) -> None:
        """Complete the fill: constant part of the cost; ``SimulationFailed`` if a value is not a number."""
        if status != FILLED:
            raise SimulationFailed(f"whole-body program: {self._describe_nan(terms, tasks)}")
        self._constant += tables.constant
        self._filled = True

    def bind(
        self,
        terms: Terms,
        contacts: Sequence[ContactConstraint],
        tasks: Sequence[Task],
        limits: Sequence[AccelerationLimit],
    ) -> BoundTables:
        """Return the kernel tables of these objects, made at the first call: ``update`` takes less time after it."""
        arguments = terms, tuple(contacts), tuple(tasks), tuple(limits)
        if self._tables is not None and is_unchanged(arguments, self._bound_arguments):
            return self._tables
        key = id(terms), *sorted(map(id, contacts)), 0, *map(id, tasks), 0, *map(id, limits)
        if key not in self._bindings:
            if len(self._bindings) == MAX_BINDINGS:
                self._bindings.clear()
            sorted_contacts, s = sort_contacts(contacts), self.structure
            shapes = tuple(contact.shape for contact in sorted_contacts)
            if shapes != s.shapes or row_counts(tasks, limits, s.n) != s.row_counts:
                raise InputError(
                    "contacts, tasks or limits have another structure than the declared problem; ask the pool"
                )
            motions, efforts = split_tasks(tasks)
            tables = BoundTables(self._layout, terms, sorted_contacts, motions, self.settings)
            self._bindings[key] = _Binding(arguments, tables, sorted_contacts, efforts)
        _, self._tables, self.contacts, self._efforts = self._bindings[key]
        self._bound_arguments = arguments
        return self._tables

    def _fill_python_tasks(self, tables: BoundTables, terms: Terms) -> float:
        """Fill the rows of tasks without a kernel; return the constant part of their cost."""
        tables.inputs[WEIGHT:] = constant = 0.0
        for task, rows in tables.python_tasks:
            A, wanted = checked_rows(task, task.rows(terms), self.structure.nv)
            w = weights(task)
            if task.diagonal:
                tables.inputs[WEIGHT][A] += w
                tables.inputs[PULL][A] += w * wanted
                constant += float(w @ (wanted * wanted))
            else:
                root = np.sqrt(w)
                np.multiply(A, root[:, None], out=self.data["task_matrix"][rows])
                np.multiply(wanted, root, out=self.data["task_target"][rows])
        return constant

    def _set_force_references(
        self, b: BoundTables, previous: Mapping[str, Array] | Solution | None, planned: Mapping[str, Array]
    ) -> None:
        """Set the references of the force unknowns: planned forces, and last forces of contacts closed before."""
        rate = self.settings.force_rate_weight
        if isinstance(previous, Solution) and previous.patches == b.patches and len(previous.f) == len(b.rate):
            b.last = previous.f
            if not b.has_last:
                b.has_last, b.rate[:] = True, rate
        else:
            b.has_last = False
            b.last, b.rate[:] = np.zeros(len(b.rate)), 0.0
            previous = previous.unknowns if isinstance(previous, Solution) else previous or {}
            for patch, force_slice in zip(b.patches, b.force_slices, strict=True):
                if patch in previous:
                    b.last[force_slice], b.rate[force_slice] = previous[patch], rate
        for patch, force_slice in zip(b.patches, b.force_slices, strict=True):
            b.planned[force_slice] = planned.get(patch, 0.0)

    def _describe_nan(self, terms: Terms, tasks: Sequence[Task]) -> str:
        """Return a message that names the value that is not a number: of the state, or of a task or contact."""
        for symbol, values, base_size in (("q", terms.q, 7), ("v", terms.v, 6)):
            for i in np.flatnonzero(~np.isfinite(values)).tolist():
                joint, joint_names = i - base_size, self.robot.joint_names
                name = "the base" if joint < 0 else joint_names[joint] if joint < len(joint_names) else "a free object"
                return f"{symbol}[{i}] of {name} is {values[i]}"
        nonfinite = [name for name, array in self.data.items() if not np.all(np.isfinite(array))]
        message = f"{nonfinite[0]} is not finite" if nonfinite else "a limit is not a number"
        for task in split_tasks(tasks)[0]:
            if not all(np.all(np.isfinite(part)) for part in (*task.rows(terms), weights(task))):
                return f"{message}: task {' '.join(str(part) for part in (task.key[0], *task.frames))}"
        for contact in self.contacts:
            numbers = (*contact.rows(terms), contact.wrench_map(terms))
            if np.any(np.isnan(contact.values)) or not all(np.all(np.isfinite(part)) for part in numbers):
                return f"{message}: contact of {contact.patch}"
        return message

    def attempt(self) -> Solution | None:
        """Solve the filled program; return None if no solution is found. Infeasibility is not proven, to save time."""
        start = time.perf_counter()
        answer = self._solve_declared(self._filled_tables(), prove=False)[1]
        return None if answer is None else self._accept(answer, start)

    def solve(self) -> Solution:
        """Solve the filled program; always return a solution, whose ``status`` tells its kind.

        An infeasible program is explained and replaced, which takes up to half a second the first time. Use ``attempt``
        if there is another program to try.
        """
        start, tables = time.perf_counter(), self._filled_tables()
        failure, answer = self._solve_declared(tables)
        if answer is not None:
            return self._accept(answer, start)
        conflicts = self._explain()
        message = failure + ("; in conflict: " + "; ".join(map(str, conflicts)) if conflicts else "")
        self._is_explained, self._successes = True, 0
        if self._slack is None:
            slack_form = slack_problem(self.declaration, self.cost, self._extra)
            self._slack = SlackForm(slack_form, self.fast is not None, self.settings.solver, self._options)
        failure, answer = self._solve_form(tables, self._slack, False, hard_only=True)
        if answer is not None:
            return self._finish(answer, start, SLACK, message, conflicts)
        vd, tau, forces = damped_hold(tables.terms, self.data["h"], self.contacts, np.array(self.structure.torque))
        f = np.concatenate(forces) if forces else np.zeros(0)
        for variable, value in zip(self.declaration.variables, (vd, tau, f), strict=False):
            variable.save_value(value)
        answer = Solution.checked(tables, vd, tau, f, np.nan if self.cost.value is None else float(self.cost.value))
        return self._finish(answer, start, HOLD, f"{message}; slack form: {failure}", conflicts)

    def preload_price(self) -> float:
        """Return the cost of the preloads in the last solution, to first order.

        It is ``y' m``, with the multipliers y of the cones and the contribution m of preloads to their margins.
        """
        cones, s = self._rows.get("friction"), self.fast.compiled if self.fast else self.problem
        if cones is None or s.status != cp.OPTIMAL:
            return 0.0
        y = cones.dual_value if self.fast is None else self.fast.compiled.dual_value(cones)
        slack_map = next(r.slack_map for r in self.declaration.rows if r.name == "friction" and r.slack_map is not None)
        return float(y @ (slack_map @ self.data["friction_margin"]))

    def rehearse(self) -> None:
        """Solve the filled program by every method of the compiled form, and check a point, to load their kernels."""
        if self.fast and self._tables is not None:
            self.fast.compiled.rehearse()
            Solution.checked(self._tables, *self.fast.point(), 0.0).is_wrong(self.settings.tolerance)

    def write_back(self) -> None:
        """Set the CVXPY results after a compiled solve: variables, multipliers, ``problem.status`` and ``.value``."""
        if self.fast:
            self.fast.compiled.write_back()

    def _filled_tables(self) -> BoundTables:
        """Return the tables; ``InputError`` if the program is not filled."""
        if not self._filled or self._tables is None:
            raise InputError("the whole-body program is solved after its update")
        return self._tables

    def _accept(self, answer: Solution, start: float) -> Solution:
        """Complete a solution of the declared program, and count it."""
        self._successes += 1
        self._is_explained = self._is_explained and self._successes < CALM_TICKS
        if self._constant:
            answer.objective += self._constant
        answer.solve_time = time.perf_counter() - start
        return answer

    def _solve_declared(self, tables: BoundTables, prove: bool = True) -> tuple[str, Solution | None]:
        """Solve the declared program by its compiled form, and by CVXPY if that finds no answer."""
        if self.fast is not None:
            failure, answer = self._solve_compiled(tables, self.fast, prove)
            if answer is not None or failure in (cp.INFEASIBLE, cp.INFEASIBLE_INACCURATE):
                return failure, answer
        return self._solve_form(tables, self.problem, self._has_only_declared_rows)

    def _solve_compiled(self, tables: BoundTables, fast: FastForm, prove: bool) -> tuple[str, Solution | None]:
        """Solve the compiled form; return the reason of a failure, or a solution that passed the residual check."""
        status = fast.solve(prove)
        if status != cp.OPTIMAL:
            return status, None
        answer = Solution.checked(tables, *fast.point(), fast.compiled.objective)
        answer.stationarity = fast.compiled.stationarity
        if self._extra:
            residuals = fast.compiled.residuals
            answer.inequality = max(answer.inequality, residuals.inequality, residuals.equality)
        fails = answer.is_wrong(self.settings.tolerance)
        return (f"{status}, but {answer.residuals}", None) if fails else ("", answer)

    def _solve_form(
        self, tables: BoundTables, form: cp.Problem | SlackForm, with_duals: bool, hard_only: bool = False
    ) -> tuple[str, Solution | None]:
        """Solve one form by CVXPY; return the reason of a failure, or a solution that passed the residual check."""
        try:
            if isinstance(form, SlackForm):
                status = form.solve()
            else:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    form.solve(solver=self.settings.solver, **self._options)
                status = form.status
        except cp.SolverError as error:
            return f"{self.settings.solver}: {error}", None
        if status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
            return str(status), None
        vd, tau, f = self._point()
        if not np.isfinite(vd.sum() + tau.sum() + f.sum()):
            return "the solver's answer is not a number", None
        objective = float(self.problem.value if form is self.problem else self.cost.value)
        answer = Solution.checked(tables, vd, tau, f, objective)
        if with_duals and not any(c.dual_value is None for c in self._rows.values()):
            duals = {name: np.atleast_1d(constraint.dual_value) for name, constraint in self._rows.items()}
            answer.stationarity = stationarity(self.declaration, self.data, vd, tau, f, duals)
        answer.inequality = max([answer.inequality, *(float(np.max(c.violation())) for c in self._extra)])
        fails = answer.is_wrong(self.settings.tolerance, hard_only)
        return (f"{status}, but {answer.residuals}", None) if fails else ("", answer)

    def _point(self) -> tuple[Array, Array, Array]:
        """Return vd, tau and f of the CVXPY variables."""
        f = np.zeros(0) if self.force is None else np.array(self.force.value)
        return np.array(self.vd.value), np.array(self.tau.value), f

    def _explain(self) -> tuple[Conflict, ...]:
        """Return the conflicts of the failed program, if the settings ask for an explanation."""
        mode = self.settings.explain
        if mode == "never" or (mode == "first" and self._is_explained):
            return ()
        if self._explanation is None:
            self._explanation = Explanation(self.declaration, self._extra, self.robot.joint_names)
        return self._explanation(self.contacts, limit_names(self._limits))

    def _finish(self, solution: Solution, start: float, status: int, message: str, conflicts: tuple) -> Solution:
        """Complete a solution of another program: constant part of its cost, time, status, message and conflicts."""
        solution.objective += self._constant
        solution.solve_time = time.perf_counter() - start
        solution.status, solution.message, solution.conflicts = status, message, conflicts
        return solution
