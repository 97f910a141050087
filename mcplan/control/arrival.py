"""Touchdown of swinging patches: end pose of the swing path, and the descent to the support from there."""

from typing import NamedTuple

import numpy as np

from mcplan.motion.limb_path import Pose
from mcplan.planning.timing.touchdown import touchdown_speed
from mcplan.planning.transition.transition import Segment, SwingSpec
from mcplan.robot.robot import Robot
from mcplan.scene.allowed_pose import allowed_pose
from mcplan.scene.contact import Contact
from mcplan.settings.control import ControlSettings

WAITING_HEIGHT_M = 1e-3
"""Height above its contact at which a patch waits until another patch of its limb touches (m)."""

SLOW_DESCENT_RAMP_S, FAST_DESCENT_RAMP_S = 0.2, 0.05
"""Time to accelerate to the descent speed, at the pace ``slow`` and at others."""


def descent_ramp(settings: ControlSettings) -> float:
    """Return the time to accelerate to the descent speed (s)."""
    return SLOW_DESCENT_RAMP_S if settings.pace is None else FAST_DESCENT_RAMP_S


class Arrival(NamedTuple):
    """Touchdown of a patch.

    Attributes
    ----------
    end : pose at the end of the swing path.
    approach : (3,) displacement along the normal in the last part of the path (m).
    height : height of ``end`` above the support (m), from which the patch descends with touch detection.
    speed : speed of this descent (m/s).
    """

    end: Pose
    approach: np.ndarray
    height: float
    speed: float


class Arrivals:
    """Cache of the touchdowns of one robot: they depend on the plan alone.

    Parameters
    ----------
    robot, settings : robot, and settings of its controller.
    """

    def __init__(self, robot: Robot, settings: ControlSettings):
        self._robot, self._settings = robot, settings
        self._cache: dict[SwingSpec, Arrival] = {}

    def get(self, course: SwingSpec, contact: Contact, segment: Segment) -> Arrival:
        """Return the touchdown of a patch at the end of its swing along a segment."""
        if course not in self._cache:
            self._cache[course] = self._compute(course, contact, segment)
        return self._cache[course]

    def _compute(self, course: SwingSpec, contact: Contact, segment: Segment) -> Arrival:
        robot, s, timing, q = self._robot, self._settings, segment.law, segment.q[-1]
        has_touch_detection = detects_touch(contact, s)
        # a motion that continues without rest touches down on time, without touch detection
        height = s.contact.touch_height if has_touch_detection and segment.finish is None else 0.0
        X = robot.frame_pose(q, contact.patch)
        R, p = allowed_pose(contact, (X[:3, :3], X[:3, 3]))
        p = p + height * contact.normal
        if course.hold:
            p = p + max(WAITING_HEIGHT_M - height, 0.0) * contact.normal
        length, speed = float(np.linalg.norm(course.approach)), s.timing.descent_speed
        share = max(1.0 - height / length, 0.0) if length > 0.0 else 1.0
        if has_touch_detection and not course.hold and timing is not None and s.pace is not None:
            speed = touchdown_speed(robot, q, segment.contacts, contact, s.pace, speed, timing.kept)
        return Arrival((R, p), share * course.approach, height, speed)


def detects_touch(contact: Contact, settings: ControlSettings) -> bool:
    """Whether a patch descends until its touch is detected; a grip closes at its planned pose."""
    return settings.compliant and contact.kind != "grasp"
