"""The joints follow a reference posture."""

import numpy as np
from numpy.typing import NDArray

from mcplan.model.terms import Terms
from mcplan.qp.tasks.task import Array, damping


class PostureTask:
    """``qdd = a* + kp (q* - q) + kd (v* - v)`` for every joint.

    Parameters
    ----------
    position : (n,) reference of the joints, rad or m (``q[7:]`` of a posture).
    weight : one number, or one per joint.
    kp, kd : stiffness (1/s²), damping (1/s; critical when None).

    Attributes
    ----------
    position, velocity, acceleration : (n,) reference and feed-forward. Change them at will.
    """

    diagonal = True
    frames: tuple[str, ...] = ()

    def __init__(self, position: Array, weight: float | Array = 0.05, kp: float = 40.0, kd: float | None = None):
        self.weight, self.kp, self.kd = weight, kp, damping(kp, kd)
        self.position = np.array(position, dtype=np.float64)
        self.velocity = np.zeros_like(self.position)
        self.acceleration = np.zeros_like(self.position)
        self._index = np.arange(6, 6 + len(self.position))

    @property
    def dimension(self) -> int:
        """Number of joints."""
        return len(self.position)

    @property
    def key(self) -> tuple:
        """Structure."""
        return ("posture", self.dimension)

    def error(self, terms: Terms) -> Array:
        """Return ``q* - q``, rad or m."""
        return self.position - terms.q[7:]

    def rows(self, terms: Terms) -> tuple[NDArray, Array]:
        """Return the indices in ``vd`` and ``b``."""
        b = self.acceleration + self.kp * (self.position - terms.q[7:]) + self.kd * (self.velocity - terms.v[6:])
        return self._index, b
