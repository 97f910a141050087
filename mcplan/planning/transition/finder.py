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
from mcplan.planning.transition.object_path import ObjectPath, contacts_at
from mcplan.planning.transition.transition import ClosestApproach, Segment, SwingSpec
from mcplan.robot.pose import Pose
from mcplan.robot.robot import Robot
from mcplan.scene.allowed_pose import allowed_pose
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment
from mcplan.settings.control import LIMB_ANGULAR_SPEED_RAD_S, ControlSettings

LIFT_HEIGHTS_M = (0.0, 0.04, 0.08, 0.12, 0.16, 0.2, 0.25, 0.3)
"""m: lift heights beyond the clearance, tried in turn until the motion is collision-free."""

SLIDE_SPEED_M_S = 0.2
"""m/s: largest speed of a moved object."""

LOOK_INTERVALS = 16
"""Knot intervals of a motion in `TransitionFinder.look`."""

PATH_TOLERANCE_M = 8e-3
"""m: if the knots deviate more from the path of a patch, the patch follows the knots instead."""

TRANSPORT_INTERVALS = 2 * KNOT_INTERVALS
"""Knot intervals of a motion with objects: more, since contacts on objects move between the knots."""

ZERO = np.zeros(3)


class _LiftedSwing(NamedTuple):
    """A motion in which a patch is lifted over obstacles, with its lift and approach (3,), (3,)."""

    motion: BodyMotion
    lift: np.ndarray
    approach: np.ndarray


PathMaker = Callable[[PostureSpline], dict[str, LimbPath | PosturePath]]
"""Function that returns the paths of patches for a straight motion of the body."""


