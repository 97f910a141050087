"""The least time along a path on which contacts bear what forces they can: a convex program.

Along postures q(s) with tangents v = q'(s) and their derivatives vd, the law s(t) is known by x(s) = sd². With
u = sdd = x'(s) / 2, in every point of a grid

    g + m u + c x = sum of G f on the base,   |g + m u + c x - G f| <= limit on the joints,   F f <= upper,  E f = e,
    0 <= x <= x_max,   |u| <= u_max,   |v_j u + vd_j x| <= acceleration,   |z' u + z'' x| <= rise,
    |l' u + l'' x| <= start,   |u'| <= bend

where g is the force that gravity takes, m = M v, c = M vd + h(q, v) - g, z is the height of the centre of mass, and l
how far it has gone: linear in (u, x, f). All but the last are kept for u / part and x / part: of what they allow beyond
rest a part is used. x is a spline of degree two over pieces of the path, so that u, and with it every acceleration, is
continuous; the time, ``integral of ds / sqrt(x)``, is taken by the trapezoidal rule.

Source: Verscheure et al. (2009), IEEE T-AC 54(10), sec. II; the spline instead of a piecewise linear x is ours.
"""

import cvxpy as cp
import numpy as np

from mcplan.errors import SolverFailed
from mcplan.optimize.path_program import DEGREE, PathProgram, law_basis


def least_time(program: PathProgram) -> tuple[float, np.ndarray, np.ndarray]:
    """Solve the program as it is declared; return the time (s), and x and u (m,) at the points of the grid.

    Raises
    ------
    SolverFailed
        There is no law, or none was found.
    """
    basis, m = law_basis(), len(program.v)
    rows = np.repeat(np.arange(m), DEGREE + 1), (basis.start[:, None] + np.arange(DEGREE + 1)).ravel()
    X, D = np.zeros((m, basis.size)), np.zeros((m, basis.size))
    X[rows], D[rows] = basis.x.ravel(), basis.u.ravel() / program.length
    # in units of the size of one: forces in weights, x in what its bounds allow on the way, all else in its limit
    unit, scale = float(np.abs(program.hold[:, :3]).max()), float((basis.weights @ program.x_max**-0.5) ** -2)
    c = cp.Variable(basis.size)
    squared, change = X @ c, D @ c
    x, u = squared / program.part, change / program.part
    constraints = [x <= program.x_max / scale, cp.abs(u) <= program.u_max / scale]
    for i, start in enumerate(basis.start[basis.middle]):
        if np.isfinite(program.bend[i]):
            bend = scale / program.bend[i] * basis.bend[i] / program.length**2
            constraints.append(cp.abs(bend @ c[start : start + DEGREE + 1]) <= 1.0)
    joints = 6 + program.limited
    for i in range(m):
        f = cp.Variable(program.forces.shape[2])
        along = scale * u[i], scale * x[i]
        taken = (program.hold[i] + program.of_u[i] * along[0] + program.of_x[i] * along[1]) / unit
        tau = taken[joints] - program.forces[i, joints] @ f
        bounded = [
            (program.v[i, 3:], program.vd[i, 3:], program.acceleration),
            (*program.height[i], program.rise),
            (*program.along[i], program.start[i]),
        ]
        constraints += [
            program.forces[i, :6] @ f == taken[:6],
            cp.abs(tau) <= program.limit / unit,
            program.faces @ f <= program.upper / unit,
            program.equal @ f == program.equal_to / unit,
            *(cp.abs(a * along[0] + b * along[1]) / most <= 1.0 for a, b, most in bounded if np.isfinite(most)),
        ]
    problem = cp.Problem(cp.Minimize(basis.weights @ cp.power(squared, -0.5)), constraints)
    problem.solve(solver=cp.CLARABEL)
    if problem.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
        raise SolverFailed(f"the law of least time: {problem.status}")
    return program.length / scale**0.5 * float(problem.value), scale * squared.value, scale * change.value
