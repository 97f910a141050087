"""Torque gradient: derivative of the torque excess with respect to the posture.

    excess(q) = min s   over f, s,   subject to   balance of gravity at q,   f within its cones,
                                                  |h(q) - J(q)' f| <= (share + s) limit   for each joint

with contact forces f, gravity torques h, contact Jacobian J, torque limits ``limit`` and their usable ``share``. At the
optimum (f, s) with multipliers y, the derivative of ``excess`` is that of the constraint rows weighted with y, for
constant f (envelope theorem). It is computed by finite differences, since the rows are cheap. Linearisations at several
postures bound a convex excess from below (cutting planes); all of them become rows of the posture search.

Source: Kelley, The cutting-plane method for solving convex programs, J. SIAM 8(4), 1960.
"""

from collections.abc import Sequence

import numpy as np

from mcplan.core.rigid_body.tree import GRAVITY
from mcplan.optimize.dense import solve_dense
from mcplan.robot.robot import Robot
from mcplan.scene.contact import Contact
from mcplan.statics.contact_forces import ForceUnknowns, TorqueRows, moments_about

FORCE_WEIGHT = 1e-3
"""Weight of the squared forces relative to the excess; it makes the solution unique."""

DIFFERENCE_STEP = 1e-6
"""Step of the finite differences (m, rad); their relative error is of the same order."""

MAX_EXCESS_DECREASE = 0.15
"""Largest decrease of the excess in one step, as a share of a torque limit."""

EXCESS_MARGIN = 0.01
"""Target of the negative excess, as a share of a torque limit."""

Linearization = tuple[np.ndarray, float, np.ndarray]
"""A posture (nq,), its excess, and the gradient (nv,) of the excess."""


def torque_rows(robot: Robot, q: np.ndarray, linearizations: Sequence[Linearization]) -> np.ndarray:
    """Return rows (k, nv + 1) ``[L, l]``: a step from ``q`` (nq,) with ``L step >= l`` removes the linearised excesses.

    If an excess is larger than `MAX_EXCESS_DECREASE`, the step decreases it by that much.
    """
    rows = []
    for q_plane, excess, gradient in linearizations:
        excess_here = excess + float(gradient @ robot.difference(q_plane, q))
        rows.append(np.append(-gradient, min(excess_here + EXCESS_MARGIN, MAX_EXCESS_DECREASE)))
    return np.array(rows)


def torque_excess(
    robot: Robot, q: np.ndarray, contacts: Sequence[Contact], share: float
) -> tuple[float, np.ndarray] | None:
    """Return the largest torque excess of a joint, as a share of its limit, and its gradient (nv,).

    Parameters
    ----------
    q : (nq,) posture.
    contacts : contacts that carry load, at the pose of their patches.
    share : usable share of the torque limits; a negative excess is the unused part.

    Returns
    -------
    excess, gradient : or None if no contact forces balance the posture, even with unlimited torques.
    """
    unit = robot.mass * GRAVITY
    forces = ForceUnknowns(contacts, unit=unit)
    size = forces.size
    cone_rows, cone_bounds = forces.face_rows()
    torques = TorqueRows.at(robot, q, forces, share)
    count, moments = len(torques.rhs), moments_about(forces.map, robot.com(q))
    equilibrium = np.vstack([moments, forces.equal])
    equilibrium_rhs = np.concatenate([[0.0, 0.0, 1.0, 0.0, 0.0, 0.0], forces.equal_to / unit])
    # upper torque limit: map f <= share - h / limit = torque_upper; lower limit: map f >= torque_upper - 2 share
    tau, torque_upper = unit * torques.map, torques.rhs
    no_slack, slack = np.zeros((len(equilibrium) + len(cone_rows), 1)), np.ones((count, 1))
    rows = np.block([[np.vstack([equilibrium, cone_rows]), no_slack], [tau, -slack], [-tau, -slack]])
    low = np.concatenate([equilibrium_rhs, np.full(len(cone_rows) + 2 * count, -np.inf)])
    high = np.concatenate([equilibrium_rhs, cone_bounds / unit, torque_upper, 2.0 * share - torque_upper])
    H = FORCE_WEIGHT * np.diag(np.append(forces.norm, 1.0))
    solution = solve_dense(H, np.append(np.zeros(size), 1.0), rows, low, high)
    if not solution.ok:
        return None
    f, y = solution.x[:size], solution.dual
    torque_dual = y[len(equilibrium) + len(cone_rows) :]
    torque_dual = torque_dual[:count] - torque_dual[count:]

    def weighted_rows(at: np.ndarray) -> float:
        torque = TorqueRows.at(robot, at, forces, share)
        return float(
            y[:6] @ moments_about(forces.map, robot.com(at)) @ f + torque_dual @ (unit * torque.map @ f - torque.rhs)
        )

    value = weighted_rows(q)
    steps = DIFFERENCE_STEP * np.eye(robot.nv)
    gradient = np.array([weighted_rows(robot.integrate(q, step, 1.0)) - value for step in steps]) / DIFFERENCE_STEP
    return float(solution.x[size]), gradient
