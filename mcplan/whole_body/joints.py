"""What the program needs of a robot: its joints and their limits."""

from collections.abc import Sequence
from typing import Protocol

from mcplan.whole_body.limit import Array


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
