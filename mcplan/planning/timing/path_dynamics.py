"""Dynamics along the path of a segment: speeds, touchdown speeds, and the forces of contacts and motors.

The forces are eliminated once per point. There remains a polygon of pairs (u, x), sdd and sd², or, of one given pair,
the share that is allowed (`mcplan.core.statics.section`). Joints that no contact loads are moved by their motors alone:
their limits are half-planes of (u, x) and no rows of the programs over forces.
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
from mcplan.settings.margins import shrunk
from mcplan.settings.pace import Pace, used
from mcplan.statics.contact_forces import ForceUnknowns
from mcplan.statics.static_program import StaticProgram

TOUCHDOWN_HEIGHT_M = 0.01
"""m: below this height a patch comes down no faster than the pace allows; more for robots larger than HRP-2."""

IMPACT_HEIGHT_M = 0.003
"""m: below this height it comes down no faster than balance and grips bear: tracking errors are about a millimetre."""

CHECKS_PER_INTERVAL = 4
"""Parts of an interval of the grid in which the speed of a patch that comes down is looked at."""

JERK_BOUND_SHARE = 1 / 16
"""Part of a path at either end in which the rate is bounded by the jerk."""

TINY = 1e-9
"""1/s³: third derivatives of a path below this are none."""

NO_WAY = 1e-9
"""m: where the centre of mass has gone no farther than this, it has not begun to move."""


class PathDynamics:
    """A segment at parts ``s`` (m,) of its length.

    Attributes
    ----------
    contacts : those that bear; ``arriving`` those that patches come down to.
    q, v, vd : (m, nq), (m, nv), (m, nv) postures, tangents q' and their derivatives.
    hold, of_u, of_x : (m, nv) forces at rest, and those of sdd and sd².
    jacobians : (m, 6, nv) of each contact, at the world's origin.
    height, along : (m, 2) first and second derivative of the height of the centre of mass, and of how far it has gone.
    speed, from_end : (m,) of the centre of mass, and distance along its path from the nearer end at rest.
    joints, closing, third : (m, ..) speeds of joints, of arriving patches within TOUCHDOWN_HEIGHT_M and then within
        IMPACT_HEIGHT_M of their supports, and third derivatives of q near the ends.
    swung : (m,) how quickly ``of_x`` changes along the path, of that joint of the limbs in the air where it is most.
    travel : how far all mass goes along (m).
    passes : whether it begins or ends in motion.
    """

    def __init__(self, robot: Robot, segment: Segment, s: np.ndarray):
        self._segment = segment
        self.contacts = largest_per_link(robot, segment.contacts)
        self.length, self.end = segment.duration, segment.q[-1]
        self.q, self.v, self.vd = segment.posture.samples(self.length * s)
        place, velocity, bend = segment.centre.samples(self.length * s)
        self.height = np.column_stack([velocity[:, 2], bend[:, 2]])
        self.speed = np.linalg.norm(velocity, axis=1)
        self.along = np.column_stack([self.speed, np.einsum("ij,ij->i", velocity, bend) / np.maximum(self.speed, TINY)])
        steps = np.linalg.norm(np.diff([segment.com[0], *place, segment.com[-1]], axis=0), axis=1)
        gone, left = np.cumsum(steps[:-1]), np.cumsum(steps[:0:-1])[::-1]
        ends = (gone + (0.0 if segment.begin is None else np.inf), left + (0.0 if segment.finish is None else np.inf))
        self.from_end = np.maximum(np.minimum(*ends), NO_WAY)
        self.passes = segment.passes
        self.hold, self.of_u, self.of_x = (np.empty_like(self.v) for _ in range(3))
        still, work = np.zeros(robot.nv), workspace(robot.tree)
        core.path_forces(robot.tree, self.q, self.v, self.vd, still, work, self.hold, self.of_u, self.of_x)
        self.jacobians = {contact.patch: self._about_world(robot, contact) for contact in self.contacts}
        self.s, self.joints, self.closing = s, np.abs(self.v[:, 6:]), np.zeros((len(s), 0))
        self.third, self.swung = np.full(len(s), TINY), np.full(len(s), TINY)
        # v' M v / m is the square of the speed with which all mass goes along: M v is what the first derivative takes
        speed = np.sqrt(np.maximum(np.einsum("ij,ij->i", self.v, self.of_u), 0.0) / robot.mass)
        self.travel = float(np.trapezoid(speed, self.length * s))
        self.arriving: tuple[Contact, ...] = ()

    @classmethod
    def pair(cls, robot: Robot, segment: Segment) -> tuple["PathDynamics", "PathDynamics"]:
        """Return a segment in the nodes of a law, and between them."""
        path, middles = cls(robot, segment, _nodes()), cls(robot, segment, _middles())
        path._bound_speeds(robot, segment, middles)
        return path, middles

    def at(self, robot: Robot, s: np.ndarray) -> "PathDynamics":
        """Return the same segment at other parts s (k,) of its length."""
        return PathDynamics(robot, self._segment, s)

    def _bound_speeds(self, robot: Robot, segment: Segment, middles: "PathDynamics") -> None:
        """Include the points between nodes in the speeds of joints, and of patches that come down."""
        self.joints = np.maximum(self.joints, _around(middles.joints))
        free = np.flatnonzero(~np.any([np.any(J[:, :, 6:], axis=(0, 1)) for J in self.jacobians.values()], axis=0))
        third, swung = (
            self._change(middles, mine[:, columns], others[:, columns])
            for mine, others, columns in ((self.vd, middles.vd, slice(3, None)), (self.of_x, middles.of_x, 6 + free))
        )
        self.swung = np.maximum(swung, TINY)
        begins = (self.s < JERK_BOUND_SHARE) & (segment.begin is None)
        ends = (1.0 - self.s < JERK_BOUND_SHARE) & (segment.finish is None)
        self.third = np.where(begins | ends, np.maximum(third, TINY), TINY)
        self.arriving = tuple(c.target for c in segment.courses if c.target is not None and not c.hold)
        if self.arriving:
            self.closing = self._closing(robot, segment)

    def _change(self, middles: "PathDynamics", mine: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Return the fastest change (m,) along the path of any column given at the nodes and between them."""
        if not mine.shape[1]:
            return np.zeros(len(self.s))
        s, values = np.empty(2 * len(self.s) - 1), np.empty((2 * len(self.s) - 1, mine.shape[1]))
        s[::2], s[1::2], values[::2], values[1::2] = self.s, middles.s, mine, others
        with np.errstate(invalid="ignore", divide="ignore"):
            change = np.abs(np.diff(values, axis=0)).max(axis=1) / (np.diff(s) * self.length)
        change[[0, -1]] = change[[1, -2]]  # nodes at the ends are where the middles are
        return np.asarray(_around(change.reshape(-1, 2).max(axis=1, keepdims=True))[:, 0])

    def _about_world(self, robot: Robot, contact: Contact) -> np.ndarray:
        """Return the Jacobians (m, 6, nv) of the point of a contact's link that is at the world's origin.

        A contact that turns, rolls or slides is where its patch is: its forces go along by the little that it moves.
        """
        place, J = _frame(robot, contact.patch, self.q)
        if contact.selection[:, :3].any() and len(contact.selection) < 6:
            J[:, :3] += np.cross((contact.p - place)[:, :, None], J[:, 3:], axis=1)
        return J

    def _closing(self, robot: Robot, segment: Segment) -> np.ndarray:
        """Return the speeds (m, twice arriving), m per unit, of patches below TOUCHDOWN_HEIGHT_M and IMPACT_HEIGHT_M.

        It is the most between the points of the grid on either side: the approach is short.
        """
        grid = self.length * law_basis().s
        s = np.interp(
            np.arange((len(grid) - 1) * CHECKS_PER_INTERVAL + 1) / CHECKS_PER_INTERVAL, np.arange(len(grid)), grid
        )
        q = segment.posture.samples(s).q
        height = np.array([(_frame(robot, c.patch, q)[0] - c.p) @ c.normal for c in self.arriving])
        speed, far = np.maximum(-np.diff(height), 0.0) / np.diff(s), height[:, 1:] / max(robot.scale.leg, 1.0)
        within = np.vstack([np.where(far <= near, speed, 0.0) for near in (TOUCHDOWN_HEIGHT_M, IMPACT_HEIGHT_M)])
        return _around(within.reshape(len(within), -1, CHECKS_PER_INTERVAL).max(axis=2).T)


