"""Tasks of the centre of mass and of the angular momentum about it."""

from collections.abc import Sequence

from numpy.typing import ArrayLike

from mcplan.core.whole_body import tasks as qp_tasks
from mcplan.errors import InputError
from mcplan.robot.terms import Terms
from mcplan.util.arguments import describe
from mcplan.whole_body.packed import View
from mcplan.whole_body.tasks.task import Array, KernelTask, damping


class ComTask(KernelTask):
    """``J_c vd = a* + kp (c* - c) + kd (v* - vc) - Jdot_c v`` for the centre of mass c, on chosen world axes.

    Parameters
    ----------
    weight : cost weight, one number or one per chosen axis.
    kp, kd : stiffness (1/s²) and damping (1/s; critical when None), one number or (3,).
    axes : which of x, y, z (0, 1, 2).

    Attributes
    ----------
    position, velocity, acceleration : (3,) reference and feed-forward, m, m/s, m/s². They may be changed at any time.

    Raises
    ------
    InputError : an axis is not 0, 1 or 2.
    """

    code = qp_tasks.COM
    diagonal = False
    frames: tuple[str, ...] = ()
    kp, kd, position, velocity, acceleration = View(), View(), View(), View(), View()

    def __init__(
        self,
        weight: ArrayLike = 100.0,
        kp: ArrayLike = 60.0,
        kd: ArrayLike | None = None,
        axes: Sequence[int] = (0, 1, 2),
    ):
        self.selected = tuple(int(axis) for axis in axes if axis in (0, 1, 2))
        if len(self.selected) != len(axes):
            raise InputError(f"ComTask: axes: expected of 0, 1, 2 (x, y, z), not {describe(axes)}")
        self.allocate(kp=3, kd=3, position=3, velocity=3, acceleration=3, weight=len(self.selected))
        self.weight, self.kp, self.kd = weight, kp, damping(kp, kd)

    @property
    def dimension(self) -> int:
        """Number of axes."""
        return len(self.selected)

    @property
    def key(self) -> tuple:
        """Structure key; see `Task.key`."""
        return ("com", self.dimension)

    def error(self, terms: Terms) -> Array:
        """Return ``c* - c`` on the chosen axes, m."""
        return (self.position - terms.com)[list(self.selected)]

    def rows(self, terms: Terms) -> tuple[Array, Array]:
        """Return ``A`` and ``b`` of the rows ``A vd = b``."""
        b = (
            self.acceleration
            + self.kp * (self.position - terms.com)
            + self.kd * (self.velocity - terms.com_velocity)
            - terms.com_bias
        )
        axes = list(self.selected)
        return terms.com_jacobian[axes], b[axes]


class AngularMomentumTask(KernelTask):
    """``A_k vd = Ldot* + kd (L* - L) - Adot_k v`` for the angular momentum L about the centre of mass.

    ``A_k`` are the angular rows of the centroidal momentum matrix.

    Parameters
    ----------
    weight : cost weight; its unit makes 1 (N m)² comparable to the other tasks.
    kd : gain on the momentum error, 1/s; one number or (3,).

    Attributes
    ----------
    momentum, rate : (3,) reference and feed-forward, N m s and N m. They may be changed at any time.
    """

    code = qp_tasks.ANGULAR_MOMENTUM
    diagonal = False
    selected = (0, 1, 2)
    frames: tuple[str, ...] = ()
    kd, momentum, rate = View(), View(), View()

    def __init__(self, weight: ArrayLike = 0.1, kd: ArrayLike = 5.0):
        self.allocate(kd=3, momentum=3, rate=3, weight=3)
        self.weight, self.kd = weight, kd

    @property
    def dimension(self) -> int:
        """Number of rows: 3."""
        return 3

    @property
    def key(self) -> tuple:
        """Structure key; see `Task.key`."""
        return ("angular momentum", 3)

    def error(self, terms: Terms) -> Array:
        """Return ``L* - L``, N m s."""
        return self.momentum - terms.momentum[3:]

    def rows(self, terms: Terms) -> tuple[Array, Array]:
        """Return ``A`` and ``b`` of the rows ``A vd = b``."""
        b = self.rate + self.kd * (self.momentum - terms.momentum[3:]) - terms.momentum_bias[3:]
        return terms.momentum_matrix[3:], b
