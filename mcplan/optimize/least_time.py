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
    c = cp.Variable(basis.size)
    whole = X @ c
    x, u = whole / program.part, D @ c / program.part
    unit = float(np.abs(program.hold[:, :3]).max())  # forces in weights
    constraints = [x <= program.x_max, u <= program.u_max, u >= -program.u_max]
    for i, start in enumerate(basis.start[basis.middle]):
        if np.isfinite(program.bend[i]):
            bend = basis.bend[i] / program.length**2 @ c[start : start + DEGREE + 1]
            constraints.append(cp.abs(bend) <= program.bend[i])
    joints = 6 + program.limited
    for i in range(m):
        f = cp.Variable(program.forces.shape[2])
        taken = (program.hold[i] + program.of_u[i] * u[i] + program.of_x[i] * x[i]) / unit
        tau = taken[joints] - program.forces[i, joints] @ f
        constraints += [
            program.forces[i, :6] @ f == taken[:6],
            cp.abs(tau) <= program.limit / unit,
            program.faces @ f <= program.upper / unit,
            program.equal @ f == program.equal_to / unit,
            cp.abs(program.v[i, 3:] * u[i] + program.vd[i, 3:] * x[i]) <= program.acceleration,
            cp.abs(program.height[i, 0] * u[i] + program.height[i, 1] * x[i]) <= program.rise,
        ]
        if np.isfinite(program.start[i]):
            constraints.append(cp.abs(program.along[i, 0] * u[i] + program.along[i, 1] * x[i]) <= program.start[i])
    time = program.length * basis.weights @ cp.power(whole, -0.5)
    problem = cp.Problem(cp.Minimize(time), constraints)
    problem.solve(solver=cp.CLARABEL)
    if problem.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
        raise SolverFailed(f"the law of least time: {problem.status}")
    return float(problem.value), whole.value, (D @ c).value
