"""Times of static equilibrium on four patches: HRP-2 on hands and soles, friction 0.7, pyramids of eight faces."""

from collections.abc import Callable
from functools import partial

import numpy as np

from mcplan.bench.clock import microseconds
from mcplan.model.robot import Robot
from mcplan.scene.contact import Contact
from mcplan.statics.equilibrium import balance, equilibrium_margin, equilibrium_torque_margin
from mcplan.statics.feasibility import can_balance, can_hold
from mcplan.statics.support_region import support_region, torque_support_region

PATCHES = ("left_sole", "right_sole", "left_hand", "right_hand")
POSTURE = "crawl"
FRICTION = 0.7
REGION_TOLERANCE = 2e-3
"""m: the planner's."""

STATICS: dict[str, tuple[float | None, float | None]] = {
    "test": (1000.0, 200.0),
    "test with torque limits": (1000.0, 200.0),
    "least forces within torque limits": (1000.0, 200.0),
    "support region": (None, None),
    "support region within torque limits": (None, None),
    "margin, exact cones": (None, None),
    "margin with torque limits": (None, None),
}
"""Names in the order of the table -> µs: at most, and aimed at."""


def resting(robot: Robot, q: np.ndarray, patch: str, friction: float = FRICTION) -> Contact:
    """Return the contact of a patch with a surface that is where the patch is at ``q``."""
    X, points = robot.frame_pose(q, patch), robot.patches[patch].points
    axes = X[:3, :3] @ np.diag([1.0, -1.0, -1.0])
    return Contact(patch, "surface", "surface", X[:3, :3], X[:3, 3], points, axes, friction, np.inf, np.inf, np.eye(6))


def statics_us(robot: Robot, calls: int, repeats: int) -> dict[str, float]:
    """Return µs per call by name."""
    q = robot.posture(POSTURE)
    contacts, com, mass = [resting(robot, q, patch) for patch in PATCHES], robot.com(q), robot.mass
    functions: tuple[Callable[[], object], ...] = (
        partial(can_balance, com, contacts, mass),
        partial(can_hold, robot, q, contacts),
        partial(balance, robot, q, contacts),
        partial(support_region, contacts, mass, tolerance=REGION_TOLERANCE),
        partial(torque_support_region, robot, q, contacts, tolerance=REGION_TOLERANCE),
        partial(equilibrium_margin, com, contacts, mass),
        partial(equilibrium_torque_margin, robot, q, contacts),
    )
    few = max(1, calls // 10)
    return {
        name: microseconds(function, few, repeats, warm=5) for name, function in zip(STATICS, functions, strict=True)
    }
