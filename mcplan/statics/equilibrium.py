"""Static equilibrium of the whole robot: minimum-norm contact forces, and margins of stability.

    sum f_i = m g e_z,   sum (r_i - c) x f_i = 0,   tau = h(q) - sum J_i' f_i,   |tau| <= limit

The forces of a planned stance have minimum norm (in effect, pressure): load is shared, friction used little. Each
contact bears a minimum load if possible: an unloaded one lifts off and creeps away.

    minimise   1/2 f' N f + p/2 sum max(0, least - n_i . f_i)^2

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
"""Weight of the squared deficit of the minimum load; the force of a sole has weight 1."""

DIRECTIONS = 16
"""Number of horizontal directions of the push that defines the equilibrium margin."""

MAX_PUSH = 10.0
"""Largest reported push, in weights: contacts that can squeeze without limit (facing walls) withstand any push."""

RESIDUAL_TOLERANCE = 1e-8
"""Residual that counts as zero, in weights."""


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
    still = np.zeros(robot.nv)
    required = robot.inverse_dynamics(q, *(motion or (still, still)))
    # the wrench about the centre of mass
    weight, hold = np.append(required[:3], required[3:6] - np.cross(c - q[:3], required[:3])), required[6:]
    torque_map = joint_torque_map(robot, q, forces)
    smooth = forces.frictionless
    equal = np.vstack([A, forces.equal, np.eye(forces.size)[smooth]])
    equal_to = np.concatenate([weight, forces.equal_to, np.zeros(len(smooth))])
    F, upper = forces.face_rows()
    # without friction opposite faces are equalities: with the margin `CONE_MARGIN` they would contradict each other
    sloped = ~F[:, smooth].any(axis=1)
    F, upper = F[sloped], upper[sloped] - CONE_MARGIN * robot.mass * GRAVITY
    limit = torque_share * robot.usable_torque
    loads = forces.load_rows()
    summary = np.eye(len(loads))

    # scaled by the weight: in newtons the objective would be 1e5, with constraints of order one
    unit = robot.mass * GRAVITY
    f, torque_feasible = None, False
    for with_torque_limits in (True, False):
        rows = [equal, F] + ([torque_map] if with_torque_limits else [])
        low = [equal_to, np.full(len(F), -np.inf)] + ([hold - limit] if with_torque_limits else [])
        high = [equal_to, upper] + ([hold + limit] if with_torque_limits else [])
        hard = np.vstack(rows)
        solution = solve_dense(
            np.diag(np.concatenate([forces.norm, np.full(len(loads), LOAD_DEFICIT_WEIGHT)])),
            np.zeros(forces.size + len(loads)),
            np.block([[hard, np.zeros((len(hard), len(loads)))], [loads, summary]]),
            np.concatenate([*low, np.full(len(loads), MIN_LOAD * unit)]) / unit,
            np.concatenate([*high, np.full(len(loads), np.inf)]) / unit,
            tolerance=QP_TOLERANCE,
        )
        if solution.ok:
            f, torque_feasible = unit * solution.x[: forces.size], with_torque_limits
            break
    feasible = f is not None
    if f is None:
        f = np.zeros(forces.size)
    elif forces.size:
        f = f + np.linalg.lstsq(equal, equal_to - equal @ f, rcond=None)[0]
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


def equilibrium_margin(com: np.ndarray, contacts: Sequence[Contact], mass: float) -> float:
    """Return the largest horizontal push at ``com`` (N) that the contacts balance, minimum over 16 directions.

    Exact cones and force limits, no torque limits; at most `MAX_PUSH` weights. Without any equilibrium: minus the
    smallest residual, a force at the centre of mass plus a moment counted as force at 1 m; or the residual of an object
    that the contacts cannot hold.
    """
    return _margin(np.asarray(com, dtype=float), contacts, mass, None, None)


def equilibrium_torque_margin(robot: Robot, q: np.ndarray, contacts: Sequence[Contact]) -> float:
    """Return the margin of `equilibrium_margin` with torque limits.

    The push is distributed over the links in proportion to their mass, like a tilt of gravity.
    """
    return _margin(robot.com(q), contacts, robot.mass, robot, q)


def _margin(
    com: np.ndarray, contacts: Sequence[Contact], mass: float, robot: Robot | None, q: np.ndarray | None
) -> float:
    weight = mass * GRAVITY
    forces = ForceUnknowns(contacts, unit=weight)
    rows = moments_about(forces.map, com) / weight
    rhs = np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    push = np.vstack([np.eye(3), np.zeros((3, 3))])
    torques = 0
    if robot is not None and q is not None:
        limited = TorqueRows.at(robot, q, forces)
        torques = len(limited.map)
        rows, rhs = np.vstack([rows, limited.map]), np.concatenate([rhs, limited.rhs])
        push = np.vstack([push, limited.push(robot, q) * weight])

    # variables: slacks of the torques, residual force and moment, pushes that are released in sequence
    directions = ball_polytope().T / np.linalg.norm(ball_polytope(), axis=1)
    angle = 2.0 * np.pi * np.arange(DIRECTIONS) / DIRECTIONS
    k = directions.shape[1]
    missing, pushes = slice(torques, torques + 2 * k), slice(torques + 2 * k, torques + 2 * k + DIRECTIONS)
    columns = np.zeros((len(rhs), pushes.stop))
    columns[6:, :torques] = np.eye(torques)
    columns[:, torques : torques + k] = push @ directions
    columns[3:6, torques + k : missing.stop] = directions
    columns[:, pushes] = push[:, :2] @ np.vstack([np.cos(angle), np.sin(angle)])
    upper = np.concatenate([np.full(torques, 2.0), np.full(2 * k, np.inf), np.zeros(DIRECTIONS)])
    slack = np.concatenate([np.full(6, -1), np.arange(torques)])
    cost = np.zeros(pushes.stop)
    cost[missing] = 1.0
    program = StaticProgram(forces, rows, columns, rhs, True, upper, slack)
    if not program.feasible:  # the contacts cannot hold an object
        k = len(forces.equal)
        columns = np.block(
            [[columns, np.zeros((len(rhs), 2 * k))], [np.zeros((k, pushes.stop)), np.eye(k), -np.eye(k)]]
        )
        rows, rhs = np.vstack([rows, forces.equal / weight]), np.append(rhs, forces.equal_to / weight)
        upper, slack = np.append(upper, np.full(2 * k, np.inf)), np.append(slack, np.full(k, -1))
        program = StaticProgram(forces.without_equalities(), rows, columns, rhs, True, upper, slack)
        cost = np.append(cost, np.ones(2 * k))
    least = program.minimise(cost).value
    if least > RESIDUAL_TOLERANCE:
        return -least * weight
    program.hold_at_zero(missing.start, missing.stop)
    return program.least_reach(pushes.start, pushes.stop, MAX_PUSH) * weight


MIN_POINT_FORCE_N = 1.0
"""Points with less normal force are ignored in the friction margins."""


def margins(
    robot: Robot, q: np.ndarray, loaded: Sequence[Contact], equilibrium: Equilibrium, still: bool = True
) -> dict[str, float | None]:
    """Return the margins of the module's docstring; None if one is not finite.

    If the robot is not ``still``, the push margins are meaningless, and None.
    """
    friction, ratio = friction_margin(loaded, equilibrium.point_forces)
    limits = robot.limits
    distance = np.minimum(q[7:] - limits.lower, limits.upper - q[7:])
    share = np.abs(equilibrium.tau) / limits.torque
    values = {
        "equilibrium": equilibrium_margin(robot.com(q), loaded, robot.mass) if still else np.inf,
        "equilibrium_torque": equilibrium_torque_margin(robot, q, loaded) if still else np.inf,
        "friction": friction,
        "friction_ratio": ratio,
        "torque": float(share.max(initial=0.0)),
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
            tangent, limit = float(np.hypot(force[0], force[1])), contact.friction * float(force[2])
            if force[2] > MIN_POINT_FORCE_N:
                margin = min(margin, limit - tangent)
                ratio = max(ratio, tangent / limit if limit > 0.0 else np.inf)
    return margin, ratio
