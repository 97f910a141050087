"""Dynamics along the path of a segment: speeds, touchdown speeds, and the forces of contacts and motors.

With the path parameter s, which runs from 0 to the nominal duration of the segment, the generalised forces are

    hold(s) + of_u(s) u + of_x(s) x,   u = sdd,   x = sd²

At each point of the path the contact forces are eliminated. The result is the polygon of feasible pairs (u, x), or the
feasible share of one pair (`mcplan.core.statics.section`). The torques of joints that no contact loads depend on the
motion only: their limits are half-planes of (u, x), without unknown forces.
"""

from dataclasses import replace

import numpy as np

from mcplan.core.rigid_body import inverse_dynamics as core
from mcplan.core.rigid_body.tree import GRAVITY, workspace
from mcplan.core.statics import section
from mcplan.core.statics.program import Rays, StaticWork
from mcplan.optimize.path_program import PathProgram, law_basis
from mcplan.planning.transition.transition import Segment
from mcplan.robot.robot import Robot
from mcplan.scene.contact import Contact, largest_per_link
from mcplan.settings.control import ControlSettings
from mcplan.settings.margins import shrink_points
from mcplan.settings.pace import Pace, used_fraction
from mcplan.statics.contact_forces import ForceUnknowns
from mcplan.statics.static_program import StaticProgram

TOUCHDOWN_HEIGHT_M = 0.01
"""Below this height a patch comes down no faster than the pace allows; larger for robots larger than HRP-2."""

IMPACT_HEIGHT_M = 0.003
"""Below this height also no faster than impacts allow (`touchdown_speed`); tracking errors are about 1 mm."""

CHECKS_PER_INTERVAL = 4
"""Number of samples per grid interval of the speed of a patch that comes down."""

JERK_BOUND_SHARE = 1 / 16
"""Share of a path at either end in which the jerk bounds sd."""

TINY = 1e-9
"""Lower bound of speeds and derivatives that are divisors."""

MIN_TRAVEL_M = 1e-9
"""Lower bound of the distance of the centre of mass from an end of its path."""


