"""Trajectories of swing limbs: lift-swing-approach, along a posture motion, recovery step; patch orientation."""

import math
from typing import NamedTuple

import numpy as np

from mcplan.core.algebra.rotation import rotation_error
from mcplan.core.motion import reference
from mcplan.core.rigid_body.tree import workspace
from mcplan.motion.rotation import rotation_vector
from mcplan.motion.spline import PostureSpline, ReferenceSample, Spline
from mcplan.robot.pose import Pose
from mcplan.robot.robot import Robot

__all__ = ["Pose", "PosePath", "PoseSample"]


class PoseSample(NamedTuple):
    """A pose reference: R (3,3) and p (3,) with velocity and acceleration (6,), linear then angular.

    ``tightness`` in [0, 1]: relative weight of the orientation.
    """

    R: np.ndarray
    p: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    tightness: float


class PosePath:
    """Base class of paths of a patch: they write their pose at a time."""

    def write(self, t: float, pose: np.ndarray) -> float:
        """Write the reference at time t to ``pose`` (24,), see `core.motion.reference`; return the tightness."""
        raise NotImplementedError

    def sample(self, t: float) -> PoseSample:
        """Return the reference at time t; the end is held."""
        x = np.empty(24)
        tightness = self.write(t, x)
        return PoseSample(x[:9].reshape(3, 3), x[9:12], x[12:18], x[18:], tightness)


class HeldPose(PosePath):
    """A pose (R, p) that a patch or an object keeps from a time on (s)."""

    tightness = 1.0, 1.0

    def __init__(self, pose: Pose, start_time: float):
        self.end, self.start_time = pose, start_time
        self.end_time = self.swing_time = self.approach_time = start_time
        self._rest = np.concatenate([np.ravel(pose[0]), pose[1], np.zeros(12)])

    def write(self, t: float, pose: np.ndarray) -> float:
        """Write the reference at time t to ``pose`` (24,); return the tightness."""
        pose[:] = self._rest
        return 1.0


class Timing(NamedTuple):
    """Speed limits and timing of limb paths.

    speed : largest linear speed of a piece (m/s).
    angular_speed : largest angular speed of the swing (rad/s).
    shortest : least duration of a piece (s).
    overlap : fraction of lift and approach that overlaps the swing.
    share : least duration of lift and approach as a fraction of the swing's. With short lifts a long swing would have
        sharp corners, at which a time-optimal motion slows down.
    """

    speed: float = 0.5
    angular_speed: float = 1.5
    shortest: float = 0.3
    overlap: float = 0.4
    share: float = 0.0

    def duration(self, distance: float, angle: float = 0.0) -> float:
        """Return the duration of a minimum-jerk piece within the speed limits."""
        if distance <= 0.0 and angle <= 0.0:
            return 0.0
        return max(self.shortest, 15 / 8 * distance / self.speed, 15 / 8 * angle / self.angular_speed)


UNLIMITED_TIMING = Timing(np.inf, np.inf, 1e-3)
"""Without speed limits, for paths whose duration is given."""


class OrientationReference:
    """Base class of orientation references: they write their part of a pose at a time."""

    def write(self, t: float, pose: np.ndarray) -> None:
        """Write rotation and angular rates at time t to ``pose`` (24,)."""
        raise NotImplementedError

    def sample(self, t: float) -> ReferenceSample:
        """Return R (3,3), angular velocity and acceleration (3,) at time t."""
        x = np.empty(24)
        self.write(t, x)
        return ReferenceSample(x[:9].reshape(3, 3), x[15:18], x[21:24])


class RotationTrajectory(OrientationReference):
    """``R(t) = exp(phi(t)) R(start)`` with phi of degree five; from rest, the rotation by the smallest angle.

    Parameters
    ----------
    start, end : (3,3) rotations.
    duration : s, positive.
    velocity, acceleration : (3,) angular, in the axes in which ``start`` is given (rad/s, rad/s²); None is zero.
    start_time : s.
    """

    def __init__(
        self,
        start: np.ndarray,
        end: np.ndarray,
        duration: float,
        velocity: np.ndarray | None = None,
        acceleration: np.ndarray | None = None,
        start_time: float = 0.0,
    ):
        self.start, self.end = np.array(start, float, order="C"), np.array(end, float, order="C")
        self.phi = Spline.to_rest(
            np.zeros(3), rotation_vector(self.end @ self.start.T), duration, velocity, acceleration, start_time
        )
        self._arguments = self.phi.coefficients[0], start_time, float(duration), self.start, self.end
        self._scratch = np.empty((3, 3))

    def write(self, t: float, pose: np.ndarray) -> None:
        """Write rotation and angular rates at time t to ``pose`` (24,)."""
        reference.sample_rotation(*self._arguments, t, self._scratch, pose)


