"""What the controller asks for at one step.

A closed contact, and how much it may carry.

What happened that the plan did not foresee: kept with the run, for people to read.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from mcplan.motion.limb_path import Pose
from mcplan.motion.quintic import minimum_jerk
from mcplan.scene.contact import Contact


class PointLoads(NamedTuple):
    """What acts on a free object at K points: places (m), normals towards it and forces (N), (K, 3) in the world."""

    xyz: np.ndarray
    normal: np.ndarray
    force: np.ndarray


NOTHING: Mapping[str, Any] = MappingProxyType({})


class Command(NamedTuple):
    """The answer of the controller to one state.

    Attributes
    ----------
    vd : (6+n,) accelerations.
    tau : (n,) joint torques (N m).
    wrenches : by patch in contact, (6,) at the patch origin in world axes (N, N m).
    forces : by patch in contact, (k,3) at the contact's points in world axes (N); none for a grasp.
    status : of the quadratic program, see `mcplan.util.qp_status`.
    phase : name of the phase of the state machine, and the stance of the plan that it leads to.
    active : patches in contact.
    message : why the status is not SOLVED.
    object_vd : (O,6) accelerations of the scene's objects; None when the plan handles none.
    object_loads : by object that is handled, what acts on it.
    violation : by how much the rows of the program are missed: m/s², rad/s², N.
    """

    vd: np.ndarray
    tau: np.ndarray
    wrenches: dict[str, np.ndarray]
    forces: dict[str, np.ndarray]
    status: int
    phase: tuple[str, int]
    active: tuple[str, ...]
    message: str = ""
    timing: Mapping[str, float] = NOTHING
    object_vd: np.ndarray | None = None
    object_loads: Mapping[str, PointLoads] = NOTHING
    violation: float = 0.0


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


class Notice(NamedTuple):
    """Something out of the ordinary.

    t : when (s).
    text : what, in words.
    bodies : names of the patch, or of the two bodies, that it is about; empty where no one of them stands out.
    amount : how much is missing (m), None where there is nothing to measure.
    """

    t: float
    text: str
    bodies: tuple[str, ...] = ()
    amount: float | None = None
