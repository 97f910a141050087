"""What the controller asks for at one step."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

SOLVED, SLACK, HOLD = range(3)
"""Values of ``Command.status``: the quadratic program was solved, its slack form was, or the robot is only damped."""


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
    status : SOLVED, SLACK or HOLD.
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
