"""Durations of body motions within speed limits and within the accelerations that the contact forces allow.

A minimum-jerk shift of the centre of mass by D keeps the centre of pressure within ``m`` of its straight path when

    T >= sqrt(5.8 D / m) / w,   w² = g / z

since its largest acceleration is 5.8 D / T². Here z is the height of the centre of mass above the lowest contact point.
On a path through knots the bound is applied at every sample. In addition the contacts must be able to exert the
horizontal acceleration and the whole wrench of the motion, including the moments of moving limbs.
"""

from collections.abc import Sequence

import numpy as np

from mcplan.core.rigid_body.tree import GRAVITY
from mcplan.motion.pendulum import frequency
from mcplan.motion.rotation import rotation_vector
from mcplan.motion.spline import PostureSpline, Spline
from mcplan.planning.timing.path_dynamics import joint_speeds
from mcplan.planning.transition.knot_search import KnotFinder
from mcplan.planning.transition.transition import Segment
from mcplan.robot.pose import base_rotation
from mcplan.robot.robot import Robot
from mcplan.scene.contact import Contact
from mcplan.settings.control import ControlSettings
from mcplan.settings.margins import with_control_margins
from mcplan.statics.equilibrium import equilibrium_margin
from mcplan.statics.feasibility import GRAVITY_ALONE, Shortfall, can_hold, exertable_share, shortfall

JOINT_SPEED_FRACTION = 0.4
"""Largest speed of a joint's reference as a fraction of its limit."""

CHECKS_PER_PIECE = 3
"""Samples per knot interval for checks of speed and acceleration."""

COM_INSET_SHARE = 0.6
"""Usable share of the distance from the centre of mass to the edge of the support region."""

MIN_COM_INSET_M = 0.004
"""m: lower bound of the usable distance."""

TORQUE_SHARES = (0.8, 0.9, 1.0)
"""Shares of the torque limits, in ascending order. The first that suffices at both ends must suffice in between."""

MARGIN_SHARE = 0.7
"""Minimum equilibrium margin along a motion, as a share of the lesser margin of its ends."""

BALANCE_CHECKS = 8
"""Number of equal intervals of a motion at whose ends balance and torques are checked."""

OVERLOAD_CHECK_FACTOR = 4
"""Subdivision of these intervals in the diagnosis of a motion without static equilibrium."""

CONTACT_FORCE_SHARE = 0.8
"""Usable share of the acceleration and wrench that contacts allow."""

MIN_ACCELERATION = 0.1
"""m/s²: lower bound of the horizontal acceleration that contacts allow."""

MIN_WRENCH_SHARE = 0.05
"""Lower bound of the share of a wrench that contacts can exert."""

WRENCH_CHECKS = 3
"""Number of samples, those with the largest wrenches, at which the wrench is checked."""

MOMENT_LEVER_M = 0.1
"""m: lever arm that converts moments to forces in the comparison of wrenches."""


