"""Timed whole-body motions: near the straight path, raised halfway, or around an obstacle."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from mcplan.collision.model import CollisionModel
from mcplan.motion.limb_path import LimbPath, PosturePath
from mcplan.motion.spline import PostureSpline, Spline, minimum_jerk
from mcplan.planning.posture.task import PostureSettings
from mcplan.planning.timing.duration import DurationModel
from mcplan.planning.transition.detour import Detour
from mcplan.planning.transition.knot_search import KnotFinder
from mcplan.planning.transition.knots import MAX_DEFICIT_M, Knots, PatchPath, straight_knots
from mcplan.robot.robot import Robot
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment
from mcplan.settings.control import ControlSettings

KNOT_INTERVALS = 24
"""Number of knot intervals of a motion."""

ACCEPTED_DEFICIT_M = 3e-3
"""A motion with a greater deficit of clearance or contact pose (m, rad) is searched for again in another manner."""

HOPELESS_DEFICIT_M = 0.03
"""A motion with a greater deficit (m, rad) is replaced by the straight one."""

STRETCH_TOLERANCE = 1.02
"""A motion is slowed down if it needs a larger factor on its duration."""

MAX_STRETCHES = 3
"""Maximum number of iterations of slowing a motion down."""

BASE_PRICE_FACTOR = 100.0
"""Factor on the weights of base and centre of mass for a steady body: it stays on the straight path if the limbs alone
can make the motion collision-free."""

MAX_STEADY_STRETCH = 1.5
"""If the motion with a steady body needs a larger factor on its duration, the body may leave the straight path."""

MAX_FREE_STRETCH = 2.0
"""If that motion needs a larger factor on its duration, links may stay as close as they are at both ends."""

MIN_LIFT_M = 8e-3
"""Height above the old support that the lowest point of a patch must reach, for HRP-2; otherwise the patch drags."""


@dataclass(frozen=True, eq=False)
class Departure:
    """Start of a segment, at rest.

    Attributes
    ----------
    q : (nq,) posture.
    closed : contacts that stay closed.
    resting : opened contacts, by patch, on which the patch still rests without load.
    """

    q: np.ndarray
    closed: tuple[Contact, ...]
    resting: dict[str, Contact] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class BodyMotion:
    """Timed knots of a body motion.

    Attributes
    ----------
    times : (k,) times of the knots (s).
    knots : postures, with their deficits.
    stretch : factor on the duration that brings speeds and accelerations within limits; 1 if they are.
    held : whether the robot is in static equilibrium along the motion, see `DurationModel.allowed_accelerations`.
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
        """Duration (s)."""
        return float(self.times[-1])

    @property
    def rank(self) -> tuple[bool, bool, float]:
        """Sort key: collision-free motions first, then those in static equilibrium, then the fastest."""
        is_free = self.missed <= ACCEPTED_DEFICIT_M
        return not is_free, not self.held, self.stretch if is_free else self.missed


