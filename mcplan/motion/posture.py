"""Minimum-jerk trajectory of a whole-body posture on R³ x SO(3) x R^n."""

from typing import NamedTuple

import numpy as np

from mcplan.core.algebra import minimum_jerk as core
from mcplan.motion.quintic import Quintic, RotationTrajectory
from mcplan.robot.pose import base_rotation


class PostureSample(NamedTuple):
    """A posture reference: q (7+n,), v (6+n,), vd (6+n,)."""

    q: np.ndarray
    v: np.ndarray
    vd: np.ndarray


class PostureTrajectory:
    """Posture trajectory: quintics for base position and joints, a quintic rotation vector for the base orientation.

    Parameters
    ----------
    start, end : (7+n,) postures q.
    duration : s, positive.
    velocity, acceleration : (6+n,) v and vd at the start; None is rest.
    start_time : s.

    Attributes
    ----------
    knots : start and end.
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
        self.start, self.end = np.array(start, float), np.array(end, float)
        self.knots = (self.start, self.end)
        nv = len(self.start) - 1
        v = np.zeros(nv) if velocity is None else np.asarray(velocity, float)
        vd = np.zeros(nv) if acceleration is None else np.asarray(acceleration, float)
        flat = np.r_[0:3, 6:nv]
        self._flat = Quintic(
            np.delete(self.start, slice(3, 7)),
            np.delete(self.end, slice(3, 7)),
            duration,
            v[flat],
            vd[flat],
            start_time,
        )
        self.base = RotationTrajectory(
            base_rotation(self.start), base_rotation(self.end), duration, v[3:6], vd[3:6], start_time
        )
        self._scratch = np.empty(3 * nv + 9)
        self._rest = PostureSample(self.end, np.zeros(nv), np.zeros(nv))

    def sample(self, t: float) -> PostureSample:
        """Return the reference at time t."""
        if t >= self._flat.end_time:
            return self._rest
        flat, base = self._flat, self.base
        s = max((t - flat.start_time) / flat.duration, 0.0)
        nv = len(self.start) - 1
        q, v, vd = np.empty(nv + 1), np.empty(nv), np.empty(nv)
        core.posture(flat.coefficients, base.phi.coefficients, base.start, s, flat.duration, self._scratch, q, v, vd)
        return PostureSample(q, v, vd)

    @property
    def start_time(self) -> float:
        """Time until which the start is held (s)."""
        return self._flat.start_time

    @property
    def end_time(self) -> float:
        """Time from which the end is held (s)."""
        return self._flat.end_time
