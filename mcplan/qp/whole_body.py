"""The whole-body quadratic program of one tick: accelerations, torques and contact forces (S0 eq. 36-37).

Declared once per structure, filled at each tick from the terms of the state, solved, checked. When there is no
solution it is explained, then replaced by its slack form, then by a damped hold: every answer says which it is.
"""

import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Protocol

import cvxpy as cp
import numpy as np

from mcplan.errors import InputError, SimulationFailed
from mcplan.model.terms import Terms
from mcplan.qp.contact import ContactConstraint
from mcplan.qp.declaration import UNBOUNDED, Array, Declaration, Extra, Structure, check_convex
from mcplan.qp.effort_terms import fill_efforts, row_counts, split_tasks
from mcplan.qp.explain import Conflict, Explanation
from mcplan.qp.hold import damped_hold
from mcplan.qp.joint_bounds import viable_acceleration
from mcplan.qp.limit import Limit, fill_limits, limit_names
from mcplan.qp.residuals import Residuals, residuals
from mcplan.qp.settings import QPSettings, solver_options
from mcplan.qp.slack import slack_problem
from mcplan.qp.solution import HOLD, SLACK, SOLVED, Solution
from mcplan.qp.tasks.task import Task, weights

STATIONARITY = 1e-4
"""Relative gradient of the Lagrangian beyond which an answer is not taken for a minimiser."""


class Limits(Protocol):
    """Limits of the joints, (n,) each, infinite where absent."""

    @property
    def lower(self) -> Array:
        """Least positions."""

    @property
    def upper(self) -> Array:
        """Largest positions."""

    @property
    def velocity(self) -> Array:
        """Largest speeds."""

    @property
    def torque(self) -> Array:
        """Largest torques."""


class HasLimits(Protocol):
    """What the program needs of a robot."""

    @property
    def nv(self) -> int:
        """Size of a velocity."""

    @property
    def joint_names(self) -> Sequence[str]:
        """Names of the joints."""

    @property
    def limits(self) -> Limits:
        """Their limits."""


def ordered(contacts: Sequence[ContactConstraint]) -> list[ContactConstraint]:
    """Return the contacts in the order of the declared problem: by shape, then by patch."""
    return sorted(contacts, key=lambda contact: contact.place_in_order)


def structure_of(
    robot: HasLimits,
    contacts: Sequence[ContactConstraint],
    tasks: Sequence[Task],
    settings: QPSettings,
    limits: Sequence[Limit] = (),
) -> Structure:
    """Return what the declared problem depends on: not which patches and frames, but how many rows of which kind."""
    joint = robot.limits
    torque = joint.torque - settings.torque_margin if settings.torque_limits else np.full_like(joint.torque, np.inf)
    bounded = np.zeros(len(torque), dtype=bool)
    if settings.velocity_limits:
        bounded |= np.isfinite(joint.velocity)
    if settings.position_limits:
        bounded |= np.isfinite(joint.lower) | np.isfinite(joint.upper)
    task_rows, force_rows, torque_task, limit_rows = row_counts(tasks, limits)
    return Structure(
        robot.nv,
        tuple(contact.shape for contact in ordered(contacts)),
        task_rows,
        tuple(np.maximum(torque, 0.0)),
        tuple(int(i) for i in np.flatnonzero(bounded)),
        settings,
        force_rows,
        torque_task,
        limit_rows,
    )


