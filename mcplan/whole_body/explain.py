"""Why a whole-body program has no solution: the constraints that would have to give way, by name and amount."""

import warnings
from collections.abc import Iterator, Sequence

import cvxpy as cp
import numpy as np

from mcplan.whole_body.contact import ContactConstraint
from mcplan.whole_body.declaration import Declaration
from mcplan.whole_body.rows.block import Conflict, Failure
from mcplan.whole_body.rows.motion import MOTION

EXTRA_PRICE = 100.0
"""What one unit of violation of the user's rows costs, relative to 1 N or 1 N m (see `Rows.price`)."""


class Explanation:
    """The elastic form: the smallest sum of priced violations that makes the program feasible.

    Torques may exceed their limits here; the equation of motion always holds. Built once per declared problem, on its
    parameters.
    """

    def __init__(self, d: Declaration, extra: Sequence[cp.Constraint], joint_names: Sequence[str]):
        self._d, self._joints = d, list(joint_names)
        self._torque = cp.Variable(d.structure.n)
        self._slack: dict[str, cp.Variable] = {}
        self._extra: list[tuple[cp.Constraint, cp.Variable]] = []
        cost = cp.norm1(self._torque) + 1e-7 * cp.sum_squares(d.vd)
        if d.force is not None:
            cost = cost + 1e-9 * cp.sum_squares(d.force)
        constraints = []
        for rows in d.rows:
            if rows.name == MOTION:  # what torques exceed their limits by drives the joints, too
                constraints.append(rows.expression - d.actuation @ self._torque == 0)
                continue
            slack = cp.Variable(rows.expression.shape if rows.spread is None else rows.spread.shape[1])
            self._slack[rows.name] = slack
            constraints.append(rows.relaxed(slack if rows.spread is None else rows.spread @ slack))
            cost = cost + rows.price * cp.norm1(slack)
        for given in extra:
            expression = given.args[0] - given.args[1]
            slack = cp.Variable(expression.shape)
            self._extra.append((given, slack))
            cost = cost + EXTRA_PRICE * cp.sum(cp.abs(slack))
            equality = isinstance(given, cp.constraints.Equality)
            constraints.append(expression == slack if equality else expression <= slack)
        self._problem = cp.Problem(cp.Minimize(cost), constraints)

    def __call__(
        self, contacts: Sequence[ContactConstraint], limits: Sequence[str] = (), threshold: float = 1e-4
    ) -> tuple[Conflict, ...]:
        """Return the conflicts at the present values of the parameters, the largest first.

        Parameters
        ----------
        contacts : the contacts, in the order of the declared problem.
        limits : names of the rows of the added limits.
        threshold : violations below are not named.
        """
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # an inaccurate answer still names what is in the way
                self._problem.solve(solver=cp.CLARABEL)
        except cp.SolverError:
            return ()
        if self._problem.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
            return ()
        found = [*self._torques(), *self._rows(contacts, limits), *self._others()]
        return tuple(sorted((c for c in found if c.amount > threshold), key=lambda c: -c.amount))

    def _torques(self) -> Iterator[Conflict]:
        for name, excess in zip(self._joints, np.abs(np.asarray(self._torque.value)), strict=True):
            yield Conflict(f"torque limit of {name}", float(excess), "N m")

    def _rows(self, contacts: Sequence[ContactConstraint], limits: Sequence[str]) -> Iterator[Conflict]:
        d = self._d
        slack = {name: np.asarray(variable.value) for name, variable in self._slack.items()}
        force = np.zeros(0) if d.force is None else np.asarray(d.force.value)
        failure = Failure(slack, contacts, d.structure.slices(), force, self._joints, limits)
        for block in d.blocks:
            yield from block.conflicts(failure)

    def _others(self) -> Iterator[Conflict]:
        for given, slack in self._extra:
            amount = float(np.max(np.abs(np.atleast_1d(np.asarray(slack.value)))))
            yield Conflict(f"added constraint {given.label or str(given)}", amount, "")
