"""Descent of a limb to a support of uncertain height: down along the normal until contact."""

import numpy as np

from mcplan.motion.limb_path import LimbPath, PosePath, PosturePath
from mcplan.motion.time_parameterization import TimedPath

DESCENT_RAMP_S = 0.2
"""Time to accelerate to the descent speed (s)."""


class Descent(PosePath):
    """A path that ends above its support, followed by a descent at constant speed.

        p(t) = p_path(t) - n d(s),   d = v T (r^3 - r^4 / 2) for r = s / T < 1, then v (s - T/2)

    ``s`` is the time since the end of the path (s). The acceleration is continuous.

    Parameters
    ----------
    path : swing path that ends above the support.
    normal : n (3,), normal of the support.
    speed : v, speed of the descent, m/s.
    depth : largest depth of the descent below the end of the path (m), where it ends without touch.
    ramp : T, time to accelerate to the descent speed (s).
    """

    def __init__(
        self,
        path: LimbPath | PosturePath | TimedPath,
        normal: np.ndarray,
        speed: float,
        depth: float,
        ramp: float = DESCENT_RAMP_S,
    ):
        self.path, self.normal, self.speed, self.depth = path, np.array(normal, float), speed, depth
        self.ramp = ramp
        self.end = path.end
        self.start_time = path.start_time

    @property
    def swing_time(self) -> float:
        """Time at which the lift ends (s)."""
        return self.path.swing_time

    @property
    def approach_time(self) -> float:
        """Time from which the limb moves only along the normal of its new contact (s)."""
        return self.path.approach_time

    @property
    def end_time(self) -> float:
        """Time at which the descent ends if there is no touch (s)."""
        return self.path.end_time + self.depth / self.speed + self.ramp / 2

    def write(self, t: float, pose: np.ndarray) -> float:
        """Write the reference at time t to ``pose`` (24,); return the tightness."""
        tightness, s, ramp = self.path.write(t, pose), t - self.path.end_time, self.ramp
        if s <= 0.0:
            return tightness
        if t >= self.end_time:
            d, v, a = self.depth, 0.0, 0.0
        elif s < ramp:
            r = s / ramp
            d, v = self.speed * ramp * r**3 * (1.0 - 0.5 * r), self.speed * r * r * (3.0 - 2.0 * r)
            a = self.speed / ramp * 6.0 * r * (1.0 - r)
        else:
            d, v, a = self.speed * (s - ramp / 2), self.speed, 0.0
        pose[9:12] -= d * self.normal
        pose[12:15] -= v * self.normal
        pose[18:21] -= a * self.normal
        return tightness
