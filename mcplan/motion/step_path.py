"""The way of a foot that steps to a place which may still change."""

import numpy as np

from mcplan.motion.path import Pose, PoseSample, Remembering
from mcplan.motion.quintic import Quintic
from mcplan.motion.rotation import RotationTrajectory


class StepPath(Remembering):
    """Over a bump to a place, and on down along its normal n until something is met.

        p(t) = p_way(t) + n h 64 s³ (1 - s)³   for s = (t - t0) / T < 1,   then   p_end - n v (t - t0 - T)

    Parameters
    ----------
    start, end : poses (R, p) of the patch frame.
    normal : (3,) of the support.
    rise : h, m.
    duration : T, s.
    speed : v, m/s.
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
        self._way = Quintic(start[1], end[1], duration, velocity, None, start_time)
        self._turn = RotationTrajectory(start[0], end[0], duration, start_time=start_time)

    def aim(self, end: Pose, t: float) -> None:
        """Go to another place from time t (s) on, from how the foot moves then."""
        x = self._way.sample(t)
        self._way = Quintic(x.value, end[1], self.end_time - t, x.velocity, x.acceleration, t)
        self.end, self._time = end, float("nan")

    def compute(self, t: float) -> PoseSample:
        """Return the reference at time t (s)."""
        x, turn = self._way.sample(t), self._turn.sample(t)
        p, v, a = x.value.copy(), np.append(x.velocity, turn.velocity), np.append(x.acceleration, turn.acceleration)
        s, T = (t - self.start_time) / self.duration, self.duration
        if s >= 1.0:
            p -= self._speed * (t - self.end_time) * self._normal
            v[:3] -= self._speed * self._normal
        elif s > 0.0:
            r, slope, bump = s * (1.0 - s), 1.0 - 2.0 * s, 64.0 * self._rise * self._normal
            p += r**3 * bump
            v[:3] += 3.0 * r * r * slope / T * bump
            a[:3] += 6.0 * r * (slope * slope - r) / (T * T) * bump
        return PoseSample(turn.value, p, v, a, 1.0)

    @property
    def end_time(self) -> float:
        """When it is at its place (s)."""
        return self.start_time + self.duration

    @property
    def swing_time(self) -> float:
        """The lift is no part of its own."""
        return self.end_time

    @property
    def approach_time(self) -> float:
        """Nor is the approach."""
        return self.end_time
