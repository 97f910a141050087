"""Infeasible whole-body programs: explanation of conflicts, slack form, and damped hold.

The explanation names the constraints that would have to be relaxed, and by how much. The slack form is the program with
soft constraints: contacts may slip, and joints may exceed their limits. The damped hold, the last resort, damps the
joints, bears the weight and satisfies the equation of motion, without a solver.
"""

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import cvxpy as cp
import numpy as np

from mcplan.optimize.compiled import CannotCompile, CompiledProblem, compile_problem
from mcplan.robot.terms import Terms
from mcplan.whole_body.contact import ContactConstraint
from mcplan.whole_body.declaration import Declaration
from mcplan.whole_body.rows.accelerations import MOTION
from mcplan.whole_body.rows.block import Conflict, Failure
from mcplan.whole_body.solution import Array

EXTRA_PRICE = 100.0
"""Weight of the absolute violation of user-defined rows in an explanation (see `Rows.price`)."""


class Explanation:
    """The elastic form of a program: the smallest weighted sum of violations that makes it feasible.

    Torques may exceed their limits here; the equation of motion always holds. The form is built once per declared
    problem, and shares its parameters.
    """

    def __init__(self, declaration: Declaration, extra: Sequence[cp.Constraint], joint_names: Sequence[str]):
        self._declaration, self._joints = declaration, list(joint_names)
        self._excess_torque = cp.Variable(declaration.structure.n)
        self._slack: dict[str, cp.Variable] = {}
        self._extra: list[tuple[cp.Constraint, cp.Variable]] = []
        cost = cp.norm1(self._excess_torque) + 1e-7 * cp.sum_squares(declaration.vd)
        if declaration.force is not None:
            cost = cost + 1e-9 * cp.sum_squares(declaration.force)
        constraints = []
        for rows in declaration.rows:
            if rows.name == MOTION:  # excess torques drive the joints, too
                constraints.append(rows.expression - declaration.actuation @ self._excess_torque == 0)
                continue
            slack = cp.Variable(rows.expression.shape if rows.slack_map is None else rows.slack_map.shape[1])
            self._slack[rows.name] = slack
            constraints.append(rows.relaxed(slack if rows.slack_map is None else rows.slack_map @ slack))
            cost = cost + rows.price * cp.norm1(slack)
        for constraint in extra:
            expression = constraint.args[0] - constraint.args[1]
            slack = cp.Variable(expression.shape)
            self._extra.append((constraint, slack))
            cost = cost + EXTRA_PRICE * cp.sum(cp.abs(slack))
            equality = isinstance(constraint, cp.constraints.Equality)
            constraints.append(expression == slack if equality else expression <= slack)
        self._problem = cp.Problem(cp.Minimize(cost), constraints)

    def __call__(
        self, contacts: Sequence[ContactConstraint], limits: Sequence[str] = (), threshold: float = 1e-4
    ) -> tuple[Conflict, ...]:
        """Return the conflicts at the present values of the parameters, the largest first.

        Parameters
        ----------
        contacts : the contacts in the order of the declared problem.
        limits : names of the rows of user-defined limits.
        threshold : smaller violations are not reported.
        """
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # an inaccurate solution still shows the conflict
                self._problem.solve(solver=cp.CLARABEL)
        except cp.SolverError:
            return ()
        if self._problem.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
            return ()
        conflicts = [*self._torques(), *self._rows(contacts, limits), *self._user_rows()]
        return tuple(sorted((c for c in conflicts if c.amount > threshold), key=lambda c: -c.amount))

    def _torques(self) -> Iterator[Conflict]:
        """Yield the torques beyond their limits."""
        for name, excess in zip(self._joints, np.abs(np.asarray(self._excess_torque.value)), strict=True):
            yield Conflict(f"torque limit of {name}", float(excess), "N m")

    def _rows(self, contacts: Sequence[ContactConstraint], limits: Sequence[str]) -> Iterator[Conflict]:
        """Yield the conflicts of all blocks of rows."""
        d = self._declaration
        slack = {name: np.asarray(variable.value) for name, variable in self._slack.items()}
        force = np.zeros(0) if d.force is None else np.asarray(d.force.value)
        failure = Failure(slack, contacts, d.structure.slices(), force, self._joints, limits)
        for block in d.blocks:
            yield from block.conflicts(failure)

    def _user_rows(self) -> Iterator[Conflict]:
        """Yield the violations of user-defined constraints."""
        for constraint, slack in self._extra:
            amount = float(np.max(np.abs(np.atleast_1d(np.asarray(slack.value)))))
            yield Conflict(f"added constraint {constraint.label or str(constraint)}", amount, "")


EXTRA_PENALTY = 1e3
"""Weight of the squared violation of user-defined rows in the slack form (see `Rows.penalty`)."""


