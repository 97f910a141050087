"""Static equilibrium of the whole robot: minimum-norm contact forces, and margins of stability.

    sum f_i = m g e_z,   sum (r_i - c) x f_i = 0,   tau = h(q) - sum J_i' f_i,   |tau| <= limit

The forces of a planned stance have the minimum weighted norm ``f' N f``, that is low pressure: the load is shared and
little friction is used. Each contact bears a minimum load if possible, since an unloaded contact lifts off and creeps.

    minimise   1/2 f' N f + p/2 sum max(0, minimum load - n_i . f_i)^2

N is diagonal (`ContactUnknowns.norm`), p is `LOAD_DEFICIT_WEIGHT`, n_i the normal of a contact.

Margins of a posture with its forces, under the same names in plans and reports:

equilibrium         largest push at the centre of mass that is balanced (N), least over 16 directions
equilibrium_torque  the same within the torque limits (N)
friction            smallest mu fn - |ft| over contact points that carry more than 1 N (N)
friction_ratio      largest |ft| / (mu fn) there
torque              largest share of a torque limit in use
position            smallest distance to a joint limit (rad or m)
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mcplan.core.rigid_body.tree import GRAVITY
from mcplan.errors import InputError
from mcplan.optimize.dense import solve_dense
from mcplan.optimize.polytope import ball_polytope
from mcplan.robot.robot import Robot
from mcplan.scene.contact import Contact
from mcplan.statics.contact_forces import ForceUnknowns, TorqueRows, joint_torque_map, moments_about
from mcplan.statics.static_program import StaticProgram
from mcplan.util.arguments import check_each, check_instance, unknown_message
from mcplan.util.html_table import html_of, html_table, numbers
from mcplan.util.text import summary

CONE_MARGIN = 1e-7
"""Margin of forces inside their cones, relative to the weight, larger than rounding errors."""

QP_TOLERANCE = 1e-8
"""Tolerance of the quadratic program, relative to the weight; less than `CONE_MARGIN`."""

MIN_LOAD = 0.05
"""Minimum load of each contact, relative to the weight, if possible."""

LOAD_DEFICIT_WEIGHT = 1e3
"""Weight of the squared deficit of the minimum load; the normal force of a sole has weight 1."""

DIRECTIONS = 16
"""Number of horizontal directions of the push that defines the equilibrium margin."""

MAX_PUSH = 10.0
"""Largest reported push, in weights; contacts that can squeeze without limit (facing walls) withstand any push."""

RESIDUAL_TOLERANCE = 1e-8
"""Smaller residuals count as zero, in weights."""


@dataclass(frozen=True)
class Equilibrium:
    """Forces that balance gravity at a posture.

    Attributes
    ----------
    feasible : whether admissible forces balance gravity.
    torque_feasible : whether they do so within ``torque_share`` of the torque limits.
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

    __repr__ = summary

    def _repr_html_(self) -> str:
        """Return the wrenches as a table for notebooks."""
        rows = ((patch, numbers(wrench[:3]), numbers(wrench[3:])) for patch, wrench in self.wrenches.items())
        return html_of(self, html_table(["patch", "force (N)", "moment (N m)"], rows))