class TransitionFinder:
    """Finds segments of transitions in one scene.

    Parameters
    ----------
    robot, environment : the scene.
    settings : speeds, clearances, and usable shares of contacts.
    collisions : collision model of the scene, if there is one already.
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

    # -- segments by purpose ----------------------------------------------------------------------------------------

    def shift(self, begin: Departure, q: np.ndarray) -> Segment:
        """Find the motion of the body to posture q (nq,); patches in the air move with it.

        Limbs that still rest on an old support first leave it along its normal, then follow the straight joint motion;
        the body follows. If that is in collision they move with the body.
        """
        lifts = {patch: self._lift_off(begin, patch, contact, q) for patch, contact in begin.resting.items()}

        def path_of(straight: PostureSpline) -> dict[str, LimbPath | PosturePath]:
            return {
                patch: PosturePath(
                    self.robot, patch, straight, self._place(begin.q, patch)[1], None, lift, ZERO, self.timing, 0.0,
                    (1.0, 0.0),
                )
                for patch, lift in lifts.items()
            }  # fmt: skip

        touching = tuple(begin.resting.values())
        straight = self.durations.straight(begin.q, q, begin.closed)
        motion = self._with_body(begin, q, straight, touching, path_of)
        motion = self._around(motion, begin, q, touching)
        courses = tuple(SwingSpec(patch, "body", ZERO, ZERO, True) for patch in lifts)
        return self._segment(begin, q, motion, courses, touching)

    def swing(self, begin: Departure, q: np.ndarray, added: Sequence[Contact], min_extra_lift: float = 0.0) -> Segment:
        """Find the motion of a patch to a new contact, and of the body to the posture q (nq,) there.

        From one support to another the patch lifts along the old normal, passes over obstacles in between, and comes
        down along the new normal. From the air it follows the joint motion, then comes down along the new normal.

        Parameters
        ----------
        added : the new contact; then those that the limb makes next, which are in place at the posture q, too.
        min_extra_lift : lift height beyond the clearance (m) below which `look` found only collisions.
        """
        contact, *following = added
        touching = (*begin.resting.values(), *added)
        duration = self.durations.straight(begin.q, q, begin.closed)
        if contact.patch in begin.resting:
            found = self._step(begin, contact, q, duration, touching, min_extra_lift)
            assert found is not None
            motion, course = found
        else:
            motion, course = self._reach_out(begin, contact, q, duration, touching)
        courses = [course]
        if motion.knots.unsmoothed <= LOST_DEFICIT_M:
            # knee and toe of a shank come down together, otherwise the foot would block the knee. The knots follow
            # the path of the knee, and the toes follow the knots: the shank cannot follow two paths
            courses += [SwingSpec(other.patch, "body", ZERO, ZERO, False, other, True) for other in following]
        return self._segment(begin, q, motion, tuple(courses), touching)

    def look(self, begin: Departure, q: np.ndarray, added: Sequence[Contact]) -> Knots:
        """Find knots of a swing, faster than `swing`: few heights, the body free to move, no duration.

        The result tells whether a path exists; the further attempts of `swing` seldom change that.
        """
        contact, *_ = added
        patch, old, touching = contact.patch, begin.resting.get(contact.patch), (*begin.resting.values(), *added)
        duration = self.durations.straight(begin.q, q, begin.closed)
        heights = self.heights[::2]
        best: Knots | None = None
        lowest = 0.0
        for extra_lift in (None, *heights) if old is None else (*heights, None):
            paths = {}
            if extra_lift is not None:
                if extra_lift < lowest:
                    continue
                lift, approach = lift_and_approach(
                    self._place(begin.q, patch)[1], contact, old, self.settings.avoidance.swing_clearance + extra_lift
                )
                paths = {patch: self._swing_path(begin, contact, q, lift, approach, duration)}
            T = max([duration, *(path.duration for path in paths.values())])
            knots = self.motions.along(self.knots, begin, q, T, touching, paths, LOOK_INTERVALS)
            if best is None or knots.missed < best.missed:
                best = knots
            if best.missed <= MAX_DEFICIT_M:
                return replace(best, min_extra_lift=lowest)
            if extra_lift is not None:
                lowest = extra_lift + knots.missed - MAX_DEFICIT_M
        assert best is not None
        guides = self.motions.detour(begin, q, touching)
        around = best if guides is None else self.knots.find(guides, begin.closed, (), touching)
        return around if around.missed <= MAX_DEFICIT_M else best

    def retraction(self, begin: Departure, patch: str) -> Segment:
        """Find the motion that lifts a patch without a next contact clear of its support; the body moves, too."""
        old = begin.resting[patch]
        place, height = self._place(begin.q, patch)[1], self.settings.avoidance.swing_clearance
        q = self.knots.lifted(begin.q, begin.closed, patch, place, height * old.normal)
        duration = max(self.timing.duration(height), self.durations.straight(begin.q, q, begin.closed))
        motion = self.motions.find(begin, q, duration, (old,), {})
        motion = self.motions.slowed(motion, begin.closed)
        return self._segment(begin, q, motion, (SwingSpec(patch, "body", ZERO, ZERO, True),), (old,))

    def transport(
        self, begin: Departure, q: np.ndarray, contacts: tuple[Contact, ...], objects: dict[str, np.ndarray]
    ) -> Segment:
        """Find the motion of the body to q (nq,) while objects, with the contacts on them, move straight.

        Parameters
        ----------
        contacts : the contacts of the departure, in their places at the end.
        objects : {name: (7,)} their poses at the end.
        """
        paths = [
            ObjectPath.of(thing, objects[thing.name]) for thing in self.environment.objects if thing.name in objects
        ]
        speeds = [(path.length / SLIDE_SPEED_M_S, path.angle / LIMB_ANGULAR_SPEED_RAD_S) for path in paths]
        duration = max(self.durations.straight(begin.q, q, begin.closed), 15 / 8 * float(np.max(speeds)))
        times = np.linspace(0.0, duration, TRANSPORT_INTERVALS + 1)
        shares = [k / TRANSPORT_INTERVALS for k in range(1, TRANSPORT_INTERVALS)]
        between = [contacts_at(begin.closed, contacts, paths, share, self.environment) for share in shares]
        guides = straight_knots(self.robot, begin.q, q, TRANSPORT_INTERVALS)

        def poses(share: float) -> dict[str, Pose]:
            return {path.name: path.at(share) for path in paths}

        knots = self.knots.find(guides, [begin.closed, *between, contacts], objects=poses)
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
        min_extra_lift: float,
        bound: float = np.inf,
    ) -> tuple[BodyMotion, SwingSpec] | None:
        """Find the motion from one support to another, as low as obstacles in between allow.

        A patch in the air is lifted along the normal of its new support. If every height is in collision the patch is
        lifted by the body motion, if that is collision-free: a knee below its hip cannot move straight up alone.
        Return None if the deficit is ``bound`` (m) or more.
        """
        patch, old = contact.patch, begin.resting.get(contact.patch)
        swing = self._lifted_swing(begin, contact, q, duration, touching, min_extra_lift)
        by_body: BodyMotion | None = None
        if old is not None and (swing.motion.missed > GOOD_DEFICIT_M or not swing.motion.held):
            by_body = self.motions.raised(begin, old, q, duration, touching)
            by_body = self.motions.around(by_body, begin, q, touching, old)
        if swing.motion.missed >= bound:
            return None
        if by_body is not None and by_body.rank < swing.motion.rank and by_body.missed <= MAX_DEFICIT_M:
            slow = self.motions.slowed(by_body, begin.closed)
            return slow, SwingSpec(patch, "body", ZERO, ZERO, True, contact)
        slow = self.motions.slowed(swing.motion, begin.closed)
        if swing.motion.knots.path_error > self.robot.scale.leg * PATH_TOLERANCE_M:  # the knots go around an obstacle
            return slow, SwingSpec(patch, "body", ZERO, ZERO, old is not None, contact)
        return slow, SwingSpec(patch, "own", swing.lift, swing.approach, old is not None, contact)

    def _lifted_swing(
        self,
        begin: Departure,
        contact: Contact,
        q: np.ndarray,
        duration: float,
        touching: tuple[Contact, ...],
        min_extra_lift: float,
    ) -> _LiftedSwing:
        """Find the motion of a patch over obstacles, at the first height at which it is collision-free.

        Skip heights that gain less than the deficit at a lower one.
        """
        start, old = self._place(begin.q, contact.patch)[1], begin.resting.get(contact.patch)
        best, lowest = None, min(min_extra_lift, self.heights[-1])
        clearance = self.settings.avoidance.swing_clearance
        for extra_lift in self.heights:
            if extra_lift < lowest:
                continue
            lift, approach = lift_and_approach(start, contact, old, clearance + extra_lift)
            path = self._swing_path(begin, contact, q, lift, approach, duration)
            motion = self.motions.find(begin, q, path.duration, touching, {contact.patch: path})
            if best is None or motion.rank < best.motion.rank:
                best = _LiftedSwing(motion, lift, approach)
            if motion.missed <= GOOD_DEFICIT_M:
                break
            lowest = extra_lift + motion.missed - MAX_DEFICIT_M
        assert best is not None
        return best

    def _reach_out(
        self, begin: Departure, contact: Contact, q: np.ndarray, duration: float, touching: tuple[Contact, ...]
    ) -> tuple[BodyMotion, SwingSpec]:
        """Find the motion from the air to a support: along the straight joint motion, or over obstacles on it."""
        patch, (_, start) = contact.patch, self._place(begin.q, contact.patch)
        distance = float(np.linalg.norm(contact.p - start))
        # a patch that another one of its limb has brought to its place is not lifted first
        approach = min(self.settings.avoidance.edge_clearance, distance) * contact.normal

        def path_of(straight: PostureSpline) -> dict[str, LimbPath | PosturePath]:
            end = self._end(contact, q)
            return {
                patch: PosturePath(
                    self.robot, patch, straight, start, end, ZERO, approach, self.timing, 0.0, (0.0, 1.0)
                )
            }

        duration_bound = max(duration, self.timing.duration(distance + float(np.linalg.norm(approach))))
        motion = self._with_body(begin, q, duration_bound, touching, path_of)
        if motion.missed > GOOD_DEFICIT_M:
            lifted = self._step(begin, contact, q, duration, touching, 0.0, motion.missed)
            if lifted is not None:
                return lifted
        around = self._around(motion, begin, q, touching)
        return around, SwingSpec(patch, "body", ZERO, ZERO, False, contact)

    def _around(self, motion: BodyMotion, begin: Departure, q: np.ndarray, touching: tuple[Contact, ...]) -> BodyMotion:
        """Return the motion, or one around an obstacle if it is in collision, slowed down to the speed limits."""
        around = self.motions.around(motion, begin, q, touching)
        return self.motions.slowed(around, begin.closed)

    def _with_body(
        self, begin: Departure, q: np.ndarray, duration: float, touching: tuple[Contact, ...], path_of: PathMaker
    ) -> BodyMotion:
        """Find a motion in which the body follows guided patches, or moves freely if that is in collision."""
        for _ in range(2):  # a slower motion has another path: limbs lift as fast as before
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
            moved = objects and objects(k / (len(knots.q) - 1))
            here = self.collisions.smallest(q, (), (*begin.closed, *touching), moved)
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
        start, tight = self._place(begin.q, contact.patch), (float(contact.patch in begin.resting), 1.0)
        return LimbPath(start, self._end(contact, q), lift, approach, self.timing, 0.0, duration, tight)

    def _lift_off(self, begin: Departure, patch: str, old: Contact, q: np.ndarray) -> np.ndarray:
        """Return the lift (3,) with which a patch leaves its support when its limb moves with the body.

        A rising patch lifts no higher than it rises; a patch that moves sideways lifts enough not to graze the support;
        a patch that goes below its support lifts over the edge.
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
        """Return the pose of a patch at its contact; free coordinates as in the posture q."""
        return allowed_pose(contact, self._place(q, contact.patch))


def lift_and_approach(
    start: np.ndarray, contact: Contact, old: Contact | None, clearance: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the lift of a swinging patch off its old support, and its approach to the new one (3,), (3,).

    The patch keeps ``clearance`` (m) from both places, along either normal. A patch in the air is lifted along the
    normal of its new support.
    """
    step, normal = contact.p - start, (old or contact).normal
    lift = normal * max(clearance, clearance + float(step @ normal))
    return lift, contact.normal * max(clearance, clearance - float(step @ contact.normal))
