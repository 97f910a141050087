"""The way of the whole body to a posture: references of centre of mass and posture that the contacts allow."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from mcplan.control.counted import counted_on
from mcplan.core.rigid_body.tree import GRAVITY
from mcplan.model.robot import Robot
from mcplan.motion.limb_path import LimbPath
from mcplan.motion.posture import PostureSample, PostureTrajectory
from mcplan.motion.posture_path import PosturePath
from mcplan.motion.quintic import Quintic, Sample, minimum_jerk
from mcplan.motion.spline import PostureSpline, Spline
from mcplan.planning.posture.transit import NOWHERE, Led, Transit, TransitFinder, Worst
from mcplan.scene.contact import Contact
from mcplan.scene.settings import ControlSettings
from mcplan.statics.equilibrium import equilibrium_margin
from mcplan.statics.feasibility import can_hold

KNOTS, SAMPLES = 24, 3
"""Pieces of a way, and times at which each is looked at."""

GOOD = 3e-3
"""m, rad: a way that misses its distances or contacts by no more is taken as it is."""

LOST = 0.03
"""m, rad: a way that misses them by more is no better than the straight one."""

USED, LEAST_ROOM = 0.6, 0.004
"""Part of the room of the centre of mass that its acceleration may take up, and the least that is counted on (m)."""

HOLDING, KEPT, PARTS = (0.8, 0.9, 1.0), 0.7, 8
"""A way is to be held with the least of these parts of the torque limits with which both its ends are, and to keep this
part of the margin of the lesser one; and between how many equal parts of it that is looked at."""

BORNE, LEAST_ACCELERATION = 0.8, 0.1
"""Part of the acceleration that contacts bear that a way may take up, and the least that is counted on (m/s²)."""

FAST, ROUNDS = 1.02, 2
"""A way is slowed down that would have to take so many times longer, and at most so often."""

LEAST_HEIGHT = 0.1
"""m: so high above the lowest contact a centre of mass is taken to be at least."""

STEADY, WIDE = 100.0, 1.5
"""Price of moving base and centre of mass off the straight way, relative to that of planned postures: where limbs alone
can do what is to be done, the body goes from one proven stance to the next as it would without. Where they cannot, or
take so many times longer, the body helps."""

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
    hold the robot all along, at rest, about as easily as at the ends.
    """

    com: Spline | Quintic
    posture: PostureSpline | PostureTrajectory
    missed: float
    unsmoothed: float
    stretch: float
    worst: Worst = NOWHERE
    held: bool = True

    @property
    def rank(self) -> tuple[bool, bool, float]:
        """By what ways are chosen: those that are free first, of them those that are held, of these the quickest."""
        free = self.missed <= GOOD
        return not free, not self.held, self.stretch if free else self.missed

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
        best: Way | None = None
        for finder, modest, slow in ((self._steady, False, WIDE), (self.finder, False, LONG), (self.finder, True, 0.0)):
            way = self._timed(start, finder.find(guides, contacts, leads, touching, modest), times, contacts)
            if best is None or way.rank < best.rank:
                best = way
            if best.missed <= GOOD and best.held and best.stretch <= slow:
                break
        assert best is not None
        return best

    def _bears(self, posture: PostureSpline, times: np.ndarray, contacts: Sequence[Contact]) -> tuple[np.ndarray, bool]:
        """Return what horizontal acceleration contacts bear along a way (m/s², `PARTS` + 1), and whether they hold it.

        They bear it in every direction, with what the controller counts on of them. They hold the robot, at rest, where
        they do so all along about as easily as at the ends: between two stances that are proven, a detour may need
        torques, or forces of grips, that neither of them does.
        """
        if not contacts:
            return np.full(PARTS + 1, np.inf), True
        counted = [counted_on(contact, self.settings) for contact in contacts]
        robot = self.robot
        postures = [posture.sample(t).q for t in np.linspace(times[0], times[-1], PARTS + 1)]
        bears = np.array([equilibrium_margin(robot.com(q), counted, robot.mass) for q in postures]) / robot.mass
        ends = postures[0], postures[-1]
        share = next((share for share in HOLDING if all(can_hold(robot, q, counted, share) for q in ends)), None)
        held = bool(bears.min() >= KEPT * min(bears[0], bears[-1])) and (
            # what the ends do not keep cannot be asked of the way
            share is None or all(can_hold(robot, q, counted, share) for q in postures[1:-1])
        )
        return bears, held

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
            way = self._timed(start, transit, times, contacts)
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
        bears, held = self._bears(posture, times, contacts)
        stretch = self._stretch(com, posture, times, contacts, bears)
        return Way(com, posture, transit.missed, transit.unsmoothed, stretch, transit.worst, held)

    def direct(self, start: Start, begin: float, duration: float, missed: float = 0.0, worst: Worst = NOWHERE) -> Way:
        """Return the straight way; ``missed`` says what it is taken to miss, ``worst`` where."""
        x = start.com
        com = Quintic(x.value, self.robot.com(start.q), duration, x.velocity, x.acceleration, begin)
        return Way(com, self.straight(start, begin, duration), missed, missed, 1.0, worst)

    def _stretch(
        self, com: Spline, posture: PostureSpline, times: np.ndarray, contacts: Sequence[Contact], bears: np.ndarray
    ) -> float:
        """Return in how many times its time the way would keep within speeds and accelerations; 1 at the least.

        Speeds sink with the time, accelerations with its square. The acceleration of the centre of mass keeps the
        centre of pressure within the room that there is, and is part of what contacts bear where grips or friction
        leave less. What a way begins with is not counted: no time law changes the velocity and the acceleration that it
        continues.
        """
        s = self.settings
        rates = joint_rates(self.robot, s)
        speed, acceleration, parts = 1.0, 1.0, np.linspace(times[0], times[-1], PARTS + 1)
        for t in np.linspace(times[0], times[-1], SAMPLES * (len(times) - 1), endpoint=False)[1:]:
            v, moving = posture.sample(t).v, com.sample(t)
            speed = max(
                speed,
                float(np.linalg.norm(moving.velocity)) / s.com_speed,
                float(np.linalg.norm(v[3:6])) / s.trunk_speed,
                float(np.max(np.abs(v[6:]) / rates, initial=0.0)),
            )
            a = float(np.hypot(moving.acceleration[0], moving.acceleration[1]))
            most = max(BORNE * float(np.interp(t, parts, bears)), LEAST_ACCELERATION)
            tilt = a * height_above(contacts, moving.value) / GRAVITY
            acceleration = max(acceleration, tilt / self.room(contacts, moving.value), a / most)
        return max(speed, float(np.sqrt(acceleration)))

    def room(self, contacts: Sequence[Contact], com: np.ndarray) -> float:
        """Return how far the centre of pressure may be off a centre of mass (3,) that moves on contacts (m)."""
        return min(max(USED * self.finder.room(contacts, com), LEAST_ROOM), self.settings.pressure_room)


def height_above(contacts: Sequence[Contact], com: np.ndarray) -> float:
    """Return how high a centre of mass (3,) is above the lowest contact point (m), `LEAST_HEIGHT` at the least."""
    ground = min((float(contact.world_points[:, 2].min()) for contact in contacts), default=-np.inf)
    return max(float(com[2]) - ground, LEAST_HEIGHT) if np.isfinite(ground) else LEAST_HEIGHT


def joint_rates(robot: Robot, s: ControlSettings) -> np.ndarray:
    """Return the largest speeds of the references of the joints (rad/s)."""
    return np.asarray(np.minimum(s.joint_speed_fraction * robot.limits.velocity, s.joint_speed))