def _frame(robot: Robot, name: str, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return where a frame is (m, 3), and the Jacobians (m, 6, nv) of its link's point at the world's origin."""
    place, J = np.empty((len(q), 3)), np.empty((len(q), 6, robot.nv))
    core.path_of_frame(robot.tree, q, *robot.frame(name), workspace(robot.tree), place, J)
    return place, J


def _nodes() -> np.ndarray:
    """Return where the dynamics of the nodes are taken.

    At the ends of a segment, where q' = q'' = 0, any rate is rest: there the middles of the first and of the last
    interval count.
    """
    s = law_basis().s.copy()
    s[0], s[-1] = 0.5 * s[1], 0.5 * (s[-2] + 1.0)
    return s


def _middles() -> np.ndarray:
    s = law_basis().s
    return 0.5 * (s[:-1] + s[1:])


def _around(values: np.ndarray) -> np.ndarray:
    """Return the greater values (m, n) of the intervals (m - 1, n) on either side of each node."""
    none = np.zeros((1, values.shape[1]))
    return np.maximum(np.vstack([values, none]), np.vstack([none, values]))


DAMPING_TORQUE_SHARE = 0.5
"""Part of a joint's torque that its damping may take: a wrist of 0.5 N m that is damped with 1 N m s/rad is slow."""


def joint_speeds(robot: Robot, part: float) -> np.ndarray:
    """Return the greatest speeds (n,) of joints that use a part of their velocity limits, rad/s (m/s)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        damped = np.where(
            robot.joint_damping > 0.0, DAMPING_TORQUE_SHARE * robot.limits.torque / robot.joint_damping, np.inf
        )
    return np.minimum(part * robot.limits.velocity, damped)


GRID_STRIDE = 8
"""Of the points of a path those so many apart are looked at first: where it cannot be gone, that is seen early."""

NO_RESERVE = "standing still takes all that contacts and joints have"

REASONS = {
    section.EMPTY: "no forces within the margins move the robot",
    section.FAILED: "a program of its forces was not solved",
    section.AT_REST: NO_RESERVE,
}


class RetimingError(Exception):
    """No time parameterization exists; the message is the reason."""


class PathForces:
    """Forces of contacts and motors along a path where a share of the reserve is kept.

    Attributes
    ----------
    path, kept : that path, and that part.
    of_contacts : the unknowns f, ``size`` of them, and what bounds them.
    G : (m, nv, size) generalised force of each unit of f.
    hold : (m, nv) the forces that stand still, less those of the contacts' preload.
    limited, limit : (k,) joints whose torque is limited, and what of that is used (N m).
    """

    def __init__(self, robot: Robot, settings: ControlSettings, path: PathDynamics, kept: float):
        assert settings.pace is not None
        pace = settings.pace
        within = [margined(contact, pace, settings, kept) for contact in path.contacts]
        self.path, self.kept, self._unit = path, kept, robot.mass * GRAVITY
        self.of_contacts = ForceUnknowns(within, settings.contact.friction_faces, self._unit)
        self.G = np.zeros((len(path.q), robot.nv, self.of_contacts.size))
        for block in self.of_contacts.blocks:
            self.G[:, :, block.place] = path.jacobians[block.contact.patch].transpose(0, 2, 1) @ block.map
        preload = preloaded(self.of_contacts, kept * settings.contact.preload_force)
        self.hold = path.hold - self.G @ preload
        # objects bear the preloads of the hands on them, too
        self.of_contacts.equal_to = self.of_contacts.equal_to - self.of_contacts.equal @ preload
        self.limited = np.flatnonzero(np.isfinite(robot.limits.torque))
        share = min(pace.torque + (1.0 - kept) * (1.0 - pace.torque), 1.0)
        self.limit = share * robot.usable_torque[self.limited]
        self._loaded = np.asarray(self.G[:, 6 + self.limited].any(axis=(0, 2)))

    def polygons(self, program: PathProgram) -> tuple[np.ndarray, np.ndarray]:
        """Return half-planes (m, most, 3) of the polygons of (u, x), and how many each has (m,).

        Raises
        ------
        RetimingError
            With the reason, and where.
        """
        bounds = self._bounds(program)
        m, program_of = len(bounds), self._program(2)
        rows, counts = np.zeros((m, section.CORNERS + bounds.shape[1], 3)), np.zeros(m, np.int64)
        directions = np.stack([program.of_u, program.of_x], axis=1)
        order = np.concatenate([np.arange(first, m, GRID_STRIDE) for first in range(GRID_STRIDE)])
        end = section.along_path(
            *program_of, self._unit, *self._joints(self._loaded), self.hold, directions, self.G, program.x_max,
            program.u_max, bounds, order, rows, counts,
        )  # fmt: skip
        if end < m:
            raise RetimingError(f"{grid_position(end)}, {REASONS[int(counts[end])]}")
        return np.ascontiguousarray(rows[:, : counts.max()]), counts

    def reach(self, x: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Return which part (m,), at most 1, of x and u is allowed.

        Raises
        ------
        RetimingError
            None is, or a program was not solved.
        """
        asked = self.path.of_u * u[:, None] + self.path.of_x * x[:, None]
        free, limit = self._joints(~self._loaded)
        takes, holds = asked[:, free], self.hold[:, free]
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(takes == 0.0, np.inf, (np.copysign(limit, takes) - holds) / takes)
        part = np.clip(room.min(axis=1, initial=1.0), 0.0, 1.0)
        bound = self._joints(self._loaded)
        end = section.reach(*self._program(1), self._unit, *bound, self.hold, asked[:, None], self.G, part)
        if end < len(part):
            raise RetimingError(f"{grid_position(end)}, {REASONS[int(part[end])]}")
        return np.asarray(part)

    def _joints(self, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return indices of some of the limited joints in generalised forces, and their limits."""
        return 6 + self.limited[which], self.limit[which]

    def _program(self, variables: int) -> tuple[StaticWork, Rays, np.ndarray]:
        """Return a program of the forces, its first variables up to 1, its rays, and each row's slack, or -1."""
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
        """Return half-planes (m, 2 j, 3) of (u, x): of accelerations, and of joints that contacts do not load."""
        free, limit = self._joints(~self._loaded)
        m, hold = len(self.hold), self.hold[:, free]
        of_u, of_x = (
            np.column_stack([program_rows[:, 3:], program.height[:, k], program.along[:, k], forces[:, free]])
            for k, (program_rows, forces) in enumerate(((program.v, program.of_u), (program.vd, program.of_x)))
        )
        most = np.column_stack(
            [np.full((m, program.v.shape[1] - 3), program.acceleration), np.full(m, program.rise), program.start]
        )
        up, down = np.hstack([most, limit - hold]), np.hstack([most, limit + hold])
        return np.concatenate([np.stack([of_u, of_x, up], axis=2), np.stack([-of_u, -of_x, down], axis=2)], axis=1)


def grid_position(i: int) -> str:
    """Say where a point of the grid is."""
    return f"{100 * law_basis().s[i]:.0f} % along it"


def margined(contact: Contact, pace: Pace, settings: ControlSettings, kept: float) -> Contact:
    """Return a contact as motions may load it that keep a part of the reserve (see `TimeParameterization`)."""
    force = used(pace.force, settings.contact.force_fraction, kept)
    inside = max(pace.pressure, settings.contact.pressure_margin)
    return replace(
        contact,
        friction=used(pace.friction, settings.contact.friction_fraction, kept) * contact.friction,
        max_force=force * contact.max_force,
        max_moment=force * contact.max_moment,
        points=shrunk(contact.points, max(inside + (1.0 - kept) * (settings.contact.pressure_margin - inside), 0.0)),
    )


def preloaded(forces: ForceUnknowns, preload: float) -> np.ndarray:
    """Return the unknowns with which each contact but a grip bears its preload (N), the same in all its points.

    All other forces come on top: of two forces within a cone the sum is within it, too.
    """
    unknowns = np.zeros(forces.size)
    for block in forces.blocks:
        if not block.is_grasp:
            normal = unknowns[block.place][2::3]
            normal += preload / len(normal)
    return unknowns
