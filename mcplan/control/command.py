"""Controller output of one step, closed contacts with their force limits, and notices of unforeseen events."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from mcplan.motion.limb_path import Pose
from mcplan.motion.spline import minimum_jerk
from mcplan.scene.contact import Contact


class PointLoads(NamedTuple):
    """Forces on a free object at K points: positions (m), normals towards it and forces (N), (K, 3) in the world."""

    xyz: np.ndarray
    normal: np.ndarray
    force: np.ndarray


EMPTY: Mapping[str, Any] = MappingProxyType({})
"""Default of optional tables."""


class Command(NamedTuple):
    """The controller output for one state.

    Attributes
    ----------
    vd : (6+n,) accelerations.
    tau : (n,) joint torques (N m).
    wrenches : patch in contact -> wrench (6,) at the patch origin in world axes (N, N m).
    forces : patch in contact -> forces (k,3) at the contact's points in world axes (N); none for a grasp.
    status : status of the quadratic program, see `mcplan.util.qp_status`.
    phase : name of the phase of the state machine, and the stance of the plan that it leads to.
    active : patches in contact.
    message : reason why the status is not SOLVED.
    timing : computing time of parts of the step (s), by name.
    object_vd : (O,6) accelerations of the scene's objects in physics ``qp``; None when the plan handles none.
    object_loads : handled object -> point forces on it, in physics ``qp``.
    violation : largest constraint violation of the program if its status is not SOLVED: m/s², rad/s², N.
    """

    vd: np.ndarray
    tau: np.ndarray
    wrenches: Mapping[str, np.ndarray]
    forces: Mapping[str, np.ndarray]
    status: int
    phase: tuple[str, int]
    active: tuple[str, ...]
    message: str = ""
    timing: Mapping[str, float] = EMPTY
    object_vd: np.ndarray | None = None
    object_loads: Mapping[str, PointLoads] = EMPTY
    violation: float = 0.0


@dataclass(frozen=True)
class Ramp:
    """A smooth change of a force limit (N) from ``start`` at ``start_time`` to ``end`` after ``duration`` (s)."""

    start: float
    end: float
    start_time: float
    duration: float

    @property
    def end_time(self) -> float:
        """Time from which the limit is constant (s)."""
        return self.start_time + self.duration

    def value(self, t: float) -> float:
        """Return the limit at time t."""
        if self.duration <= 0.0:
            return self.end
        elapsed = (t - self.start_time) / self.duration
        return self.start + (self.end - self.start) * (1.0 if elapsed >= 1.0 else minimum_jerk(elapsed)[0])


@dataclass
class LoadedContact:
    """A closed contact.

    Attributes
    ----------
    contact : the contact of the scene.
    limit : ramp of its force limit (N, normal; for a grasp the magnitude).
    full : force limit when fully loaded (N).
    place : R (3,3) and p (3,) at the touchdown; None: as planned.
    friction : friction coefficient measured while it slid; the planned one is used if it is smaller.
    is_lifted : whether the patch has lost its support and is being lowered again.
    is_unloading : whether the contact is being unloaded, to be opened.
    is_idle : whether an edge bears no load because a face of the same link does.
    """

    contact: Contact
    limit: Ramp
    full: float
    place: Pose | None = None
    friction: float = np.inf
    is_lifted: bool = False
    is_unloading: bool = False
    is_idle: bool = False


class Notice(NamedTuple):
    """An event that the plan did not foresee; stored with the run.

    t : time (s).
    text : description.
    bodies : names of the patch, or of the two bodies, concerned; may be empty.
    amount : size of the violation (m); None: there is none to measure.
    """

    t: float
    text: str
    bodies: tuple[str, ...] = ()
    amount: float | None = None
