"""Preview control of walking: CoM trajectory for given footsteps and CoM heights, as one convex program.

With the position c of the centre of mass, its given height z(t), and forces f_i at the corners p_i of the soles in
contact, per unit of mass, the constraints of every sample

    c'' = sum of f_i (horizontal),   z'' + g = sum of f_i (vertical),
    l' = sum of (p_i - (c, z)) x f_i (horizontal part),   |f_x|, |f_y| <= friction f_z,   sum of f_z of a sole <= cap

are linear in (c, c', c'', f), because z and the angular momentum rate l' of swinging legs are given. So the contact
limits are satisfied in every sample, without the approximation of a pendulum of constant height. The cost is the jerk
of c, and the distance of the centre of pressure from the centre of the sole in single support.

Source: Audren et al. (2014), IROS, on preview with contact forces; Kajita et al. (2003), ICRA, on the jerk as input.
"""

import warnings
from typing import NamedTuple

import cvxpy as cp
import numpy as np

from mcplan.core.rigid_body.tree import GRAVITY

JERK_WEIGHT = 2e-4
"""s⁴: weight of the squared jerk relative to that of the squared distance of the pressure from the sole's centre."""


class Preview(NamedTuple):
    """Data of a walk for the program, in N + 1 samples with the period dt.

    Attributes
    ----------
    dt : s.
    ends : (2, 2) positions of the centre of mass at the beginning and the end, at rest.
    z, zdd : (N + 1,) height and vertical acceleration of the centre of mass (m, m/s²).
    spin : (N + 1, 2) rate of the horizontal angular momentum about it per unit of mass (m²/s²).
    corners : (N + 1, F, V, 3) V corners of each of F soles, at the present or last contact of the sole.
    cap : (N + 1, F) force limit of each sole per unit of mass (m/s²), 0 in the air.
    friction : friction coefficient along each horizontal axis.
    cop_reference : (N + 1, 2) reference of the centre of pressure; NaN in double support.
    """

    dt: float
    ends: np.ndarray
    z: np.ndarray
    zdd: np.ndarray
    spin: np.ndarray
    corners: np.ndarray
    cap: np.ndarray
    friction: float
    cop_reference: np.ndarray


def centre_of_mass(data: Preview) -> np.ndarray | None:
    """Solve the program; return the positions (N + 1, 3) of the centre of mass, or None if it is infeasible."""
    dt, z, lift = data.dt, data.z, data.zdd + GRAVITY
    n, soles, per_sole, _ = data.corners.shape
    c, v, a, jerk = cp.Variable((n, 2)), cp.Variable((n, 2)), cp.Variable((n, 2)), cp.Variable((n - 1, 2))
    fx, fy, fz = (cp.Variable((n, soles * per_sole)) for _ in range(3))
    x, y, height = data.corners.reshape(n, -1, 3).transpose(2, 0, 1)
    corner_to_sole = np.repeat(np.eye(soles), per_sole, axis=0)
    rest = [v[0] == 0, a[0] == 0, v[-1] == 0, a[-1] == 0, c[0] == data.ends[0], c[-1] == data.ends[1]]
    problem = cp.Problem(
        cp.Minimize(JERK_WEIGHT * dt * cp.sum_squares(jerk) + _pressure_cost(data, c, a)),
        [
            *rest,
            c[1:] == c[:-1] + dt * v[:-1] + dt**2 / 2 * a[:-1] + dt**3 / 6 * jerk,
            v[1:] == v[:-1] + dt * a[:-1] + dt**2 / 2 * jerk,
            a[1:] == a[:-1] + dt * jerk,
            fz >= 0,
            cp.abs(fx) <= data.friction * fz,
            cp.abs(fy) <= data.friction * fz,
            fz @ corner_to_sole <= data.cap,
            cp.sum(fx, axis=1) == a[:, 0],
            cp.sum(fy, axis=1) == a[:, 1],
            cp.sum(fz, axis=1) == lift,
            _moment(y, fz, height, fy) == cp.multiply(lift, c[:, 1]) - cp.multiply(z, a[:, 1]) + data.spin[:, 0],
            _moment(height, fx, x, fz) == cp.multiply(z, a[:, 0]) - cp.multiply(lift, c[:, 0]) + data.spin[:, 1],
        ],
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # inaccurate solutions are rejected anyway
            problem.solve(solver=cp.CLARABEL)
    except cp.SolverError:
        return None
    if problem.status != cp.OPTIMAL or c.value is None:
        return None
    return np.column_stack([c.value, z])


def _moment(p: np.ndarray, f: cp.Variable, q: np.ndarray, g: cp.Variable) -> cp.Expression:
    """Return the sum over corners of ``p f - q g``."""
    return cp.sum(cp.multiply(p, f) - cp.multiply(q, g), axis=1)


def _pressure_cost(data: Preview, c: cp.Variable, a: cp.Variable) -> cp.Expression:
    """Return the integral of the squared distance of the pressure from the centre of the sole in single support.

    The centre of pressure is ``c - ((z - ground) c'' + (l_y', -l_x')) / (z'' + g)``.
    """
    single = np.flatnonzero(np.isfinite(data.cop_reference[:, 0]))
    lift = data.zdd[single, None] + GRAVITY
    lever = (data.z[single, None] - data.corners[..., 2].mean()) / lift
    shift = data.spin[single][:, ::-1] * [1.0, -1.0] / lift
    return data.dt * cp.sum_squares(c[single] - cp.multiply(lever, a[single]) - shift - data.cop_reference[single])