class PathDynamics:
    """Kinematics and dynamics of a segment at shares ``s`` (m,) of its length.

    Attributes
    ----------
    contacts : contacts that carry load; ``arriving``: new contacts of patches that come down.
    length, end : range of the path parameter (nominal duration), and the last posture (nq,).
    q, v, vd : (m, nq), (m, nv), (m, nv) postures, and the first and second derivative by s, q' and q''.
    hold, of_u, of_x : (m, nv) generalised forces at rest, per sdd, and per sd².
    jacobians : (m, 6, nv) of each contact, at the world's origin.
    height, along : (m, 2) first and second derivative by s of the height of the centre of mass, and of its arc length.
    speed, from_end : (m,) norm of the derivative of the centre of mass, and its distance (m) along the path from the
        nearer end at rest.
    joints : (m, n) absolute derivatives of joints.
    closing : (m, 2 arriving) normal speed per sd of arriving patches below TOUCHDOWN_HEIGHT_M, then below
        IMPACT_HEIGHT_M.
    third : (m,) largest third derivative of q near the ends.
    torque_change : (m,) largest derivative by s of ``of_x`` over the joints of limbs in the air.
    travel : path length (m), averaged over the mass.
    passes : whether the segment begins or ends in motion.
    """

    def __init__(self, robot: Robot, segment: Segment, s: np.ndarray):
        self._segment = segment
        self.contacts = largest_per_link(robot, segment.contacts)
        self.length, self.end = segment.duration, segment.q[-1]
        self.q, self.v, self.vd = segment.posture.samples(self.length * s)
        position, velocity, curvature = segment.centre.samples(self.length * s)
        self.height = np.column_stack([velocity[:, 2], curvature[:, 2]])
        self.speed = np.linalg.norm(velocity, axis=1)
        self.along = np.column_stack(
            [self.speed, np.einsum("ij,ij->i", velocity, curvature) / np.maximum(self.speed, TINY)]
        )
        steps = np.linalg.norm(np.diff([segment.com[0], *position, segment.com[-1]], axis=0), axis=1)
        travelled, remaining = np.cumsum(steps[:-1]), np.cumsum(steps[:0:-1])[::-1]
        ends = (
            travelled + (0.0 if segment.begin is None else np.inf),
            remaining + (0.0 if segment.finish is None else np.inf),
        )
        self.from_end = np.maximum(np.minimum(*ends), MIN_TRAVEL_M)
        self.passes = segment.passes
        self.hold, self.of_u, self.of_x = (np.empty_like(self.v) for _ in range(3))
        zero_rates, work = np.zeros(robot.nv), workspace(robot.tree)
        core.path_forces(robot.tree, self.q, self.v, self.vd, zero_rates, work, self.hold, self.of_u, self.of_x)
        self.jacobians = {contact.patch: self._contact_jacobians(robot, contact) for contact in self.contacts}
        self.s, self.joints, self.closing = s, np.abs(self.v[:, 6:]), np.zeros((len(s), 0))
        self.third, self.torque_change = np.full(len(s), TINY), np.full(len(s), TINY)
        # v' M v / m is the squared mean speed of the whole mass; M v is of_u
        speed = np.sqrt(np.maximum(np.einsum("ij,ij->i", self.v, self.of_u), 0.0) / robot.mass)
        self.travel = float(np.trapezoid(speed, self.length * s))
        self.arriving: tuple[Contact, ...] = ()

    @classmethod
    def pair(cls, robot: Robot, segment: Segment) -> tuple["PathDynamics", "PathDynamics"]:
        """Return a segment at the nodes of a time parameterization, and midway between them."""
        path, middles = cls(robot, segment, _nodes()), cls(robot, segment, _middles())
        path._bound_speeds(robot, segment, middles)
        return path, middles

    def at(self, robot: Robot, s: np.ndarray) -> "PathDynamics":
        """Return the same segment at other shares s (k,) of its length."""
        return PathDynamics(robot, self._segment, s)

    def _bound_speeds(self, robot: Robot, segment: Segment, middles: "PathDynamics") -> None:
        """Include the points between nodes in the bounds of speeds, jerk and torque change."""
        self.joints = np.maximum(self.joints, _adjacent_max(middles.joints))
        in_air = np.flatnonzero(~np.any([np.any(J[:, :, 6:], axis=(0, 1)) for J in self.jacobians.values()], axis=0))
        third, torque_change = (
            self._max_derivative(middles, node_values[:, columns], middle_values[:, columns])
            for node_values, middle_values, columns in (
                (self.vd, middles.vd, slice(3, None)),
                (self.of_x, middles.of_x, 6 + in_air),
            )
        )
        self.torque_change = np.maximum(torque_change, TINY)
        is_near_begin = (self.s < JERK_BOUND_SHARE) & (segment.begin is None)
        is_near_end = (1.0 - self.s < JERK_BOUND_SHARE) & (segment.finish is None)
        self.third = np.where(is_near_begin | is_near_end, np.maximum(third, TINY), TINY)
        self.arriving = tuple(c.target for c in segment.courses if c.target is not None and not c.hold)
        if self.arriving:
            self.closing = self._closing_speeds(robot, segment)

    def _max_derivative(
        self, middles: "PathDynamics", node_values: np.ndarray, middle_values: np.ndarray
    ) -> np.ndarray:
        """Return the largest derivative (m,) by s of any column of values at the nodes and at the middles."""
        if not node_values.shape[1]:
            return np.zeros(len(self.s))
        s, values = np.empty(2 * len(self.s) - 1), np.empty((2 * len(self.s) - 1, node_values.shape[1]))
        s[::2], s[1::2], values[::2], values[1::2] = self.s, middles.s, node_values, middle_values
        with np.errstate(invalid="ignore", divide="ignore"):
            derivative = np.abs(np.diff(values, axis=0)).max(axis=1) / (np.diff(s) * self.length)
        derivative[[0, -1]] = derivative[[1, -2]]  # the dynamics of the end nodes are those of the middles
        return np.asarray(_adjacent_max(derivative.reshape(-1, 2).max(axis=1, keepdims=True))[:, 0])

    def _contact_jacobians(self, robot: Robot, contact: Contact) -> np.ndarray:
        """Return the Jacobians (m, 6, nv) of a contact: of the point of its link at the world's origin.

        If a patch turns, rolls or slides in its contact, the forces move with it.
        """
        position, J = _frame_path(robot, contact.patch, self.q)
        if contact.selection[:, :3].any() and len(contact.selection) < 6:
            J[:, :3] += np.cross((contact.p - position)[:, :, None], J[:, 3:], axis=1)
        return J

    def _closing_speeds(self, robot: Robot, segment: Segment) -> np.ndarray:
        """Return ``closing`` (m, 2 arriving), at each node the maximum over both intervals: the approach is short."""
        grid = self.length * law_basis().s
        s = np.interp(
            np.arange((len(grid) - 1) * CHECKS_PER_INTERVAL + 1) / CHECKS_PER_INTERVAL, np.arange(len(grid)), grid
        )
        q = segment.posture.samples(s).q
        height = np.array([(_frame_path(robot, c.patch, q)[0] - c.p) @ c.normal for c in self.arriving])
        speed, height_above = np.maximum(-np.diff(height), 0.0) / np.diff(s), height[:, 1:] / max(robot.scale.leg, 1.0)
        speeds = np.vstack(
            [np.where(height_above <= max_height, speed, 0.0) for max_height in (TOUCHDOWN_HEIGHT_M, IMPACT_HEIGHT_M)]
        )
        return _adjacent_max(speeds.reshape(len(speeds), -1, CHECKS_PER_INTERVAL).max(axis=2).T)


