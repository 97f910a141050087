"""Time-optimal parameterization (TOPP) of segments, from rest to rest, within the margins of a pace.

The forces are eliminated once per point of a grid along the path. There remains a polygon of pairs (u, x), sdd and
sd² (`PathForces`), cut to the bounds of velocities and accelerations. The law is the quickest smooth one within all
polygons (`mcplan.core.optimize.least_time`). In the middle of the path it would reverse all forces at once, which
compliant contacts do not bear. So it is solved a second time, with a bound on the jerk of the centre of mass,
``|c'| |u'| sd``, sd being that of the first solution: with the bound no part of the path is passed faster. The
reference problem, with the forces as unknowns, is declared in `mcplan.optimize.path_program`.

Path and law divide the work: the curve q(s) begins and ends with q' = q'' = 0, so that any law with finite rates leads
from rest to rest without a jump of accelerations.
"""

from dataclasses import replace

import numpy as np

from mcplan.core.optimize import least_time as core
from mcplan.core.rigid_body.tree import GRAVITY
from mcplan.motion.time_parameterization import TimeParameterization
from mcplan.optimize.path_program import PIECES, PathProgram, law_basis
from mcplan.planning.timing.path_dynamics import (
    NO_RESERVE,
    PathDynamics,
    PathForces,
    RetimingError,
    grid_position,
    joint_speeds,
)
from mcplan.planning.timing.touchdown import touchdown_speed
from mcplan.planning.transition.transition import Segment
from mcplan.robot.robot import Robot
from mcplan.settings.control import ControlSettings

RESERVE_SHARES = (1.0, 2 / 3, 1 / 3, 0.0)
"""Parts of the reserve that are tried in turn: a posture that needs more than a pace uses is still to be left."""

CREEP_ACCELERATION = 0.5
"""m/s²: a segment that is gone with less acceleration, 4 L / T² where all mass goes as far as L, creeps: what it needs
to be held at all leaves little to move. Then less reserve is tried, as long as it is gone the quicker for it."""

MIN_ACCELERATION_SHARE = 0.25
"""Least part of the accelerations within all margins with which a segment is gone that keeps no reserve; otherwise that
part is the root of what is kept, so that speeds go with the fourth root."""

REFERENCE_TRAVEL_M = 0.05
"""m: travel of the whole mass of a robot of the size of HRP-2 from which on `MIN_FORCE_RAMPS` holds in full. Below it
the least time falls with the root of the travel, so that accelerations stay as large."""

MIN_FORCE_RAMPS = 4.0
"""Least time of such a segment, in ramps of a contact's force: forces build up, turn to brake the body, and vanish. In
less time compliant contacts bear much more than the reference forces."""

DURATION_ACCURACY = 1e-6
"""Of the duration."""

RESERVE_BETWEEN_NODES = 0.42
"""Part of the reserve that a law may use up in the middles between its nodes; its certificate allows half of it
in the middles of its times."""

MAX_ROUNDS = 3
"""Times that limits are lowered around points between nodes where they are exceeded."""

FULL_SHARE = 0.98
"""Share of the limits that counts as all of them; the rest slows the whole motion down."""

REST_SPEED = 1e-6
"""m/s: a centre of mass that is slower stands still."""

FORCE_RAMPS = "ramps of forces"
JERK = "jerk"
VELOCITY = "velocity"
TOUCHDOWN = "touchdown"
TORQUE_RATE = "torque rate"
"""Bounds of the rate of a path that do not come from forces: see `Retimer.rates`."""

TORQUE_RATE_SHARE = 2 / 3
"""Part of ``control.gains.torque_rate`` for the bends of a swing; its acceleration and feedback take some, too."""

GAUSS = np.polynomial.legendre.leggauss(4)
"""Nodes and weights by which the time between two points is integrated."""

MIN_DURATION_S = 1e-3
"""s: laws of segments that take less at their own speed are not looked for."""


class SlowerError(Exception):
    """A parameterization is no faster than the best so far."""


