"""Posture task: the joints follow a reference."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mcplan.core.whole_body import tasks as qp_tasks
from mcplan.robot.terms import Terms
from mcplan.util.arguments import check_vector
from mcplan.whole_body.packed import View
from mcplan.whole_body.tasks.task import Array, KernelTask, damping


class PostureTask(KernelTask):
    """``qdd = a* + kp (q* - q) + kd (v* - v)`` for all joints.

    Parameters
    ----------
    position : (n,) reference of the joints, rad or m (``q[7:]`` of a posture).
    weight : one number, or one per joint.
    kp, kd : stiffness (1/s²), damping (1/s; critical when None); one number, or one per joint.

    Attributes
    ----------
    position, velocity, acceleration : (n,) reference and feed-forward. They may be changed at any time.
    """

    code = qp_tasks.POSTURE
    diagonal = True
    frames: tuple[str, ...] = ()
    kp, kd, position, velocity, acceleration = View(), View(), View(), View(), View()

    def __init__(self, position: Array, weight: ArrayLike = 0.05, kp: ArrayLike = 40.0, kd: ArrayLike | None = None):
        position = check_vector("PostureTask", "position (q[7:] of a posture)", position)
        n = len(position)
        self.allocate(kp=n, kd=n, position=n, velocity=n, acceleration=n, weight=n)
        self.position, self.weight, self.kp, self.kd = position, weight, kp, damping(kp, kd)
        self._index = np.arange(6, 6 + n)

    @property
    def dimension(self) -> int:
        """Number of joints."""
        return len(self.position)

    @property
    def key(self) -> tuple:
        """Structure key; see `Task.key`."""
        return ("posture", self.dimension)

    def error(self, terms: Terms) -> Array:
        """Return ``q* - q``, rad or m."""
        return self.position - terms.q[7 : 7 + len(self.position)]

    def rows(self, terms: Terms) -> tuple[NDArray, Array]:
        """Return the indices in ``vd`` and ``b``."""
        n = len(self.position)
        q, v = terms.q[7 : 7 + n], terms.v[6 : 6 + n]
        b = self.acceleration + self.kp * (self.position - q) + self.kd * (self.velocity - v)
        return self._index, b
