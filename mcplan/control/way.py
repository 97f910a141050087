"""The way of the whole body to a posture: references of centre of mass and posture that the contacts allow."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from mcplan.control.limb_path import LimbPath
from mcplan.control.posture import PostureSample, PostureTrajectory
from mcplan.control.posture_path import PosturePath
from mcplan.control.quintic import Quintic, Sample, minimum_jerk
from mcplan.control.spline import PostureSpline, Spline
from mcplan.model.robot import Robot
from mcplan.planning.posture.transit import NOWHERE, Led, Transit, TransitFinder, Worst
from mcplan.scene.contact import Contact
from mcplan.scene.settings import ControlSettings

KNOTS = 24
"""Postures along a way."""

GOOD = 3e-3
"""m, rad: a way that misses its distances or contacts by no more is taken as it is."""

LOST = 0.03
"""m, rad: a way that misses them by more is no better than the straight one."""

LONG = 2.0
"""A way that takes so many times longer is bent to part bodies that are close at both ends: they may stay so."""


class Start(NamedTuple):
    """The references that a way continues, and where it leads: CoM, posture, posture at the end."""

    com: Sample
    posture: PostureSample
    q: np.ndarray


class Way(NamedTuple):
    """References of centre of mass and posture.

    ``missed``, ``unsmoothed`` and ``worst`` are those of `Transit`; ``stretch`` says by how much the way is too fast.
    """

    com: Spline | Quintic
    posture: PostureSpline | PostureTrajectory
    missed: float
    unsmoothed: float
    stretch: float
    worst: Worst = NOWHERE

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
        way = self._timed(start, self.finder.find(guides, contacts, leads, touching), times)
        if way.stretch > LONG:
            modest = self._timed(start, self.finder.find(guides, contacts, leads, touching, modest=True), times)
            if modest.stretch < way.stretch and modest.missed <= max(GOOD, way.missed):
                return modest
        return way

    def straight(self, start: Start, begin: float, duration: float) -> PostureTrajectory:
        """Return the straight way, which others stay near."""
        y = start.posture
        return PostureTrajectory(y.q, start.q, duration, y.v, y.vd, begin)

    def slowed(self, start: Start, way: Way, duration: float) -> Way:
        """Return the same way in another time (s)."""
        if not isinstance(way.posture, PostureSpline):
            return self.direct(start, way.posture.start_time, duration, way.missed, way.worst)
        begin = way.posture.start_time
        times = begin + np.linspace(0.0, duration, KNOTS + 1)
        return self._timed(start, Transit(way.posture.knots, way.missed, way.unsmoothed, way.worst), times)

    def _timed(self, start: Start, transit: Transit, times: np.ndarray) -> Way:
        if transit.unsmoothed > LOST:
            return self.direct(start, times[0], times[-1] - times[0], transit.missed, transit.worst)
        posture = PostureSpline(times, transit.q, start.posture.v, start.posture.vd)
        places = self.robot.com(transit.q)
        # a state that moved the centre of mass alone has left it beside that of the posture: that fades on the way
        left = [1.0 - minimum_jerk(share)[0] for share in np.linspace(0.0, 1.0, len(times))]
        places += np.outer(left, start.com.value - places[0])
        com = Spline(times, places, start.com.velocity, start.com.acceleration)
        excess = self._excess(com, posture, times)
        return Way(com, posture, transit.missed, transit.unsmoothed, excess, transit.worst)

    def direct(self, start: Start, begin: float, duration: float, missed: float = 0.0, worst: Worst = NOWHERE) -> Way:
        """Return the straight way; ``missed`` says what it is taken to miss, ``worst`` where."""
        x = start.com
        com = Quintic(x.value, self.robot.com(start.q), duration, x.velocity, x.acceleration, begin)
        return Way(com, self.straight(start, begin, duration), missed, missed, 1.0, worst)

    def _excess(self, com: Spline, posture: PostureSpline, times: np.ndarray) -> float:
        """Return the largest speed on the way relative to the one allowed."""
        s = self.settings
        rates = joint_rates(self.robot, s)
        worst = 1.0
        for t in 0.5 * (times[:-1] + times[1:]):
            v = posture.sample(t).v
            worst = max(
                worst,
                float(np.linalg.norm(com.sample(t).velocity)) / s.com_speed,
                float(np.linalg.norm(v[3:6])) / s.trunk_speed,
                float(np.max(np.abs(v[6:]) / rates, initial=0.0)),
            )
        return worst


def joint_rates(robot: Robot, s: ControlSettings) -> np.ndarray:
    """Return the largest speeds of the references of the joints (rad/s)."""
    return np.asarray(np.minimum(s.joint_speed_fraction * robot.limits.velocity, s.joint_speed))
