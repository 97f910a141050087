"""How fast joints may move: a part of their velocity limits, and no faster than their damping lets them."""

import numpy as np

from mcplan.model.robot import Robot

DAMPED = 0.5
"""Part of a joint's torque that its damping may take: a wrist of 0.5 N m that is damped with 1 N m s/rad is slow."""


def joint_speeds(robot: Robot, part: float) -> np.ndarray:
    """Return the greatest speeds (n,) of joints that use a part of their velocity limits, rad/s (m/s)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        damped = np.where(robot.joint_damping > 0.0, DAMPED * robot.limits.torque / robot.joint_damping, np.inf)
    return np.minimum(part * robot.limits.velocity, damped)