class LimbPath(PosePath):
    """Smooth pose trajectory of a lift, a swing and an approach.

    Three minimum-jerk pieces s1, s2, s3 overlap in time, each from rest to rest:

        p(t) = pA + nA hA s1(t) + (pB + nB hB - pA - nA hA) s2(t) - nB hB s3(t)

    The swing (s2) begins when the lift (s1) is past its middle, and the approach (s3) begins before the swing ends.
    This rounds the corners: p is twice continuously differentiable, with zero velocity and acceleration at both ends.
    The first part is a motion along nA only, the last one along nB only. Orientation and tightness change during the
    swing: in the air a limb with few joints keeps the orientation of its posture.

    Parameters
    ----------
    start, end : poses (R, p) of the patch frame.
    lift, approach : (3,) nA hA and nB hB (m): displacement along the normal of the old and of the new contact; zero
        without such a contact.
    timing : speed limits.
    start_time : s.
    least_duration : s; a faster path is slowed down as a whole.
    tightness : relative weight of the orientation at the start and at the end.
    turn : orientation reference; None: rotation by the smallest angle during the swing.
    """

    def __init__(
        self,
        start: Pose,
        end: Pose,
        lift: np.ndarray,
        approach: np.ndarray,
        timing: Timing | None = None,
        start_time: float = 0.0,
        least_duration: float = 0.0,
        tightness: tuple[float, float] = (1.0, 1.0),
        turn: OrientationReference | None = None,
    ):
        timing = timing or Timing()
        (R0, p0), (R1, p1) = start, end
        self._p = np.array(p0, float)
        self.end, self.start_time, self.tightness = (R1, p1), start_time, tightness
        turned = rotation_vector(R1 @ R0.T)
        angles = (0.0, math.sqrt(turned @ turned), 0.0)
        # Python floats: paths are created within control ticks, and arrays of three cost ten times as much
        rise, offset = np.asarray(lift).tolist(), np.asarray(approach).tolist()
        swing = [b + d - a - r for a, b, d, r in zip(self._p.tolist(), p1.tolist(), offset, rise, strict=True)]
        displacements = rise, swing, [-d for d in offset]
        distances = [math.sqrt(x * x + y * y + z * z) for x, y, z in displacements]
        T_lift, T_swing, T_approach = map(timing.duration, distances, angles)
        T_lift, T_approach = (max(T, timing.share * T_swing) if T > 0.0 else 0.0 for T in (T_lift, T_approach))
        swing_begin = (1 - timing.overlap) * T_lift if T_swing > 0.0 else 0.0
        approach_begin = max(swing_begin + T_swing - timing.overlap * T_approach, T_lift) if T_swing > 0.0 else T_lift
        total = max(T_lift, swing_begin + T_swing, approach_begin + T_approach)
        scale = max(1.0, least_duration / total) if total > 0.0 else 1.0
        self._T = [max(scale * T, 1e-9) for T in (T_lift, T_swing, T_approach)]
        self._begin = [start_time + scale * begin for begin in (0.0, swing_begin, approach_begin)]
        self._pieces = np.array([[t, T, *d] for t, T, d in zip(self._begin, self._T, displacements, strict=True)])
        self.duration = max(scale * total, least_duration)
        self.turn = turn or RotationTrajectory(R0, R1, self._T[1], start_time=self._begin[1])

    def write(self, t: float, pose: np.ndarray) -> float:
        """Write the reference at time t to ``pose`` (24,); return the tightness. The end is held."""
        progress = reference.sample_swing(self._p, self._pieces, t, pose)
        self.turn.write(t, pose)
        begin, end = self.tightness
        return begin + (end - begin) * progress

    @property
    def end_time(self) -> float:
        """Time from which the end is held (s)."""
        return self.start_time + self.duration

    @property
    def swing_time(self) -> float:
        """Time at which the lift ends (s)."""
        return self._begin[0] + self._T[0]

    @property
    def approach_time(self) -> float:
        """Time from which the limb moves only along the normal of its new contact (s)."""
        return max(self._begin[1] + self._T[1], self.swing_time)