def balance(
    robot: Robot,
    q: np.ndarray,
    contacts: Sequence[Contact],
    loaded: Sequence[str] | None = None,
    torque_share: float = 0.9,
    faces: int = 8,
    motion: tuple[np.ndarray, np.ndarray] | None = None,
) -> Equilibrium:
    """Find the minimum-norm forces within friction pyramids and torque limits that hold the robot at ``q``.

    Parameters
    ----------
    q : (nq,).
    contacts : all contacts; ``loaded`` names the patches that carry load (default: all).
    torque_share : usable fraction of `Robot.usable_torque`; if infeasible, the torques are unbounded and
        ``torque_feasible`` is False.
    faces : of each friction pyramid.
    motion : v and vd (nv,) of the robot, for the forces of a motion; None: rest.

    Raises
    ------
    InputError
        ``loaded`` names a patch that is not in contact.
    """
    check_instance("balance", "robot", robot, Robot)
    contacts = check_each("balance", "contacts", contacts, Contact)
    patches = [contact.patch for contact in contacts]
    for patch in check_each("balance", "loaded", patches if loaded is None else loaded, str):
        if patch not in patches:
            raise InputError(f"balance: loaded: {unknown_message('patch', patch, patches)}")
    loaded_contacts = [contact for contact in contacts if loaded is None or contact.patch in loaded]
    forces = ForceUnknowns(loaded_contacts, faces, robot.mass * GRAVITY)
    c = robot.com(q)
    A = moments_about(forces.map, c)
    zero_rates = np.zeros(robot.nv)
    required = robot.inverse_dynamics(q, *(motion or (zero_rates, zero_rates)))
    # the required wrench about the centre of mass: gravity's, with `motion` also that of inertia
    gravity_wrench = np.append(required[:3], required[3:6] - np.cross(c - q[:3], required[:3]))
    holding_torque = required[6:]
    torque_map = joint_torque_map(robot, q, forces)
    frictionless = forces.frictionless
    A_eq = np.vstack([A, forces.equal, np.eye(forces.size)[frictionless]])
    b_eq = np.concatenate([gravity_wrench, forces.equal_to, np.zeros(len(frictionless))])
    F, upper = forces.face_rows()
    # opposite faces of a frictionless pyramid coincide: with `CONE_MARGIN` between them they would be infeasible
    has_friction = ~F[:, frictionless].any(axis=1)
    F, upper = F[has_friction], upper[has_friction] - CONE_MARGIN * robot.mass * GRAVITY
    limit = torque_share * robot.usable_torque
    load_rows = forces.load_rows()
    slack_columns = np.eye(len(load_rows))

    # scaled by the robot's weight: in newtons the objective would be about 1e5 and the constraint matrix about 1
    unit = robot.mass * GRAVITY
    f, torque_feasible = None, False
    for with_torque_limits in (True, False):
        rows = [A_eq, F] + ([torque_map] if with_torque_limits else [])
        low = [b_eq, np.full(len(F), -np.inf)] + ([holding_torque - limit] if with_torque_limits else [])
        high = [b_eq, upper] + ([holding_torque + limit] if with_torque_limits else [])
        limits_matrix = np.vstack(rows)
        solution = solve_dense(
            np.diag(np.concatenate([forces.norm, np.full(len(load_rows), LOAD_DEFICIT_WEIGHT)])),
            np.zeros(forces.size + len(load_rows)),
            np.block([[limits_matrix, np.zeros((len(limits_matrix), len(load_rows)))], [load_rows, slack_columns]]),
            np.concatenate([*low, np.full(len(load_rows), MIN_LOAD * unit)]) / unit,
            np.concatenate([*high, np.full(len(load_rows), np.inf)]) / unit,
            tolerance=QP_TOLERANCE,
        )
        if solution.ok:
            f, torque_feasible = unit * solution.x[: forces.size], with_torque_limits
            break
    feasible = f is not None
    if f is None:
        f = np.zeros(forces.size)
    elif forces.size:
        f = f + np.linalg.lstsq(A_eq, b_eq - A_eq @ f, rcond=None)[0]
    origins = {contact.patch: robot.frame_pose(q, contact.patch)[:3, 3] for contact in contacts}
    wrenches = {contact.patch: np.zeros(6) for contact in contacts} | forces.wrenches(f, origins)
    return Equilibrium(
        feasible,
        torque_feasible,
        wrenches,
        forces.point_forces(f),
        holding_torque - torque_map @ f,
        float(np.abs(A @ f - gravity_wrench).max()),
    )


def equilibrium_margin(com: np.ndarray, contacts: Sequence[Contact], mass: float, upper: float = np.inf) -> float:
    """Return the largest horizontal push at ``com`` (N) that the contacts balance, minimum over 16 directions.

    Friction cones are exact, force limits apply, torque limits do not; the result is at most ``upper`` and `MAX_PUSH`
    weights: a small ``upper`` saves most of the time.
    Without equilibrium the result is minus the smallest residual: a force at the centre of mass, a moment that counts
    as a force at 1 m lever arm, and the residual wrench of an object that the contacts cannot hold.
    """
    return _margin(np.asarray(com, dtype=float), contacts, mass, None, None, upper)


def equilibrium_torque_margin(robot: Robot, q: np.ndarray, contacts: Sequence[Contact]) -> float:
    """Return the margin of `equilibrium_margin` with torque limits.

    The push is distributed over the links in proportion to their mass, like a tilt of gravity.
    """
    return _margin(robot.com(q), contacts, robot.mass, robot, q, np.inf)


