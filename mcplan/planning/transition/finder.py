"""Motion from one stance to the next: knots, swing paths of patches in the air, and durations."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from mcplan.collision.model import CollisionModel
from mcplan.motion.limb_path import LimbPath, PosturePath, Timing
from mcplan.motion.spline import PostureSpline
from mcplan.planning.transition.body_motion import (
    GOOD_DEFICIT_M,
    KNOT_INTERVALS,
    LOST_DEFICIT_M,
    STRETCH_TOLERANCE,
    BodyMotion,
    Departure,
    MotionFinder,
)
from mcplan.planning.transition.knots import MAX_DEFICIT_M, Knots, ObjectPoses, straight_knots
from mcplan.planning.transition.object_path import ObjectPath, taken_along
from mcplan.planning.transition.transition import ClosestApproach, Segment, SwingSpec
from mcplan.robot.pose import Pose
from mcplan.robot.robot import Robot
from mcplan.scene.allowed import allowed_pose
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment
from mcplan.settings.control import LIMB_ANGULAR_SPEED_RAD_S, ControlSettings

LIFT_HEIGHTS_M = (0.0, 0.04, 0.08, 0.12, 0.16, 0.2, 0.25, 0.3)
"""m: lift heights beyond the clearance, tried in turn until the motion is collision-free."""

SLIDE_SPEED_M_S = 0.2
"""Largest speed of an object that is pushed or pulled."""

LOOK_INTERVALS = 16
"""Intervals of a motion in `TransitionFinder.look`."""

PATH_TOLERANCE_M = 8e-3
"""m: a patch whose path the knots leave by more follows the knots instead."""

TRANSPORT_INTERVALS = 2 * KNOT_INTERVALS
"""Intervals of a motion with objects: contacts that move with them are kept between its knots, too."""

NONE = np.zeros(3)


class _Over(NamedTuple):
    """A motion in which a patch is lifted over an obstacle, with its lift and approach (3,), (3,)."""

    motion: BodyMotion
    lift: np.ndarray
    approach: np.ndarray


PathMaker = Callable[[PostureSpline], dict[str, LimbPath | PosturePath]]
"""Makes the paths of patches for a straight motion of the body."""


class TransitionFinder:
    """Finds segments of transitions in one scene.

    Parameters
    ----------
    robot, environment : the scene.
    settings : speeds, clearances, and usable shares of contacts.
    collisions : of the same scene, where they are known.
    """

    def __init__(
        self,
        robot: Robot,
        environment: Environment,
        settings: ControlSettings,
        collisions: CollisionModel | None = None,
    ):
        self.robot, self.environment, self.settings = robot, environment, settings
        self.timing = Timing(settings.timing.limb_speed, LIMB_ANGULAR_SPEED_RAD_S, share=settings.timing.swing_blend)
        self.collisions = collisions or CollisionModel(robot, environment)
        self.heights = tuple(robot.scale.leg * height for height in LIFT_HEIGHTS_M)
        self.motions = MotionFinder(robot, environment, settings, self.collisions)
        self.knots, self.durations = self.motions.knots, self.motions.durations

    # -- what a segment does ----------------------------------------------------------------------------------------

    def shift(self, begin: Departure, q: np.ndarray) -> Segment:
        """Find the motion of the body to posture q (nq,), with all patches in the air.

        Limbs that still rest on an old support go off it along its normal, and on as the straight motion of the joints
        takes them; the body follows. Where that is in collision they go as the body does.
        """
        lifts = {patch: self._lift_off(begin, patch, contact, q) for patch, contact in begin.rising.items()}

        def path_of(straight: PostureSpline) -> dict[str, LimbPath | PosturePath]:
            return {
                patch: PosturePath(
                    self.robot, patch, straight, self._place(begin.q, patch)[1], None, lift, NONE, self.timing, 0.0,
                    (1.0, 0.0),
                )
                for patch, lift in lifts.items()
            }  # fmt: skip

        touching = tuple(begin.rising.values())
        straight = self.durations.straight(begin.q, q, begin.closed)
        motion = self._with_body(begin, q, straight, touching, path_of)
        motion = self._around(motion, begin, q, touching)
        courses = tuple(SwingSpec(patch, "body", NONE, NONE, True) for patch in lifts)
        return self._segment(begin, q, motion, courses, touching)

    def swing(self, begin: Departure, q: np.ndarray, added: Sequence[Contact], above: float = 0.0) -> Segment:
        """Find the motion of a patch to a new contact, and of the body to the posture q (nq,) there.

        From one support to another the patch goes off along the old normal, over the higher of the two places and what
        is in between, and down along the new normal; from the air it goes as its posture does, and down along the new
        normal.

        Parameters
        ----------
        added : the contact that it comes to; then those that its limb makes next: at the posture q they are in place
            too.
        above : how much higher than necessary the patch is to go from one support to another, where `look` has seen
            the deficit of lower paths (m).
        """
        contact, *coming = added
        touching = (*begin.rising.values(), *added)
        duration = self.durations.straight(begin.q, q, begin.closed)
        if contact.patch in begin.rising:
            found = self._step(begin, contact, q, duration, touching, above)
            assert found is not None
            motion, course = found
        else:
            motion, course = self._reach_out(begin, contact, q, duration, touching)
        courses = [course]
        if motion.knots.unsmoothed <= LOST_DEFICIT_M:
            # knee and toe of a shank come down together: left to itself, the foot would block the knee. The
            # knots take the knee where it is led, so the toes go as they do: the shank could not follow two paths
            courses += [SwingSpec(other.patch, "body", NONE, NONE, False, other, True) for other in coming]
        return self._segment(begin, q, motion, tuple(courses), touching)

    def look(self, begin: Departure, q: np.ndarray, added: Sequence[Contact]) -> Knots:
        """Find knots of a swing, quicker than `swing`: few heights, the body free to move, no time law.

        It tells whether a path exists; what more `swing` tries seldom changes that.
        """
        contact, *_ = added
        patch, old, touching = contact.patch, begin.rising.get(contact.patch), (*begin.rising.values(), *added)
        duration = self.durations.straight(begin.q, q, begin.closed)
        heights = self.heights[::2]
        best: Knots | None = None
        least = 0.0
        for higher in (None, *heights) if old is None else (*heights, None):
            paths = {}
            if higher is not None:
                if higher < least:
                    continue
                lift, approach = lift_and_approach(
                    self._place(begin.q, patch)[1], contact, old, self.settings.avoidance.swing_clearance + higher
                )
                paths = {patch: self._swing_path(begin, contact, q, lift, approach, duration)}
            T = max([duration, *(path.duration for path in paths.values())])
            knots = self.motions.along(self.knots, begin, q, T, touching, paths, LOOK_INTERVALS)
            if best is None or knots.missed < best.missed:
                best = knots
            if best.missed <= MAX_DEFICIT_M:
                return replace(best, above=least)
            if higher is not None:
                least = higher + knots.missed - MAX_DEFICIT_M
        assert best is not None
        guides = self.motions.detour(begin, q, touching)
        around = best if guides is None else self.knots.find(guides, begin.closed, (), touching)
        return around if around.missed <= MAX_DEFICIT_M else best

    def retraction(self, begin: Departure, patch: str) -> Segment:
        """Find the lift of a patch that has nowhere to go yet clear of its support; the body moves along."""
        old = begin.rising[patch]
        place, height = self._place(begin.q, patch)[1], self.settings.avoidance.swing_clearance
        q = self.knots.lifted(begin.q, begin.closed, patch, place, height * old.normal)
        duration = max(self.timing.duration(height), self.durations.straight(begin.q, q, begin.closed))
        motion = self.motions.find(begin, q, duration, (old,), {})
        motion = self.motions.slowed(motion, begin.closed)
        return self._segment(begin, q, motion, (SwingSpec(patch, "body", NONE, NONE, True),), (old,))

    def transport(
        self, begin: Departure, q: np.ndarray, contacts: tuple[Contact, ...], objects: dict[str, np.ndarray]
    ) -> Segment:
        """Find the motion of the body to q (nq,) while objects go straight and take contacts on them along.

        Parameters
        ----------
        contacts : those of the departure where they are at the end.
        objects : {name: (7,)} their poses at the end.
        """
        paths = [
            ObjectPath.of(thing, objects[thing.name]) for thing in self.environment.objects if thing.name in objects
        ]
        speeds = [(path.length / SLIDE_SPEED_M_S, path.angle / LIMB_ANGULAR_SPEED_RAD_S) for path in paths]
        duration = max(self.durations.straight(begin.q, q, begin.closed), 15 / 8 * float(np.max(speeds)))
        times = np.linspace(0.0, duration, TRANSPORT_INTERVALS + 1)
        shares = [k / TRANSPORT_INTERVALS for k in range(1, TRANSPORT_INTERVALS)]
        inside = [taken_along(begin.closed, contacts, paths, share, self.environment) for share in shares]
        guides = straight_knots(self.robot, begin.q, q, TRANSPORT_INTERVALS)

        def poses(share: float) -> dict[str, Pose]:
            return {path.name: path.at(share) for path in paths}

        knots = self.knots.find(guides, [begin.closed, *inside, contacts], objects=poses)
        motion = self.motions.timed(knots, times, begin.closed)
        slow = self.motions.slowed(motion, begin.closed)
        segment = self._segment(begin, q, slow, (), (), poses)
        return replace(segment, contacts=contacts, objects=objects)

    # -- motions of a patch -------------------------------------------------------------------------------------------

    def _step(
        self,
        begin: Departure,
        contact: Contact,
        q: np.ndarray,
        duration: float,
        touching: tuple[Contact, ...],
        above: float,
        bound: float = np.inf,
    ) -> tuple[BodyMotion, SwingSpec] | None:
        """Find the motion from one support to another, as low as obstacles in between allow.

        From the air it goes off along the normal along which it will come down. Where no height will do a patch leaves
        its support as the body does, if that is collision-free: a knee below its hip cannot go straight up
        without the body. None where it misses as much as ``bound`` (m).
        """
        patch, old = contact.patch, begin.rising.get(contact.patch)
        over = self._over(begin, contact, q, duration, touching, above)
        free: BodyMotion | None = None
        if old is not None and (over.motion.missed > GOOD_DEFICIT_M or not over.motion.held):
            free = self.motions.risen(begin, old, q, duration, touching)
            free = self.motions.around(free, begin, q, touching, old)
        if over.motion.missed >= bound:
            return None
        if free is not None and free.rank < over.motion.rank and free.missed <= MAX_DEFICIT_M:
            slow = self.motions.slowed(free, begin.closed)
            return slow, SwingSpec(patch, "body", NONE, NONE, True, contact)
        slow = self.motions.slowed(over.motion, begin.closed)
        if over.motion.knots.strayed > self.robot.scale.leg * PATH_TOLERANCE_M:  # the knots go around an obstacle
            return slow, SwingSpec(patch, "body", NONE, NONE, old is not None, contact)
        return slow, SwingSpec(patch, "own", over.lift, over.approach, old is not None, contact)

    def _over(
        self,
        begin: Departure,
        contact: Contact,
        q: np.ndarray,
        duration: float,
        touching: tuple[Contact, ...],
        above: float,
    ) -> _Over:
        """Find the motion of a patch over obstacles, at the first height at which it is collision-free.

        Skip heights that gain less than the deficit at a lower one.
        """
        start, old = self._place(begin.q, contact.patch)[1], begin.rising.get(contact.patch)
        best, least = None, min(above, self.heights[-1])
        for higher in self.heights:
            if higher < least:
                continue
            lift, approach = lift_and_approach(start, contact, old, self.settings.avoidance.swing_clearance + higher)
            path = self._swing_path(begin, contact, q, lift, approach, duration)
            motion = self.motions.find(begin, q, path.duration, touching, {contact.patch: path})
            if best is None or motion.rank < best.motion.rank:
                best = _Over(motion, lift, approach)
            if motion.missed <= GOOD_DEFICIT_M:
                break
            least = higher + motion.missed - MAX_DEFICIT_M
        assert best is not None
        return best

    def _reach_out(
        self, begin: Departure, contact: Contact, q: np.ndarray, duration: float, touching: tuple[Contact, ...]
    ) -> tuple[BodyMotion, SwingSpec]:
        """Find the motion from the air to a support: as its posture goes, or over obstacles on that path."""
        patch, (_, start) = contact.patch, self._place(begin.q, contact.patch)
        distance = float(np.linalg.norm(contact.p - start))
        # a patch that has come to its place with another one of its limb is not lifted first
        approach = min(self.settings.avoidance.edge_clearance, distance) * contact.normal

        def path_of(straight: PostureSpline) -> dict[str, LimbPath | PosturePath]:
            end = self._end(contact, q)
            return {
                patch: PosturePath(
                    self.robot, patch, straight, start, end, NONE, approach, self.timing, 0.0, (0.0, 1.0)
                )
            }

        least = max(duration, self.timing.duration(distance + float(np.linalg.norm(approach))))
        motion = self._with_body(begin, q, least, touching, path_of)
        if motion.missed > GOOD_DEFICIT_M:
            over = self._step(begin, contact, q, duration, touching, 0.0, motion.missed)
            if over is not None:
                return over
        around = self._around(motion, begin, q, touching)
        return around, SwingSpec(patch, "body", NONE, NONE, False, contact)

    def _around(self, motion: BodyMotion, begin: Departure, q: np.ndarray, touching: tuple[Contact, ...]) -> BodyMotion:
        """Find a motion around an obstacle, within limits of speed."""
        around = self.motions.around(motion, begin, q, touching)
        return self.motions.slowed(around, begin.closed)

    def _with_body(
        self, begin: Departure, q: np.ndarray, duration: float, touching: tuple[Contact, ...], path_of: PathMaker
    ) -> BodyMotion:
        """Find a motion in which the body follows guided patches, or moves freely where that is in collision."""
        for _ in range(2):  # the lift of limbs takes no longer in a slower motion: the path differs
            paths = path_of(PostureSpline.to_rest(begin.q, q, duration))
            motion = self.motions.find(begin, q, duration, touching, paths)
            if paths and motion.missed > GOOD_DEFICIT_M:
                free = self.motions.find(begin, q, duration, touching, {})
                if free.missed < motion.missed:
                    motion = free
            if motion.stretch <= STRETCH_TOLERANCE:
                return motion
            duration *= motion.stretch
        return self.motions.slowed(motion, begin.closed)

    def _segment(
        self,
        begin: Departure,
        end: np.ndarray,
        motion: BodyMotion,
        courses: tuple[SwingSpec, ...],
        touching: tuple[Contact, ...],
        objects: ObjectPoses | None = None,
    ) -> Segment:
        knots, near = motion.knots, ClosestApproach(None, ())
        for k, q in enumerate(knots.q):
            there = objects and objects(k / (len(knots.q) - 1))
            here = self.collisions.smallest(q, (), (*begin.closed, *touching), there)
            if here is not None and (near.distance is None or here.distance < near.distance):
                near = ClosestApproach(float(here.distance), (here.pair.a, here.pair.b))
        com = self.robot.com(knots.q)
        knots.q[[0, -1]] = begin.q, end
        return Segment(
            begin.closed, motion.times, knots.q, com, courses, None, near, knots.missed, knots.worst, motion.held
        )

    # -- parts ------------------------------------------------------------------------------------------------------

    def _swing_path(
        self, begin: Departure, contact: Contact, q: np.ndarray, lift: np.ndarray, approach: np.ndarray, duration: float
    ) -> LimbPath:
        start, tight = self._place(begin.q, contact.patch), (float(contact.patch in begin.rising), 1.0)
        return LimbPath(start, self._end(contact, q), lift, approach, self.timing, 0.0, duration, tight)

    def _lift_off(self, begin: Departure, patch: str, old: Contact, q: np.ndarray) -> np.ndarray:
        """Return by what a patch leaves its support when its limb goes with the body (3,).

        Up: no higher than where it goes. Sideways: high enough not to graze the support. Below: over its edge.
        """
        clearance = self.settings.avoidance.swing_clearance
        step = self._place(q, patch)[1] - self._place(begin.q, patch)[1]
        rise = float(step @ old.normal)
        height = clearance if rise <= 0.0 else float(np.clip(rise, 0.3 * clearance, clearance))
        return old.normal * (height if rise > -clearance else self.settings.avoidance.edge_clearance)

    def _place(self, q: np.ndarray, patch: str) -> tuple[np.ndarray, np.ndarray]:
        X = self.robot.frame_pose(q, patch)
        return X[:3, :3], X[:3, 3]

    def _end(self, contact: Contact, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return where a patch comes to its contact, turned as the posture q has it."""
        return allowed_pose(contact, self._place(q, contact.patch))


def lift_and_approach(
    start: np.ndarray, contact: Contact, old: Contact | None, clearance: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return how far a patch that swings goes off its old support, and from how far it comes to its new one (3,), (3,).

    It keeps ``clearance`` (m) off both, and off the higher of the two along either normal. From the air it goes off
    along the normal along which it comes down.
    """
    step, normal = contact.p - start, (old or contact).normal
    lift = normal * max(clearance, clearance + float(step @ normal))
    return lift, contact.normal * max(clearance, clearance - float(step @ contact.normal))
