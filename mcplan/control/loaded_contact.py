"""A closed contact, and how much it may carry."""

from dataclasses import dataclass

import numpy as np

from mcplan.motion.path import Pose
from mcplan.motion.quintic import minimum_jerk
from mcplan.scene.contact import Contact


@dataclass(frozen=True)
class Ramp:
    """A smooth change of a force limit (N) from ``start`` at ``start_time`` to ``end`` after ``duration`` (s)."""

    start: float
    end: float
    start_time: float
    duration: float

    def value(self, t: float) -> float:
        """Return the limit at time t."""
        if self.duration <= 0.0:
            return self.end
        return self.start + (self.end - self.start) * minimum_jerk((t - self.start_time) / self.duration)[0]


@dataclass
class LoadedContact:
    """A contact that is closed.

    Attributes
    ----------
    limit : the most that it may carry now (N, normal; for a grasp the magnitude).
    full : what it may carry when fully loaded (N).
    place : R (3,3) and p (3,) where it touched; None for where it was planned.
    friction : what it has shown to bear if it slid; the planned one counts where that is less.
    lifted : whether it has lost its support and is on its way back to it.
    leaving : whether it is unloaded, to be opened.
    idle : whether it bears nothing as a face of its link does.
    """

    contact: Contact
    limit: Ramp
    full: float
    place: Pose | None = None
    friction: float = np.inf
    lifted: bool = False
    leaving: bool = False
    idle: bool = False
