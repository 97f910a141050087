"""Durations of body motions: within speed limits and the accelerations that contacts bear.

A minimum-jerk shift of the centre of mass by D keeps the centre of pressure within ``m`` of its straight path when

    T >= sqrt(5.8 D / m) / w,   w² = g / z

as its largest acceleration is 5.8 D / T²; z is the height of the centre of mass above the lowest contact point. Along
knots this holds at every sample; there the horizontal acceleration and the whole wrench that moves the robot, moments
of its limbs included, are within what contacts bear.
"""

from collections.abc import Sequence

import numpy as np

from mcplan.core.rigid_body.tree import GRAVITY
from mcplan.motion.pendulum import frequency
from mcplan.motion.posture import PostureTrajectory
from mcplan.motion.spline import PostureSpline, Spline
from mcplan.planning.timing.path_dynamics import joint_speeds
from mcplan.planning.transition.knot_search import KnotFinder
from mcplan.planning.transition.transition import Segment
from mcplan.robot.robot import Robot
from mcplan.scene.contact import Contact
from mcplan.settings.control import ControlSettings
from mcplan.settings.margins import counted_on
from mcplan.statics.equilibrium import equilibrium_margin
from mcplan.statics.feasibility import GRAVITY_ALONE, Shortfall, can_hold, part_exerted, shortfall

JOINT_SPEED_FRACTION = 0.4
"""Largest speed of a joint's reference as a fraction of its limit."""

CHECKS_PER_PIECE = 3
"""Times between two knots at which speeds and accelerations are looked at."""

COM_ROOM_SHARE = 0.6
"""Share of the room of the centre of mass that its acceleration may take."""

MIN_COM_ROOM_M = 0.004
"""m: least room that is assumed."""

TORQUE_SHARES = (0.8, 0.9, 1.0)
"""Shares of the torque limits, tried in turn: the first that holds both ends is to hold the whole motion."""

MARGIN_SHARE = 0.7
"""Share of the lesser balance margin of both ends that is kept along the motion."""

BALANCE_CHECKS = 8
"""Intervals of a motion at whose ends balance and torques are checked."""

OVERLOAD_CHECK_FACTOR = 4
"""Refinement of these intervals to find what overloads a motion that is not held."""

BORNE_SHARE = 0.8
"""Share of what contacts bear that a motion may use."""

MIN_ACCELERATION = 0.1
"""m/s²: least horizontal acceleration that contacts are assumed to bear."""

MIN_WRENCH_SHARE = 0.05
"""Least share of a wrench that contacts are assumed to exert."""

WRENCH_CHECKS = 3
"""Points of a motion, those of the largest wrenches, where the wrench is checked."""

MOMENT_LEVER_M = 0.1
"""m: lever by which moments count as forces to find them."""


