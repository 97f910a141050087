"""Static equilibrium of the whole robot: the smallest contact forces that hold it, and how hard it may be pushed.

    sum f_i = m g e_z,   sum (r_i - c) x f_i = 0,   tau = h(q) - sum J_i' f_i,   |tau| <= limit

The forces of a planned stance are those of least size (in effect, pressure): load is shared, friction used little.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mcplan.core.tree import GRAVITY
from mcplan.model.robot import Robot
from mcplan.qp.dense import solve_dense
from mcplan.qp.polytope import ball_polytope
from mcplan.scene.contact import Contact
from mcplan.statics.contact_forces import ContactForces, cross_matrix
from mcplan.statics.static_program import StaticProgram
from mcplan.statics.support_region import moments_about

DIRECTIONS = 16
"""Horizontal directions of the push that defines the equilibrium margin."""


@dataclass(frozen=True)
class Equilibrium:
    """Forces that balance gravity at a posture.

    Attributes
    ----------
    feasible : whether admissible forces balance gravity.
    torque_feasible : whether they do so within the asked share of the torque limits.
    wrenches : {patch: (6,)} at the patch origin in world axes; zero for a contact without load (N, N m).
    point_forces : {patch: (k, 3)} at the contact points, world axes (N); loaded contacts only.
    tau : (n,) joint torques (N m).
    residual : largest entry of the unbalanced wrench at the centre of mass (N, N m).
    """

    feasible: bool
    torque_feasible: bool
    wrenches: dict[str, np.ndarray]
    point_forces: dict[str, np.ndarray]
    tau: np.ndarray
    residual: float


def balance(
    robot: Robot,
    q: np.ndarray,
    contacts: Sequence[Contact],
    loaded: Sequence[str] | None = None,
    torque_share: float = 0.9,
    faces: int = 8,
) -> Equilibrium:
    """Find the least forces under friction pyramids and torque limits that hold the robot at ``q``.

    Parameters
    ----------
    q : (nq,).
    contacts : all contacts; ``loaded`` names the patches that carry load (default: all).
    torque_share : part of the torque limits that may be used; when that is too little, the torques go unbounded and
        ``torque_feasible`` is False.
    """
    bearing = [contact for contact in contacts if loaded is None or contact.patch in loaded]
    forces = ContactForces(bearing, faces, robot.mass * GRAVITY)
    c = robot.com(q)
    A = moments_about(forces.map, c)
    weight = np.array([0.0, 0.0, robot.mass * GRAVITY, 0.0, 0.0, 0.0])
    hold = robot.nonlinear_effects(q, np.zeros(robot.nv))[6:]
    torque_map = joint_torque_map(robot, q, forces)
    F, upper = forces.face_rows()
    limit = torque_share * robot.limits.torque

    # Unknowns in newtons would leave an objective of 1e5 beside constraints of order one.
    unit = robot.mass * GRAVITY
    f, torque_feasible = None, False
    for within in (True, False):
        still = np.zeros(len(forces.free))
        rows = [A, forces.free, F] + ([torque_map] if within else [])
        low = [weight, still, np.full(len(F), -np.inf)] + ([hold - limit] if within else [])
        high = [weight, still, upper] + ([hold + limit] if within else [])
        solution = solve_dense(
            np.diag(forces.norm),
            np.zeros(forces.size),
            np.vstack(rows),
            np.concatenate(low) / unit,
            np.concatenate(high) / unit,
        )
        if solution.ok:
            f, torque_feasible = unit * solution.x, within
            break
    feasible = f is not None
    if f is None:
        f = np.zeros(forces.size)
    elif forces.size:
        exact = np.vstack([A, forces.free])
        f = f + np.linalg.lstsq(exact, np.append(weight, np.zeros(len(forces.free))) - exact @ f, rcond=None)[0]
    origins = {contact.patch: robot.frame_pose(q, contact.patch)[:3, 3] for contact in contacts}
    wrenches = {contact.patch: np.zeros(6) for contact in contacts} | forces.wrenches(f, origins)
    return Equilibrium(
        feasible,
        torque_feasible,
        wrenches,
        forces.point_forces(f),
        hold - torque_map @ f,
        float(np.abs(A @ f - weight).max()),
    )


def joint_torque_map(robot: Robot, q: np.ndarray, forces: ContactForces) -> np.ndarray:
    """Return ``J'`` (n, size): joint torques that the contact forces exert by themselves."""
    result = np.zeros((robot.n, forces.size))
    for block in forces.blocks:
        J = robot.frame_jacobian(q, block.contact.patch)
        p = robot.frame_pose(q, block.contact.patch)[:3, 3]
        about_world = J.copy()
        about_world[:3] += cross_matrix(p) @ J[3:]
        result[:, block.place] = about_world[:, 6:].T @ block.map
    return result