class DurationModel:
    """Durations of the body motions of one robot.

    Parameters
    ----------
    robot, settings : speed limits, and usable shares of contact forces.
    finder : gives the distance from the centre of mass to the edge of the support region.
    """

    def __init__(self, robot: Robot, settings: ControlSettings, finder: KnotFinder):
        self.robot, self.settings, self.finder = robot, settings, finder
        self.rates = np.minimum(joint_speeds(robot, JOINT_SPEED_FRACTION), settings.timing.joint_speed)

    def straight(self, q0: np.ndarray, q1: np.ndarray, contacts: Sequence[Contact]) -> float:
        """Return the duration (s) of a straight motion from q0 to q1 (nq,) by the limits of its speeds and balance.

        The centre of mass accelerates at the start and brakes at the end. So the distance to the edge of the support
        region counts at both ends.
        """
        s, robot = self.settings, self.robot
        com, target = robot.com(q0), robot.com(q1)
        D, w = float(np.linalg.norm((target - com)[:2])), frequency(com, contacts, robot.scale.leg)
        distance = min(self.cop_distance(contacts, place) for place in (com, target))
        shift = np.sqrt(5.8 * D / distance) / w
        rise = 15 / 8 * float(np.linalg.norm(target - com)) / s.timing.com_speed
        angle = float(np.linalg.norm(rotation_vector(base_rotation(q1) @ base_rotation(q0).T)))
        turn = 15 / 8 * angle / s.timing.trunk_speed
        joints = 15 / 8 * float(np.max(np.abs(q1[7:] - q0[7:]) / self.rates, initial=0.0))
        return max(s.timing.min_shift_duration, shift, rise, turn, joints)

    def cop_distance(self, contacts: Sequence[Contact], com: np.ndarray) -> float:
        """Return the allowed horizontal distance (m) of the centre of pressure from a centre of mass (3,)."""
        smallest = self.robot.scale.sole * MIN_COM_INSET_M
        return min(
            max(COM_INSET_SHARE * self.finder.com_inset(contacts, com), smallest), self.settings.contact.cop_margin
        )

    def allowed_accelerations(self, q: np.ndarray, contacts: Sequence[Contact]) -> tuple[np.ndarray, bool]:
        """Return the horizontal accelerations (k,), m/s², that contacts allow at postures (k, nq); whether they hold.

        The acceleration is possible in every direction, with the friction and forces that the controller relies
        on. Contacts hold if the robot is in static equilibrium all along, with a margin and torques similar to those at
        the ends: between two feasible stances a detour may need larger torques or grip forces than both.
        """
        if not contacts:
            return np.full(len(q), np.inf), True
        robot, reduced = self.robot, [with_control_margins(contact, self.settings) for contact in contacts]
        accelerations = np.zeros(len(q))
        for k, here in enumerate(q):
            accelerations[k] = equilibrium_margin(robot.com(here), reduced, robot.mass) / robot.mass
        if accelerations.min() < MARGIN_SHARE * min(accelerations[0], accelerations[-1]):
            return accelerations, False
        ends = q[0], q[-1]
        share = next(
            (share for share in TORQUE_SHARES if all(can_hold(robot, here, reduced, share) for here in ends)), None
        )
        if share is None:  # the ends exceed the torque limits themselves: torques are not checked in between
            return accelerations, True
        for here in q[1:-1]:
            if not can_hold(robot, here, reduced, share):
                return accelerations, False
        return accelerations, True

    def overload(self, segment: Segment) -> Shortfall | None:
        """Return the first violation of static equilibrium along a segment without ``held``, or None.

        It uses the full torque limits, and the friction and forces that the controller relies on.
        """
        if segment.held:
            return None
        reduced = [with_control_margins(contact, self.settings) for contact in segment.contacts]
        checked = (
            segment.posture.sample(t).q
            for t in np.linspace(0.0, segment.duration, OVERLOAD_CHECK_FACTOR * BALANCE_CHECKS + 1)
        )
        return next(filter(None, (shortfall(self.robot, q, reduced) for q in checked)), None)

    def stretch(self, com: Spline, posture: PostureSpline, contacts: Sequence[Contact], bounds: np.ndarray) -> float:
        """Return the factor, at least 1, on the duration of a motion that keeps speed and acceleration limits.

        Speeds decrease with the factor, accelerations and the wrench beyond the weight with its square. The wrench
        includes the motion of the limbs.

        Parameters
        ----------
        bounds : (k,) horizontal accelerations that contacts allow, equally spaced along the motion (m/s²).
        """
        s, times = self.settings, com.times
        checked = np.linspace(times[0], times[-1], CHECKS_PER_PIECE * (len(times) - 1), endpoint=False)[1:]
        q, v, vd = (np.array(column) for column in zip(*map(posture.sample, checked), strict=True))
        place, velocity, bend = (np.array(column) for column in zip(*map(com.sample, checked.tolist()), strict=True))
        speed = max(
            1.0,
            float(np.linalg.norm(velocity, axis=1).max()) / s.timing.com_speed,
            float(np.linalg.norm(v[:, 3:6], axis=1).max()) / s.timing.trunk_speed,
            float(np.max(np.abs(v[:, 6:]) / self.rates, initial=0.0)),
        )
        a = np.hypot(bend[:, 0], bend[:, 1])
        allowed = CONTACT_FORCE_SHARE * np.interp(checked, np.linspace(times[0], times[-1], len(bounds)), bounds)
        size = self.robot.scale.leg
        at_pressure_limit = [frequency(c, contacts, size) ** 2 * self.cop_distance(contacts, c) for c in place]
        usage = float(np.max(a / np.minimum(at_pressure_limit, np.maximum(allowed, MIN_ACCELERATION))))
        return max(speed, float(np.sqrt(max(usage, self._usage(q, self.robot.inverse_dynamics(q, v, vd), contacts)))))

    def _usage(self, q: np.ndarray, force: np.ndarray, contacts: Sequence[Contact]) -> float:
        """Return the largest wrench of a motion beyond the weight, as a share of what contacts can exert.

        Parameters
        ----------
        q, force : (m, nq), (m, nv) postures, and the generalised forces of the motion.
        """
        robot = self.robot
        if robot.fixed or not contacts:
            return 0.0
        com, weight = robot.com(q), robot.mass * GRAVITY * GRAVITY_ALONE
        wrench = force[:, :6].copy()
        wrench[:, 3:] += np.cross(q[:, :3] - com, wrench[:, :3])
        wrench -= weight
        as_force = np.append(np.ones(3), np.full(3, 1.0 / (robot.scale.sole * MOMENT_LEVER_M)))
        largest = np.argsort(np.linalg.norm(as_force * wrench, axis=1))[-WRENCH_CHECKS:]
        reduced = [with_control_margins(contact, self.settings) for contact in contacts]
        limit = 1.0 / CONTACT_FORCE_SHARE
        parts = [exertable_share(com[k], weight, wrench[k], reduced, robot.mass, limit) for k in largest]
        return 1.0 / (CONTACT_FORCE_SHARE * max(min(parts), MIN_WRENCH_SHARE))
