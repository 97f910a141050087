"""Forms of the equation of motion in other base coordinates: S0 eq. 36, 37 and 38 (S0: docs/sources.md).

The unknown is ``qddot`` (3 + d + n,) with d coordinates of the base orientation theta. Tasks, contacts and limits keep
their rows in ``vd = E qddot + Edot qdot``, E the map from the chart's rates to velocities. M and N are the matrices of
the Lagrangian equations, S selects theta in q:

    minimal      M qddot + N qdot = forces,                 roll, pitch, yaw (d = 3)               eq. 36
    projected    A (M qddot + N qdot - forces) = 0,         unit quaternion (d = 4), eq. 30        eq. 37
    multiplier   M qddot + N qdot - S'S q lambda = forces,  unit quaternion, eq. 30                eq. 38
    matrix       M qddot + N qdot - S'c' lambda = forces,   rotation matrix (d = 9), c of eq. 30   eq. 38

``A`` is the orthogonal projector ``1 - S'S q q' S'S``; eq. 30 is ``theta' theta'' + theta_dot' theta_dot = 0``. The
``mixed`` form of ``Declaration`` has the same optimum with fewer unknowns; the others serve for comparison.
"""

from types import MappingProxyType
from typing import Final

import cvxpy as cp
import numpy as np

from mcplan.core.rigid_body.lagrangian import lagrangian_matrices
from mcplan.core.rigid_body.tree import GRAVITY, Tree, workspace
from mcplan.errors import InputError, SimulationFailed
from mcplan.robot.terms import Terms
from mcplan.textbook.coordinates import ROLL_PITCH_YAW, ROTATION_MATRIX, UNIT_QUATERNION, RotationChart
from mcplan.whole_body.declaration import Declaration
from mcplan.whole_body.rows.block import Array, Rows
from mcplan.whole_body.settings import MIXED

CHARTS: Final[MappingProxyType[str, RotationChart]] = MappingProxyType(
    {
        "minimal": ROLL_PITCH_YAW,
        "projected": UNIT_QUATERNION,
        "multiplier": UNIT_QUATERNION,
        "matrix": ROTATION_MATRIX,
    }
)
"""Chart of the base orientation in each form."""

MIN_SINGULARITY_DISTANCE_RAD = 0.02
"""Distance to a chart's singularity below which its rates lose two digits of precision (rad)."""


class BaseChart:
    """Rows of the equation of motion in one of S0's forms, and their parameters.

    Parameters
    ----------
    d : the declared program, to which the parameters are added.
    robot : robot with the mechanism ``tree``; a system of robot and free objects has none.

    Attributes
    ----------
    rows : ``motion``, ``chart`` (definition of vd) and, if the chart has constraints, ``unit`` (eq. 30).
    qddot : the CVXPY variable of the accelerations.
    """

    def __init__(self, d: Declaration, robot: object):
        s, form = d.structure, d.structure.settings.form
        tree: Tree | None = getattr(robot, "tree", None)
        if tree is None:
            raise InputError(f"form {form!r} does not support free objects; use {MIXED!r}")
        self.chart = CHARTS[form]
        self._tree, self._work = tree, workspace(tree)
        self._theta = slice(3, 3 + self.chart.size)
        end, self.size = 3 + self.chart.size, 3 + self.chart.size + s.n
        self.qddot = cp.Variable(self.size, name="qddot")
        M, bias = d.parameter("chart_M", (self.size, self.size)), d.parameter("chart_bias", self.size)
        J, drift = d.parameter("chart_angular", (3, self.chart.size)), d.parameter("chart_drift", 3)
        motion = M @ self.qddot + bias - np.vstack([np.zeros((end, s.n)), np.eye(s.n)]) @ d.tau
        if d.force is not None:
            motion = motion - d.parameter("chart_force_map", (self.size, d.unknowns)) @ d.force
        parts = [self.qddot[:3], J @ self.qddot[self._theta] + drift, self.qddot[end:]]
        self.rows = [Rows("chart", d.vd - cp.hstack(parts), True)]
        self._constraints = k = self.chart.size - 3
        if k:
            c, rate = d.parameter("chart_constraint", (k, self.chart.size)), d.parameter("chart_rate", k)
            self.rows.append(Rows("unit", c @ self.qddot[self._theta] + rate, True))
            if form in ("multiplier", "matrix"):
                constraint_force = c.T @ cp.Variable(k, name="lambda")
                motion = motion - cp.hstack([np.zeros(3), constraint_force, np.zeros(s.n)])
        self.rows.insert(0, Rows("motion", motion, True))
        self._projected = form == "projected"

    def fill(self, terms: Terms, tau_ext: Array | None, data: dict[str, Array]) -> None:
        """Write the parameters for the state in ``terms``; ``data["force_map"]`` is filled before.

        Raises
        ------
        SimulationFailed : the chart is singular at this orientation.
        """
        q, v, size, theta = terms.q, terms.v, self.size, self.chart.from_quaternion(terms.q[3:7])
        try:
            self.chart.require_regular(theta, MIN_SINGULARITY_DISTANCE_RAD)
        except InputError as error:
            raise SimulationFailed(f"whole-body program: {error}, in another form of the program") from None
        rate = self.chart.E_inverse(theta) @ v[3:6]
        J, Jdot = self.chart.E(theta), np.ascontiguousarray(self.chart.E_rate(theta, rate))
        data["chart_angular"][:], data["chart_drift"][:] = J, Jdot @ rate
        M, N = np.zeros((size, size)), np.zeros((size, size))
        lagrangian_matrices(self._tree, q, v, J, Jdot, self._work, np.zeros((12, size)), M, N)
        E = np.zeros((len(v), size))
        E[:3, :3], E[3:6, self._theta], E[6:, self._theta.stop :] = np.eye(3), J, np.eye(len(v) - 6)
        bias = N @ np.concatenate([v[:3], rate, v[6:]]) + GRAVITY * M[:, 2]
        if tau_ext is not None:
            bias -= E.T @ tau_ext
        force_map = E.T @ data["force_map"] if "force_map" in data else None
        if self._constraints:
            data["chart_constraint"][:] = self.chart.constraint_rows(theta)
            data["chart_rate"][:] = self.chart.constraint_rows(rate) @ rate
        if self._projected:
            A = np.eye(size)
            A[self._theta, self._theta] = self.chart.projector(theta)
            M, bias = A @ M, A @ bias
            force_map = None if force_map is None else A @ force_map
        data["chart_M"][:], data["chart_bias"][:] = M, bias
        if force_map is not None:
            data["chart_force_map"][:] = force_map
