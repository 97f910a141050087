"""The slack form: the same program, in which contacts may slip and joints overrun rather than nothing be found."""

import cvxpy as cp

from mcplan.qp.declaration import Declaration

PENALTY = {
    "contact": 1e4,
    "acceleration_min": 1e2,
    "acceleration_max": 1e2,
    "limit": 1e3,
    "normal_min": 1.0,
    "normal_max": 1.0,
    "release": 1e2,
}
"""Cost of each squared violation. What is not here stays hard: the equation of motion, friction, torques, grasps."""

EXTRA_PENALTY = 1e3
"""Cost of each squared violation of the user's rows."""


def slack_problem(d: Declaration, objective: cp.Expression, extra: list[cp.Constraint]) -> cp.Problem:
    """Return the program with soft rows; it shares variables and parameters with the declared one.

    It always has a solution: forces at the tips of their cones and no torque give some acceleration.
    """
    cost, constraints = objective, []
    for rows in d.rows:
        if rows.name not in PENALTY:
            constraints.append(rows.constraint())
            continue
        slack = cp.Variable(rows.expression.shape)
        cost = cost + PENALTY[rows.name] * cp.sum_squares(slack)
        constraints.append(rows.expression == slack if rows.equality else rows.expression <= slack)
    for given in extra:
        expression = given.args[0] - given.args[1]
        slack = cp.Variable(expression.shape)
        cost = cost + EXTRA_PENALTY * cp.sum_squares(slack)
        equality = isinstance(given, cp.constraints.Equality)
        constraints.append(expression == slack if equality else expression <= slack)
    return cp.Problem(cp.Minimize(cost), constraints)
