"""The way of a limb from one place to another: off along the normal, over, and down along the normal."""

from typing import NamedTuple, Protocol

import numpy as np

from mcplan.core.algebra.minimum_jerk import add_pieces
from mcplan.motion.path import Pose, PoseSample, Remembering
from mcplan.motion.quintic import Sample, minimum_jerk
from mcplan.motion.rotation import RotationTrajectory, rotation_vector


class Timing(NamedTuple):
    """How fast limbs move.

    speed : largest linear speed of a piece (m/s).
    angular_speed : largest angular speed of the swing (rad/s).
    shortest : least time of a piece (s).
    overlap : part of the lift and of the approach that runs while the swing does.
    share : least part of the swing's time that lift and approach take: the corners of a long swing would be sharp
        otherwise, and are taken slowly by a law of time.
    """

    speed: float = 0.5
    angular_speed: float = 1.5
    shortest: float = 0.3
    overlap: float = 0.4
    share: float = 0.0

    def duration(self, distance: float, angle: float = 0.0) -> float:
        """Return the time of a minimum-jerk piece whose largest speeds are within the bounds."""
        if distance <= 0.0 and angle <= 0.0:
            return 0.0
        return max(self.shortest, 15 / 8 * distance / self.speed, 15 / 8 * angle / self.angular_speed)


AT_ANY_SPEED = Timing(np.inf, np.inf, 1e-3)
"""Of what takes as long as it is told to."""


class Turning(Protocol):
    """A reference of an orientation."""

    def sample(self, t: float) -> Sample:
        """Return R (3,3), angular velocity and acceleration (3,) at time t."""
        ...


class LimbPath(Remembering):
    """A smooth path of a pose, made of a lift, a swing and an approach.

    Three minimum-jerk pieces s1, s2, s3 overlap in time, each from rest to rest:

        p(t) = pA + nA hA s1(t) + (pB + nB hB - pA - nA hA) s2(t) - nB hB s3(t)

    The swing (s2) begins when the lift (s1) is past its middle, and the approach (s3) begins before the swing ends, so
    that the corners are rounded, p is twice continuously differentiable, the first part is a motion along nA alone and
    the last one along nB alone, with zero velocity and acceleration at both ends. The orientation turns during the
    swing, and so does its tightness: in the air a limb with few joints is left to turn as its posture does.

    Parameters
    ----------
    start, end : poses (R, p) of the patch frame.
    lift, approach : (3,) nA hA and nB hB (m): how far the path leaves along the normal of the old place, and from how
        far it comes to the new one; zero where there is nothing to leave or to meet.
    timing : how fast.
    start_time : s.
    least_duration : s; a path that would be faster is slowed down as a whole.
    tightness : of the orientation, at the start and at the end.
    turn : reference of the orientation; None: it turns during the swing, on the shortest way.
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
        turn: Turning | None = None,
    ):
        timing = timing or Timing()
        (R0, p0), (R1, p1) = start, end
        self._p = np.array(p0, float)
        self.end, self.start_time, self.tightness = (R1, p1), start_time, tightness
        ways = np.array([lift, p1 + approach - self._p - lift, -np.asarray(approach)], float)
        angles = (0.0, float(np.linalg.norm(rotation_vector(R1 @ R0.T))), 0.0)
        distances = np.linalg.norm(ways, axis=1).tolist()
        # numbers of Python: paths begin within ticks, and arrays of three cost ten times as much
        up, over, down = map(timing.duration, distances, angles)
        up, down = (max(T, timing.share * over) if T > 0.0 else 0.0 for T in (up, down))
        leaves = (1 - timing.overlap) * up if over > 0.0 else 0.0
        comes = max(leaves + over - timing.overlap * down, up) if over > 0.0 else up
        total = max(up, leaves + over, comes + down)
        scale = max(1.0, least_duration / total) if total > 0.0 else 1.0
        self._T = [max(scale * T, 1e-9) for T in (up, over, down)]
        self._begin = [start_time + scale * begin for begin in (0.0, leaves, comes)]
        self._pieces = np.column_stack([self._begin, self._T, ways])
        self.duration = max(scale * total, least_duration)
        self.turn = turn or RotationTrajectory(R0, R1, self._T[1], start_time=self._begin[1])

    def compute(self, t: float) -> PoseSample:
        """Return the reference at time t; the end is held."""
        p, v, a = self._p.copy(), np.zeros(6), np.zeros(6)
        add_pieces(self._pieces, t, p, v[:3], a[:3])
        turn = self.turn.sample(t)
        v[3:], a[3:] = turn.velocity, turn.acceleration
        begin, end = self.tightness
        tightness = begin + (end - begin) * minimum_jerk((t - self._begin[1]) / self._T[1])[0]
        return PoseSample(turn.value, p, v, a, tightness)

    @property
    def end_time(self) -> float:
        """Time from which the end is held (s)."""
        return self.start_time + self.duration

    @property
    def swing_time(self) -> float:
        """Time at which the lift is over (s)."""
        return self._begin[0] + self._T[0]

    @property
    def approach_time(self) -> float:
        """Time from which the limb moves along the normal of its new place only (s)."""
        return max(self._begin[1] + self._T[1], self.swing_time)
