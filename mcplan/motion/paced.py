"""A reference along a path, at the times that a law gives it.

The last of the way to a support whose place is not known to the millimetre: on along the normal until it is felt.

The orientation of a patch as a posture reference turns it.
"""


from collections.abc import Sequence
from typing import Any

import numpy as np

from mcplan.core.algebra.minimum_jerk import turn_back
from mcplan.core.rigid_body.frame import frame_motion
from mcplan.core.rigid_body.tree import workspace
from mcplan.motion.limb_path import LimbPath, Pose, PoseSample, PosturePath
from mcplan.motion.posture import PostureTrajectory
from mcplan.motion.quintic import Sample, rotation_vector
from mcplan.motion.spline import PostureSpline, Spline
from mcplan.motion.time_law import Law, Stretch
from mcplan.robot.robot import Robot


class _Timing:
    """A law from a time on, as what slows it down has let it."""

    def __init__(self, law: Law, start_time: float, stretch: Stretch | None):
        self.law, self.start_time, self.stretch = law, start_time, stretch or Stretch()
        self._late = self.stretch.late

    @property
    def lost(self) -> float:
        """Time that it has lost since its beginning (s)."""
        return self.stretch.late - self._late

    def at(self, t: float) -> tuple[float, float, float]:
        """Return s, sd and sdd at the present time t: ``sd = k s'``, ``sdd = k² s'' + k' s'``."""
        s, rate, change = self.law.at(t - self.start_time - self.lost)
        k = self.stretch.rate
        return s, k * rate, k * k * change + self.stretch.change * rate


class Paced:
    """x(s(t)) with its derivatives in time.

    Parameters
    ----------
    path : x(s), its parameter from 0 on.
    law : s(t).
    start_time : when it begins (s).
    stretch : what slows it down; it is sampled at the present time only, for what is to come is not known.
    """

    def __init__(
        self,
        path: PostureSpline | Spline | LimbPath | PosturePath,
        law: Law,
        start_time: float,
        stretch: Stretch | None = None,
    ):
        self.path, self.law, self.start_time = path, law, start_time
        self._timing = _Timing(law, start_time, stretch)
        self._time, self._sample = float("nan"), None

    def sample(self, t: float) -> Any:
        """Return the reference at time t, a sample as the path has it; the end is held."""
        if t != self._time or self._sample is None:
            self._time, self._sample = t, self._compute(t)
        return self._sample

    def foreseen(self, t: float) -> Any:
        """Return the reference at time t after its beginning (s), unless something slows it down."""
        return self._at(*self.law.at(t))

    def _compute(self, t: float) -> Any:
        return self._at(*self._timing.at(t))

    def _at(self, s: float, rate: float, change: float) -> Any:
        x = self.path.sample(s)
        if isinstance(x, PoseSample):
            v, a = x.velocity, x.acceleration
            return PoseSample(x.R, x.p, rate * v, rate * rate * a + change * v, x.tightness)
        value, v, a = x
        return type(x)(value, rate * v, rate * rate * a + change * v)

    @property
    def end(self) -> Pose:
        """Where it ends."""
        return self.path.end  # type: ignore[return-value]

    @property
    def knots(self) -> Sequence[np.ndarray]:
        """Those of a whole posture."""
        return self.path.knots  # type: ignore[return-value, union-attr]

    @property
    def end_time(self) -> float:
        """Time from which the end is held (s); a limb may arrive after the body."""
        return self._when(self.path.end_time)

    @property
    def swing_time(self) -> float:
        """Time at which the lift of a limb is over (s)."""
        return self._when(self.path.swing_time)  # type: ignore[union-attr]

    @property
    def approach_time(self) -> float:
        """Time from which a limb moves along the normal of its new place only (s)."""
        return self._when(self.path.approach_time)  # type: ignore[union-attr]

    @property
    def duration(self) -> float:
        """Time from start to end (s)."""
        return self.end_time - self.start_time

    def _when(self, s: float) -> float:
        return self.start_time + self._timing.lost + self.law.time_of(s)


