"""How a patch in the air comes to its contact: where its path ends, and how it comes down from there."""

from typing import NamedTuple

import numpy as np

from mcplan.motion.limb_path import Pose
from mcplan.planning.timing.touchdown import touchdown_speed
from mcplan.planning.transition.transition import Segment, SwingSpec
from mcplan.robot.robot import Robot
from mcplan.scene.allowed import allowed_pose
from mcplan.scene.contact import Contact
from mcplan.settings.control import ControlSettings

WAITING = 1e-3
"""m: so far above its place a patch waits until its turn comes."""

SLOW_DESCENT_RAMP_S, DESCENT_RAMP_S = 0.2, 0.05
"""Time in which a patch reaches the speed of the search for its support, at the pace ``slow`` and at others."""


def descent_ramp(settings: ControlSettings) -> float:
    """Return the time in which a patch reaches the speed of the search for its support (s)."""
    return SLOW_DESCENT_RAMP_S if settings.pace is None else DESCENT_RAMP_S


class Arrival(NamedTuple):
    """How a patch comes to a contact.

    Attributes
    ----------
    end : pose at which its path ends.
    approach : (3,) along the normal, from where it comes down to there (m).
    height : how far above its support that is (m): from there it searches for it.
    speed : of the search (m/s).
    """

    end: Pose
    approach: np.ndarray
    height: float
    speed: float


class Arrivals:
    """Arrivals of the patches of one robot, each found once: they depend on the plan alone.

    Parameters
    ----------
    robot, settings : of the run.
    """

    def __init__(self, robot: Robot, settings: ControlSettings):
        self._robot, self._settings = robot, settings
        self._known: dict[SwingSpec, Arrival] = {}

    def of(self, course: SwingSpec, contact: Contact, segment: Segment) -> Arrival:
        """Return how a patch arrives at a contact at the end of its course along a segment."""
        if course not in self._known:
            self._known[course] = self._find(course, contact, segment)
        return self._known[course]

    def _find(self, course: SwingSpec, contact: Contact, segment: Segment) -> Arrival:
        robot, s, law, q = self._robot, self._settings, segment.law, segment.q[-1]
        searches = feels(contact, s)
        # what goes on without rest comes down in time
        height = s.contact.touch_height if searches and segment.finish is None else 0.0
        X = robot.frame_pose(q, contact.patch)
        R, p = allowed_pose(contact, (X[:3, :3], X[:3, 3]))
        p = p + height * contact.normal
        if course.hold:
            p = p + max(WAITING - height, 0.0) * contact.normal
        length, speed = float(np.linalg.norm(course.approach)), s.timing.descent_speed
        share = max(1.0 - height / length, 0.0) if length > 0.0 else 1.0
        if searches and not course.hold and law is not None and s.pace is not None:
            speed = touchdown_speed(robot, q, segment.contacts, contact, s.pace, speed, law.kept)
        return Arrival((R, p), share * course.approach, height, speed)


def feels(contact: Contact, settings: ControlSettings) -> bool:
    """Say whether a patch comes down until it feels its support; a grip closes where it is."""
    return settings.compliant and contact.kind != "grasp"