def _margin(
    com: np.ndarray,
    contacts: Sequence[Contact],
    mass: float,
    robot: Robot | None,
    q: np.ndarray | None,
    upper_push: float,
) -> float:
    """Return the margin of `equilibrium_margin`, with the torque limits of ``robot`` at ``q`` if they are given."""
    weight = mass * GRAVITY
    forces = ForceUnknowns(contacts, unit=weight)
    rows = moments_about(forces.map, com) / weight
    rhs = np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    push_map = np.vstack([np.eye(3), np.zeros((3, 3))])
    n_torques = 0
    if robot is not None and q is not None:
        torque_rows = TorqueRows.at(robot, q, forces)
        n_torques = len(torque_rows.map)
        rows, rhs = np.vstack([rows, torque_rows.map]), np.concatenate([rhs, torque_rows.rhs])
        push_map = np.vstack([push_map, torque_rows.push(robot, q) * weight])

    # variables: torque slacks; k components of the residual force and k of its moment, along directions of a polytope;
    # one push per direction, bounded by 0 until it is maximised
    directions = ball_polytope().T / np.linalg.norm(ball_polytope(), axis=1)
    angles = 2.0 * np.pi * np.arange(DIRECTIONS) / DIRECTIONS
    k = directions.shape[1]
    residual = slice(n_torques, n_torques + 2 * k)
    push_columns = slice(residual.stop, residual.stop + DIRECTIONS)
    columns = np.zeros((len(rhs), push_columns.stop))
    columns[6:, :n_torques] = np.eye(n_torques)
    columns[:, n_torques : n_torques + k] = push_map @ directions
    columns[3:6, n_torques + k : residual.stop] = directions
    columns[:, push_columns] = push_map[:, :2] @ np.vstack([np.cos(angles), np.sin(angles)])
    upper = np.concatenate([np.full(n_torques, 2.0), np.full(2 * k, np.inf), np.zeros(DIRECTIONS)])
    slack = np.concatenate([np.full(6, -1), np.arange(n_torques)])
    cost = np.zeros(push_columns.stop)
    cost[residual] = 1.0
    program = StaticProgram(forces, rows, columns, rhs, True, upper, slack)
    if not program.feasible:  # the contacts cannot hold an object: add residuals (+/-) to the equalities of objects
        k = len(forces.equal)
        columns = np.block(
            [[columns, np.zeros((len(rhs), 2 * k))], [np.zeros((k, push_columns.stop)), np.eye(k), -np.eye(k)]]
        )
        rows, rhs = np.vstack([rows, forces.equal / weight]), np.append(rhs, forces.equal_to / weight)
        upper, slack = np.append(upper, np.full(2 * k, np.inf)), np.append(slack, np.full(k, -1))
        program = StaticProgram(forces.without_equalities(), rows, columns, rhs, True, upper, slack)
        cost = np.append(cost, np.ones(2 * k))
    min_residual = program.minimise(cost).value
    if min_residual > RESIDUAL_TOLERANCE:
        return -min_residual * weight
    program.hold_at_zero(residual.start, residual.stop)
    return program.least_reach(push_columns.start, push_columns.stop, min(upper_push / weight, MAX_PUSH)) * weight


MIN_POINT_FORCE_N = 1.0
"""Points with less normal force are ignored in the friction margins."""


def margins(
    robot: Robot, q: np.ndarray, loaded: Sequence[Contact], equilibrium: Equilibrium, still: bool = True
) -> dict[str, float | None]:
    """Return the margins that the module's docstring lists; None for a margin that is not finite.

    The two push margins are defined at rest only: None if the robot is not ``still``.
    """
    friction, ratio = friction_margin(loaded, equilibrium.point_forces)
    limits = robot.limits
    distance = np.minimum(q[7:] - limits.lower, limits.upper - q[7:])
    torque_shares = np.abs(equilibrium.tau) / limits.torque
    values = {
        "equilibrium": equilibrium_margin(robot.com(q), loaded, robot.mass) if still else np.inf,
        "equilibrium_torque": equilibrium_torque_margin(robot, q, loaded) if still else np.inf,
        "friction": friction,
        "friction_ratio": ratio,
        "torque": float(torque_shares.max(initial=0.0)),
        "position": float(distance.min(initial=np.inf)),
    }
    return {name: value if np.isfinite(value) else None for name, value in values.items()}


def friction_margin(contacts: Sequence[Contact], point_forces: dict[str, np.ndarray]) -> tuple[float, float]:
    """Return the friction margin (N) and the friction ratio; (inf, 0) if no point with friction carries load."""
    margin, ratio = np.inf, 0.0
    for contact in contacts:
        if contact.kind == "grasp":
            continue
        for force in point_forces[contact.patch] @ contact.axes:
            tangential, limit = float(np.hypot(force[0], force[1])), contact.friction * float(force[2])
            if force[2] > MIN_POINT_FORCE_N:
                margin = min(margin, limit - tangential)
                ratio = max(ratio, tangential / limit if limit > 0.0 else np.inf)
    return margin, ratio
