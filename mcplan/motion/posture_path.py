"""The way of a limb through the air as its posture takes it, lifted off what it leaves and led onto what it meets."""

import numpy as np

from mcplan.core.algebra.minimum_jerk import add_pieces
from mcplan.core.rigid_body.frame import frame_motion
from mcplan.core.rigid_body.tree import workspace
from mcplan.model.robot import Robot
from mcplan.motion.limb_path import Timing
from mcplan.motion.path import Pose, PoseSample, Remembering
from mcplan.motion.posture import PostureTrajectory
from mcplan.motion.quintic import minimum_jerk
from mcplan.motion.spline import PostureSpline

LONGEST = 0.5
"""The most of the posture's time that the approach takes."""


class PosturePath(Remembering):
    """The pose of a patch in a posture reference, with offsets along the normals.

        p(t) = p_FK(q(u)) + sum of pieces d_i s_i(t),   R(t) = R_FK(q(u)),   u = t + a s(t)

    The limb goes ahead of the body, in the end by ``a``, so that it is above its new support before the body has
    arrived, and meets it when the body does: with the body at the end, a limb may not reach the place above its own.
    The pieces are minimum jerk: the lift off the old support and its return to zero, the rise to the height of the
    approach and the approach itself, and the small corrections that make start and end exact. A limb that follows its
    own posture asks nothing of the other joints, and stays within the joint limits as both ends of the posture do.

    Parameters
    ----------
    robot : Robot
    patch : the patch that moves.
    posture : reference of the whole posture; the limb lifts before it begins, and arrives when it ends.
    start : (3,) position now.
    end : (R, p) of the contact to meet, or None for the pose of the patch at the end of the posture.
    lift, approach : (3,) offsets along the normals of old and new support; zero where there is none.
    timing : how fast.
    start_time : s.
    tightness : of the orientation, at the start and at the end.
    """

    def __init__(
        self,
        robot: Robot,
        patch: str,
        posture: PostureTrajectory | PostureSpline,
        start: np.ndarray,
        end: Pose | None,
        lift: np.ndarray,
        approach: np.ndarray,
        timing: Timing,
        start_time: float,
        tightness: tuple[float, float],
    ):
        self.patch, self.posture, self.start_time, self.tightness = patch, posture, start_time, tightness
        self._tree, (self._body, self._offset), self._work = robot.tree, robot.frame(patch), workspace(robot.tree)
        first, last = (robot.frame_pose(q, patch) for q in (posture.sample(start_time).q, posture.end))
        self.end = (last[:3, :3], last[:3, 3]) if end is None else end
        self._start_error = np.asarray(start) - first[:3, 3]
        begin, finish = max(start_time, posture.start_time), posture.end_time
        T_lift, T_approach = (timing.duration(float(np.linalg.norm(d))) for d in (lift, approach))
        if T_approach > 0.0:
            T_approach = max(T_approach, timing.share * (finish - begin))
        T_approach = min(T_approach, LONGEST * max(finish - begin, 0.0))
        above = finish - (1.0 - timing.overlap) * T_approach
        pieces = [
            (lift, start_time, T_lift),
            (-np.asarray(lift), begin + 0.5 * (above - begin), 0.5 * (above - begin)),
            (approach, begin, 0.5 * (above - begin)),
            (-np.asarray(approach), finish - T_approach, T_approach),
            (self.end[1] - last[:3, 3] - self._start_error, begin, above - begin),
        ]
        kept = [(t, T, *d) for d, t, T in pieces if T > 0.0 and np.any(d)]
        self._pieces = np.array(kept, float).reshape(-1, 5)
        self._interval = begin, max(above - begin, 1e-9)
        self._ahead = max(finish - above, 0.0)
        self.swing_time = min(max(begin, start_time + T_lift), above)
        self.approach_time, self.end_time = above, max(finish, start_time)
        self._rest = PoseSample(self.end[0], self.end[1], np.zeros(6), np.zeros(6), tightness[1])

    def compute(self, t: float) -> PoseSample:
        """Return the reference at time t; the end is held."""
        if t >= self.end_time:
            return self._rest
        begin, span = self._interval
        progress, speed, change = minimum_jerk((t - begin) / span)
        rate, gain = 1.0 + self._ahead * speed / span, self._ahead * change / span**2
        q, v, vd = self.posture.sample(t + self._ahead * progress)
        x = np.empty(24)
        frame_motion(self._tree, q, rate * v, rate * rate * vd + gain * v, self._body, self._offset, self._work, x)
        R, p, v, a = x[:9].reshape(3, 3), x[9:12], x[12:18], x[18:]
        p += self._start_error
        add_pieces(self._pieces, t, p, v[:3], a[:3])
        first, last = self.tightness
        return PoseSample(R, p, v, a, first + (last - first) * progress)

    @property
    def duration(self) -> float:
        """Time from start to end (s)."""
        return self.end_time - self.start_time
