"""The centre of mass follows a reference."""

from collections.abc import Sequence

import numpy as np

from mcplan.model.terms import Terms
from mcplan.qp.tasks.task import Array, damping


class ComTask:
    """``J_c vd = a* + kp (c* - c) + kd (v* - vc) - Jdot_c v``, on the chosen axes of the world.

    Parameters
    ----------
    weight, kp, kd : cost weight, stiffness (1/s²), damping (1/s; critical when None).
    axes : which of x, y, z (0, 1, 2).

    Attributes
    ----------
    position, velocity, acceleration : (3,) reference and feed-forward, m, m/s, m/s². Change them at will.
    """

    diagonal = False
    frames: tuple[str, ...] = ()

    def __init__(
        self,
        weight: float | Array = 100.0,
        kp: float = 60.0,
        kd: float | None = None,
        axes: Sequence[int] = (0, 1, 2),
    ):
        self.weight, self.kp, self.kd = weight, kp, damping(kp, kd)
        self.axes = np.asarray(axes)
        self.position = np.zeros(3)
        self.velocity = np.zeros(3)
        self.acceleration = np.zeros(3)

    @property
    def dimension(self) -> int:
        """Number of axes."""
        return len(self.axes)

    @property
    def key(self) -> tuple:
        """Structure."""
        return ("com", self.dimension)

    def error(self, terms: Terms) -> Array:
        """Return ``c* - c`` on the chosen axes, m."""
        return (self.position - terms.com)[self.axes]

    def rows(self, terms: Terms) -> tuple[Array, Array]:
        """Return ``A`` and ``b``."""
        wanted = (
            self.acceleration
            + self.kp * (self.position - terms.com)
            + self.kd * (self.velocity - terms.com_velocity)
            - terms.com_bias
        )
        return terms.com_jacobian[self.axes], wanted[self.axes]
