"""Whether contacts can hold the robot at all: the bare test of static equilibrium, without choosing forces.

    exists f:   sum f_i = m g e_z,   sum (r_i - c) x f_i = 0,   f within cones and limits   (and |tau| <= share limit)

It is the first phase of a linear program; `mcplan.statics.equilibrium.balance` chooses the forces.
"""

from collections.abc import Sequence

import numpy as np

from mcplan.core.rigid_body.tree import GRAVITY
from mcplan.model.robot import Robot
from mcplan.scene.contact import Contact
from mcplan.statics.contact_forces import ContactForces, moments_about
from mcplan.statics.static_program import StaticProgram
from mcplan.statics.torque_rows import TorqueRows

LEAST_WRENCH = 1e-9
"""Weights, and weights at 1 m: what is less is none."""

GRAVITY_ALONE = np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
"""What the contacts balance, in weights."""


def can_balance(com: np.ndarray, contacts: Sequence[Contact], mass: float, faces: int = 8, exact: bool = False) -> bool:
    """Return whether some forces balance gravity with the centre of mass at ``com`` (3,)."""
    forces = ContactForces(contacts, faces, mass * GRAVITY)
    rows = moments_about(forces.map, np.asarray(com, dtype=float)) / forces.unit
    return StaticProgram(forces, rows, np.zeros((6, 0)), GRAVITY_ALONE, exact).feasible


def part_exerted(
    point: np.ndarray,
    first: np.ndarray,
    further: np.ndarray,
    contacts: Sequence[Contact],
    mass: float,
    most: float = 1.0,
    faces: int = 8,
) -> float:
    """Return the largest part, up to ``most``, of a wrench that contacts exert besides another one.

        maximise p   subject to   sum of wrenches = first + p further,   p <= most,   f within cones and limits

    0 where they do not even exert the first. Both (6,) are about ``point`` (3,), N and N m.
    """
    size = float(np.abs(further).max()) / (mass * GRAVITY)
    if size < LEAST_WRENCH:
        return most
    forces = ContactForces(contacts, faces, mass * GRAVITY)
    rows, scale = moments_about(forces.map, point) / forces.unit, forces.unit * size
    program = StaticProgram(
        forces, rows, -further[:, None] / scale, first / forces.unit, False, np.array([most * size])
    )
    return float(program.minimise(np.array([-1.0])).z[0]) / size if program.feasible else 0.0


def can_hold(
    robot: Robot,
    q: np.ndarray,
    contacts: Sequence[Contact],
    torque_share: float = 1.0,
    faces: int = 8,
    exact: bool = False,
) -> bool:
    """Return whether some forces balance gravity at posture ``q`` within ``torque_share`` of the usable torques."""
    forces = ContactForces(contacts, faces, robot.mass * GRAVITY)
    limited = TorqueRows.at(robot, q, forces, torque_share)
    k = len(limited.map)
    columns = np.zeros((6 + k, k))
    columns[6:] = np.eye(k)
    program = StaticProgram(
        forces,
        np.vstack([moments_about(forces.map, robot.com(q)) / forces.unit, limited.map]),
        columns,
        np.concatenate([GRAVITY_ALONE, limited.rhs]),
        exact,
        np.full(k, 2.0 * torque_share),
        np.concatenate([np.full(6, -1), np.arange(k)]),
    )
    return program.feasible
