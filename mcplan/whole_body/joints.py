"""What the program needs of a robot: its joints and their limits."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from mcplan.whole_body.limit import Array
from mcplan.whole_body.settings import QPSettings


class Limits(Protocol):
    """Limits of the joints, (n,) each, infinite where absent."""

    @property
    def lower(self) -> Array:
        """Least positions."""

    @property
    def upper(self) -> Array:
        """Largest positions."""

    @property
    def velocity(self) -> Array:
        """Largest speeds."""

    @property
    def torque(self) -> Array:
        """Largest torques."""


class HasLimits(Protocol):
    """What the program needs of a robot."""

    @property
    def nv(self) -> int:
        """Size of a velocity."""

    @property
    def joint_names(self) -> Sequence[str]:
        """Names of the joints."""

    @property
    def limits(self) -> Limits:
        """Their limits."""


def bounds(robot: HasLimits, joints: Sequence[int], settings: QPSettings) -> Array:
    """Return lower and upper position and velocity (j, 3) that the accelerations of joints are to keep."""
    limits = robot.limits
    table = np.column_stack([limits.lower, limits.upper, settings.velocity_fraction * limits.velocity])
    table[:, :2] += np.array([1.0, -1.0]) * settings.position_margin
    if not settings.position_limits:
        table[:, :2] = -np.inf, np.inf
    if not settings.velocity_limits:
        table[:, 2] = np.inf
    return np.asarray(table[list(joints)], dtype=np.float64)
