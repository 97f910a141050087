"""Torque gradient: how a change of posture relieves joints that exceed their torque limits.

    excess(q) = min s   over f, s,   subject to   balance of gravity at q,   f within its cones,
                                                  |h(q) - J(q)' f| <= (share + s) limit,  joint by joint

At the optimum (f, s) with multipliers y of the rows, the derivative of ``excess`` is that of the rows, weighted with y
and with f held still (the envelope theorem). It is taken by differences: the rows are cheap to make. The linearisations
at several postures bound the excess from below where it is convex, and are made rows of the posture search together.

Source: Kelley, The cutting-plane method for solving convex programs, J. SIAM 8(4), 1960.
"""

from collections.abc import Sequence

import numpy as np

from mcplan.core.rigid_body.tree import GRAVITY
from mcplan.optimize.dense import solve_dense
from mcplan.robot.robot import Robot
from mcplan.scene.contact import Contact
from mcplan.statics.contact_forces import ForceUnknowns, TorqueRows, moments_about

FORCE_PRICE = 1e-3
"""Price of the size of the forces beside the excess: it chooses among forces that are equally good."""

DIFFERENCE_STEP = 1e-6
"""m, rad: of the differences, whose error is of the same order."""

MAX_EXCESS_STEP = 0.15
"""Share of a torque limit by which an excess falls at most in one step."""

EXCESS_MARGIN = 0.01
"""Share of a torque limit: an excess is brought this far below zero."""

Linearization = tuple[np.ndarray, float, np.ndarray]
"""A posture (nq,), its excess, and the derivative (nv,) of that."""


def torque_rows(robot: Robot, q: np.ndarray, planes: Sequence[Linearization]) -> np.ndarray:
    """Return rows (k, nv + 1) ``[L, l]`` with which ``L step >= l`` from q (nq,) makes linearised excesses vanish."""
    rows = []
    for at, excess, gradient in planes:
        here = excess + float(gradient @ robot.difference(at, q))
        rows.append(np.append(-gradient, min(here + EXCESS_MARGIN, MAX_EXCESS_STEP)))
    return np.array(rows)


def torque_excess(
    robot: Robot, q: np.ndarray, bearing: Sequence[Contact], share: float
) -> tuple[float, np.ndarray] | None:
    """Return how much more of the torque limits than a share the worst joint needs, and its derivative (nv,).

    Parameters
    ----------
    q : (nq,).
    bearing : contacts that carry load, at the pose of their patches.
    share : part of the torque limits that may be used; a negative excess is the unused part.

    Returns
    -------
    excess, gradient : None when no forces balance the posture whatever the torques.
    """
    unit = robot.mass * GRAVITY
    forces = ForceUnknowns(bearing, unit=unit)
    size = forces.size
    F, upper = forces.face_rows()
    torques = TorqueRows.at(robot, q, forces, share)
    count, moments = len(torques.rhs), moments_about(forces.map, robot.com(q))
    still = np.vstack([moments, forces.equal])
    still_at = np.concatenate([[0.0, 0.0, 1.0, 0.0, 0.0, 0.0], forces.equal_to / unit])
    # the rows say  map f <= share - h / limit  of the torque, and the other side is 2 share below
    tau, room = unit * torques.map, torques.rhs
    none, one = np.zeros((len(still) + len(F), 1)), np.ones((count, 1))
    rows = np.block([[np.vstack([still, F]), none], [tau, -one], [-tau, -one]])
    low = np.concatenate([still_at, np.full(len(F) + 2 * count, -np.inf)])
    high = np.concatenate([still_at, upper / unit, room, 2.0 * share - room])
    H = FORCE_PRICE * np.diag(np.append(forces.norm, 1.0))
    answer = solve_dense(H, np.append(np.zeros(size), 1.0), rows, low, high)
    if not answer.ok:
        return None
    f, y = answer.x[:size], answer.dual
    of_torque = y[len(still) + len(F) :]
    of_torque = of_torque[:count] - of_torque[count:]

    def weighed(at: np.ndarray) -> float:
        torque = TorqueRows.at(robot, at, forces, share)
        return float(
            y[:6] @ moments_about(forces.map, robot.com(at)) @ f + of_torque @ (unit * torque.map @ f - torque.rhs)
        )

    here = weighed(q)
    steps = DIFFERENCE_STEP * np.eye(robot.nv)
    gradient = np.array([weighed(robot.integrate(q, step, 1.0)) - here for step in steps]) / DIFFERENCE_STEP
    return float(answer.x[size]), gradient
