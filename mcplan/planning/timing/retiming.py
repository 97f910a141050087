"""Time-optimal path parameterization (TOPP) of segments, from rest to rest, within the margins of a pace.

A parameterization s(t) is given by ``x = sd²`` and ``u = sdd`` on a grid along the path. At each grid point the contact
forces are eliminated. The result is a polygon of feasible (u, x), see `PathForces`, intersected with the bounds of
velocity and acceleration. The solution is the fastest smooth parameterization within all polygons
(`mcplan.core.optimize.least_time`).

This solution switches from acceleration to braking in the middle of the path: all forces reverse at once, too fast for
compliant contacts. Therefore the problem is solved again with a bound on the jerk of the centre of mass c,
``|c'| |u'| sd``, where sd is taken from the first solution and the prime is the derivative by s. This is safe, because
the bound makes no part of the path faster. `mcplan.optimize.path_program` declares the reference problem, with the
forces as unknowns.

The curve q(s) begins and ends with q' = q'' = 0. So every parameterization with finite rates leads from rest to rest
with continuous accelerations.

The limits of a pace are tighter than those of the controller; the difference is a reserve. ``reserve`` is the share of
it that a motion keeps (``kept`` of `TimeParameterization`): 1 means the limits of the pace, 0 those of the controller.
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
"""Shares of the reserve to keep, tried in turn; at some postures static equilibrium needs more than the pace allows."""

CREEP_ACCELERATION = 0.5
"""A segment is too slow if its mean acceleration, 4 L / T² for the travel L of the mass in the time T, is below this
(m/s²): static equilibrium leaves little force for the motion. Then less reserve is tried, as long as that is faster."""

MIN_ACCELERATION_SHARE = 0.25
"""Lower bound of the share of the fastest accelerations that a motion uses. The share is the square root of the reserve
kept, so that speeds scale with its fourth root. A motion without reserve uses the lower bound."""

REFERENCE_TRAVEL_M = 0.05
"""Travel of the mass, for HRP-2, above which `MIN_FORCE_RAMPS` applies. For shorter travel the minimum time decreases
with the square root of the travel, which leaves the accelerations the same."""

MIN_FORCE_RAMPS = 4.0
"""Minimum duration of a segment, as a multiple of the duration of a contact's force ramp: forces increase, reverse to
brake the body, and vanish. In a shorter time the forces of compliant contacts greatly exceed the reference forces."""

DURATION_ACCURACY = 1e-6
"""Relative accuracy of the duration."""

RESERVE_BETWEEN_NODES = 0.42
"""Share of the reserve that a motion may use midway between its nodes; the certificate allows half of the reserve
midway in time."""

MAX_ROUNDS = 3
"""Maximum number of times that limits are lowered because they are exceeded between nodes."""

FULL_SHARE = 0.98
"""A larger feasible share of x and u between nodes ends these rounds; the whole motion is slowed down by it."""

REST_SPEED = 1e-6
"""Lower bound of the speed of the centre of mass (m/s) as a divisor."""

FORCE_RAMPS = "ramps of forces"
JERK = "jerk"
VELOCITY = "velocity"
TOUCHDOWN = "touchdown"
TORQUE_RATE = "torque rate"
"""Names of the bounds of sd that do not come from contact forces, see `Retimer.rates`."""

TORQUE_RATE_SHARE = 2 / 3
"""Share of ``control.gains.torque_rate`` for the curvature of swing paths; acceleration and feedback use the rest."""

GAUSS = np.polynomial.legendre.leggauss(4)
"""Gauss-Legendre nodes and weights for the time between two grid points."""

MIN_DURATION_S = 1e-3
"""Segments with a shorter duration keep their nominal timing."""


class SlowerError(Exception):
    """A parameterization is no faster than the best so far."""


class Retimer:
    """Time-optimal parameterization of segments.

    Parameters
    ----------
    robot, settings : the robot, and settings with a pace other than ``slow``.
    """

    def __init__(self, robot: Robot, settings: ControlSettings):
        assert settings.pace is not None
        self.robot, self.settings, self.pace = robot, settings, settings.pace
        self.rise = settings.pace.weight * GRAVITY

    def time_parameterized(self, segment: Segment) -> Segment:
        """Return the segment with its time parameterization, or with the reason why there is none."""
        try:
            return replace(segment, law=self.timing(segment), retiming_failure="")
        except RetimingError as reason:
            return replace(segment, law=None, retiming_failure=str(reason))

    def timing(self, segment: Segment) -> TimeParameterization:
        """Return the timing of a segment with the largest reserve that makes it feasible and not too slow.

        Raises
        ------
        RetimingError
            There is no timing; the message has the reason and the position on the path.
        """
        if segment.objects:
            raise RetimingError("objects move along")
        if not segment.contacts:
            raise RetimingError("nothing is in contact")
        if segment.duration < MIN_DURATION_S:
            raise RetimingError("it takes no time")
        path, middles = PathDynamics.pair(self.robot, segment)
        reason = ""
        fastest: TimeParameterization | None = None
        for reserve in RESERVE_SHARES:
            max_duration = np.inf if fastest is None else fastest.duration
            try:
                _, x, u, between = self._solve(path, middles, reserve, max_duration)
            except RetimingError as error:
                reason = str(error)
                continue
            except SlowerError:
                break
            share = min(_slowdown(reserve), between)
            timing = _timing(path.length, share * x, share * u, reserve)
            if timing.duration >= max_duration:
                break
            fastest = timing
            if 4.0 * path.travel >= CREEP_ACCELERATION * fastest.duration**2:
                break
        if fastest is None:
            raise RetimingError(reason)
        return fastest

    def program(self, segment: Segment, reserve: float = 1.0) -> PathProgram:
        """Return the program whose optimum is the timing that keeps a share of the reserve."""
        return self._solve(*PathDynamics.pair(self.robot, segment), reserve)[0]

    def solve(self, segment: Segment, reserve: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
        """Return x = sd² and u = sdd (m,) of the fastest timing at the grid points.

        Raises
        ------
        RetimingError
            There is no timing; the message has the reason and the position on the path.
        """
        return self._solve(*PathDynamics.pair(self.robot, segment), reserve)[1:3]

    def _feasible_share(self, middles: PathDynamics, forces: PathForces, x: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Return the feasible factor (m - 1,) on x and u between the nodes, with the limits ``forces``.

        Two points per interval are checked, midway along the path and midway in time; they differ while the timing
        accelerates or brakes. Forces jump at the knots of a limb's path, so even a small difference matters.
        """
        length = middles.length
        h = length * np.diff(law_basis().s)
        x_middle, u_middle = x[:-1] + h * (0.75 * u[:-1] + 0.25 * u[1:]), 0.5 * (u[:-1] + u[1:])
        share = forces.reach(x_middle, u_middle)
        timing = _timing(length, x, u)
        s, rate, change = np.array([timing.at(t) for t in 0.5 * (timing.times[:-1] + timing.times[1:])]).T
        time_middles = middles.at(self.robot, s / length)
        return np.minimum(share, self.forces(time_middles, forces.reserve).reach(rate**2, change))

    # -- parts ------------------------------------------------------------------------------------------------------

    def forces(self, path: PathDynamics, reserve: float) -> PathForces:
        """Return the limits of contact forces and torques along a path that keep a share of the reserve."""
        return PathForces(self.robot, self.settings, path, reserve)

    def program_at(self, path: PathDynamics, forces: PathForces) -> PathProgram:
        """Return the program along a path with these force limits, without a bound on the jerk."""
        pace, contacts = self.pace, forces.of_contacts
        F, upper = contacts.face_rows()
        x_max = np.min(list(self.rates(path, forces.reserve).values()), axis=0) ** 2
        # from rest, the constant jerk j leads to the acceleration j t after the distance j t³ / 6
        start = np.cbrt(6.0 * pace.com_jerk**2 * path.from_end)
        return PathProgram(
            path.length, path.v, path.vd, forces.hold, path.of_u, path.of_x, forces.G, F, upper, contacts.equal,
            contacts.equal_to, forces.limited, forces.limit, x_max, 8.0 * x_max / path.length, pace.acceleration,
            path.height, self.rise, path.along, start, np.full(PIECES, np.inf), np.ones(len(path.q)),
        )  # fmt: skip

    def rates(self, path: PathDynamics, reserve: float) -> dict[str, np.ndarray]:
        """Return the bounds of sd (m,) that do not come from contact forces, by name.

        The jerk along a path is ``q''' sd³ + 3 q'' sd sdd + q' sddd``. At its ends q' and q'' vanish, so the first term
        limits sd. Likewise, on a curved path the torques of swing limbs change at the rate ``of_x' sd³``.
        """
        robot, pace = self.robot, self.pace
        travel_share = path.travel / (robot.scale.leg * REFERENCE_TRAVEL_M)
        min_time = MIN_FORCE_RAMPS * pace.ramp * np.sqrt(np.clip(travel_share, MIN_DURATION_S, 1.0))
        touchdown_speeds = [pace.touchdown_speed] * len(path.arriving) + [
            touchdown_speed(robot, path.end, path.contacts, contact, pace, pace.touchdown_speed, reserve)
            for contact in path.arriving
        ]
        bounds = {} if path.passes else {FORCE_RAMPS: np.full(len(path.v), path.length / min_time)}
        bounds[JERK] = np.cbrt(pace.jerk / path.third)
        if self.settings.gains.torque_rate > 0.0:
            bounds[TORQUE_RATE] = np.cbrt(TORQUE_RATE_SHARE * self.settings.gains.torque_rate / path.torque_change)
        max_speeds = joint_speeds(robot, pace.velocity)
        for name, speeds, limits in (
            (VELOCITY, path.joints, max_speeds),
            (TOUCHDOWN, path.closing, np.array(touchdown_speeds)),
        ):
            if speeds.shape[1]:
                with np.errstate(divide="ignore"):
                    bounds[name] = (limits / speeds).min(axis=1)
        return bounds

    def _solve(
        self, path: PathDynamics, middles: PathDynamics, reserve: float, max_duration: float = np.inf
    ) -> tuple[PathProgram, np.ndarray, np.ndarray, float]:
        """Return the program with its bound on the jerk, x and u (m,) of the timing, and the feasible factor on both.

        If limits are violated between two nodes, the limits at both nodes are lowered.

        Raises
        ------
        SlowerError
            A lower bound of the duration has reached ``max_duration`` (s).
        """

        def check_duration(time: float) -> None:
            if time >= max_duration * np.sqrt(_slowdown(reserve)):
                raise SlowerError

        forces = self.forces(path, reserve)
        program = self.program_at(path, forces)
        check_duration(path.length * float(law_basis().weights @ program.x_max**-0.5))
        rows, counts = forces.polygons(program)
        x, u = self._fastest(program, rows, counts)
        check_duration(float(_times(path.length, x, u)[-1]))
        speed = path.speed * np.sqrt(x)
        middle = law_basis().middle
        max_speed = np.max([speed[middle - 1], speed[middle], speed[middle + 1]], axis=0)
        program = replace(program, bend=self.pace.com_jerk / np.maximum(max_speed, REST_SPEED))
        bend = np.diff(u)[middle - 1] / (program.length * np.diff(law_basis().s)[middle - 1])
        if (np.abs(bend) > program.bend).any():
            x, u = self._fastest(program, rows, counts)
        middle_forces = self.forces(middles, reserve - RESERVE_BETWEEN_NODES)
        share = self._feasible_share(middles, middle_forces, x, u)
        for _ in range(MAX_ROUNDS):
            check_duration(float(_times(path.length, x, u)[-1]))
            if share.min() >= FULL_SHARE:
                break
            factor = np.minimum(np.append(share, 1.0), np.append(1.0, share))
            program = replace(program, part=program.part * factor)
            rows[:, :, 2] *= factor[:, None]
            x, u = self._fastest(program, rows, counts)
            share = self._feasible_share(middles, middle_forces, x, u)
        return program, x, u, float(share.min())

    def _fastest(self, program: PathProgram, rows: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return x and u (m,) of the fastest timing within half-planes (m, most, 3) of (u, x), and the bounds of u'."""
        basis = law_basis()
        with np.errstate(divide="ignore", invalid="ignore"):
            max_x = np.where(rows[:, :, 1] > 0.0, rows[:, :, 2] / rows[:, :, 1], np.inf)
        n, min_x = basis.size, max_x.min(axis=1)
        if not min_x.min() > 0.0:
            raise RetimingError(f"{grid_position(int(min_x.argmin()))}, {NO_RESERVE}")
        c, u_rows = np.full(n, 0.5 * float(min_x.min())), basis.u / program.length
        # the kernel has bounds of u only; a bound of u' is one on an additional u, at a grid point of zero duration
        (bounded,) = np.nonzero(np.isfinite(program.bend))
        at, bounds = basis.middle[bounded], np.zeros((len(bounded), *rows.shape[1:]))
        bounds[:, 0, 0], bounds[:, 1, 0], bounds[:, :2, 2] = 1.0, -1.0, program.bend[bounded, None]
        scratch = np.zeros((4, n))
        status = core.minimise_time(
            np.vstack([basis.x, basis.x[at]]), np.vstack([u_rows, basis.bend[bounded] / program.length**2]),
            np.append(basis.start, basis.start[at]), program.length * np.append(basis.weights, np.zeros(len(bounded))),
            np.concatenate([rows, bounds]), np.append(counts, np.full(len(bounded), 2)), DURATION_ACCURACY, c,
            *scratch[:3], np.zeros((n, n)),
        )  # fmt: skip
        if status == core.OUTSIDE:
            raise RetimingError(NO_RESERVE)
        if status != core.OPTIMAL:
            raise RetimingError("the program of the time parameterization did not converge")
        coefficients = c[basis.start[:, None] + np.arange(3)]
        return (basis.x * coefficients).sum(axis=1), (u_rows * coefficients).sum(axis=1)


def _slowdown(reserve: float) -> float:
    """Return the factor on x and u of the fastest timing; a motion that keeps less reserve is slower."""
    return max(float(np.sqrt(reserve)), MIN_ACCELERATION_SHARE)


def _times(length: float, x: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Return the times (m,) of the grid points for squared rates x (m,), quadratic between the points."""
    h = length * np.diff(law_basis().s)[:, None]
    r = 0.5 * (GAUSS[0] + 1.0)
    # x(s) is a parabola on every interval: x_i + 2 h u_i r + h (u_i+1 - u_i) r²
    values = x[:-1, None] + 2.0 * h * u[:-1, None] * r + h * np.diff(u)[:, None] * r * r
    return np.concatenate([[0.0], np.cumsum((0.5 * h * GAUSS[1] / np.sqrt(values)).sum(axis=1))])


def _timing(length: float, x: np.ndarray, u: np.ndarray, reserve: float = 1.0) -> TimeParameterization:
    """Return the timing with squared rates x (m,) at the grid points, quadratic between them."""
    return TimeParameterization(_times(length, x, u), length * law_basis().s, np.sqrt(x), u, reserve)
