"""The residual check: a solver's word is not enough."""

import numpy as np

from mcplan.whole_body.declaration import Declaration
from mcplan.whole_body.solution import Array

AT_BOUND = 1e-5
"""N m: a torque this close to its limit may be held there by it."""


def stationarity(
    d: Declaration, data: dict[str, Array], vd: Array, tau: Array, f: Array, duals: dict[str, Array]
) -> float:
    """Return the largest entry of the Lagrangian's gradient over the largest of its terms, from the arrays alone.

    Parameters
    ----------
    d, data : the declared problem and the values of its parameters.
    vd, tau, f : the point.
    duals : multipliers by name of the rows.
    """
    c, y = d.constants, duals
    on_vd = [
        2 * (data["acceleration_weight"] * vd - data["acceleration_pull"]),
        data["M"].T @ y["motion"],
    ]
    if "task_matrix" in data:
        on_vd.append(2 * data["task_matrix"].T @ (data["task_matrix"] @ vd - data["task_target"]))
    if "contact" in y:
        on_vd.append(data["contact_jacobian"].T @ y["contact"])
    if "acceleration_min" in y:
        held = np.zeros_like(vd)
        held[6 + np.array(d.structure.bounded)] = y["acceleration_max"] - y["acceleration_min"]
        on_vd.append(held)
    if "limit" in y:
        on_vd.append(-data["limit_matrix"].T @ y["limit"])
    gradients = [_relative(on_vd)]

    on_tau = 2 * d.structure.settings.torque_weight * tau - y["motion"][6 : 6 + len(tau)]
    if "torque_cost" in data:
        on_tau += 2 * (data["torque_cost"] * tau - data["torque_pull"])
    limit = np.array(d.structure.torque)
    free = np.where(
        tau > limit - AT_BOUND, np.maximum(on_tau, 0), np.where(tau < AT_BOUND - limit, np.minimum(on_tau, 0), on_tau)
    )
    gradients.append(float(np.max(np.abs(free))) / max(1.0, float(np.max(np.abs(y["motion"])))))

    if len(f):
        on_f = [2 * (data["force_weight"] * f - data["force_pull"]), -data["force_map"].T @ y["motion"]]
        if "wrench_matrix" in data:
            on_f.append(2 * data["wrench_matrix"].T @ (data["wrench_matrix"] @ f))
        if "force_task_matrix" in data:
            A = data["force_task_matrix"]
            on_f.append(2 * A.T @ (A @ f - data["force_task_target"]))
        if "release" in y:
            on_f.append(data["release"].T @ y["release"])
        if "friction" in y:
            mu = c["repeat"] @ data["friction"]
            on_f.append(c["tangential"].T @ y["friction"] - c["normal"].T @ (mu * y["friction"]))
            on_f.append(c["total"].T @ (y["normal_max"] - y["normal_min"]))
        on_f.extend(c[name].T @ y[name] for name in ("grasp_force", "grasp_moment") if name in y)
        gradients.append(_relative(on_f))
    return max(gradients)


def _relative(terms: list[Array]) -> float:
    """Return the largest entry of a sum over the largest of its terms (or 1)."""
    return float(np.max(np.abs(np.sum(terms, axis=0)))) / max(1.0, *(float(np.max(np.abs(t))) for t in terms))
