"""What the references of limbs share: a sample is asked for twice at each step, by the criteria and by the tasks."""

from typing import NamedTuple

import numpy as np

from mcplan.model.pose import Pose

__all__ = ["Pose", "PoseSample", "Remembering"]


class PoseSample(NamedTuple):
    """A pose reference: R (3,3) and p (3,) with velocity and acceleration (6,), linear then angular.

    ``tightness`` in [0, 1] says how much the orientation matters.
    """

    R: np.ndarray
    p: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    tightness: float


class Remembering:
    """Base of paths; computes a sample by ``compute`` and keeps the last one."""

    _time = float("nan")
    _sample: PoseSample

    def sample(self, t: float) -> PoseSample:
        """Return the reference at time t; the end is held. The arrays are not to be written to."""
        if t != self._time:
            self._sample, self._time = self.compute(t), t
        return self._sample

    def compute(self, t: float) -> PoseSample:
        """Return the reference at time t."""
        raise NotImplementedError
