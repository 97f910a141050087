"""The torques stay small, or near a reference."""

import numpy as np
from numpy.typing import NDArray

from mcplan.model.terms import Terms
from mcplan.short import short
from mcplan.whole_body.tasks.task import Array


class TorqueTask:
    """``tau = tau*`` for every joint, with the cost ``sum_j w_j (tau_j - tau*_j)²``.

    Parameters
    ----------
    joints : number of joints ``n``.
    weight : 1/(N m)²: one number, or one per joint; ``1 / limit²`` weighs every joint by what it can do.

    Attributes
    ----------
    torque : (n,) reference, N m; at first zero. Change it at will.
    """

    unknown = "torque"
    diagonal = True
    frames: tuple[str, ...] = ()

    __repr__ = short

    def __init__(self, joints: int, weight: float | Array = 1e-4):
        self.weight = weight
        self.torque = np.zeros(joints)
        self._index = np.arange(joints)

    @property
    def dimension(self) -> int:
        """Number of joints."""
        return len(self.torque)

    @property
    def key(self) -> tuple:
        """Structure."""
        return ("torque", self.dimension)

    def rows(self, terms: Terms) -> tuple[NDArray, Array]:
        """Return the indices in ``tau`` and the reference."""
        return self._index, self.torque
