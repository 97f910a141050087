"""The equation of motion in the base coordinates of S0: the whole-body program in its forms of eq. 36, 37 and 38.

The unknown is ``qddot`` (3 + d + n,) in place of ``vd``, which stays as a name for ``E qddot + Edot qdot``, so that
tasks, contacts and limits are the same rows in every form:

    minimal      M qddot + N qdot = forces,               roll, pitch, yaw (d = 3)             eq. 36
    projected    A (M qddot + N qdot - forces) = 0,       unit quaternion (d = 4), eq. 30      eq. 37
    multiplier   M qddot + N qdot - S'S q lambda = forces, unit quaternion, eq. 30             eq. 38

``A`` is the orthogonal projector ``1 - S'S q q' S'S``; eq. 30 is ``theta' theta'' + theta_dot' theta_dot = 0``. The
``mixed`` form of ``Declaration`` has the same optimum with fewer unknowns; these are there to be compared with it.
"""

import cvxpy as cp
import numpy as np

from mcplan.core.rigid_body import lagrangian
from mcplan.core.rigid_body.tree import GRAVITY, Tree, workspace
from mcplan.errors import InputError, SimulationFailed
from mcplan.model.terms import Terms
from mcplan.whole_body.declaration import Array, Declaration, Rows
from mcplan.whole_body.settings import MIXED

STEEPEST = 0.02
"""Cosine of the pitch below which roll and yaw are one rotation: their rates lose two digits there, all at zero."""


class BaseChart:
    """The rows of the equation of motion in one of S0's forms, and what fills them.

    Parameters
    ----------
    d : the declared program; the parameters are added to its own.
    robot : has the mechanism as ``tree``; what has none is a system of a robot and free objects.

    Attributes
    ----------
    rows : ``motion``, ``chart`` (what vd is) and, with the quaternion, ``unit`` (eq. 30).
    qddot : the unknown.
    """

    def __init__(self, d: Declaration, robot: object):
        s, form = d.structure, d.structure.settings.form
        tree: Tree | None = getattr(robot, "tree", None)
        if tree is None:
            raise InputError(f"form {form!r} is of a robot alone, and here are free objects: take {MIXED!r}")
        self.quaternion = form != "minimal"
        self._tree, self._work = tree, workspace(tree)
        self.size = size = s.nv + self.quaternion
        end = size - s.n
        self.qddot = cp.Variable(size, name="qddot")
        M, bias = d.parameter("chart_M", (size, size)), d.parameter("chart_bias", size)
        J, drift = d.parameter("chart_angular", (3, end - 3)), d.parameter("chart_drift", 3)
        motion = M @ self.qddot + bias - np.vstack([np.zeros((end, s.n)), np.eye(s.n)]) @ d.tau
        if d.force is not None:
            motion = motion - d.parameter("chart_force_map", (size, d.unknowns)) @ d.force
        parts = [self.qddot[:3], J @ self.qddot[3:end] + drift, self.qddot[end:]]
        self.rows = [Rows("chart", d.vd - cp.hstack(parts), True)]
        if self.quaternion:
            theta, rate = d.parameter("chart_theta", 4), d.parameter("chart_rate", 1)
            self.rows.append(Rows("unit", theta @ self.qddot[3:7] + rate, True))
            if form == "multiplier":
                motion = motion - cp.hstack([np.zeros(3), theta * cp.Variable(name="lambda"), np.zeros(s.n)])
        self.rows.insert(0, Rows("motion", motion, True))
        self._projected = form == "projected"

    def fill(self, terms: Terms, tau_ext: Array | None, data: dict[str, Array]) -> None:
        """Write the parameters of a state; ``force_map`` is filled.

        Raises
        ------
        SimulationFailed : the minimal chart is singular here.
        """
        q, v, size = terms.q, terms.v, self.size
        end = size - (len(v) - 6)
        J, Jdot = data["chart_angular"], np.zeros((3, end - 3))
        jacobian = np.zeros((3, end - 3))
        rate = _quaternion(q, v, jacobian, Jdot) if self.quaternion else _roll_pitch_yaw(q, v, jacobian, Jdot)
        J[:] = jacobian
        data["chart_drift"][:] = Jdot @ rate
        M, N = np.zeros((size, size)), np.zeros((size, size))
        lagrangian.lagrangian_matrices(self._tree, q, v, jacobian, Jdot, self._work, np.zeros((12, size)), M, N)
        E = np.zeros((len(v), size))
        E[:3, :3], E[3:6, 3:end], E[6:, end:] = np.eye(3), jacobian, np.eye(len(v) - 6)
        bias = N @ np.concatenate([v[:3], rate, v[6:]]) + GRAVITY * M[:, 2]
        if tau_ext is not None:
            bias -= E.T @ tau_ext
        force_map = E.T @ data["force_map"] if "force_map" in data else None
        if self.quaternion:
            data["chart_theta"][:], data["chart_rate"][0] = q[3:7], rate @ rate
        if self._projected:
            A = np.zeros((size, size))
            lagrangian.projector_tangent(q, A)
            M, bias = A @ M, A @ bias
            force_map = None if force_map is None else A @ force_map
        data["chart_M"][:], data["chart_bias"][:] = M, bias
        if force_map is not None:
            data["chart_force_map"][:] = force_map


def _quaternion(q: Array, v: Array, J: Array, Jdot: Array) -> Array:
    """Write J and its rate for the unit quaternion; return the rate of theta, tangent to the sphere: ``J J' = 4``."""
    lagrangian.quaternion_map(q[3:7], J)
    rate = 0.25 * J.T @ v[3:6]
    lagrangian.quaternion_map(rate, Jdot)
    return rate


def _roll_pitch_yaw(q: Array, v: Array, J: Array, Jdot: Array) -> Array:
    """Write J (3, 3) of ``R = Rz(yaw) Ry(pitch) Rx(roll)``, whose columns are the axes, and its rate; return theirs.

    The first axis is the link's x, which turns with ``w``; the second is level, across it, and turns with the yaw.
    """
    w, x, y, z = q[3:7]
    ahead = np.array([1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)])
    level = float(np.hypot(ahead[0], ahead[1]))
    if level < STEEPEST:
        raise SimulationFailed(
            f"whole-body program: roll, pitch and yaw of the base are singular at a pitch of 90 degrees, and this is "
            f"{np.degrees(np.arctan2(-ahead[2], level)):.1f}: take another form of the program"
        )
    J[:, 0], J[:, 1], J[:, 2] = ahead, (-ahead[1] / level, ahead[0] / level, 0.0), (0.0, 0.0, 1.0)
    rate = np.asarray(np.linalg.solve(J, v[3:6]), dtype=np.float64)
    turning = np.array([0.0, 0.0, rate[2]])
    Jdot[:, 0], Jdot[:, 1], Jdot[:, 2] = np.cross(turning + rate[1] * J[:, 1], ahead), np.cross(turning, J[:, 1]), 0.0
    return rate
