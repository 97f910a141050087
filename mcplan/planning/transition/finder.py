"""Motion from one stance to the next: knots, swing paths of patches in the air, and durations.

A deficit (``missed``) is the distance (m) by which a motion falls short of its clearance; see `Knots`.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from mcplan.collision.model import CollisionModel
from mcplan.motion.limb_path import LimbPath, PosturePath, Timing
from mcplan.motion.spline import PostureSpline
from mcplan.planning.transition.body_motion import (
    ACCEPTED_DEFICIT_M,
    HOPELESS_DEFICIT_M,
    KNOT_INTERVALS,
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
"""Lift heights beyond the clearance, for HRP-2, tried in turn until the motion is collision-free."""

SLIDE_SPEED_M_S = 0.2
"""Largest speed of a moved object."""

PROBE_INTERVALS = 16
"""Number of knot intervals of a motion in `TransitionFinder.probe`."""

PATH_TOLERANCE_M = 8e-3
"""If the knots deviate more from the path of a patch, for HRP-2, the patch follows the knots instead."""

TRANSPORT_INTERVALS = 2 * KNOT_INTERVALS
"""Number of knot intervals of a motion with objects; it is larger, since contacts on objects move between the knots."""

PEAK_SPEED_RATIO = 15 / 8
"""Peak speed of a minimum-jerk motion from rest to rest, relative to its mean speed."""

ZERO = np.zeros(3)
"""Zero lift or approach."""


class _LiftedSwing(NamedTuple):
    """A motion in which a patch is lifted over obstacles, with the vectors ``lift`` and ``approach`` (m)."""

    motion: BodyMotion
    lift: np.ndarray
    approach: np.ndarray


PathMaker = Callable[[PostureSpline], dict[str, LimbPath | PosturePath]]
"""Function that returns the paths of patches for a straight motion of the body."""


class TransitionFinder:
    """Finder of segments of transitions in one scene.

    Parameters
    ----------
    robot, environment : the scene.
    settings : speeds, clearances, and usable shares of friction and forces.
    collisions : collision model of the scene; None: a new one.
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

    def shift(self, departure: Departure, q: np.ndarray) -> Segment:
        """Find the motion of the body to posture q (nq,); patches in the air move with it.

        Limbs that still rest on an old support first leave it along its normal, then follow the straight joint motion,
        and the body adapts. If that is in collision, the limbs move with the body.
        """
        lifts = {patch: self._lift_off(departure, patch, contact, q) for patch, contact in departure.resting.items()}

        def make_paths(straight: PostureSpline) -> dict[str, LimbPath | PosturePath]:
            return {
                patch: PosturePath(
                    self.robot,
                    patch,
                    straight,
                    start=self._patch_pose(departure.q, patch)[1],
                    end=None,
                    lift=lift,
                    approach=ZERO,
                    timing=self.timing,
                    start_time=0.0,
                    tightness=(1.0, 0.0),
                )
                for patch, lift in lifts.items()
            }

        touching = tuple(departure.resting.values())
        straight = self.durations.straight(departure.q, q, departure.closed)
        motion = self._follow_paths(departure, q, straight, touching, make_paths)
        motion = self._with_detour(motion, departure, q, touching)
        swings = tuple(_swing_with_body(patch, lifts_off=True) for patch in lifts)
        return self._segment(departure, q, motion, swings, touching)

    def swing(
        self, departure: Departure, q: np.ndarray, added: Sequence[Contact], min_extra_lift: float = 0.0
    ) -> Segment:
        """Find the motion of a patch to a new contact, and of the body to the posture q (nq,) there.

        From one support to another the patch lifts along the old normal, passes over obstacles in between, and comes
        down along the new normal. From the air it follows the joint motion, then comes down along the new normal.

        Parameters
        ----------
        added : the new contact; then those that the limb makes next, with their patches in place at q, too.
        min_extra_lift : lift height beyond the clearance (m) below which `probe` found only collisions.
        """
        contact, *later_contacts = added
        touching = (*departure.resting.values(), *added)
        duration = self.durations.straight(departure.q, q, departure.closed)
        if contact.patch in departure.resting:
            found = self._swing_between_supports(departure, contact, q, duration, touching, min_extra_lift)
            assert found is not None
            motion, first_swing = found
        else:
            motion, first_swing = self._swing_from_air(departure, contact, q, duration, touching)
        swings = [first_swing]
        if motion.knots.unsmoothed <= HOPELESS_DEFICIT_M:
            # knee and toe of a shank come down together, otherwise the foot would block the knee. The knots follow the
            # path of the knee, and the toes follow the knots, since the shank cannot follow two paths
            swings += [
                _swing_with_body(later.patch, lifts_off=False, target=later, hold=True) for later in later_contacts
            ]
        return self._segment(departure, q, motion, tuple(swings), touching)

    def probe(self, departure: Departure, q: np.ndarray, added: Sequence[Contact]) -> Knots:
        """Find knots of a swing, faster than `swing`: few heights, the body free to move, no duration.

        The result shows whether a path exists; the further attempts of `swing` seldom change that.
        """
        contact, *_ = added
        patch, touching = contact.patch, (*departure.resting.values(), *added)
        old = departure.resting.get(patch)
        duration = self.durations.straight(departure.q, q, departure.closed)
        heights = self.heights[::2]
        best: Knots | None = None
        min_extra_lift = 0.0
        for extra_lift in (None, *heights) if old is None else (*heights, None):
            paths = {}
            if extra_lift is not None:
                if extra_lift < min_extra_lift:
                    continue
                lift, approach = lift_and_approach(
                    self._patch_pose(departure.q, patch)[1],
                    contact,
                    old,
                    self.settings.avoidance.swing_clearance + extra_lift,
                )
                paths = {patch: self._swing_path(departure, contact, q, lift, approach, duration)}
            T = max([duration, *(path.duration for path in paths.values())])
            knots = self.motions.guided_knots(self.knots, departure, q, T, touching, paths, PROBE_INTERVALS)
            if best is None or knots.missed < best.missed:
                best = knots
            if best.missed <= MAX_DEFICIT_M:
                return replace(best, min_extra_lift=min_extra_lift)
            if extra_lift is not None:
                min_extra_lift = extra_lift + knots.missed - MAX_DEFICIT_M
        assert best is not None
        guides = self.motions.detour(departure, q, touching)
        detour = best if guides is None else self.knots.find(guides, departure.closed, (), touching)
        return detour if detour.missed <= MAX_DEFICIT_M else best

    def retraction(self, departure: Departure, patch: str) -> Segment:
        """Find the motion that lifts a patch without a next contact clear of its support; the body moves, too."""
        old = departure.resting[patch]
        position, height = self._patch_pose(departure.q, patch)[1], self.settings.avoidance.swing_clearance
        q = self.knots.lift_patch(departure.q, departure.closed, patch, position, height * old.normal)
        duration = max(self.timing.duration(height), self.durations.straight(departure.q, q, departure.closed))
        motion = self.motions.find(departure, q, duration, (old,), {})
        motion = self.motions.slow_down(motion, departure.closed)
        return self._segment(departure, q, motion, (_swing_with_body(patch, lifts_off=True),), (old,))

    def transport(
        self, departure: Departure, q: np.ndarray, contacts: tuple[Contact, ...], objects: dict[str, np.ndarray]
    ) -> Segment:
        """Find the motion of the body to q (nq,) while objects, with the contacts on them, move along straight paths.

        Parameters
        ----------
        contacts : the contacts of the departure at their poses at the end.
        objects : {name: (7,)} poses of the objects at the end.
        """
        paths = [
            ObjectPath.of(thing, objects[thing.name]) for thing in self.environment.objects if thing.name in objects
        ]
        speeds = [(path.length / SLIDE_SPEED_M_S, path.angle / LIMB_ANGULAR_SPEED_RAD_S) for path in paths]
        duration = max(
            self.durations.straight(departure.q, q, departure.closed), PEAK_SPEED_RATIO * float(np.max(speeds))
        )
        times = np.linspace(0.0, duration, TRANSPORT_INTERVALS + 1)
        shares = [k / TRANSPORT_INTERVALS for k in range(1, TRANSPORT_INTERVALS)]
        between = [contacts_at(departure.closed, contacts, paths, share, self.environment) for share in shares]
        guides = straight_knots(self.robot, departure.q, q, TRANSPORT_INTERVALS)

        def poses(share: float) -> dict[str, Pose]:
            return {path.name: path.at(share) for path in paths}

        knots = self.knots.find(guides, [departure.closed, *between, contacts], objects=poses)
        motion = self.motions.with_timing(knots, times, departure.closed)
        slow_motion = self.motions.slow_down(motion, departure.closed)
        segment = self._segment(departure, q, slow_motion, (), (), poses)
        return replace(segment, contacts=contacts, objects=objects)

    # -- motions of a patch -------------------------------------------------------------------------------------------

    def _swing_between_supports(
        self,
        departure: Departure,
        contact: Contact,
        q: np.ndarray,
        duration: float,
        touching: tuple[Contact, ...],
        min_extra_lift: float,
        max_deficit: float = np.inf,
    ) -> tuple[BodyMotion, SwingSpec] | None:
        """Find the motion from one support to another, as low as obstacles in between allow.

        A patch in the air is lifted along the normal of its new support. If every height is in collision the patch is
        lifted by the body motion, if that is collision-free: a knee below its hip cannot move straight up alone.
        Return None if the deficit is ``max_deficit`` (m) or more.
        """
        patch, old = contact.patch, departure.resting.get(contact.patch)
        swing = self._lifted_swing(departure, contact, q, duration, touching, min_extra_lift)
        body_lift: BodyMotion | None = None
        if old is not None and (swing.motion.missed > ACCEPTED_DEFICIT_M or not swing.motion.held):
            body_lift = self.motions.find_raised(departure, old, q, duration, touching)
            body_lift = self.motions.with_detour(body_lift, departure, q, touching, old)
        if swing.motion.missed >= max_deficit:
            return None
        if body_lift is not None and body_lift.rank < swing.motion.rank and body_lift.missed <= MAX_DEFICIT_M:
            slow_motion = self.motions.slow_down(body_lift, departure.closed)
            return slow_motion, _swing_with_body(patch, lifts_off=True, target=contact)
        slow_motion = self.motions.slow_down(swing.motion, departure.closed)
        if swing.motion.knots.path_error > self.robot.scale.leg * PATH_TOLERANCE_M:  # the knots go around an obstacle
            return slow_motion, _swing_with_body(patch, lifts_off=old is not None, target=contact)
        return slow_motion, SwingSpec(
            patch, "own", lift=swing.lift, approach=swing.approach, lifts_off=old is not None, target=contact
        )

    def _lifted_swing(
        self,
        departure: Departure,
        contact: Contact,
        q: np.ndarray,
        duration: float,
        touching: tuple[Contact, ...],
        min_extra_lift: float,
    ) -> _LiftedSwing:
        """Find the motion of a patch over obstacles, at the first height at which it is collision-free.

        After a collision at one height, the next one must exceed it by at least the deficit minus `MAX_DEFICIT_M`.
        """
        start, old = self._patch_pose(departure.q, contact.patch)[1], departure.resting.get(contact.patch)
        best, lower_bound = None, min(min_extra_lift, self.heights[-1])
        clearance = self.settings.avoidance.swing_clearance
        for extra_lift in self.heights:
            if extra_lift < lower_bound:
                continue
            lift, approach = lift_and_approach(start, contact, old, clearance + extra_lift)
            path = self._swing_path(departure, contact, q, lift, approach, duration)
            motion = self.motions.find(departure, q, path.duration, touching, {contact.patch: path})
            if best is None or motion.rank < best.motion.rank:
                best = _LiftedSwing(motion, lift, approach)
            if motion.missed <= ACCEPTED_DEFICIT_M:
                break
            lower_bound = extra_lift + motion.missed - MAX_DEFICIT_M
        assert best is not None
        return best

    def _swing_from_air(
        self, departure: Departure, contact: Contact, q: np.ndarray, duration: float, touching: tuple[Contact, ...]
    ) -> tuple[BodyMotion, SwingSpec]:
        """Find the motion from the air to a support: along the straight joint motion, or over obstacles on it."""
        patch, (_, start) = contact.patch, self._patch_pose(departure.q, contact.patch)
        distance = float(np.linalg.norm(contact.p - start))
        # a patch that is already near its contact, moved there with another patch of its limb, is not lifted first
        approach = min(self.settings.avoidance.edge_clearance, distance) * contact.normal

        def make_paths(straight: PostureSpline) -> dict[str, LimbPath | PosturePath]:
            end = self._contact_pose(contact, q)
            return {
                patch: PosturePath(
                    self.robot,
                    patch,
                    straight,
                    start=start,
                    end=end,
                    lift=ZERO,
                    approach=approach,
                    timing=self.timing,
                    start_time=0.0,
                    tightness=(0.0, 1.0),
                )
            }

        duration_bound = max(duration, self.timing.duration(distance + float(np.linalg.norm(approach))))
        motion = self._follow_paths(departure, q, duration_bound, touching, make_paths)
        if motion.missed > ACCEPTED_DEFICIT_M:
            lifted = self._swing_between_supports(departure, contact, q, duration, touching, 0.0, motion.missed)
            if lifted is not None:
                return lifted
        with_detour = self._with_detour(motion, departure, q, touching)
        return with_detour, _swing_with_body(patch, lifts_off=False, target=contact)

    def _with_detour(
        self, motion: BodyMotion, departure: Departure, q: np.ndarray, touching: tuple[Contact, ...]
    ) -> BodyMotion:
        """Return the motion, or one around an obstacle if it is in collision, slowed down to the speed limits."""
        result = self.motions.with_detour(motion, departure, q, touching)
        return self.motions.slow_down(result, departure.closed)

    def _follow_paths(
        self, departure: Departure, q: np.ndarray, duration: float, touching: tuple[Contact, ...], make_paths: PathMaker
    ) -> BodyMotion:
        """Find a motion in which patches follow paths, or the body moves freely if that is in collision."""
        for _ in range(2):  # a slower motion has another path, since limbs lift as fast as before
            paths = make_paths(PostureSpline.to_rest(departure.q, q, duration))
            motion = self.motions.find(departure, q, duration, touching, paths)
            if paths and motion.missed > ACCEPTED_DEFICIT_M:
                free_motion = self.motions.find(departure, q, duration, touching, {})
                if free_motion.missed < motion.missed:
                    motion = free_motion
            if motion.stretch <= STRETCH_TOLERANCE:
                return motion
            duration *= motion.stretch
        return self.motions.slow_down(motion, departure.closed)

    def _segment(
        self,
        departure: Departure,
        end: np.ndarray,
        motion: BodyMotion,
        swings: tuple[SwingSpec, ...],
        touching: tuple[Contact, ...],
        objects: ObjectPoses | None = None,
    ) -> Segment:
        """Return the segment of a motion, with the closest approach of bodies at its knots."""
        knots, closest_approach = motion.knots, ClosestApproach(None, ())
        for k, q in enumerate(knots.q):
            object_poses = objects and objects(k / (len(knots.q) - 1))
            closest = self.collisions.smallest(q, (), (*departure.closed, *touching), object_poses)
            if closest is not None and (
                closest_approach.distance is None or closest.distance < closest_approach.distance
            ):
                closest_approach = ClosestApproach(float(closest.distance), (closest.pair.a, closest.pair.b))
        com, postures = self.robot.com(knots.q), knots.q.copy()
        postures[[0, -1]] = departure.q, end
        return Segment(
            contacts=departure.closed,
            times=motion.times,
            q=postures,
            com=com,
            courses=swings,
            objects=None,
            near=closest_approach,
            missed=knots.missed,
            worst=knots.worst,
            held=motion.held,
        )

    # -- parts ------------------------------------------------------------------------------------------------------

    def _swing_path(
        self,
        departure: Departure,
        contact: Contact,
        q: np.ndarray,
        lift: np.ndarray,
        approach: np.ndarray,
        duration: float,
    ) -> LimbPath:
        start = self._patch_pose(departure.q, contact.patch)
        return LimbPath(
            start,
            end=self._contact_pose(contact, q),
            lift=lift,
            approach=approach,
            timing=self.timing,
            start_time=0.0,
            least_duration=duration,
            # a patch that starts in the air need not keep its orientation at the start
            tightness=(float(contact.patch in departure.resting), 1.0),
        )

    def _lift_off(self, departure: Departure, patch: str, old: Contact, q: np.ndarray) -> np.ndarray:
        """Return the lift (3,) with which a patch leaves its support when its limb moves with the body.

        A rising patch lifts no higher than it rises; a patch that moves sideways lifts enough not to graze the support;
        a patch that moves below its support lifts clear of the edge.
        """
        clearance = self.settings.avoidance.swing_clearance
        step = self._patch_pose(q, patch)[1] - self._patch_pose(departure.q, patch)[1]
        rise = float(step @ old.normal)
        height = clearance if rise <= 0.0 else float(np.clip(rise, 0.3 * clearance, clearance))
        return old.normal * (height if rise > -clearance else self.settings.avoidance.edge_clearance)

    def _patch_pose(self, q: np.ndarray, patch: str) -> tuple[np.ndarray, np.ndarray]:
        X = self.robot.frame_pose(q, patch)
        return X[:3, :3], X[:3, 3]

    def _contact_pose(self, contact: Contact, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the pose of a patch at its contact; free coordinates as in the posture q."""
        return allowed_pose(contact, self._patch_pose(q, contact.patch))


def _swing_with_body(patch: str, *, lifts_off: bool, target: Contact | None = None, hold: bool = False) -> SwingSpec:
    """Return the swing of a patch that follows the body motion, without a path of its own."""
    return SwingSpec(patch, "body", lift=ZERO, approach=ZERO, lifts_off=lifts_off, target=target, hold=hold)


def lift_and_approach(
    start: np.ndarray, contact: Contact, old: Contact | None, clearance: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the lift (3,) of a swinging patch off its old support, and its approach (3,) to the new one.

    Between them the patch is at least ``clearance`` (m) above both contacts, along either normal. A patch in the air is
    lifted along the normal of its new support.

    Parameters
    ----------
    start : (3,) position of the patch at the beginning, m.
    contact, old : its new contact, and the contact that it leaves, or None.
    clearance : m.
    """
    step, normal = contact.p - start, (old or contact).normal
    lift = normal * max(clearance, clearance + float(step @ normal))
    return lift, contact.normal * max(clearance, clearance - float(step @ contact.normal))