class Retimer:
    """Finds laws of segments.

    Parameters
    ----------
    robot, settings : the robot, and the usable shares of contacts; their pace is not ``slow``.
    """

    def __init__(self, robot: Robot, settings: ControlSettings):
        assert settings.pace is not None
        self.robot, self.settings, self.pace = robot, settings, settings.pace
        self.rise = settings.pace.weight * GRAVITY

    def time_parameterized(self, segment: Segment) -> Segment:
        """Return the segment with its time parameterization, or with the reason why there is none."""
        try:
            return replace(segment, law=self.law(segment), retiming_failure="")
        except RetimingError as reason:
            return replace(segment, law=None, retiming_failure=str(reason))

    def law(self, segment: Segment) -> TimeParameterization:
        """Return the law of a segment, with as much reserve as it can be gone with.

        Raises
        ------
        RetimingError
            With the reason, and where.
        """
        if segment.objects:
            raise RetimingError("objects move along")
        if not segment.contacts:
            raise RetimingError("nothing is in contact")
        if segment.duration < MIN_DURATION_S:
            raise RetimingError("it takes no time")
        path, middles = PathDynamics.pair(self.robot, segment)
        reason = ""
        quickest: TimeParameterization | None = None
        for kept in RESERVE_SHARES:
            most = np.inf if quickest is None else quickest.duration
            try:
                _, x, u, between = self._solve(path, middles, kept, most)
            except RetimingError as found:
                reason = str(found)
                continue
            except SlowerError:
                break
            share = min(_share(kept), between)
            law = _law(path.length, share * x, share * u, kept)
            if law.duration >= most:
                break
            quickest = law
            if 4.0 * path.travel >= CREEP_ACCELERATION * quickest.duration**2:
                break
        if quickest is None:
            raise RetimingError(reason)
        return quickest

    def program(self, segment: Segment, kept: float = 1.0) -> PathProgram:
        """Return the program whose optimum the law is, with a part of the reserve kept."""
        return self._solve(*PathDynamics.pair(self.robot, segment), kept)[0]

    def solve(self, segment: Segment, kept: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
        """Return x = sd² and u = sdd (m,) of the quickest law at the points of the grid.

        Raises
        ------
        RetimingError
            With the reason, and where.
        """
        return self._solve(*PathDynamics.pair(self.robot, segment), kept)[1:3]

    def _between(self, middles: PathDynamics, forces: PathForces, x: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Return by which part (m - 1,) of x and u = x' / 2 the law keeps half its reserve between nodes, too.

        Where it brakes or speeds up the middle of the time between two nodes is not that of the path: both count.
        Forces jump where a limb's path has a knot, so that even a small distance between them matters.
        """
        length = middles.length
        h = length * np.diff(law_basis().s)
        at, slope = x[:-1] + h * (0.75 * u[:-1] + 0.25 * u[1:]), 0.5 * (u[:-1] + u[1:])
        part = forces.reach(at, slope)
        law = _law(length, x, u)
        s, rate, change = np.array([law.at(t) for t in 0.5 * (law.times[:-1] + law.times[1:])]).T
        there = middles.at(self.robot, s / length)
        return np.minimum(part, self.forces(there, forces.kept).reach(rate**2, change))

    # -- parts ------------------------------------------------------------------------------------------------------

    def forces(self, path: PathDynamics, kept: float) -> PathForces:
        """Return the forces that contacts and motors may give along a path where a part of the reserve is kept."""
        return PathForces(self.robot, self.settings, path, kept)

    def program_at(self, path: PathDynamics, forces: PathForces) -> PathProgram:
        """Return the program along a path with the forces that may be given, its jerk not bounded."""
        pace, contacts = self.pace, forces.of_contacts
        F, upper = contacts.face_rows()
        x_max = np.min(list(self.rates(path, forces.kept).values()), axis=0) ** 2
        # at rest a jerk j has built up the acceleration j t after j t³ / 6 of the path
        start = np.cbrt(6.0 * pace.com_jerk**2 * path.from_end)
        return PathProgram(
            path.length, path.v, path.vd, forces.hold, path.of_u, path.of_x, forces.G, F, upper, contacts.equal,
            contacts.equal_to, forces.limited, forces.limit, x_max, 8.0 * x_max / path.length, pace.acceleration,
            path.height, self.rise, path.along, start, np.full(PIECES, np.inf), np.ones(len(path.q)),
        )  # fmt: skip

    def rates(self, path: PathDynamics, kept: float) -> dict[str, np.ndarray]:
        """Return the bounds of sd (m,) that forces have no part in, by what sets them.

        Of the jerk along a path, ``q''' sd³ + 3 q'' sd sdd + q' sddd``, the first term is what counts where it begins
        and ends: there q' and q'' vanish, and any rate would be rest. So do torques of limbs in the air change where a
        path is bent, by ``of_x' sd³``.
        """
        robot, pace = self.robot, self.pace
        part = path.travel / (robot.scale.leg * REFERENCE_TRAVEL_M)
        least = MIN_FORCE_RAMPS * pace.ramp * np.sqrt(np.clip(part, MIN_DURATION_S, 1.0))
        touch = [pace.touchdown_speed] * len(path.arriving) + [
            touchdown_speed(robot, path.end, path.contacts, contact, pace, pace.touchdown_speed, kept)
            for contact in path.arriving
        ]
        found = {} if path.passes else {FORCE_RAMPS: np.full(len(path.v), path.length / least)}
        found[JERK] = np.cbrt(pace.jerk / path.third)
        if self.settings.gains.torque_rate > 0.0:
            found[TORQUE_RATE] = np.cbrt(TORQUE_RATE_SHARE * self.settings.gains.torque_rate / path.swung)
        limit = joint_speeds(robot, pace.velocity)
        for what, speeds, most in ((VELOCITY, path.joints, limit), (TOUCHDOWN, path.closing, np.array(touch))):
            if speeds.shape[1]:
                with np.errstate(divide="ignore"):
                    found[what] = (most / speeds).min(axis=1)
        return found

    def _solve(
        self, path: PathDynamics, middles: PathDynamics, kept: float, most: float = np.inf
    ) -> tuple[PathProgram, np.ndarray, np.ndarray, float]:
        """Return the program with the bound of the jerk, x and u (m,) of its law, and which part of it is to be taken.

        Where limits are not kept between two nodes less of them is used in both.

        Raises
        ------
        SlowerError
            As soon as it is clear that the law takes ``most`` (s) or longer.
        """

        def look(time: float) -> None:
            if time >= most * np.sqrt(_share(kept)):
                raise SlowerError

        forces = self.forces(path, kept)
        program = self.program_at(path, forces)
        look(path.length * float(law_basis().weights @ program.x_max**-0.5))
        rows, counts = forces.polygons(program)
        x, u = self._quickest(program, rows, counts)
        look(float(_times(path.length, x, u)[-1]))
        speed = path.speed * np.sqrt(x)
        middle = law_basis().middle
        around = np.max([speed[middle - 1], speed[middle], speed[middle + 1]], axis=0)
        program = replace(program, bend=self.pace.com_jerk / np.maximum(around, REST_SPEED))
        bend = np.diff(u)[middle - 1] / (program.length * np.diff(law_basis().s)[middle - 1])
        if (np.abs(bend) > program.bend).any():
            x, u = self._quickest(program, rows, counts)
        between = self.forces(middles, kept - RESERVE_BETWEEN_NODES)
        part = self._between(middles, between, x, u)
        for _ in range(MAX_ROUNDS):
            look(float(_times(path.length, x, u)[-1]))
            if part.min() >= FULL_SHARE:
                break
            less = np.minimum(np.append(part, 1.0), np.append(1.0, part))
            program = replace(program, part=program.part * less)
            rows[:, :, 2] *= less[:, None]
            x, u = self._quickest(program, rows, counts)
            part = self._between(middles, between, x, u)
        return program, x, u, float(part.min())

    def _quickest(self, program: PathProgram, rows: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return x and u (m,) of the quickest law within half-planes (m, most, 3) of (u, x)."""
        basis = law_basis()
        with np.errstate(divide="ignore", invalid="ignore"):
            along_x = np.where(rows[:, :, 1] > 0.0, rows[:, :, 2] / rows[:, :, 1], np.inf)
        n, slowest = basis.size, along_x.min(axis=1)
        if not slowest.min() > 0.0:
            raise RetimingError(f"{grid_position(int(slowest.argmin()))}, {NO_RESERVE}")
        c, u_rows = np.full(n, 0.5 * float(slowest.min())), basis.u / program.length
        # to the kernel, the bounds of u' are those of one more u at points that take no time
        (bent,) = np.nonzero(np.isfinite(program.bend))
        at, bounds = basis.middle[bent], np.zeros((len(bent), *rows.shape[1:]))
        bounds[:, 0, 0], bounds[:, 1, 0], bounds[:, :2, 2] = 1.0, -1.0, program.bend[bent, None]
        scratch = np.zeros((4, n))
        status = core.solve(
            np.vstack([basis.x, basis.x[at]]), np.vstack([u_rows, basis.bend[bent] / program.length**2]),
            np.append(basis.start, basis.start[at]), program.length * np.append(basis.weights, np.zeros(len(bent))),
            np.concatenate([rows, bounds]), np.append(counts, np.full(len(bent), 2)), DURATION_ACCURACY, c,
            *scratch[:3], np.zeros((n, n)),
        )  # fmt: skip
        if status == core.OUTSIDE:
            raise RetimingError(NO_RESERVE)
        if status != core.OPTIMAL:
            raise RetimingError("the program of the law did not converge")
        picked = c[basis.start[:, None] + np.arange(3)]
        return (basis.x * picked).sum(axis=1), (u_rows * picked).sum(axis=1)


def _share(kept: float) -> float:
    """Return the share of x and u that is used: a posture that needs reserve to be held is left slowly."""
    return max(float(np.sqrt(kept)), MIN_ACCELERATION_SHARE)


def _times(length: float, x: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Return when (m,) a law whose squared rates are x (m,), quadratic between the points of the grid, is there."""
    h = length * np.diff(law_basis().s)[:, None]
    r = 0.5 * (GAUSS[0] + 1.0)
    # x(s) is a parabola on every interval: x_i + 2 h u_i r + h (u_i+1 - u_i) r²
    values = x[:-1, None] + 2.0 * h * u[:-1, None] * r + h * np.diff(u)[:, None] * r * r
    return np.concatenate([[0.0], np.cumsum((0.5 * h * GAUSS[1] / np.sqrt(values)).sum(axis=1))])


def _law(length: float, x: np.ndarray, u: np.ndarray, kept: float = 1.0) -> TimeParameterization:
    """Return the law whose squared rates at the points of the grid are x (m,), quadratic between them."""
    return TimeParameterization(_times(length, x, u), length * law_basis().s, np.sqrt(x), u, kept)
