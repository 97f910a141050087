"""The residual check: a solver's word is not enough."""

import numpy as np

from mcplan.qp.declaration import Declaration
from mcplan.qp.solution import Array, Residuals

AT_BOUND = 1e-5
"""N m: a torque this close to its limit may be held there by it."""


def residuals(
    d: Declaration,
    data: dict[str, Array],
    vd: Array,
    tau: Array,
    f: Array,
    duals: dict[str, Array] | None = None,
    extra_violation: float = 0.0,
) -> Residuals:
    """Return the residuals of a point, from the arrays and not from CVXPY's expressions.

    Parameters
    ----------
    d, data : the declared problem and the values of its parameters.
    vd, tau, f : the point.
    duals : multipliers by name of the rows; without them the stationarity is NaN.
    extra_violation : largest violation of the user's constraints.
    """
    motion = data["M"] @ vd + data["h"]
    motion[6:] -= tau
    limit = np.array(d.structure.torque)
    worst = [extra_violation, float(np.max(np.abs(tau) - limit, initial=0.0))]
    contact = 0.0
    if len(f):
        motion -= data["force_map"] @ f
    if "contact_jacobian" in data:
        contact = float(np.max(np.abs(data["contact_jacobian"] @ vd - data["contact_acceleration"])))
    if "release" in data:
        worst.append(float(np.max(np.abs(data["release"] @ f))))
    worst.extend(float(np.max(value)) for value in inequalities(d, data, vd, f).values())
    stationarity = float("nan") if duals is None else _stationarity(d, data, vd, tau, f, duals)
    return Residuals(float(np.max(np.abs(motion))), contact, max(worst), stationarity)


def inequalities(d: Declaration, data: dict[str, Array], vd: Array, f: Array) -> dict[str, Array]:
    """Return the left-hand sides of the rows ``<= 0`` by name."""
    c = d.constants
    values = {}
    if d.structure.bounded:
        joint = vd[6 + np.array(d.structure.bounded)]
        values["acceleration_min"] = data["acceleration_min"] - joint
        values["acceleration_max"] = joint - data["acceleration_max"]
    if "limit_matrix" in data:
        values["limit"] = data["limit_lower"] - data["limit_matrix"] @ vd
    if "tangential" in c:
        mu = c["repeat"] @ data["friction"]
        values["friction"] = c["tangential"] @ f - mu * (c["normal"] @ f) + d.structure.settings.inner_margin
        total = c["total"] @ f
        values["normal_min"], values["normal_max"] = data["normal_min"] - total, total - data["normal_max"]
    for name in ("grasp_force", "grasp_moment"):
        if name in c:
            values[name] = c[name] @ f - c[f"{name}_repeat"] @ data[name]
    return values


def _stationarity(
    d: Declaration, data: dict[str, Array], vd: Array, tau: Array, f: Array, duals: dict[str, Array]
) -> float:
    """Return the largest entry of the Lagrangian's gradient over the largest of its terms."""
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

    on_tau = 2 * d.structure.settings.torque_weight * tau - y["motion"][6:]
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