class PacedRate:
    """What is proportional to the speed along a path, as momentum is: y(s) sd, and its derivative y' sd² + y sdd.

    Parameters
    ----------
    path : y(s), its parameter from 0 on.
    law : s(t).
    start_time : when it begins (s).
    stretch : what slows it down.
    """

    def __init__(self, path: Spline, law: Law, start_time: float, stretch: Stretch | None = None):
        self.path, self._timing = path, _Timing(law, start_time, stretch)

    def sample(self, t: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the value and its derivative at time t."""
        s, rate, change = self._timing.at(t)
        y = self.path.sample(s)
        return rate * y.value, rate * rate * y.velocity + change * y.value


RAMP = 0.2
"""Time in which a descent gets up to speed (s)."""


class Descent:
    """A path that ends above its support, and goes on down at a constant speed.

        p(t) = p_path(t) - n d(t),   d = v T (r^3 - r^4 / 2) for r = s / T < 1, then v (s - T/2)

    s seconds after the end of the path: its acceleration rises and falls without a jump.

    Parameters
    ----------
    path : the way to above the support.
    normal : (3,) of the support.
    speed : ``v``, m/s.
    depth : where it stops if nothing is met (m below the end of the path).
    ramp : T, the time in which it gets up to speed (s).
    """

    def __init__(
        self,
        path: LimbPath | PosturePath | Paced,
        normal: np.ndarray,
        speed: float,
        depth: float,
        ramp: float = RAMP,
    ):
        self.path, self.normal, self.speed, self.depth = path, np.array(normal, float), speed, depth
        self.ramp = ramp
        self.end = path.end
        self.start_time = path.start_time

    @property
    def swing_time(self) -> float:
        """Time at which the lift is over (s)."""
        return self.path.swing_time

    @property
    def approach_time(self) -> float:
        """Time from which the limb moves along the normal of its new place only (s)."""
        return self.path.approach_time

    @property
    def end_time(self) -> float:
        """Time at which it stops where it has met nothing (s)."""
        return self.path.end_time + self.depth / self.speed + self.ramp / 2

    @property
    def duration(self) -> float:
        """Time from start to end (s)."""
        return self.end_time - self.start_time

    def sample(self, t: float) -> PoseSample:
        """Return the reference at time t."""
        sample, s, ramp = self.path.sample(t), t - self.path.end_time, self.ramp
        if s <= 0.0:
            return sample
        if t >= self.end_time:
            d, v, a = self.depth, 0.0, 0.0
        elif s < ramp:
            r = s / ramp
            d, v = self.speed * ramp * r**3 * (1.0 - 0.5 * r), self.speed * r * r * (3.0 - 2.0 * r)
            a = self.speed / ramp * 6.0 * r * (1.0 - r)
        else:
            d, v, a = self.speed * (s - ramp / 2), self.speed, 0.0
        velocity, acceleration = sample.velocity.copy(), sample.acceleration.copy()
        velocity[:3] -= v * self.normal
        acceleration[:3] -= a * self.normal
        return PoseSample(sample.R, sample.p - d * self.normal, velocity, acceleration, sample.tightness)


class PatchTurn:
    """``R(t) = exp((1 - sigma(t)) phi) R_FK(q(t))``: what the patch is off at the start (phi) goes away on the way.

    Parameters
    ----------
    robot, patch : whose orientation.
    posture : reference of the whole posture.
    start : (3,3) orientation at its beginning.
    """

    def __init__(self, robot: Robot, patch: str, posture: PostureSpline | PostureTrajectory, start: np.ndarray):
        self.posture = posture
        self._tree, (self._body, self._offset), self._work = robot.tree, robot.frame(patch), workspace(robot.tree)
        self._off, self._scratch = np.zeros(3), np.zeros((4, 3, 3))
        self._off = rotation_vector(start @ self.sample(posture.start_time).value.T)

    def sample(self, t: float) -> Sample:
        """Return R (3,3), angular velocity and acceleration (3,) at time t."""
        q, v, vd = self.posture.sample(t)
        x = np.empty(24)
        frame_motion(self._tree, q, v, vd, self._body, self._offset, self._work, x)
        start, end = self.posture.start_time, self.posture.end_time
        if t < end:
            turn_back(self._off, (t - start) / (end - start), end - start, self._scratch, x)
        return Sample(x[:9].reshape(3, 3), x[15:18], x[21:24])
