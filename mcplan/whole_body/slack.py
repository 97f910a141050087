"""The slack form: the same program, in which contacts may slip and joints overrun rather than nothing be found."""

import warnings
from typing import Any

import cvxpy as cp

from mcplan.optimize.compiled import CannotCompile, CompiledProblem, compile_problem
from mcplan.whole_body.declaration import Declaration

EXTRA_PENALTY = 1e3
"""Cost of each squared violation of the user's rows (see `Rows.penalty`)."""


def slack_problem(d: Declaration, objective: cp.Expression, extra: list[cp.Constraint]) -> cp.Problem:
    """Return the program with soft rows; it shares variables and parameters with the declared one.

    It always has a solution: forces at the tips of their cones and no torque give some acceleration.
    """
    cost, constraints = objective, []
    for rows in d.rows:
        if rows.penalty is None:
            constraints.append(rows.constraint())
            continue
        slack = cp.Variable(rows.expression.shape)
        cost = cost + rows.penalty * cp.sum_squares(slack)
        constraints.append(rows.relaxed(slack))
    for given in extra:
        expression = given.args[0] - given.args[1]
        slack = cp.Variable(expression.shape)
        cost = cost + EXTRA_PENALTY * cp.sum_squares(slack)
        equality = isinstance(given, cp.constraints.Equality)
        constraints.append(expression == slack if equality else expression <= slack)
    return cp.Problem(cp.Minimize(cost), constraints)


class SlackForm:
    """The slack form of a declared problem, compiled where that is possible: it is asked for tick after tick.

    Parameters
    ----------
    problem : from `slack_problem`.
    compiled : whether to compile it.
    solver, options : of CVXPY, where it is not compiled or that does not succeed.
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
        """Solve at the present values of the parameters; the variables have their values then. Return the status."""
        if self._compiled is not None:
            self._compiled.load()
            if (status := self._compiled.solve()) == cp.OPTIMAL:
                return status
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.problem.solve(solver=self._solver, **self._options)
        return str(self.problem.status)
