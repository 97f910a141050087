"""Durations of body motions within speed limits and within the accelerations that the contact forces allow.

A minimum-jerk shift of the centre of mass by D in the time T keeps the centre of pressure within the distance d of the
projected centre of mass if

    T >= sqrt(5.8 D / d) / w,   w² = g / z

since its largest acceleration is 5.8 D / T². Here z is the height of the centre of mass above the lowest contact point.
On a path through knots the bound on the acceleration is applied at every sample. In addition the contacts must be able
to exert the horizontal acceleration and the wrench of the motion, including the moments of moving limbs.
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
"""Number of samples per knot interval at which speed and acceleration are checked."""

COM_INSET_SHARE = 0.6
"""Usable share of the distance from the centre of mass to the edge of the support region."""

MIN_COM_INSET_M = 0.004
"""Lower bound of the usable distance, for HRP-2; scaled by the size of the soles."""

TORQUE_SHARES = (0.8, 0.9, 1.0)
"""Shares of the torque limits in ascending order. The first that suffices at both ends must suffice between them."""

MARGIN_SHARE = 0.7
"""Minimum equilibrium margin along a motion, as a share of the smaller margin of its ends."""

BALANCE_CHECKS = 8
"""Number of equal intervals of a motion at whose ends balance and torques are checked."""

OVERLOAD_CHECK_FACTOR = 4
"""Subdivision of these intervals in the diagnosis of a motion without static equilibrium."""

CONTACT_FORCE_SHARE = 0.8
"""Usable share of the acceleration and wrench that contacts allow."""

ABOVE_ROUNDING = 1.0 + 1e-9
"""Factor on a bound that a value does not reach by rounding alone."""

MIN_ACCELERATION = 0.1
"""Lower bound of the horizontal acceleration (m/s²) that contacts allow."""

MIN_WRENCH_SHARE = 0.05
"""Lower bound of the share of a wrench that contacts can exert."""

WRENCH_CHECKS = 3
"""Number of samples at which the wrench is checked: those with the largest wrenches."""

MOMENT_LEVER_M = 0.1
"""Lever arm that converts moments to forces when wrenches are compared, for HRP-2; scaled by the size of the soles."""


class DurationModel:
    """Durations of the body motions of one robot.

    Parameters
    ----------
    robot, settings : the robot, and the control settings: speed limits, usable shares of contact forces.
    finder : knot finder, for the distance from the centre of mass to the edge of the support region.
    """

    def __init__(self, robot: Robot, settings: ControlSettings, finder: KnotFinder):
        self.robot, self.settings, self.finder = robot, settings, finder
        self.rates = np.minimum(joint_speeds(robot, JOINT_SPEED_FRACTION), settings.timing.joint_speed)

    def straight(self, q0: np.ndarray, q1: np.ndarray, contacts: Sequence[Contact]) -> float:
        """Return the duration (s) of a straight motion from q0 to q1 (nq,) within the limits of speeds and balance.

        The centre of mass accelerates at the start and brakes at the end. So the smaller distance to the edge of the
        support region at the two ends counts. The peak speed of a minimum-jerk motion is 15/8 of its mean speed.
        """
        settings, robot = self.settings, self.robot
        com, target = robot.com(q0), robot.com(q1)
        D, w = float(np.linalg.norm((target - com)[:2])), frequency(com, contacts, robot.scale.leg)
        distance = min(self.cop_distance(contacts, position) for position in (com, target))
        shift_time = np.sqrt(5.8 * D / distance) / w
        com_time = 15 / 8 * float(np.linalg.norm(target - com)) / settings.timing.com_speed
        base_angle = float(np.linalg.norm(rotation_vector(base_rotation(q1) @ base_rotation(q0).T)))
        trunk_time = 15 / 8 * base_angle / settings.timing.trunk_speed
        joint_time = 15 / 8 * float(np.max(np.abs(q1[7:] - q0[7:]) / self.rates, initial=0.0))
        return max(settings.timing.min_shift_duration, shift_time, com_time, trunk_time, joint_time)

    def cop_distance(self, contacts: Sequence[Contact], com: np.ndarray) -> float:
        """Return the allowed horizontal distance (m) of the centre of pressure from the centre of mass (3,)."""
        smallest = self.robot.scale.sole * MIN_COM_INSET_M
        return min(
            max(COM_INSET_SHARE * self.finder.com_inset(contacts, com), smallest), self.settings.contact.cop_margin
        )

    def allowed_accelerations(
        self, q: np.ndarray, contacts: Sequence[Contact], sufficient: float
    ) -> tuple[np.ndarray, bool]:
        """Return the horizontal accelerations (k,), m/s², that contacts allow at postures (k, nq); and ``held``.

        The acceleration is possible in every direction, with the friction and forces that the controller relies on. If
        all are greater than ``sufficient``, those between the ends may be smaller than the true ones, which saves time.
        ``held`` is whether the robot is in static equilibrium at all postures, with a margin and torques similar to
        those at the ends: between two feasible stances a detour may need larger torques or grip forces than both.
        """
        if not contacts:
            return np.full(len(q), np.inf), True
        robot, reduced = self.robot, [with_control_margins(contact, self.settings) for contact in contacts]

        def allowed(posture: np.ndarray, upper: float = np.inf) -> float:
            return equilibrium_margin(robot.com(posture), reduced, robot.mass, upper * robot.mass) / robot.mass

        ends, between = (q[0], q[-1]), q[1:-1]
        first, last = map(allowed, ends)
        required = MARGIN_SHARE * min(first, last)
        enough = ABOVE_ROUNDING * max(required, sufficient)
        if min(first, last) >= enough and all(allowed(x, ABOVE_ROUNDING * enough) >= enough for x in between):
            accelerations = np.array([first, *[enough] * len(between), last])
        else:
            accelerations = np.array([first, *map(allowed, between), last])
        if accelerations.min() < required:
            return accelerations, False
        share = next(
            (share for share in TORQUE_SHARES if all(can_hold(robot, posture, reduced, share) for posture in ends)),
            None,
        )
        if share is None:  # the ends exceed the torque limits: torques are not checked between them
            return accelerations, True
        return accelerations, all(can_hold(robot, posture, reduced, share) for posture in between)

    def overload(self, segment: Segment) -> Shortfall | None:
        """Return the first violation of static equilibrium along a segment that is not ``held``, or None.

        The check uses the full torque limits, and the friction and forces that the controller relies on.
        """
        if segment.held:
            return None
        reduced = [with_control_margins(contact, self.settings) for contact in segment.contacts]
        postures = (
            segment.posture.sample(t).q
            for t in np.linspace(0.0, segment.duration, OVERLOAD_CHECK_FACTOR * BALANCE_CHECKS + 1)
        )
        return next(filter(None, (shortfall(self.robot, q, reduced) for q in postures)), None)

    def stretch(self, com: Spline, posture: PostureSpline, contacts: Sequence[Contact]) -> tuple[float, bool]:
        """Return the factor (at least 1) on the duration of a motion with which it keeps its limits, and ``held``.

        Speeds are inversely proportional to the factor; accelerations, and the wrench in addition to the weight, to its
        square. The wrench includes the motion of the limbs. For ``held`` see `allowed_accelerations`.

        Parameters
        ----------
        com, posture : curves of the centre of mass and of the posture.
        contacts : closed contacts.
        """
        settings, times = self.settings, com.times
        t = np.linspace(times[0], times[-1], CHECKS_PER_PIECE * (len(times) - 1), endpoint=False)[1:]
        (q, v, vd), (position, velocity, acceleration) = posture.samples(t), com.samples(t)
        speed_factor = max(
            1.0,
            float(np.linalg.norm(velocity, axis=1).max()) / settings.timing.com_speed,
            float(np.linalg.norm(v[:, 3:6], axis=1).max()) / settings.timing.trunk_speed,
            float(np.max(np.abs(v[:, 6:]) / self.rates, initial=0.0)),
        )
        horizontal = np.hypot(acceleration[:, 0], acceleration[:, 1])
        size = self.robot.scale.leg
        cop_limits = [frequency(c, contacts, size) ** 2 * self.cop_distance(contacts, c) for c in position]
        checks = np.linspace(times[0], times[-1], BALANCE_CHECKS + 1)
        checked = np.array([posture.sample(time).q for time in checks])
        bounds, held = self.allowed_accelerations(checked, contacts, max(cop_limits) / CONTACT_FORCE_SHARE)
        allowed = CONTACT_FORCE_SHARE * np.interp(t, checks, bounds)
        usage = float(np.max(horizontal / np.minimum(cop_limits, np.maximum(allowed, MIN_ACCELERATION))))
        usage = max(usage, self._wrench_usage(q, self.robot.inverse_dynamics(q, v, vd), contacts))
        return max(speed_factor, float(np.sqrt(usage))), held

    def _wrench_usage(self, q: np.ndarray, force: np.ndarray, contacts: Sequence[Contact]) -> float:
        """Return the largest wrench of a motion in addition to the weight, as a share of what contacts can exert.

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
        to_force = np.append(np.ones(3), np.full(3, 1.0 / (robot.scale.sole * MOMENT_LEVER_M)))
        largest = np.argsort(np.linalg.norm(to_force * wrench, axis=1))[-WRENCH_CHECKS:]
        reduced = [with_control_margins(contact, self.settings) for contact in contacts]
        limit = 1.0 / CONTACT_FORCE_SHARE
        shares = [exertable_share(com[k], weight, wrench[k], reduced, robot.mass, limit) for k in largest]
        return 1.0 / (CONTACT_FORCE_SHARE * max(min(shares), MIN_WRENCH_SHARE))
