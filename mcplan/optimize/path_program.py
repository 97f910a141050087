"""Time-optimal path parameterization (TOPP) with contact forces, as a convex program.

Along postures q(s) with tangents v = q'(s) and their derivatives vd, the time parameterization s(t) is represented by
x(s) = sd². With u = sdd = x'(s) / 2, at every grid point

    g + m u + c x = sum of G f on the base,   |g + m u + c x - G f| <= limit on the joints,   F f <= upper,  E f = e,
    0 <= x <= x_max,   |u| <= u_max,   |v_j u + vd_j x| <= acceleration,   |z' u + z'' x| <= rise,
    |l' u + l'' x| <= start,   |u'| <= bend

where g is the gravity force, m = M v, c = M vd + h(q, v) - g, z the height of the centre of mass, and l its path
length: linear in (u, x, f). All but the last apply to u / part and x / part, so that only the fraction ``part`` of
the range beyond the forces at rest is used. x is a quadratic spline over pieces of the path, so that u, and with it
every acceleration, is continuous. The time, ``integral of ds / sqrt(x)``, is approximated by the trapezoidal rule.

Source: Verscheure et al. (2009), IEEE T-AC 54(10), sec. II; the spline instead of a piecewise linear x is ours.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.interpolate import BSpline

from mcplan.errors import SolverFailed

BREAKS = np.concatenate(
    [np.linspace(0.0, 1 / 24, 2, endpoint=False), np.linspace(1 / 24, 23 / 24, 22, endpoint=False),
     np.linspace(23 / 24, 1.0, 3)]
)  # fmt: skip
"""Breakpoints of the spline, as fractions of the path: the knots of segments, and closer at both ends, where patches
lift off and touch down."""

PIECES, POINTS = len(BREAKS) - 1, 2
"""Number of pieces, and of grid points per piece."""

DEGREE = 2
"""Degree of the spline."""


@dataclass(frozen=True, eq=False)
class LawBasis:
    """Spline basis of x(s) on a grid of the path of length 1; rows have three entries.

    Attributes
    ----------
    s : (m,) grid points, from 0 to 1.
    x, u : (m, 3) contributions of the coefficients from ``start`` on to x, and to x'(s) / 2.
    start : (m,) first coefficient of each row.
    bend : (pieces, 3) contribution to u'(s), constant along a piece; ``start`` is that of its
        midpoint.
    weights : (m,) of the trapezoidal rule.
    """

    s: np.ndarray
    x: np.ndarray
    u: np.ndarray
    start: np.ndarray
    bend: np.ndarray
    weights: np.ndarray

    @property
    def middle(self) -> np.ndarray:
        """Midpoints of the pieces."""
        return np.arange(PIECES) * POINTS + POINTS // 2

    @property
    def size(self) -> int:
        """Number of coefficients."""
        return PIECES + DEGREE


@cache
def law_basis() -> LawBasis:
    """Return the basis for a path of length 1; on one of length S ``u`` is divided by S, ``bend`` by S².

    ``weights`` are multiplied by S.
    """
    knots = np.concatenate([np.zeros(DEGREE), BREAKS, np.ones(DEGREE)])
    m = PIECES * POINTS + 1
    s = np.interp(np.arange(m) / POINTS, np.arange(PIECES + 1), BREAKS)
    start = np.minimum(np.arange(m) // POINTS, PIECES - 1)
    x, u, bend = np.zeros((m, DEGREE + 1)), np.zeros((m, DEGREE + 1)), np.zeros((m, DEGREE + 1))
    for j in range(PIECES + DEGREE):
        spline = BSpline(knots, np.eye(PIECES + DEGREE)[j], DEGREE)
        value, slope, curve = spline(s), spline.derivative()(s), spline.derivative(2)(s)
        rows = np.flatnonzero((start <= j) & (j <= start + DEGREE))
        x[rows, j - start[rows]], u[rows, j - start[rows]] = value[rows], 0.5 * slope[rows]
        bend[rows, j - start[rows]] = 0.5 * curve[rows]
    weights = 0.5 * (np.append(np.diff(s), 0.0) + np.append(0.0, np.diff(s)))
    return LawBasis(s, x, u, start.astype(np.int64), bend[POINTS // 2 :: POINTS], weights)


@dataclass(frozen=True, eq=False)
class PathProgram:
    """Data of the program at the m grid points, see `mcplan.optimize.path_program`.

    Attributes
    ----------
    length : length of the path, in its parameter s.
    v, vd : (m, nv) tangents and their derivatives.
    hold, of_u, of_x : (m, nv) the generalised forces g at rest, m per u and c per x.
    forces : (m, nv, size) G: generalised force of each unit of the unknown contact forces.
    faces, upper, equal, equal_to : F (k, size), upper (k,), E (j, size), e (j,).
    limited, limit : (n,) joints with torque limits, and the usable limits (N m).
    x_max, u_max : (m,) bounds.
    acceleration : bound of accelerations from coordinate 3 on.
    height : (m, 2) first and second derivative of the height of the centre of mass.
    rise : bound of the vertical acceleration of the centre of mass.
    along : (m, 2) first and second derivative of the path length l of the centre of mass.
    start : (m,) bound of the acceleration of l, smaller near the start and the end of the path.
    bend : (pieces,) bound of u' on each piece of the spline.
    part : (m,) usable fraction of all limits but ``bend``.
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
    height: np.ndarray
    rise: float
    along: np.ndarray
    start: np.ndarray
    bend: np.ndarray
    part: np.ndarray

    def forces_at(self, i: int, force: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return the rows ``A f <= b``, ``C f = d`` of contact forces that, with the torques, give a generalised force.

        Parameters
        ----------
        i : grid point.
        force : (nv,) generalised force. In A the rows of the faces precede those of the joints, ``-G`` and ``G``.
        """
        joints, G = 6 + self.limited, self.forces[i]
        return (
            np.vstack([self.faces, -G[joints], G[joints]]),
            np.concatenate([self.upper, self.limit - force[joints], self.limit + force[joints]]),
            np.vstack([G[:6], self.equal]),
            np.concatenate([force[:6], self.equal_to]),
        )


def least_time(program: PathProgram) -> tuple[float, np.ndarray, np.ndarray]:
    """Solve the program; return the time (s), and x and u (m,) at the grid points.

    Raises
    ------
    SolverFailed
        The program is infeasible, or no solution was found.
    """
    import cvxpy as cp  # slow import, not needed to read or judge a plan

    basis, m = law_basis(), len(program.v)
    rows = np.repeat(np.arange(m), DEGREE + 1), (basis.start[:, None] + np.arange(DEGREE + 1)).ravel()
    X, D = np.zeros((m, basis.size)), np.zeros((m, basis.size))
    X[rows], D[rows] = basis.x.ravel(), basis.u.ravel() / program.length
    # scaled to order one: forces by the weight, x by its bounds on the path, everything else by its limit
    unit, scale = float(np.abs(program.hold[:, :3]).max()), float((basis.weights @ program.x_max**-0.5) ** -2)
    c = cp.Variable(basis.size)
    x_all, u_all = X @ c, D @ c
    x, u = x_all / program.part, u_all / program.part
    constraints = [x <= program.x_max / scale, cp.abs(u) <= program.u_max / scale]
    for i, start in enumerate(basis.start[basis.middle]):
        if np.isfinite(program.bend[i]):
            bend = scale / program.bend[i] * basis.bend[i] / program.length**2
            constraints.append(cp.abs(bend @ c[start : start + DEGREE + 1]) <= 1.0)
    joints = 6 + program.limited
    for i in range(m):
        f = cp.Variable(program.forces.shape[2])
        rates = scale * u[i], scale * x[i]
        force = (program.hold[i] + program.of_u[i] * rates[0] + program.of_x[i] * rates[1]) / unit
        tau = force[joints] - program.forces[i, joints] @ f
        bounded = [
            (program.v[i, 3:], program.vd[i, 3:], program.acceleration),
            (*program.height[i], program.rise),
            (*program.along[i], program.start[i]),
        ]
        constraints += [
            program.forces[i, :6] @ f == force[:6],
            cp.abs(tau) <= program.limit / unit,
            program.faces @ f <= program.upper / unit,
            program.equal @ f == program.equal_to / unit,
            *(cp.abs(a * rates[0] + b * rates[1]) / bound <= 1.0 for a, b, bound in bounded if np.isfinite(bound)),
        ]
    problem = cp.Problem(cp.Minimize(basis.weights @ cp.power(x_all, -0.5)), constraints)
    problem.solve(solver=cp.CLARABEL)
    if problem.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
        raise SolverFailed(f"the time-optimal path parameterisation was not found: {problem.status}")
    return program.length / scale**0.5 * float(problem.value), scale * x_all.value, scale * u_all.value
