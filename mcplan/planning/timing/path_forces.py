"""The forces that contacts and motors can give along a path within the margins of a pace.

They are eliminated once per point: what is left is a polygon of pairs (u, x), sdd and sd², or, of one given pair, the
part that is allowed (`mcplan.core.statics.section`). Joints between which and the base no contact stands are moved by
their motors alone: their limits are half-planes of (u, x) as they are, and no rows of the programs over forces.
"""

from dataclasses import replace

import numpy as np

from mcplan.core.rigid_body.tree import GRAVITY
from mcplan.core.statics import section
from mcplan.core.statics.program import Rays, StaticWork
from mcplan.optimize.path_program import PathProgram, law_basis
from mcplan.planning.timing.path_dynamics import PathDynamics
from mcplan.robot.robot import Robot
from mcplan.scene.contact import Contact
from mcplan.settings.margins import shrunk
from mcplan.settings.pace import Pace, used
from mcplan.settings.settings import ControlSettings
from mcplan.statics.contact_forces import ForceUnknowns
from mcplan.statics.static_program import StaticProgram

STRIDE = 8
"""Of the points of a path those so many apart are looked at first: where it cannot be gone, that is seen early."""

SPENT = "standing still takes all that contacts and joints have"

REASONS = {
    section.EMPTY: "no forces within the margins move the robot",
    section.FAILED: "a program of its forces was not solved",
    section.AT_REST: SPENT,
}


class RetimingError(Exception):
    """There is no law, and why."""


class PathForces:
    """What contacts and motors can give along a path where a part of the reserve is kept.

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
        self.of_contacts = ForceUnknowns(within, settings.friction_faces, self._unit)
        self.G = np.zeros((len(path.q), robot.nv, self.of_contacts.size))
        for block in self.of_contacts.blocks:
            self.G[:, :, block.place] = path.jacobians[block.contact.patch].transpose(0, 2, 1) @ block.map
        self.hold = path.hold - self.G @ preloaded(self.of_contacts, kept * settings.preload)
        self.limited = np.flatnonzero(np.isfinite(robot.limits.torque))
        share = min(pace.torque + (1.0 - kept) * (1.0 - pace.torque), 1.0)
        self.limit = share * robot.usable_torque[self.limited]
        self._loaded = np.asarray(self.G[:, 6 + self.limited].any(axis=(0, 2)))

    def polygons(self, program: PathProgram) -> tuple[np.ndarray, np.ndarray]:
        """Return half-planes (m, most, 3) of the polygons of (u, x), and how many each has (m,).

        Raises
        ------
        RetimingError
            With what is in the way, and where.
        """
        bounds = self._bounds(program)
        m, program_of = len(bounds), self._program(2)
        rows, counts = np.zeros((m, section.CORNERS + bounds.shape[1], 3)), np.zeros(m, np.int64)
        ways = np.stack([program.of_u, program.of_x], axis=1)
        order = np.concatenate([np.arange(first, m, STRIDE) for first in range(STRIDE)])
        end = section.along_path(
            *program_of, self._unit, *self._joints(self._loaded), self.hold, ways, self.G, program.x_max, program.u_max,
            bounds, order, rows, counts,
        )  # fmt: skip
        if end < m:
            raise RetimingError(f"{where(end)}, {REASONS[int(counts[end])]}")
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
            raise RetimingError(f"{where(end)}, {REASONS[int(part[end])]}")
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


def where(i: int) -> str:
    """Say where a point of the grid is."""
    return f"{100 * law_basis().s[i]:.0f} % along it"


def margined(contact: Contact, pace: Pace, settings: ControlSettings, kept: float) -> Contact:
    """Return a contact as motions may load it that keep a part of the reserve (see `TimeParameterization`)."""
    force = used(pace.force, settings.force_fraction, kept)
    inside = max(pace.pressure, settings.pressure_margin)
    return replace(
        contact,
        friction=used(pace.friction, settings.friction_fraction, kept) * contact.friction,
        max_force=force * contact.max_force,
        max_moment=force * contact.max_moment,
        points=shrunk(contact.points, max(inside + (1.0 - kept) * (settings.pressure_margin - inside), 0.0)),
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
