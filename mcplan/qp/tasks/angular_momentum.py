"""The angular momentum about the centre of mass is damped, or follows a reference."""

import numpy as np

from mcplan.model.terms import Terms
from mcplan.qp.tasks.task import Array


class AngularMomentumTask:
    """``A_k vd = Ldot* + kd (L* - L) - Adot_k v``, the angular rows of the centroidal momentum.

    Parameters
    ----------
    weight : cost weight; its unit makes 1 (N m)² comparable to the other tasks.
    kd : damping, 1/s.

    Attributes
    ----------
    momentum, rate : (3,) reference and feed-forward, N m s and N m. Change them at will.
    """

    diagonal = False
    frames: tuple[str, ...] = ()

    def __init__(self, weight: float | Array = 0.1, kd: float = 5.0):
        self.weight, self.kd = weight, kd
        self.momentum = np.zeros(3)
        self.rate = np.zeros(3)

    @property
    def dimension(self) -> int:
        """Always 3."""
        return 3

    @property
    def key(self) -> tuple:
        """Structure."""
        return ("angular momentum", 3)

    def error(self, terms: Terms) -> Array:
        """Return ``L* - L``, N m s."""
        return self.momentum - terms.momentum[3:]

    def rows(self, terms: Terms) -> tuple[Array, Array]:
        """Return ``A`` and ``b``."""
        b = self.rate + self.kd * (self.momentum - terms.momentum[3:]) - terms.momentum_bias[3:]
        return terms.momentum_matrix[3:], b
