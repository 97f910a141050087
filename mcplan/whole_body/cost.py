"""The cost of the whole-body program.

::

    |A vd - b|^2 + (vd' W vd - 2 g' vd) + (f' W_f f - 2 g_f' f) + |F f|^2 + w_tau |tau|^2
      + |A_f f - b_f|^2 + (tau' W_tau tau - 2 g_tau' tau)

The weights of a diagonal task are in ``W`` and ``g = W b``, so it adds no unknowns; ``A`` and ``b`` carry the square
root of the weight.
"""

from typing import TYPE_CHECKING

import cvxpy as cp

from mcplan.whole_body.rows.block import Array, Gradient, Values

if TYPE_CHECKING:
    from mcplan.whole_body.declaration import Declaration


def declared_cost(d: "Declaration") -> cp.Expression:
    """Return the cost; its parameters are added to the program's."""
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
    """Add the gradient of the cost at a point.

    Parameters
    ----------
    data : name -> value of the parameters.
    torque_weight : of the settings.
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
