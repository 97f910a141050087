"""The way of the whole body to a posture: references of centre of mass and posture that the contacts allow."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from mcplan.control.counted import counted_on
from mcplan.control.limb_path import LimbPath
from mcplan.control.posture import PostureSample, PostureTrajectory
from mcplan.control.posture_path import PosturePath
from mcplan.control.quintic import Quintic, Sample, minimum_jerk
from mcplan.control.spline import PostureSpline, Spline
from mcplan.core.tree import GRAVITY
from mcplan.model.robot import Robot
from mcplan.planning.posture.transit import NOWHERE, Led, Transit, TransitFinder, Worst
from mcplan.scene.contact import Contact
from mcplan.scene.settings import ControlSettings
from mcplan.statics.feasibility import can_hold

KNOTS, SAMPLES = 24, 3
"""Pieces of a way, and times at which each is looked at."""

GOOD = 3e-3
"""m, rad: a way that misses its distances or contacts by no more is taken as it is."""

LOST = 0.03
"""m, rad: a way that misses them by more is no better than the straight one."""

USED, LEAST_ROOM = 0.6, 0.004
"""Part of the room of the centre of mass that its acceleration may take up, and the least that is counted on (m)."""

HOLDING, PARTS = (0.8, 0.9, 1.0), 8
"""Parts of the torque limits: a way is to be held with the least with which both its ends are; and between how many
equal parts of it that is looked at."""

FAST, ROUNDS = 1.02, 2
"""A way is slowed down that would have to take so many times longer, and at most so often."""

LEAST_HEIGHT = 0.1
"""m: so high above the lowest contact a centre of mass is taken to be at least."""

STEADY, WIDE = 100.0, 1.5
"""Price of moving the base off the straight way relative to the usual one, where the contacts do not hold the usual
way, or it takes so many times longer than the straight one: it goes far around."""

LONG = 2.0
"""A way that takes so many times longer is bent to part bodies that are close at both ends: they may stay so."""


class Start(NamedTuple):
    """The references that a way continues, and where it leads: CoM, posture, posture at the end."""

    com: Sample
    posture: PostureSample
    q: np.ndarray


class Way(NamedTuple):
    """References of centre of mass and posture.

    ``missed``, ``unsmoothed`` and ``worst`` are those of `Transit`; ``stretch`` says in how many times its time the way
    would keep within the speeds and accelerations that are allowed; 1 where it does. ``held`` says whether the contacts
    hold the robot all along, at rest, with torques and forces that the ends do not exceed either.
    """

    com: Spline | Quintic
    posture: PostureSpline | PostureTrajectory
    missed: float
    unsmoothed: float
    stretch: float
    worst: Worst = NOWHERE
    held: bool = True

    @property
    def begin(self) -> float:
        """When it begins (s)."""
        return self.posture.start_time

    @property
    def duration(self) -> float:
        """How long it takes (s)."""
        return self.posture.end_time - self.posture.start_time

    @property
    def shortfall(self) -> str:
        """What a way that is not free lacks, in words."""
        taken = "the straight one is taken" if self.unsmoothed > LOST else "the best one is taken"
        where = f"between {' and '.join(self.worst.bodies)}" if self.worst.bodies else "at the contacts"
        return (
            f"no free way of the body was found: {1000 * self.missed:.0f} mm are missing {where}, "
            f"{100 * self.worst.share:.0f} % along it; {taken}"
        )


class WayFinder:
    """Finds ways for one robot in one scene.

    Parameters
    ----------
    robot, settings : speeds and their limits.
    finder : of the postures on the way.
    """

    def __init__(self, robot: Robot, settings: ControlSettings, finder: TransitFinder):
        self.robot, self.settings, self.finder = robot, settings, finder
        weights = finder.settings.weights
        steady = replace(
            weights,
            base_position=STEADY * weights.base_position,
            base_orientation=STEADY * weights.base_orientation,
            com=STEADY * weights.com,
        )
        of_steady = replace(finder.settings, weights=steady)
        self._steady = TransitFinder(robot, finder.environment, of_steady, finder.collisions)

    def find(
        self,
        start: Start,
        begin: float,
        duration: float,
        contacts: tuple[Contact, ...],
        touching: tuple[Contact, ...] = (),
        led: Mapping[str, LimbPath | PosturePath] | None = None,
    ) -> Way:
        """Return a way.

        Parameters
        ----------
        begin, duration : s.
        contacts : those that stay closed.
        touching : contacts that limbs in the air leave or come to.
        led : by patch, paths that the body follows.
        """
        straight = self.straight(start, begin, duration)
        times = begin + np.linspace(0.0, duration, KNOTS + 1)
        guides = np.array([straight.sample(t).q for t in times])
        leads = []
        for patch, path in (led or {}).items():
            samples = [path.sample(t) for t in times]
            leads.append(Led(patch, np.array([x.p for x in samples]), (samples[0].R, samples[-1].R)))
        way = self._timed(start, self.finder.find(guides, contacts, leads, touching), times, contacts)
        way = way._replace(held=self.held(way, contacts))
        for finder, modest, needed in ((self._steady, False, WIDE), (self.finder, True, LONG)):
            if way.held and way.stretch <= needed:
                continue
            other = self._timed(start, finder.find(guides, contacts, leads, touching, modest), times, contacts)
            if other.missed > max(GOOD, way.missed) or (way.held and other.stretch >= way.stretch):
                continue
            other = other._replace(held=self.held(other, contacts))
            if other.held or (not way.held and other.stretch < way.stretch):
                way = other
        return way

    def held(self, way: Way, contacts: Sequence[Contact]) -> bool:
        """Say whether the contacts hold the robot at rest all along a way, as easily as at its ends.

        What the controller does not count on is left out. Between two stances that are proven, a detour may need
        torques, or forces of grips, that neither of them does.
        """
        if not contacts:
            return True
        counted = [counted_on(contact, self.settings) for contact in contacts]

        def hold(q: np.ndarray, share: float) -> bool:
            return can_hold(self.robot, q, counted, share)

        ends = way.posture.sample(way.begin).q, way.posture.end
        share = next((share for share in HOLDING if all(hold(q, share) for q in ends)), None)
        if share is None:
            return True  # what the ends do not keep cannot be asked of the way
        times = way.begin + way.duration * np.arange(1, PARTS) / PARTS
        return all(hold(way.posture.sample(t).q, share) for t in times)

    def straight(self, start: Start, begin: float, duration: float) -> PostureTrajectory:
        """Return the straight way, which others stay near."""
        y = start.posture
        return PostureTrajectory(y.q, start.q, duration, y.v, y.vd, begin)

    def slowed(self, start: Start, way: Way, contacts: Sequence[Contact]) -> Way:
        """Return the same way in so much time that it keeps within speeds and accelerations.

        In that time speeds and accelerations are as much less, but for those that the way continues: it may begin too
        fast however slowly it goes on, and is not slowed for ever.
        """
        for _ in range(ROUNDS):
            if way.stretch <= FAST or not isinstance(way.posture, PostureSpline):
                break
            times = way.begin + np.linspace(0.0, way.stretch * way.duration, KNOTS + 1)
            transit = Transit(way.posture.knots, way.missed, way.unsmoothed, way.worst)
            way = self._timed(start, transit, times, contacts)._replace(held=way.held)
        return way

    def _timed(self, start: Start, transit: Transit, times: np.ndarray, contacts: Sequence[Contact]) -> Way:
        if transit.unsmoothed > LOST:
            return self.direct(start, times[0], times[-1] - times[0], transit.missed, transit.worst)
        posture = PostureSpline(times, transit.q, start.posture.v, start.posture.vd)
        places = self.robot.com(transit.q)
        # a state that moved the centre of mass alone has left it beside that of the posture: that fades on the way
        left = [1.0 - minimum_jerk(share)[0] for share in np.linspace(0.0, 1.0, len(times))]
        places += np.outer(left, start.com.value - places[0])
        com = Spline(times, places, start.com.velocity, start.com.acceleration)
        stretch = self._stretch(com, posture, times, contacts)
        return Way(com, posture, transit.missed, transit.unsmoothed, stretch, transit.worst)

    def direct(self, start: Start, begin: float, duration: float, missed: float = 0.0, worst: Worst = NOWHERE) -> Way:
        """Return the straight way; ``missed`` says what it is taken to miss, ``worst`` where."""
        x = start.com
        com = Quintic(x.value, self.robot.com(start.q), duration, x.velocity, x.acceleration, begin)
        return Way(com, self.straight(start, begin, duration), missed, missed, 1.0, worst)

    def _stretch(self, com: Spline, posture: PostureSpline, times: np.ndarray, contacts: Sequence[Contact]) -> float:
        """Return in how many times its time the way would keep within speeds and accelerations; 1 at the least.

        Speeds sink with the time, accelerations with its square. What a way begins with is not counted: no time law
        changes the velocity and the acceleration that it continues.
        """
        s = self.settings
        rates = joint_rates(self.robot, s)
        speed, acceleration = 1.0, 1.0
        for t in np.linspace(times[0], times[-1], SAMPLES * (len(times) - 1), endpoint=False)[1:]:
            v, moving = posture.sample(t).v, com.sample(t)
            speed = max(
                speed,
                float(np.linalg.norm(moving.velocity)) / s.com_speed,
                float(np.linalg.norm(v[3:6])) / s.trunk_speed,
                float(np.max(np.abs(v[6:]) / rates, initial=0.0)),
            )
            acceleration = max(acceleration, self.tilt(moving, contacts) / self.room(contacts, moving.value))
        return max(speed, float(np.sqrt(acceleration)))

    def room(self, contacts: Sequence[Contact], com: np.ndarray) -> float:
        """Return how far the centre of pressure may be off a centre of mass (3,) that moves on contacts (m)."""
        return min(max(USED * self.finder.room(contacts, com), LEAST_ROOM), self.settings.pressure_room)

    def tilt(self, com: Sample, contacts: Sequence[Contact]) -> float:
        """Return how far its acceleration takes the centre of pressure from below a centre of mass (m).

        |a_xy| z / g,   z the height above the lowest contact
        """
        return float(np.hypot(com.acceleration[0], com.acceleration[1])) * height_above(contacts, com.value) / GRAVITY


def height_above(contacts: Sequence[Contact], com: np.ndarray) -> float:
    """Return how high a centre of mass (3,) is above the lowest contact point (m), `LEAST_HEIGHT` at the least."""
    ground = min((float(contact.world_points[:, 2].min()) for contact in contacts), default=-np.inf)
    return max(float(com[2]) - ground, LEAST_HEIGHT) if np.isfinite(ground) else LEAST_HEIGHT


def joint_rates(robot: Robot, s: ControlSettings) -> np.ndarray:
    """Return the largest speeds of the references of the joints (rad/s)."""
    return np.asarray(np.minimum(s.joint_speed_fraction * robot.limits.velocity, s.joint_speed))
