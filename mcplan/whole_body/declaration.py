"""Declaration of the whole-body quadratic program in CVXPY.

Its cost is

::

    |A vd - b|^2 + (vd' W vd - 2 g' vd) + (f' W_f f - 2 g_f' f) + |F f|^2 + w_tau |tau|^2
      + |A_f f - b_f|^2 + (tau' W_tau tau - 2 g_tau' tau)

The weights of a diagonal task are in ``W`` and ``g = W b``, so that it adds no unknowns; ``A`` and ``b`` of other tasks
are multiplied by the square root of the weight. ``F`` is the weighted map from force unknowns to wrenches; ``W_f``,
``A_f`` and ``W_tau`` weigh force unknowns, tasks on forces and tasks on torques.
"""

from collections.abc import Callable, Sequence
from typing import Any

import cvxpy as cp

from mcplan.errors import InputError
from mcplan.whole_body.problem_data import ProblemData, Structure
from mcplan.whole_body.rows.accelerations import (
    AccelerationBounds,
    AddedLimitRows,
    EquationOfMotionRows,
    FreeDirectionRows,
    HeldContactRows,
)
from mcplan.whole_body.rows.block import Array, Gradient, RowBlock, Values
from mcplan.whole_body.rows.forces import FrictionConeRows, GraspBallRows, TorqueStepRows

BLOCKS: tuple[type[RowBlock], ...] = (
    EquationOfMotionRows,
    HeldContactRows,
    FreeDirectionRows,
    AccelerationBounds,
    TorqueStepRows,
    AddedLimitRows,
    FrictionConeRows,
    GraspBallRows,
)
"""The kinds of rows, in the order of the program."""


class Declaration(ProblemData):
    """The whole-body program: variables, parameters, rows and cost.

    `J_f` maps force unknowns f to generalized forces, f_t and f_n are the tangential and normal parts of a point force,
    D and D3 the faces of the friction pyramid and of the polytope of a ball::

        min   the cost of `mcplan.whole_body.declaration`
        s.t.  M vd + h = S' tau + J_f f                     motion
              J_c vd = a_c                                  contact
              R f = 0                                       release (free directions of a contact)
              a_min <= vd_j <= a_max                        acceleration_min, acceleration_max
              A_l vd >= b_l                                 limit
              D f_t + margin <= mu f_n                      friction, every point; also keeps f_n positive
              f_min <= sum f_n <= f_max                     normal_min, normal_max, every surface or point contact
              D3 f <= r_f, D3 m <= r_m                      grasp_force, grasp_moment
              tau_last - step <= tau <= tau_last + step     torque_min, torque_max, where their rate is bounded
              |tau| <= tau_max                              bounds of the variable

    Everything that changes between ticks is a Parameter, one matrix or vector per symbol.

    Attributes
    ----------
    blocks : the kinds of rows (`mcplan.whole_body.rows`).
    rows : the groups of rows of all blocks, ``motion`` first.
    objective : the cost, a CVXPY expression.
    """

    def __init__(self, structure: Structure):
        super().__init__(structure)
        self.blocks = [kind(self) for kind in BLOCKS]
        self.rows = [rows for block in self.blocks for rows in block.rows]
        self.objective = declared_cost(self)


Extra = Callable[[Any], tuple[Sequence[cp.Expression], Sequence[cp.Constraint]]]
"""User-defined part: called once with the ``WholeBodyQP``, returns terms of the cost and constraints."""


def check_convex(problem: cp.Problem, extra: Sequence[Any] = ()) -> None:
    """Reject a problem that is not a quadratic program, or that CVXPY would have to rebuild at each solve.

    Each user-defined constraint in ``extra`` must be an equality or inequality, so that it can be relaxed.
    """
    for constraint in extra:
        if not isinstance(constraint, cp.constraints.Equality | cp.constraints.Inequality):
            raise InputError(
                f"added constraint {constraint}: a {type(constraint).__name__}; write it with >=, <= or =="
            )
    if not problem.is_qp():
        raise InputError("the whole-body program with the added terms is not a convex quadratic program")
    if not problem.is_dpp():
        raise InputError("the whole-body program with the added terms breaks CVXPY's rules for parameters (DPP)")


def declared_cost(d: ProblemData) -> cp.Expression:
    """Return the cost of the program; register its parameters."""
    s = d.structure
    weight, linear = d.parameter("acceleration_weight", s.nv, nonneg=True), d.parameter("acceleration_pull", s.nv)
    cost = weight @ cp.square(d.vd) - 2 * linear @ d.vd
    if s.task_rows:
        A, b = d.parameter("task_matrix", (s.task_rows, s.nv)), d.parameter("task_target", s.task_rows)
        cost = cost + cp.sum_squares(A @ d.vd - b)
    if d.force is not None:
        weight, linear = d.parameter("force_weight", d.unknowns, nonneg=True), d.parameter("force_pull", d.unknowns)
        cost = cost + weight @ cp.square(d.force) - 2 * linear @ d.force
        if s.settings.wrench_weight is not None:
            cost = cost + cp.sum_squares(d.parameter("wrench_matrix", (6 * len(s.shapes), d.unknowns)) @ d.force)
    if s.force_rows:
        A = d.parameter("force_task_matrix", (s.force_rows, d.unknowns))
        cost = cost + cp.sum_squares(A @ d.force - d.parameter("force_task_target", s.force_rows))
    if s.torque_task:
        weight, linear = d.parameter("torque_cost", s.n, nonneg=True), d.parameter("torque_pull", s.n)
        cost = cost + weight @ cp.square(d.tau) - 2 * linear @ d.tau
    if s.settings.torque_weight:
        cost = cost + s.settings.torque_weight * cp.sum_squares(d.tau)
    return cost


def add_gradient(data: Values, torque_weight: float, vd: Array, tau: Array, f: Array, gradient: Gradient) -> None:
    """Add the gradient of the cost at the point (vd, tau, f) to ``gradient``.

    Parameters
    ----------
    data : name -> value of the parameters.
    torque_weight : cost of each squared torque, from the settings.
    """
    gradient.vd.append(2 * (data["acceleration_weight"] * vd - data["acceleration_pull"]))
    if "task_matrix" in data:
        gradient.vd.append(2 * data["task_matrix"].T @ (data["task_matrix"] @ vd - data["task_target"]))
    gradient.tau.append(2 * torque_weight * tau)
    if "torque_cost" in data:
        gradient.tau.append(2 * (data["torque_cost"] * tau - data["torque_pull"]))
    if not len(f):
        return
    gradient.f.append(2 * (data["force_weight"] * f - data["force_pull"]))
    if "wrench_matrix" in data:
        gradient.f.append(2 * data["wrench_matrix"].T @ (data["wrench_matrix"] @ f))
    if "force_task_matrix" in data:
        A = data["force_task_matrix"]
        gradient.f.append(2 * A.T @ (A @ f - data["force_task_target"]))
