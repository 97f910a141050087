"""Whole-body motions in time: near the straight path, raised halfway, or around an obstacle."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from mcplan.collision.model import CollisionModel
from mcplan.motion.limb_path import LimbPath, PosturePath
from mcplan.motion.quintic import minimum_jerk
from mcplan.motion.spline import PostureSpline, Spline
from mcplan.planning.posture.task import PostureSettings
from mcplan.planning.timing.duration import BALANCE_CHECKS, DurationModel
from mcplan.planning.transition.detour import Detour
from mcplan.planning.transition.knot_search import KnotFinder
from mcplan.planning.transition.knots import MAX_DEFICIT_M, Knots, PatchPath, straight_knots
from mcplan.robot.robot import Robot
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment
from mcplan.settings.control import ControlSettings

KNOT_INTERVALS = 24
"""Pieces of a motion."""

GOOD_DEFICIT_M = 3e-3
"""m, rad: a motion with no greater deficit of clearance or contacts is accepted."""

LOST_DEFICIT_M = 0.03
"""m, rad: a motion with a greater deficit is no better than the straight one."""

STRETCH_TOLERANCE = 1.02
"""A motion that would have to take this many times longer is slowed down."""

MAX_STRETCHES = 3
"""Times that a motion is slowed down at most."""

BASE_PRICE_FACTOR = 100.0
"""Price of moving base and centre of mass off the straight path, relative to that of planned postures: the body stays
on it where limbs alone find a motion."""

MAX_STEADY_STRETCH = 1.5
"""Where such a motion takes this many times longer, the body helps."""

MAX_FREE_STRETCH = 2.0
"""Where a motion takes this many times longer, bodies that are close at both ends may stay so."""

MIN_LIFT_M = 8e-3
"""m: height that all of a patch reaches at least once above the support that it leaves; below it the patch drags."""


@dataclass(frozen=True, eq=False)
class Departure:
    """Start of a segment, at rest.

    Attributes
    ----------
    q : (nq,) posture.
    closed : contacts that stay closed.
    rising : by patch, open contacts that the patch has not left yet.
    """

    q: np.ndarray
    closed: tuple[Contact, ...]
    rising: dict[str, Contact] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class BodyMotion:
    """Knots in time.

    Attributes
    ----------
    stretch : factor on its duration that keeps speeds and accelerations within limits; 1 where they are.
    held : whether its contacts hold the robot all along.
    """

    times: np.ndarray
    knots: Knots
    stretch: float
    held: bool

    @property
    def missed(self) -> float:
        """Greatest deficit of clearance or contacts (m, rad)."""
        return self.knots.missed

    @property
    def duration(self) -> float:
        """How long it takes (s)."""
        return float(self.times[-1])

    @property
    def rank(self) -> tuple[bool, bool, float]:
        """Order of choice: collision-free motions first, of them those that are held, of these the fastest."""
        free = self.missed <= GOOD_DEFICIT_M
        return not free, not self.held, self.stretch if free else self.missed


class MotionFinder:
    """Finds motions of the body in one scene.

    Parameters
    ----------
    robot, environment, settings, collisions : see `TransitionFinder`.
    """

    def __init__(self, robot: Robot, environment: Environment, settings: ControlSettings, collisions: CollisionModel):
        self.robot, self.settings = robot, settings
        plain = PostureSettings().of(robot.scale).within(settings)
        weights = plain.weights
        steady = replace(
            weights,
            base_position=BASE_PRICE_FACTOR * weights.base_position,
            base_orientation=BASE_PRICE_FACTOR * weights.base_orientation,
            com=BASE_PRICE_FACTOR * weights.com,
        )
        self.knots = KnotFinder(robot, environment, plain, collisions)
        self._steady = KnotFinder(robot, environment, replace(plain, weights=steady), collisions)
        self.law = DurationModel(robot, settings, self.knots)
        self._detours: dict[tuple, np.ndarray | None] = {}

    def find(
        self,
        begin: Departure,
        q: np.ndarray,
        duration: float,
        touching: tuple[Contact, ...],
        paths: Mapping[str, LimbPath | PosturePath],
    ) -> BodyMotion:
        """Find knots: with a steady body, with a free body, then with the clearances of the ends."""
        times = np.linspace(0.0, duration, KNOT_INTERVALS + 1)
        best: BodyMotion | None = None
        for finder, keep_end_clearance, slow in (
            (self._steady, False, MAX_STEADY_STRETCH),
            (self.knots, False, MAX_FREE_STRETCH),
            (self.knots, True, 0.0),
        ):
            knots = self.along(finder, begin, q, duration, touching, paths, KNOT_INTERVALS, keep_end_clearance)
            motion = self.timed(knots, times, begin.closed)
            if best is None or motion.rank < best.rank:
                best = motion
            if finder is self.knots and (
                best.missed > LOST_DEFICIT_M or not knots.check_separation
            ):  # the end clearances would not help
                break
            if best.missed <= GOOD_DEFICIT_M and best.held and best.stretch <= slow:
                break
        assert best is not None
        if best.knots.unsmoothed > LOST_DEFICIT_M:
            best = replace(
                best, knots=replace(best.knots, q=straight_knots(self.robot, begin.q, q, KNOT_INTERVALS)), stretch=1.0
            )
        return best

    def along(
        self,
        finder: KnotFinder,
        begin: Departure,
        q: np.ndarray,
        duration: float,
        touching: tuple[Contact, ...],
        paths: Mapping[str, LimbPath | PosturePath],
        count: int = KNOT_INTERVALS,
        keep_end_clearance: bool = False,
    ) -> Knots:
        """Find knots near the straight motion, with patches on their paths."""
        times = np.linspace(0.0, duration, count + 1)
        leads = []
        for patch, path in paths.items():
            samples = [path.sample(t) for t in times]
            halves = np.array([path.sample(t).p for t in 0.5 * (times[1:] + times[:-1])])
            leads.append(PatchPath(patch, np.array([x.p for x in samples]), (samples[0].R, samples[-1].R), halves))
        guides = straight_knots(self.robot, begin.q, q, count)
        return finder.find(guides, begin.closed, leads, touching, keep_end_clearance)

    def timed(self, knots: Knots, times: np.ndarray, contacts: tuple[Contact, ...]) -> BodyMotion:
        """Find by how much knots at ``times`` (k,) are too fast, and whether contacts hold the robot along them."""
        if knots.missed > MAX_DEFICIT_M:  # no duration makes it collision-free
            return BodyMotion(times, knots, 1.0, False)
        posture, com = PostureSpline(times, knots.q), Spline(times, self.robot.com(knots.q))
        looked = np.array([posture.sample(t).q for t in np.linspace(0.0, times[-1], BALANCE_CHECKS + 1)])
        bears, held = self.law.bears(looked, contacts)
        return BodyMotion(times, knots, self.law.stretch(com, posture, contacts, bears), held)

    def slowed(self, motion: BodyMotion, contacts: tuple[Contact, ...]) -> BodyMotion:
        """Return the same motion, slowed down to the limits of speeds and accelerations."""
        for _ in range(MAX_STRETCHES):
            if motion.stretch <= STRETCH_TOLERANCE:
                break
            times = motion.stretch * motion.times
            motion = self.timed(motion.knots, times, contacts)
        return motion

    def risen(
        self, begin: Departure, old: Contact, q: np.ndarray, duration: float, touching: tuple[Contact, ...]
    ) -> BodyMotion:
        """Find the motion of a patch off its support as the body moves it; halfway the body raises it."""
        straight = straight_knots(self.robot, begin.q, q, KNOT_INTERVALS)
        halfway = straight[KNOT_INTERVALS // 2]
        place = self.robot.frame_pose(halfway, old.patch)[:3, 3]
        place = place - ((place - old.p) @ old.normal) * old.normal
        lift = self.settings.avoidance.swing_clearance * old.normal
        top = self.knots.lifted(halfway, begin.closed, old.patch, place, lift)
        step, times = self.robot.difference(halfway, top), np.linspace(0.0, 1.0, KNOT_INTERVALS + 1)
        parts = [minimum_jerk(min(2.0 * t, 2.0 - 2.0 * t))[0] for t in times]
        raised = np.array([self.robot.integrate(q, step, part) for q, part in zip(straight, parts, strict=True)])
        best: BodyMotion | None = None
        for guides in (raised, straight):
            knots = self.knots.find(guides, begin.closed, (), touching)
            motion = self.timed(self._with_lift_off(knots, old), duration * times, begin.closed)
            if best is None or motion.rank < best.rank:
                best = motion
            if best.missed <= GOOD_DEFICIT_M:
                break
        assert best is not None
        return best

    def _with_lift_off(self, knots: Knots, old: Contact | None) -> Knots:
        """Return the knots, as in collision where a patch does not rise by `MIN_LIFT_M` off its old support."""
        if old is None:
            return knots
        X = self.robot.frame_pose(knots.q, old.patch)
        corners = np.einsum("kij,cj->kci", X[:, :3, :3], self.robot.patches[old.patch].points) + X[:, None, :3, 3]
        risen = float(((corners - old.p) @ old.normal).min(axis=1).max())
        least = self.robot.scale.leg * MIN_LIFT_M
        return knots if risen >= least else replace(knots, missed=max(knots.missed, MAX_DEFICIT_M + least - risen))

    def around(
        self,
        direct: BodyMotion,
        begin: Departure,
        q: np.ndarray,
        touching: tuple[Contact, ...],
        old: Contact | None = None,
    ) -> BodyMotion:
        """Find a motion around an obstacle; return the given one where it is collision-free, or no other is found.

        Parameters
        ----------
        old : support from which a patch has to lift off.
        """
        if direct.missed <= MAX_DEFICIT_M:
            return direct
        guides = self.detour(begin, q, touching)
        if guides is None:
            return direct
        knots = self.knots.find(guides, begin.closed, (), touching)
        times = np.linspace(0.0, direct.duration, KNOT_INTERVALS + 1)
        around = self.timed(self._with_lift_off(knots, old), times, begin.closed)
        return around if around.missed <= MAX_DEFICIT_M else direct

    def detour(self, begin: Departure, q: np.ndarray, touching: tuple[Contact, ...]) -> np.ndarray | None:
        """Return the knots of a detour, None where there is none; the last one is cached."""
        key = (begin.q.tobytes(), q.tobytes(), *(contact.patch for contact in (*begin.closed, *touching)))
        if key not in self._detours:
            self._detours = {key: Detour(self.knots, begin.q, q, begin.closed, touching).knots(KNOT_INTERVALS)}
        return self._detours[key]