def slack_problem(declaration: Declaration, objective: cp.Expression, extra: list[cp.Constraint]) -> cp.Problem:
    """Return the program with soft rows; it shares variables and parameters with the declared one.

    It is always feasible: forces at the tips of their cones and zero torques give some acceleration.
    """
    cost, constraints = objective, []
    for rows in declaration.rows:
        if rows.penalty is None:
            constraints.append(rows.constraint())
            continue
        slack = cp.Variable(rows.expression.shape)
        cost = cost + rows.penalty * cp.sum_squares(slack)
        constraints.append(rows.relaxed(slack))
    for constraint in extra:
        expression = constraint.args[0] - constraint.args[1]
        slack = cp.Variable(expression.shape)
        cost = cost + EXTRA_PENALTY * cp.sum_squares(slack)
        equality = isinstance(constraint, cp.constraints.Equality)
        constraints.append(expression == slack if equality else expression <= slack)
    return cp.Problem(cp.Minimize(cost), constraints)


class SlackForm:
    """The slack form of a declared problem, compiled if possible, as many consecutive ticks may need it.

    Parameters
    ----------
    problem : result of `slack_problem`.
    compiled : whether to compile it.
    solver, options : solver of CVXPY and its options, for a problem that is not compiled.
    """

    def __init__(self, problem: cp.Problem, compiled: bool, solver: str, options: dict[str, Any]):
        self.problem, self._solver, self._options = problem, solver, options
        self._compiled: CompiledProblem | None = None
        if compiled:
            try:
                self._compiled = compile_problem(problem)
            except CannotCompile:
                self._compiled = None

    def solve(self) -> str:
        """Solve at the present values of the parameters, set the variables, and return the status."""
        if self._compiled is not None:
            self._compiled.load()
            if (status := self._compiled.solve()) == cp.OPTIMAL:
                return status
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.problem.solve(solver=self._solver, **self._options)
        return str(self.problem.status)


HOLD_DECAY_RATE = 10.0
"""Decay rate of the velocities in the damped hold (1/s)."""


def damped_hold(
    terms: Terms, h: Array, contacts: Sequence[ContactConstraint], torque_limits: Array
) -> tuple[Array, Array, list[Array]]:
    """Return accelerations, torques and force unknowns without a solver.

    The forces are the minimum-norm ones for the acceleration ``vd* = -HOLD_DECAY_RATE v`` of the base, projected into
    their cones. The torques follow from the joint rows and are clipped to their limits; the accelerations satisfy the
    equation of motion.

    Parameters
    ----------
    terms : terms of the state.
    h : (nv,) bias forces minus external ones.
    contacts : the contacts in the order of the returned force unknowns.
    torque_limits : (n,) N m.
    """
    required = terms.M @ (-HOLD_DECAY_RATE * terms.v) + h
    joints = slice(6, 6 + len(torque_limits))
    maps = [contact.force_map(terms) for contact in contacts]
    forces: list[Array] = []
    contact_force = np.zeros_like(required)
    if maps:
        J = np.hstack(maps)
        unactuated = np.delete(J, joints, axis=0)  # rows of the robot's base and of free objects
        gram = unactuated @ unactuated.T
        f = unactuated.T @ np.linalg.solve(
            gram + 1e-9 * np.trace(gram) * np.eye(len(gram)), np.delete(required, joints)
        )
        first = 0
        for contact, part in zip(contacts, maps, strict=True):
            unknowns = _into_cone(contact, f[first : first + part.shape[1]])
            forces.append(unknowns)
            contact_force += part @ unknowns
            first += part.shape[1]
    tau = np.clip((required - contact_force)[joints], -torque_limits, torque_limits)
    net_force = contact_force - h
    net_force[joints] += tau
    return np.asarray(np.linalg.solve(terms.M, net_force), dtype=np.float64), tau, forces


def _into_cone(contact: ContactConstraint, f: Array) -> Array:
    """Project the unknowns into the admissible forces of the contact."""
    if contact.shape.grasp:
        wrench = contact.selection.T @ f
        force, moment = float(np.linalg.norm(wrench[:3])), float(np.linalg.norm(wrench[3:]))
        return f * min(1.0, contact.limit / max(force, 1e-9), contact.max_moment / max(moment, 1e-9))
    points = f.reshape(-1, 3).copy()
    points[:, 2] = np.maximum(points[:, 2], 0.0)
    tangential = np.hypot(points[:, 0], points[:, 1])
    points[:, :2] *= np.minimum(1.0, contact.friction * points[:, 2] / np.maximum(tangential, 1e-9))[:, None]
    return (points * min(1.0, contact.limit / max(float(points[:, 2].sum()), 1e-9))).ravel()