class WholeBodyQP:
    """``min sum_i w_i |A_i vd - b_i|^2`` over ``vd, tau, f``; the rows are those of ``Declaration``.

    Parameters
    ----------
    robot, contacts, tasks, settings : fix the structure; of contacts and tasks no value is kept.
    extra : called once with this object; returns terms of the cost and constraints in CVXPY, on ``vd``, ``tau``,
        ``force`` or ``force_of(patch)`` and on parameters of the user's own.
    limits : inequalities on the accelerations, such as ``CollisionAvoidance``; of them too only the sizes are kept.

    Attributes
    ----------
    problem : the CVXPY problem.
    parameters : name -> its Parameter; data : name -> the array that the Parameter holds, written in place.
    vd, tau, force : the variables.
    """

    def __init__(
        self,
        robot: HasLimits,
        contacts: Sequence[ContactConstraint],
        tasks: Sequence[Task],
        settings: QPSettings | None = None,
        extra: Extra | None = None,
        limits: Sequence[Limit] = (),
    ):
        self.robot, self.settings = robot, settings or QPSettings()
        self.structure = structure_of(robot, contacts, tasks, self.settings, limits)
        self.declaration = d = Declaration(self.structure)
        self.vd, self.tau, self.force, self.parameters = d.vd, d.tau, d.force, d.parameters
        self.contacts = ordered(contacts)
        self.data: dict[str, Array] = {}
        for name, parameter in d.parameters.items():
            parameter.value = self.data[name] = np.zeros(parameter.shape)
        self._rows = {rows.name: rows.constraint() for rows in d.rows}
        terms_added, constraints_added = extra(self) if extra else ((), ())
        self._extra = list(constraints_added)
        self._plain = not terms_added and not self._extra
        self.cost = d.objective + sum(terms_added)
        self.problem = cp.Problem(cp.Minimize(self.cost), [*self._rows.values(), *self._extra])
        check_convex(self.problem)
        self._options = solver_options(self.settings.solver)
        self._limit = np.array(self.structure.torque)
        self._slack: cp.Problem | None = None
        self._explanation: Explanation | None = None
        self._failed_before = False
        self._constant = 0.0
        self._filled = False

    def force_of(self, patch: str) -> cp.Expression:
        """Return the force unknowns of a contact: (3k,) along its axes ``(t1, t2, n)`` point by point, or a wrench."""
        for contact, place in zip(self.contacts, self.structure.slices(), strict=True):
            if contact.patch == patch:
                return self.force[place]
        raise InputError(f"no contact of {patch!r}: {', '.join(c.patch for c in self.contacts) or 'none'}")

    def update(
        self,
        terms: Terms,
        contacts: Sequence[ContactConstraint],
        tasks: Sequence[Task],
        tau_ext: Array | None = None,
        previous: Mapping[str, Array] | None = None,
        limits: Sequence[Limit] = (),
    ) -> None:
        """Fill all parameters.

        Parameters
        ----------
        terms : terms of the state, with the frames of the contacts and tasks.
        contacts, tasks, limits : of the structure given at construction; their present gains, bounds and targets count.
        tau_ext : (nv,) known external generalised force.
        previous : patch -> force unknowns of the last solution (``Solution.unknowns``), for the force rate.

        Raises
        ------
        InputError : another structure than the declared one.
        SimulationFailed : a value that is not a number, by name.
        """
        self._filled = False
        contacts, s = ordered(contacts), self.structure
        motions, efforts = split_tasks(tasks)
        shapes = tuple(contact.shape for contact in contacts)
        if shapes != s.shapes or row_counts(tasks, limits) != s.row_counts:
            raise InputError("contacts, tasks or limits have another structure than the declared problem; ask the pool")
        self._check_state(terms)
        data = self.data
        self._terms, self.contacts, self._limit_names = terms, contacts, limit_names(limits)
        data["M"][:] = terms.M
        np.subtract(terms.h, 0.0 if tau_ext is None else tau_ext, out=data["h"])
        self._fill_tasks(terms, motions)
        self._constant += fill_efforts(data, s.slices(), contacts, terms, efforts)
        fill_limits(data, terms, limits)
        self._fill_contacts(terms, previous or {})
        if s.bounded:
            self._fill_bounds(terms)
        for name, array in data.items():
            if not np.isfinite(array.sum()):
                raise SimulationFailed(f"whole-body program: {name} is not finite{self._culprit(terms, motions)}")
        self._filled = True

    def _check_state(self, terms: Terms) -> None:
        if np.isfinite(terms.q.sum()) and np.isfinite(terms.v.sum()):
            return
        for what, vector, base in (("q", terms.q, 7), ("v", terms.v, 6)):
            for i in np.flatnonzero(~np.isfinite(vector)).tolist():
                name = self.robot.joint_names[i - base] if i >= base else "the base"
                raise SimulationFailed(f"whole-body program: {what}[{i}] of {name} is {vector[i]}")

    def _culprit(self, terms: Terms, tasks: Sequence[Task]) -> str:
        """Name the task or contact whose rows are not finite."""
        for task in tasks:
            if not all(np.all(np.isfinite(part)) for part in (*task.rows(terms), weights(task))):
                return f": task {' '.join(str(part) for part in (task.key[0], *task.frames))}"
        for contact in self.contacts:
            if not all(np.all(np.isfinite(part)) for part in contact.rows(terms)):
                return f": contact of {contact.patch}"
        return ""

    def _fill_tasks(self, terms: Terms, tasks: Sequence[Task]) -> None:
        data = self.data
        weight, pull = data["acceleration_weight"], data["acceleration_pull"]
        weight[:], pull[:], row, self._constant = self.settings.acceleration_weight, 0.0, 0, 0.0
        for task in tasks:
            A, b = task.rows(terms)
            w = weights(task)
            if task.diagonal:
                weight[A] += w
                pull[A] += w * b
                self._constant += float(w @ (b * b))
            else:
                root = np.sqrt(w)
                block = slice(row, row + len(b))
                np.multiply(A, root[:, None], out=data["task_matrix"][block])
                np.multiply(b, root, out=data["task_target"][block])
                row += len(b)

    def _fill_contacts(self, terms: Terms, previous: Mapping[str, Array]) -> None:
        data, settings = self.data, self.settings
        row = released = point = cone = grasp = 0
        for index, (contact, place) in enumerate(zip(self.contacts, self.structure.slices(), strict=True)):
            shape = contact.shape
            G = contact.wrench_map(terms)
            data["force_map"][:, place] = terms.frame(contact.patch).J.T @ G
            rows = slice(row, row + shape.rows)
            data["contact_jacobian"][rows], data["contact_acceleration"][rows] = contact.rows(terms)
            row += shape.rows
            if shape.released:
                data["release"][released : released + shape.released, place] = contact.release_rows(terms)
                released += shape.released
            rate = settings.force_rate_weight if contact.patch in previous else 0.0
            data["force_weight"][place] = settings.force_weight + rate
            data["force_pull"][place] = rate * previous[contact.patch] if rate else 0.0
            if settings.wrench_weight is not None:
                data["wrench_matrix"][6 * index : 6 * index + 6, place] = self._wrench_rows(terms, contact, G)
            if shape.grasp:
                data["grasp_force"][grasp] = min(max(contact.limit - settings.inner_margin, 0.0), UNBOUNDED)
                data["grasp_moment"][grasp] = min(max(contact.max_moment - settings.inner_margin, 0.0), UNBOUNDED)
                grasp += 1
                continue
            data["friction"][point : point + shape.points] = contact.friction
            point += shape.points
            # the friction rows' margin needs a little normal force at each point, also when a ramp has come to zero
            least = 4 * shape.points * settings.inner_margin / contact.friction
            high = max(contact.limit - settings.inner_margin, least)
            data["normal_max"][cone] = min(high, UNBOUNDED)
            data["normal_min"][cone] = min(contact.min_force + settings.inner_margin, high)
            cone += 1

    def _wrench_rows(self, terms: Terms, contact: ContactConstraint, G: Array) -> Array:
        """Return the weighted wrench at the origin and in the axes of the frame that ``wrench_weight`` refers to."""
        own = terms.frame(contact.patch)
        frame = terms.frame(self.settings.wrench_frame.get(contact.patch, contact.patch))
        x, y, z = own.p - frame.p
        arm = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
        wrench = np.vstack([frame.R.T @ G[:3], frame.R.T @ (G[3:] + arm @ G[:3])])
        return np.sqrt(np.array(self.settings.wrench_weight))[:, None] * wrench

    def _fill_bounds(self, terms: Terms) -> None:
        settings, limits = self.settings, self.robot.limits
        lower, upper, velocity = limits.lower, limits.upper, limits.velocity
        if not settings.position_limits:
            lower, upper = np.full_like(lower, -np.inf), np.full_like(upper, np.inf)
        if not settings.velocity_limits:
            velocity = np.full_like(velocity, np.inf)
        margin = settings.position_margin
        low, high = viable_acceleration(
            terms.q[7:],
            terms.v[6:],
            lower + margin,
            upper - margin,
            velocity,
            settings.dt,
            settings.braking,
            settings.ceiling,
        )
        index = np.array(self.structure.bounded)
        self.data["acceleration_min"][:], self.data["acceleration_max"][:] = low[index], high[index]

    def solve(self) -> Solution:
        """Solve the filled program; always returns an answer, whose ``status`` says of which kind."""
        if not self._filled:
            raise InputError("the whole-body program is solved after its update")
        start = time.perf_counter()
        failure, checked = self._attempt(self.problem, self._plain)
        if checked is not None:
            self._failed_before = False
            return self._answer(SOLVED, checked, start)
        conflicts = self._explain()
        message = failure + ("; in the way: " + "; ".join(map(str, conflicts)) if conflicts else "")
        self._failed_before = True
        if self._slack is None:
            self._slack = slack_problem(self.declaration, self.cost, self._extra)
        failure, checked = self._attempt(self._slack, False, hard_only=True)
        if checked is not None:
            return self._answer(SLACK, checked, start, message, conflicts)
        vd, tau, forces = damped_hold(self._terms, self.data["h"], self.contacts, self._limit)
        f = np.concatenate(forces) if forces else np.zeros(0)
        self.vd.save_value(vd)
        self.tau.save_value(tau)
        if self.force is not None:
            self.force.save_value(f)
        checked = residuals(self.declaration, self.data, vd, tau, f)
        return self._answer(HOLD, checked, start, f"{message}; slack form: {failure}", conflicts)

    def _attempt(self, problem: cp.Problem, with_duals: bool, hard_only: bool = False) -> tuple[str, Residuals | None]:
        """Solve one form; return why it failed, or the residuals of an answer that passed the check."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                problem.solve(solver=self.settings.solver, **self._options)
        except cp.SolverError as error:
            return f"{self.settings.solver}: {error}", None
        if problem.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
            return problem.status, None
        vd, tau, f = self._point()
        if not np.isfinite(vd.sum() + tau.sum() + f.sum()):
            return "the solver's answer is not a number", None
        duals = None
        if with_duals and not any(c.dual_value is None for c in self._rows.values()):
            duals = {name: np.atleast_1d(constraint.dual_value) for name, constraint in self._rows.items()}
        violation = max((float(np.max(c.violation())) for c in self._extra), default=0.0)
        found = residuals(self.declaration, self.data, vd, tau, f, duals, violation)
        scale = max(1.0, float(np.max(np.abs(self.data["h"]))))
        wrong = found.motion > self.settings.tolerance * scale
        if not hard_only:
            size = max(1.0, float(np.max(np.abs(self.data.get("contact_acceleration", np.zeros(1))))))
            wrong |= found.contact > self.settings.tolerance * size
            wrong |= found.inequality > 2 * self.settings.tolerance * size
        wrong |= found.stationarity > STATIONARITY
        return (f"{problem.status}, but {found}", None) if wrong else ("", found)

    def _point(self) -> tuple[Array, Array, Array]:
        f = np.zeros(0) if self.force is None else np.array(self.force.value)
        return np.array(self.vd.value), np.array(self.tau.value), f

    def _explain(self) -> tuple[Conflict, ...]:
        how = self.settings.explain
        if how == "never" or (how == "first" and self._failed_before):
            return ()
        if self._explanation is None:
            self._explanation = Explanation(self.declaration, self._extra, self.robot.joint_names)
        return self._explanation(self.contacts, self._limit_names)

    def _answer(
        self, status: int, checked: Residuals, start: float, message: str = "", conflicts: tuple[Conflict, ...] = ()
    ) -> Solution:
        vd, tau, f = self._point()
        forces, wrenches, unknowns = {}, {}, {}
        for contact, place in zip(self.contacts, self.structure.slices(), strict=True):
            unknowns[contact.patch] = f[place]
            forces[contact.patch] = contact.point_forces(self._terms, f[place])
            wrenches[contact.patch] = contact.wrench_map(self._terms) @ f[place]
        objective = float(self.problem.value) if status == SOLVED else float(self.cost.value)
        return Solution(
            status,
            vd,
            tau,
            forces,
            wrenches,
            unknowns,
            checked,
            objective + self._constant,
            time.perf_counter() - start,
            message,
            conflicts,
        )