class MotionFinder:
    """Finder of motions of the body in one scene.

    Parameters
    ----------
    robot, environment, settings, collisions : see `TransitionFinder`.
    """

    def __init__(self, robot: Robot, environment: Environment, settings: ControlSettings, collisions: CollisionModel):
        self.robot, self.settings = robot, settings
        posture_settings = PostureSettings().of(robot.scale).within(settings)
        weights = posture_settings.weights
        steady_weights = replace(
            weights,
            base_position=BASE_PRICE_FACTOR * weights.base_position,
            base_orientation=BASE_PRICE_FACTOR * weights.base_orientation,
            com=BASE_PRICE_FACTOR * weights.com,
        )
        self.knots = KnotFinder(robot, environment, posture_settings, collisions)
        self._steady = KnotFinder(robot, environment, replace(posture_settings, weights=steady_weights), collisions)
        self.durations = DurationModel(robot, settings, self.knots)
        self._detours: dict[tuple, np.ndarray | None] = {}
        self._free_knots: dict[tuple, Knots] = {}

    def find(
        self,
        departure: Departure,
        q: np.ndarray,
        duration: float,
        touching: tuple[Contact, ...],
        paths: Mapping[str, LimbPath | PosturePath],
    ) -> BodyMotion:
        """Find a motion with a steady body, else with a moving body, else with no more clearance than at the ends.

        Parameters
        ----------
        departure : start of the motion, with the closed contacts.
        q : (nq,) posture at the end.
        duration : nominal duration (s).
        touching : contacts that limbs leave or reach.
        paths : paths that patches should follow, by patch.
        """
        times = np.linspace(0.0, duration, KNOT_INTERVALS + 1)
        best: BodyMotion | None = None
        for finder, keep_end_clearance, max_stretch in (
            (self._steady, False, MAX_STEADY_STRETCH),
            (self.knots, False, MAX_FREE_STRETCH),
            (self.knots, True, 0.0),
        ):
            knots = self.guided_knots(
                finder, departure, q, duration, touching, paths, KNOT_INTERVALS, keep_end_clearance
            )
            motion = self.with_timing(knots, times, departure.closed)
            if best is None or motion.rank < best.rank:
                best = motion
            if finder is self.knots and (
                best.missed > HOPELESS_DEFICIT_M or not knots.check_separation
            ):  # to limit the clearance would not help
                break
            if best.missed <= ACCEPTED_DEFICIT_M and best.held and best.stretch <= max_stretch:
                break
        assert best is not None
        if best.knots.unsmoothed > HOPELESS_DEFICIT_M:
            best = replace(
                best,
                knots=replace(best.knots, q=straight_knots(self.robot, departure.q, q, KNOT_INTERVALS)),
                stretch=1.0,
            )
        return best

    def guided_knots(
        self,
        finder: KnotFinder,
        departure: Departure,
        q: np.ndarray,
        duration: float,
        touching: tuple[Contact, ...],
        paths: Mapping[str, LimbPath | PosturePath],
        count: int = KNOT_INTERVALS,
        keep_end_clearance: bool = False,
    ) -> Knots:
        """Find ``count + 1`` knots near the straight motion, with patches on given paths; without paths, cached."""
        key = (finder, departure.q.tobytes(), q.tobytes(), departure.closed, touching, count, keep_end_clearance)
        if not paths and key in self._free_knots:
            return self._free_knots[key]
        times = np.linspace(0.0, duration, count + 1)
        guided = []
        for patch, path in paths.items():
            samples = [path.sample(t) for t in times]
            midpoints = np.array([path.sample(t).p for t in 0.5 * (times[1:] + times[:-1])])
            guided.append(PatchPath(patch, np.array([x.p for x in samples]), (samples[0].R, samples[-1].R), midpoints))
        guides = straight_knots(self.robot, departure.q, q, count)
        knots = finder.find(guides, departure.closed, guided, touching, keep_end_clearance)
        if not paths:
            self._free_knots[key] = knots
        return knots

    def with_timing(self, knots: Knots, times: np.ndarray, contacts: tuple[Contact, ...]) -> BodyMotion:
        """Compute the stretch of knots at ``times`` (k,), and whether they are in static equilibrium."""
        if knots.missed > MAX_DEFICIT_M:  # no duration makes it collision-free
            return BodyMotion(times, knots, 1.0, False)
        posture, com = PostureSpline(times, knots.q), Spline(times, self.robot.com(knots.q))
        return BodyMotion(times, knots, *self.durations.stretch(com, posture, contacts))

    def slow_down(self, motion: BodyMotion, contacts: tuple[Contact, ...]) -> BodyMotion:
        """Return the same motion, slowed down to the limits of speeds and accelerations."""
        for _ in range(MAX_STRETCHES):
            if motion.stretch <= STRETCH_TOLERANCE:
                break
            times = motion.stretch * motion.times
            motion = self.with_timing(motion.knots, times, contacts)
        return motion

    def find_raised(
        self, departure: Departure, old: Contact, q: np.ndarray, duration: float, touching: tuple[Contact, ...]
    ) -> BodyMotion:
        """Find a body motion that lifts a patch off its support: raised halfway, or else straight.

        ``old`` is the contact of the patch; for the other parameters see `find`.
        """
        straight = straight_knots(self.robot, departure.q, q, KNOT_INTERVALS)
        halfway = straight[KNOT_INTERVALS // 2]
        position = self.robot.frame_pose(halfway, old.patch)[:3, 3]
        position = position - ((position - old.p) @ old.normal) * old.normal
        lift = self.settings.avoidance.swing_clearance * old.normal
        raised_posture = self.knots.lift_patch(halfway, departure.closed, old.patch, position, lift)
        step, times = self.robot.difference(halfway, raised_posture), np.linspace(0.0, 1.0, KNOT_INTERVALS + 1)
        shares = [minimum_jerk(min(2.0 * t, 2.0 - 2.0 * t))[0] for t in times]
        lifted = np.array([self.robot.integrate(q, step, share) for q, share in zip(straight, shares, strict=True)])
        best: BodyMotion | None = None
        for guides in (lifted, straight):
            knots = self.knots.find(guides, departure.closed, (), touching)
            motion = self.with_timing(self._with_lift_off(knots, old), duration * times, departure.closed)
            if best is None or motion.rank < best.rank:
                best = motion
            if best.missed <= ACCEPTED_DEFICIT_M:
                break
        assert best is not None
        return best

    def _with_lift_off(self, knots: Knots, old: Contact | None) -> Knots:
        """Return the knots, marked as in collision if a patch does not rise by `MIN_LIFT_M` above its old support."""
        if old is None:
            return knots
        X = self.robot.frame_pose(knots.q, old.patch)
        corners = np.einsum("kij,cj->kci", X[:, :3, :3], self.robot.patches[old.patch].points) + X[:, None, :3, 3]
        height = float(((corners - old.p) @ old.normal).min(axis=1).max())
        required = self.robot.scale.leg * MIN_LIFT_M
        if height >= required:
            return knots
        return replace(knots, missed=max(knots.missed, MAX_DEFICIT_M + required - height))

    def with_detour(
        self,
        direct: BodyMotion,
        departure: Departure,
        q: np.ndarray,
        touching: tuple[Contact, ...],
        old: Contact | None = None,
    ) -> BodyMotion:
        """Find a motion around an obstacle; return ``direct`` if it is collision-free or no detour is found.

        Parameters
        ----------
        direct : motion near the straight one.
        departure, q, touching : see `find`.
        old : contact from which a patch has to lift off, or None.
        """
        if direct.missed <= MAX_DEFICIT_M:
            return direct
        guides = self.detour(departure, q, touching)
        if guides is None:
            return direct
        knots = self.knots.find(guides, departure.closed, (), touching)
        times = np.linspace(0.0, direct.duration, KNOT_INTERVALS + 1)
        detour = self.with_timing(self._with_lift_off(knots, old), times, departure.closed)
        return detour if detour.missed <= MAX_DEFICIT_M else direct

    def detour(self, departure: Departure, q: np.ndarray, touching: tuple[Contact, ...]) -> np.ndarray | None:
        """Return the knots (k, nq) of a detour, or None; the last result is cached."""
        key = (departure.q.tobytes(), q.tobytes(), *(contact.patch for contact in (*departure.closed, *touching)))
        if key not in self._detours:
            self._detours = {key: Detour(self.knots, departure.q, q, departure.closed, touching).knots(KNOT_INTERVALS)}
        return self._detours[key]
