"""The angular momentum about the centre of mass is damped, or follows a reference."""

from numpy.typing import ArrayLike

from mcplan.core.whole_body import tasks as qp_tasks
from mcplan.model.terms import Terms
from mcplan.whole_body.packed import Slot
from mcplan.whole_body.tasks.task import Array, KernelTask


class AngularMomentumTask(KernelTask):
    """``A_k vd = Ldot* + kd (L* - L) - Adot_k v``, the angular rows of the centroidal momentum.

    Parameters
    ----------
    weight : cost weight; its unit makes 1 (N m)² comparable to the other tasks.
    kd : damping, 1/s; one number or (3,).

    Attributes
    ----------
    momentum, rate : (3,) reference and feed-forward, N m s and N m. Change them at will.
    """

    code = qp_tasks.ANGULAR_MOMENTUM
    diagonal = False
    selected = (0, 1, 2)
    frames: tuple[str, ...] = ()
    kd, momentum, rate = Slot(), Slot(), Slot()

    def __init__(self, weight: ArrayLike = 0.1, kd: ArrayLike = 5.0):
        self.allocate(kd=3, momentum=3, rate=3, weight=3)
        self.weight, self.kd = weight, kd

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
