"""The least time along a path on which contacts bear what forces they can: a convex program.

Along postures q(s) with tangents v = q'(s) and their derivatives vd, the law s(t) is known by x(s) = sd². With
u = sdd = x'(s) / 2, in every point of a grid

    g + m u + c x = sum of G f on the base,   |g + m u + c x - G f| <= limit on the joints,   F f <= upper,  E f = e,
    0 <= x <= x_max,   |u| <= u_max,   |v_j u + vd_j x| <= acceleration

where g is the force that gravity takes, m = M v, and c = M vd + h(q, v) - g. It is linear in (u, x, f). x is a spline of
degree two over pieces of the path, so that u, and with it every acceleration, is continuous. The time,
``integral of ds / sqrt(x)``, is taken by the trapezoidal rule.

Source: Verscheure et al. (2009), IEEE T-AC 54(10), sec. II; the spline instead of a piecewise linear x is ours.
"""

from dataclasses import dataclass
from functools import cache

import cvxpy as cp
import numpy as np
from scipy.interpolate import BSpline

from mcplan.errors import SolverFailed

BREAKS = np.concatenate(
    [np.linspace(0.0, 1 / 24, 2, endpoint=False), np.linspace(1 / 24, 23 / 24, 22, endpoint=False),
     np.linspace(23 / 24, 1.0, 3)]
)  # fmt: skip
"""Where the pieces of the spline end, as parts of the path: in the knots of segments, between which postures vary, and
closer at its ends, where patches leave and meet supports."""

PIECES, POINTS = len(BREAKS) - 1, 2
"""Pieces, and points of the grid per piece."""

DEGREE = 2


@dataclass(frozen=True, eq=False)
class LawBasis:
    """Basis of x(s) on a grid of the unit path; rows have three entries.

    Attributes
    ----------
    s : (m,) points of the grid, from 0 to 1.
    x, u : (m, 3) what the coefficients from ``start`` on contribute to x, and to x'(s) / 2.
    start : (m,) first coefficient of each row.
    weights : (m,) of the trapezoidal rule.
    """

    s: np.ndarray
    x: np.ndarray
    u: np.ndarray
    start: np.ndarray
    weights: np.ndarray

    @property
    def size(self) -> int:
        """Number of coefficients."""
        return PIECES + DEGREE


@cache
def law_basis() -> LawBasis:
    """Return the basis for a path of length 1; on one of length S ``u`` is divided by S, ``weights`` multiplied."""
    knots = np.concatenate([np.zeros(DEGREE), BREAKS, np.ones(DEGREE)])
    m = PIECES * POINTS + 1
    s = np.interp(np.arange(m) / POINTS, np.arange(PIECES + 1), BREAKS)
    start = np.minimum(np.arange(m) // POINTS, PIECES - 1)
    x, u = np.zeros((m, DEGREE + 1)), np.zeros((m, DEGREE + 1))
    for j in range(PIECES + DEGREE):
        spline = BSpline(knots, np.eye(PIECES + DEGREE)[j], DEGREE)
        value, slope = spline(s), spline.derivative()(s)
        rows = np.flatnonzero((start <= j) & (j <= start + DEGREE))
        x[rows, j - start[rows]], u[rows, j - start[rows]] = value[rows], 0.5 * slope[rows]
    weights = 0.5 * (np.append(np.diff(s), 0.0) + np.append(0.0, np.diff(s)))
    return LawBasis(s, x, u, start.astype(np.int64), weights)


@dataclass(frozen=True, eq=False)
class PathProgram:
    """The numbers of the program of the module's docstring, at the m points of the grid.

    Attributes
    ----------
    length : of the path's parameter (s).
    v, vd : (m, nv) tangents and their derivatives.
    hold, of_u, of_x : (m, nv) the forces g, m and c.
    forces : (m, nv, size) G: generalised force of each unit of the unknown contact forces.
    faces, upper, equal, equal_to : F (k, size), upper (k,), E (j, size), e (j,).
    limited, limit : (n,) joints whose torque is limited, and what of that is used (N m).
    x_max, u_max : (m,) bounds.
    acceleration : bound of accelerations from coordinate 3 on.
    """

    length: float
    v: np.ndarray
    vd: np.ndarray
    hold: np.ndarray
    of_u: np.ndarray
    of_x: np.ndarray
    forces: np.ndarray
    faces: np.ndarray
    upper: np.ndarray
    equal: np.ndarray
    equal_to: np.ndarray
    limited: np.ndarray
    limit: np.ndarray
    x_max: np.ndarray
    u_max: np.ndarray
    acceleration: float


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
    x, u = X @ c, D @ c
    unit = float(np.abs(program.hold[:, :3]).max())  # forces in weights
    constraints = [x <= program.x_max, u <= program.u_max, u >= -program.u_max]
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
        ]
    time = program.length * basis.weights @ cp.power(x, -0.5)
    problem = cp.Problem(cp.Minimize(time), constraints)
    problem.solve(solver=cp.CLARABEL)
    if problem.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
        raise SolverFailed(f"the law of least time: {problem.status}")
    return float(problem.value), x.value, u.value