def _frame_path(robot: Robot, name: str, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return positions (m, 3) of a frame, and Jacobians (m, 6, nv) of the point of its link at the world's origin."""
    position, J = np.empty((len(q), 3)), np.empty((len(q), 6, robot.nv))
    core.write_frame_path(robot.tree, q, *robot.frame(name), workspace(robot.tree), position, J)
    return position, J


def _nodes() -> np.ndarray:
    """Return the shares at which the dynamics of the nodes are computed.

    At the ends of a segment q' = q'' = 0, so the robot rests there for every sd. Therefore the end nodes use the
    dynamics in the middle of the first and last interval.
    """
    s = law_basis().s.copy()
    s[0], s[-1] = 0.5 * s[1], 0.5 * (s[-2] + 1.0)
    return s


def _middles() -> np.ndarray:
    """Return the shares midway between the grid points."""
    s = law_basis().s
    return 0.5 * (s[:-1] + s[1:])


def _adjacent_max(values: np.ndarray) -> np.ndarray:
    """Return for each node the maximum (m, n) of values (m - 1, n) over the two adjacent intervals."""
    zero = np.zeros((1, values.shape[1]))
    return np.maximum(np.vstack([values, zero]), np.vstack([zero, values]))


DAMPING_TORQUE_SHARE = 0.5
"""Share of a joint's torque limit that damping may use: a wrist with 0.5 N m and 1 N m s/rad moves at 0.25 rad/s."""


def joint_speeds(robot: Robot, share: float) -> np.ndarray:
    """Return the largest speeds (n,) of joints that use a share of their velocity limits, rad/s (m/s)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        damping_speed = np.where(
            robot.joint_damping > 0.0, DAMPING_TORQUE_SHARE * robot.limits.torque / robot.joint_damping, np.inf
        )
    return np.minimum(share * robot.limits.velocity, damping_speed)


GRID_STRIDE = 8
"""Every eighth point of a path is checked first, then the others, so that an infeasible path is detected early."""

NO_RESERVE = "standing still takes all that contacts and joints have"
"""Reason of a failure: static equilibrium needs all contact forces and torques."""

REASONS = {
    section.EMPTY: "no forces within the margins move the robot",
    section.FAILED: "a program of its forces was not solved",
    section.AT_REST: NO_RESERVE,
}
"""Reason of a failure, by the status of `mcplan.core.statics.section`."""


class RetimingError(Exception):
    """No time parameterization exists; the message is the reason."""


class PathForces:
    """Forces of contacts and motors along a path that keep a share of the reserve.

    Attributes
    ----------
    path, reserve : the path, and the share of the reserve that is kept (see `mcplan.planning.timing.retiming`).
    of_contacts : the unknown contact forces f (size,), and their bounds.
    G : (m, nv, size) generalised forces per unit of f.
    hold : (m, nv) generalised forces at rest, less those of the contacts' preload.
    limited, limit : (k,) joints with a torque limit, and the usable torque (N m).
    """

    def __init__(self, robot: Robot, settings: ControlSettings, path: PathDynamics, reserve: float):
        assert settings.pace is not None
        pace = settings.pace
        contacts = [with_pace_margins(contact, pace, settings, reserve) for contact in path.contacts]
        self.path, self.reserve, self._unit = path, reserve, robot.mass * GRAVITY
        self.of_contacts = ForceUnknowns(contacts, settings.contact.friction_faces, self._unit)
        self.G = np.zeros((len(path.q), robot.nv, self.of_contacts.size))
        for block in self.of_contacts.blocks:
            self.G[:, :, block.entries] = path.jacobians[block.contact.patch].transpose(0, 2, 1) @ block.map
        preload = preload_unknowns(self.of_contacts, reserve * settings.contact.preload_force)
        self.hold = path.hold - self.G @ preload
        # the preloads of hands load the objects that they hold
        self.of_contacts.equal_to = self.of_contacts.equal_to - self.of_contacts.equal @ preload
        self.limited = np.flatnonzero(np.isfinite(robot.limits.torque))
        share = min(pace.torque + (1.0 - reserve) * (1.0 - pace.torque), 1.0)
        self.limit = share * robot.usable_torque[self.limited]
        self._loaded = np.asarray(self.G[:, 6 + self.limited].any(axis=(0, 2)))

    def polygons(self, program: PathProgram) -> tuple[np.ndarray, np.ndarray]:
        """Return half-planes ``a u + b x <= c`` (m, most, 3) of the polygons of (u, x), and their numbers (m,).

        Raises
        ------
        RetimingError
            A polygon is empty; the message has the reason and the position on the path.
        """
        bounds = self._bounds(program)
        m, program_of = len(bounds), self._program(2)
        rows, counts = np.zeros((m, section.MAX_CORNERS + bounds.shape[1], 3)), np.zeros(m, np.int64)
        directions = np.stack([program.of_u, program.of_x], axis=1)
        order = np.concatenate([np.arange(first, m, GRID_STRIDE) for first in range(GRID_STRIDE)])
        failed = section.polygons_along_path(
            *program_of, self._unit, *self._joints(self._loaded), self.hold, directions, self.G, program.x_max,
            program.u_max, bounds, order, rows, counts,
        )  # fmt: skip
        if failed < m:
            raise RetimingError(f"{grid_position(failed)}, {REASONS[int(counts[failed])]}")
        return np.ascontiguousarray(rows[:, : counts.max()]), counts

    def reach(self, x: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Return the largest feasible factor (m,), at most 1, on both x (m,) and u (m,).

        Raises
        ------
        RetimingError
            No share is feasible, or a program was not solved.
        """
        demand = self.path.of_u * u[:, None] + self.path.of_x * x[:, None]
        indices, limit = self._joints(~self._loaded)
        demanded, hold = demand[:, indices], self.hold[:, indices]
        with np.errstate(divide="ignore", invalid="ignore"):
            headroom = np.where(demanded == 0.0, np.inf, (np.copysign(limit, demanded) - hold) / demanded)
        share = np.clip(headroom.min(axis=1, initial=1.0), 0.0, 1.0)
        loaded = self._joints(self._loaded)
        failed = section.feasible_shares(
            *self._program(1), self._unit, *loaded, self.hold, demand[:, None], self.G, share
        )
        if failed < len(share):
            raise RetimingError(f"{grid_position(failed)}, {REASONS[int(share[failed])]}")
        return np.asarray(share)

    def _joints(self, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the indices in generalised forces of the limited joints in a mask (k,), and their torque limits."""
        return 6 + self.limited[mask], self.limit[mask]

    def _program(self, variables: int) -> tuple[StaticWork, Rays, np.ndarray]:
        """Return the linear program of the forces, its rays, and for each row the column of its slack variable or -1.

        Its first ``variables`` columns, bounded by 1, are filled in by `mcplan.core.statics.section`.
        """
        k, z = int(np.count_nonzero(self._loaded)), variables
        columns = np.vstack([np.zeros((6, z + k)), np.eye(k, z + k, z)])
        slack = np.append(np.full(6, -1), z + np.arange(k))
        upper, rows = np.append(np.ones(z), np.full(k, 2.0)), np.zeros((6 + k, self.of_contacts.size))
        program = StaticProgram(self.of_contacts, rows, columns, np.zeros(6 + k), False, upper, slack)
        work, first, count = program.work, int(program.work.first[1]), int(program.work.program.count[0])
        rays = Rays(work.owner[first:count].copy(), work.ray[first:count].copy())
        work.program.count[0] = first
        return work, rays, program.basic

    def _bounds(self, program: PathProgram) -> np.ndarray:
        """Return half-planes (m, 2 j, 3) of (u, x): accelerations, and torques of joints without contact load."""
        indices, limit = self._joints(~self._loaded)
        m, hold = len(self.hold), self.hold[:, indices]
        of_u, of_x = (
            np.column_stack([program_rows[:, 3:], program.height[:, k], program.along[:, k], forces[:, indices]])
            for k, (program_rows, forces) in enumerate(((program.v, program.of_u), (program.vd, program.of_x)))
        )
        bounds = np.column_stack(
            [np.full((m, program.v.shape[1] - 3), program.acceleration), np.full(m, program.rise), program.start]
        )
        upper, lower = np.hstack([bounds, limit - hold]), np.hstack([bounds, limit + hold])
        return np.concatenate([np.stack([of_u, of_x, upper], axis=2), np.stack([-of_u, -of_x, lower], axis=2)], axis=1)


def grid_position(i: int) -> str:
    """Return the position of a grid point as text."""
    return f"{100 * law_basis().s[i]:.0f} % along it"


def with_pace_margins(contact: Contact, pace: Pace, settings: ControlSettings, reserve: float) -> Contact:
    """Return a contact with the limits of motions that keep a share of the reserve (see `TimeParameterization`)."""
    force_share = used_fraction(pace.force, settings.contact.force_fraction, reserve)
    edge_margin = max(pace.pressure, settings.contact.pressure_margin)
    return replace(
        contact,
        friction=used_fraction(pace.friction, settings.contact.friction_fraction, reserve) * contact.friction,
        max_force=force_share * contact.max_force,
        max_moment=force_share * contact.max_moment,
        points=shrink_points(
            contact.points, max(edge_margin + (1.0 - reserve) * (settings.contact.pressure_margin - edge_margin), 0.0)
        ),
    )


def preload_unknowns(forces: ForceUnknowns, preload: float) -> np.ndarray:
    """Return the unknowns of the preload (N) of each contact except grips, distributed evenly over its points.

    The program adds further forces to it: the sum of two forces within a cone is within the cone.
    """
    unknowns = np.zeros(forces.size)
    for block in forces.blocks:
        if not block.is_grasp:
            normal = unknowns[block.entries][2::3]
            normal += preload / len(normal)
    return unknowns