MAX_APPROACH_SHARE = 0.5
"""Largest duration of the approach, as a fraction of the duration of the posture motion."""


class PosturePath(PosePath):
    """Trajectory of a patch by forward kinematics of a posture reference, with offsets along the normals.

        p(t) = p_FK(q(u)) + e + sum_i d_i s_i(t),   R(t) = R_FK(q(u)),   u = t + a s(t)

    ``q`` is the posture reference, ``FK`` the pose of the patch in it, ``e`` the offset of its position at the start,
    and ``s`` a minimum-jerk profile from 0 to 1.

    The patch is ahead of the body: by the time ``a`` at the end. It reaches the point above its support while the body
    still moves, because that point may be out of reach afterwards, and touches when the body arrives.

    Each piece displaces the patch by ``d_i`` with the minimum-jerk profile ``s_i``: lift off the old support, return
    to zero offset; rise to the approach height, and approach; a small correction that makes the end exact. A limb that
    follows its own posture does not disturb the other joints, and stays within the joint limits.

    Parameters
    ----------
    robot : Robot
    patch : name of the patch that moves.
    posture : whole-body reference. The limb may lift before the body starts, and arrives when the body arrives.
    start : (3,) present position.
    end : (R, p) of the new contact, or None for the pose of the patch at the end of the posture.
    lift, approach : (3,) offsets along the normals of old and new support; zero without such a support.
    timing : speed limits.
    start_time : s.
    tightness : relative weight of the orientation at the start and at the end.
    """

    def __init__(
        self,
        robot: Robot,
        patch: str,
        posture: PostureSpline,
        start: np.ndarray,
        end: Pose | None,
        lift: np.ndarray,
        approach: np.ndarray,
        timing: Timing,
        start_time: float,
        tightness: tuple[float, float],
    ):
        self.patch, self.posture, self.start_time, self.tightness = patch, posture, start_time, tightness
        first_pose, last_pose = (robot.frame_pose(q, patch) for q in (posture.sample(start_time).q, posture.end))
        self.end = (last_pose[:3, :3], last_pose[:3, 3]) if end is None else end
        self._start_error = np.asarray(start) - first_pose[:3, 3]
        begin, finish = max(start_time, posture.start_time), posture.end_time
        T_lift, T_approach = (timing.duration(float(np.linalg.norm(d))) for d in (lift, approach))
        if T_approach > 0.0:
            T_approach = max(T_approach, timing.share * (finish - begin))
        T_approach = min(T_approach, MAX_APPROACH_SHARE * max(finish - begin, 0.0))
        approach_begin = finish - (1.0 - timing.overlap) * T_approach
        pieces = [
            (lift, start_time, T_lift),
            (-np.asarray(lift), begin + 0.5 * (approach_begin - begin), 0.5 * (approach_begin - begin)),
            (approach, begin, 0.5 * (approach_begin - begin)),
            (-np.asarray(approach), finish - T_approach, T_approach),
            (self.end[1] - last_pose[:3, 3] - self._start_error, begin, approach_begin - begin),
        ]
        nonzero = [(t, T, *d) for d, t, T in pieces if T > 0.0 and np.any(d)]
        self.swing_time = min(max(begin, start_time + T_lift), approach_begin)
        self.approach_time, self.end_time = approach_begin, max(finish, start_time)
        self._arguments = (
            *robot.tree, *robot.frame(patch), workspace(robot.tree), *posture.arrays, *posture.workspace,
            begin, max(approach_begin - begin, 1e-9), max(finish - approach_begin, 0.0), self._start_error,
            np.array(nonzero, float).reshape(-1, 5),
        )  # fmt: skip
        self._rest = np.concatenate([np.ravel(self.end[0]), self.end[1], np.zeros(12)])

    def write(self, t: float, pose: np.ndarray) -> float:
        """Write the reference at time t to ``pose`` (24,); return the tightness. The end is held."""
        first, last = self.tightness
        if t >= self.end_time:
            pose[:] = self._rest
            return last
        return first + (last - first) * reference.sample_posture_pose(*self._arguments, t, pose)

    @property
    def duration(self) -> float:
        """Time from start to end (s)."""
        return self.end_time - self.start_time


