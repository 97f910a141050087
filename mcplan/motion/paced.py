"""A reference along a path, at the times that a law gives it."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mcplan.motion.law import Law
from mcplan.motion.limb_path import LimbPath
from mcplan.motion.path import Pose, PoseSample
from mcplan.motion.posture_path import PosturePath
from mcplan.motion.spline import PostureSpline, Spline
from mcplan.motion.stretch import Stretch


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
