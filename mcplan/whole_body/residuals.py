"""The residual check: a solver's word is not enough."""

import numpy as np

from mcplan.whole_body.cost import add_gradient
from mcplan.whole_body.declaration import Declaration
from mcplan.whole_body.rows.block import Gradient
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
    gradient = Gradient()
    add_gradient(data, d.structure.settings.torque_weight, vd, tau, f, gradient)
    for block in d.blocks:
        block.add_gradient(data, duals, gradient)
    limit, on_tau = np.array(d.structure.torque), np.sum(gradient.tau, axis=0)
    free = np.where(
        tau > limit - AT_BOUND, np.maximum(on_tau, 0), np.where(tau < AT_BOUND - limit, np.minimum(on_tau, 0), on_tau)
    )
    size = max(1.0, float(np.max(np.abs(duals["motion"]))))
    return max(_relative(gradient.vd), float(np.max(np.abs(free))) / size, _relative(gradient.f))


def _relative(terms: list[Array]) -> float:
    """Return the largest entry of a sum over the largest of its terms (or 1)."""
    if not terms:
        return 0.0
    return float(np.max(np.abs(np.sum(terms, axis=0)))) / max(1.0, *(float(np.max(np.abs(t))) for t in terms))
