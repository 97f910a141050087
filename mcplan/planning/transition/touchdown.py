"""How fast a patch may meet its support: no faster than grips bear what the impact does to them.

A patch that meets its support with the normal speed v and stays there changes the velocity of the whole robot at once,

    M dv = J' P + n' p,    J dv = 0,    n dv = v

with the rows J of contacts that stay closed and n of the normal velocity. The impulses are proportional to v. Contacts
that press bear them; a grip has to bear its own, spread over the time of an impact, beside what it holds.
"""

from collections.abc import Sequence

import numpy as np

from mcplan.model.robot import Robot
from mcplan.scene.contact import Contact

IMPACT_TIME = 0.01
"""s: over which an impulse is spread; the certificate of a run averages forces over as much."""

LEFT, LEAST_LEFT = 0.2, 0.08
"""Part of the largest force and moment of a grip that is left for impacts by motions that keep all of their reserve,
and by those that keep none: the peak of an impact is over twice its mean, and comes on top of what the grip holds."""

COMPLIANCE = 1e-8
"""Relative: closed chains have more rows than directions."""


def touchdown_speed(
    robot: Robot, q: np.ndarray, closed: Sequence[Contact], contact: Contact, most: float, kept: float = 1.0
) -> float:
    """Return the largest normal speed (m/s) at which a patch may meet its support, ``most`` where no grip holds.

    Parameters
    ----------
    q : (nq,) the posture then.
    closed : contacts that stay closed.
    kept : part of its reserve that the motion keeps (see `mcplan.motion.law.Law`).
    """
    grips = [grip for grip in closed if grip.kind == "grasp" and np.isfinite([grip.max_force, grip.max_moment]).any()]
    if not grips:
        return most
    rows = []
    for held in closed:
        R = held.turned(robot.frame_pose(q, held.patch)[:3, :3])
        J = robot.frame_jacobian(q, held.patch)
        rows.append(held.selection @ np.vstack([R.T @ J[:3], R.T @ J[3:]]))
    normal = contact.normal @ robot.frame_jacobian(q, contact.patch)[:3]
    A = np.vstack([*rows, normal])
    W = A @ np.linalg.solve(robot.mass_matrix(q), A.T)
    W[np.diag_indices(len(W))] += COMPLIANCE * np.trace(W) / len(W)
    P = np.linalg.solve(W, np.append(np.zeros(len(W) - 1), 1.0))  # per m/s
    begin, left = 0, LEAST_LEFT + kept * (LEFT - LEAST_LEFT)
    for held, J in zip(closed, rows, strict=True):
        impulse = held.selection.T @ P[begin : begin + len(J)]
        begin += len(J)
        if held in grips:
            for part, limit in ((impulse[:3], held.max_force), (impulse[3:], held.max_moment)):
                size = float(np.linalg.norm(part))
                if np.isfinite(limit) and size > 0.0:
                    most = min(most, left * limit * IMPACT_TIME / size)
    return most