class StepPath(PosePath):
    """Swing trajectory of a recovery step: in an arc to the target, then down along its normal n until touchdown.

        p(t) = p_path(t) + n h 64 s³ (1 - s)³   for s = (t - t0) / T < 1,   then   p_end - n v (t - t0 - T)

    ``p_path`` is the quintic from the start to the target, and the arc has its height h at s = 1/2.

    Parameters
    ----------
    start, end : poses (R, p) of the patch frame.
    normal : n (3,), normal of the support.
    rise : h, height of the arc, m.
    duration : T, time until the target is reached, s.
    speed : v, speed of the descent after it, m/s.
    start_time : t0, s.
    velocity : (3,) at the start, m/s; None is rest.
    """

    def __init__(
        self,
        start: Pose,
        end: Pose,
        normal: np.ndarray,
        rise: float,
        duration: float,
        speed: float,
        start_time: float,
        velocity: np.ndarray | None = None,
    ):
        self.end, self.start_time, self.duration = end, start_time, duration
        self._normal, self._rise, self._speed = np.array(normal, float), rise, speed
        self._path = Spline.to_rest(start[1], end[1], duration, velocity, None, start_time)
        self._turn = RotationTrajectory(start[0], end[0], duration, start_time=start_time)

    def aim(self, end: Pose, t: float) -> None:
        """Change the target from time t (s) on; position, velocity and acceleration are continuous."""
        x = self._path.sample(t)
        self._path = Spline.to_rest(x.value, end[1], self.end_time - t, x.velocity, x.acceleration, t)
        self.end = end

    def write(self, t: float, pose: np.ndarray) -> float:
        """Write the reference at time t (s) to ``pose`` (24,); return the tightness."""
        self._turn.write(t, pose)
        p, v, a = pose[9:12], pose[12:15], pose[18:21]
        p[:], v[:], a[:] = self._path.sample(t)
        s, T = (t - self.start_time) / self.duration, self.duration
        if s >= 1.0:
            p -= self._speed * (t - self.end_time) * self._normal
            v -= self._speed * self._normal
        elif s > 0.0:
            r, slope, arc = s * (1.0 - s), 1.0 - 2.0 * s, 64.0 * self._rise * self._normal
            p += r**3 * arc
            v += 3.0 * r * r * slope / T * arc
            a += 6.0 * r * (slope * slope - r) / (T * T) * arc
        return 1.0

    @property
    def end_time(self) -> float:
        """Time at which the target is reached (s)."""
        return self.start_time + self.duration

    @property
    def swing_time(self) -> float:
        """End of the swing: the lift is not separate (s)."""
        return self.end_time

    @property
    def approach_time(self) -> float:
        """End of the swing: the approach is not separate (s)."""
        return self.end_time


class PatchOrientation(OrientationReference):
    """Orientation of a patch along a posture reference q(t), with the initial error phi (rotation vector) blended out.

        R(t) = exp((1 - sigma(t)) phi) R_FK(q(t)),   sigma: minimum jerk from 0 to 1

    Parameters
    ----------
    robot, patch : the robot, and the name of its patch.
    posture : whole-body reference.
    """

    def __init__(self, robot: Robot, patch: str, posture: PostureSpline):
        pose, scratch = np.zeros(24), (np.empty((4, 3, 3)), np.empty(24))
        self.posture = posture
        self._arguments = (
            *robot.tree, *robot.frame(patch), workspace(robot.tree), *posture.arrays, *posture.workspace,
        )  # fmt: skip
        self._initial_error, self._scratch = np.zeros(3), scratch
        self.write(posture.start_time, pose)
        self._first = pose[:9]

    def start_from(self, R: np.ndarray) -> "PatchOrientation":
        """Set the orientation R (3,3) at the beginning; return the reference."""
        rotation_error(np.ravel(R), self._first, np.empty(13), self._initial_error)
        return self

    def write(self, t: float, pose: np.ndarray) -> None:
        """Write rotation and angular rates at time t to ``pose`` (24,)."""
        reference.sample_posture_rotation(*self._arguments, self._initial_error, t, *self._scratch, pose)