def equilibrium_margin(com: np.ndarray, contacts: Sequence[Contact], mass: float) -> float:
    """Return the largest horizontal push at ``com`` (N) that the contacts balance, the least over 16 directions.

    Exact cones and force limits, no torque limits. Without any equilibrium: minus the smallest residual, a force at the
    centre of mass plus a moment counted as force at 1 m.
    """
    return _margin(np.asarray(com, dtype=float), contacts, mass, None, None)


def equilibrium_torque_margin(robot: Robot, q: np.ndarray, contacts: Sequence[Contact]) -> float:
    """Return the margin of `equilibrium_margin` with the torque limits as well.

    The push is shared by the links in proportion to their mass, like a tilt of gravity.
    """
    return _margin(robot.com(q), contacts, robot.mass, robot, q)


def _margin(
    com: np.ndarray, contacts: Sequence[Contact], mass: float, robot: Robot | None, q: np.ndarray | None
) -> float:
    weight = mass * GRAVITY
    forces = ContactForces(contacts, 16, weight)
    rows = [moments_about(forces.map, com) / weight]
    rhs = [np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0])]
    push_rows = [np.vstack([np.eye(3), np.zeros((3, 3))])]
    slack = np.zeros((6, 0))
    if robot is not None and q is not None:
        limited = np.isfinite(robot.limits.torque)
        limit = robot.limits.torque[limited]
        hold = robot.nonlinear_effects(q, np.zeros(robot.nv))[6:][limited] / limit
        count = len(limit)
        rows.append(
            np.vstack([-joint_torque_map(robot, q, forces)[limited] / limit[:, None], np.zeros((count, forces.size))])
        )
        rhs.append(np.concatenate([1.0 - hold, np.full(count, 2.0)]))
        push = -robot.com_jacobian(q)[:, 6:].T[limited] * weight / limit[:, None]
        push_rows.append(np.vstack([push, np.zeros((count, 3))]))
        identity = np.eye(count)
        slack = np.vstack(
            [np.zeros((6, 2 * count)), np.hstack([identity, np.zeros((count, count))]), np.hstack([identity, identity])]
        )
    all_rows, all_rhs, all_push = np.vstack(rows), np.concatenate(rhs), np.vstack(push_rows)

    directions = ball_polytope().T / np.linalg.norm(ball_polytope(), axis=1)
    residual = np.zeros((len(all_rhs), 2 * directions.shape[1]))
    residual[:, : directions.shape[1]] = all_push @ directions
    residual[3:6, directions.shape[1] :] = directions
    elastic = StaticProgram(forces, all_rows, np.hstack([slack, residual]), all_rhs, exact=True)
    if not elastic.feasible:
        return -np.inf
    missing = elastic.minimise(np.append(np.zeros(slack.shape[1]), np.ones(residual.shape[1]))).value
    if missing > 1e-9:
        return -missing * weight

    # Rays that made the posture feasible may be needed to start from, so the pushes begin with all of them.
    program = elastic.without(slice(slack.shape[1], slack.shape[1] + residual.shape[1]))
    if not program.feasible:
        return 0.0
    worst = np.inf
    for angle in 2.0 * np.pi * np.arange(DIRECTIONS) / DIRECTIONS:
        column = all_push @ np.array([np.cos(angle), np.sin(angle), 0.0])
        value = program.with_column(column).minimise(np.append(np.zeros(slack.shape[1]), -1.0)).value
        worst = min(worst, -value * weight)
    return float(worst)