class DurationModel:
    """Durations of motions of one robot.

    Parameters
    ----------
    robot, settings : speeds and their limits, usable shares of contacts.
    finder : knows the room of a centre of mass.
    """

    def __init__(self, robot: Robot, settings: ControlSettings, finder: KnotFinder):
        self.robot, self.settings, self.finder = robot, settings, finder
        self.rates = np.minimum(joint_speeds(robot, JOINT_SPEED_FRACTION), settings.timing.joint_speed)

    def straight(self, q0: np.ndarray, q1: np.ndarray, contacts: Sequence[Contact]) -> float:
        """Return the time (s) that centre of mass, trunk and joints need from q0 to q1 (nq,), straight.

        The centre of mass speeds up at the start and slows down at the end: no more than a part of the room that the
        contacts leave it there is used.
        """
        s, robot = self.settings, self.robot
        com, target = robot.com(q0), robot.com(q1)
        D, w = float(np.linalg.norm((target - com)[:2])), frequency(com, contacts, robot.scale.leg)
        room = min(self.room(contacts, place) for place in (com, target))
        shift = np.sqrt(5.8 * D / room) / w
        rise = 15 / 8 * float(np.linalg.norm(target - com)) / s.timing.com_speed
        turn = 15 / 8 * PostureTrajectory(q0, q1, 1.0).base.angle / s.timing.trunk_speed
        joints = 15 / 8 * float(np.max(np.abs(q1[7:] - q0[7:]) / self.rates, initial=0.0))
        return max(s.timing.min_shift_duration, shift, rise, turn, joints)

    def room(self, contacts: Sequence[Contact], com: np.ndarray) -> float:
        """Return how far the centre of pressure may be off a centre of mass (3,) that moves on contacts (m)."""
        least = self.robot.scale.sole * MIN_COM_ROOM_M
        return min(max(COM_ROOM_SHARE * self.finder.room(contacts, com), least), self.settings.contact.cop_margin)

    def bears(self, q: np.ndarray, contacts: Sequence[Contact]) -> tuple[np.ndarray, bool]:
        """Return the horizontal acceleration that contacts bear at postures (k, nq) along a motion: (k,), m/s².

        They bear it in every direction, with what the controller counts on of them. Also whether they hold the
        robot, at rest, all along about as easily as at the ends: between two stances that are proven, a detour may need
        torques, or forces of grips, that neither of them does.
        """
        if not contacts:
            return np.full(len(q), np.inf), True
        robot, counted = self.robot, [counted_on(contact, self.settings) for contact in contacts]
        bears = np.zeros(len(q))
        for k, here in enumerate(q):
            bears[k] = equilibrium_margin(robot.com(here), counted, robot.mass) / robot.mass
        if bears.min() < MARGIN_SHARE * min(bears[0], bears[-1]):
            return bears, False
        ends = q[0], q[-1]
        share = next(
            (share for share in TORQUE_SHARES if all(can_hold(robot, here, counted, share) for here in ends)), None
        )
        if share is None:  # what the ends do not keep cannot be asked of the motion
            return bears, True
        for here in q[1:-1]:
            if not can_hold(robot, here, counted, share):
                return bears, False
        return bears, True

    def overload(self, segment: Segment) -> Shortfall | None:
        """Return the shortfall of contacts or torques along a segment that is not held, None where there is none.

        Then all of the torques count, and what the controller counts on of contacts.
        """
        if segment.held:
            return None
        counted = [counted_on(contact, self.settings) for contact in segment.contacts]
        looked = (
            segment.posture.sample(t).q
            for t in np.linspace(0.0, segment.duration, OVERLOAD_CHECK_FACTOR * BALANCE_CHECKS + 1)
        )
        return next(filter(None, (shortfall(self.robot, q, counted) for q in looked)), None)

    def stretch(self, com: Spline, posture: PostureSpline, contacts: Sequence[Contact], bears: np.ndarray) -> float:
        """Return the factor on its duration that keeps a motion within speeds and accelerations; 1 at least.

        Speeds sink with the time, accelerations with its square. So do the forces and moments that it takes beyond the
        weight: those of limbs count there, too.

        Parameters
        ----------
        bears : (k,) what contacts bear at equal parts of the motion (m/s²).
        """
        s, times = self.settings, com.times
        looked = np.linspace(times[0], times[-1], CHECKS_PER_PIECE * (len(times) - 1), endpoint=False)[1:]
        q, v, vd = (np.array(column) for column in zip(*map(posture.sample, looked), strict=True))
        place, velocity, bend = (np.array(column) for column in zip(*map(com.sample, looked.tolist()), strict=True))
        speed = max(
            1.0,
            float(np.linalg.norm(velocity, axis=1).max()) / s.timing.com_speed,
            float(np.linalg.norm(v[:, 3:6], axis=1).max()) / s.timing.trunk_speed,
            float(np.max(np.abs(v[:, 6:]) / self.rates, initial=0.0)),
        )
        a = np.hypot(bend[:, 0], bend[:, 1])
        borne = BORNE_SHARE * np.interp(looked, np.linspace(times[0], times[-1], len(bears)), bears)
        size = self.robot.scale.leg
        reach = [frequency(c, contacts, size) ** 2 * self.room(contacts, c) for c in place]
        taken = float(np.max(a / np.minimum(reach, np.maximum(borne, MIN_ACCELERATION))))
        return max(speed, float(np.sqrt(max(taken, self._taken(q, self.robot.inverse_dynamics(q, v, vd), contacts)))))

    def _taken(self, q: np.ndarray, force: np.ndarray, contacts: Sequence[Contact]) -> float:
        """Return the wrench of a motion beyond the weight, as a share of what contacts give: the greatest along it.

        Parameters
        ----------
        q, force : (m, nq), (m, nv) postures, and the generalised forces that move the robot through them.
        """
        robot = self.robot
        if robot.fixed or not contacts:
            return 0.0
        com, weight = robot.com(q), robot.mass * GRAVITY * GRAVITY_ALONE
        wrench = force[:, :6].copy()
        wrench[:, 3:] += np.cross(q[:, :3] - com, wrench[:, :3])
        wrench -= weight
        as_force = np.append(np.ones(3), np.full(3, 1.0 / (robot.scale.sole * MOMENT_LEVER_M)))
        most = np.argsort(np.linalg.norm(as_force * wrench, axis=1))[-WRENCH_CHECKS:]
        counted = [counted_on(contact, self.settings) for contact in contacts]
        parts = [part_exerted(com[k], weight, wrench[k], counted, robot.mass, 1.0 / BORNE_SHARE) for k in most]
        return 1.0 / (BORNE_SHARE * max(min(parts), MIN_WRENCH_SHARE))
