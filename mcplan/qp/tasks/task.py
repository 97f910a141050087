"""What the whole-body program asks of a task."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mcplan.model.terms import Terms

Array = NDArray[np.float64]


class Task(Protocol):
    """A wish for the accelerations, with the cost ``sum_i w_i (A vd - b)_i^2``.

    ``weight``, gains and targets may be changed between ticks; ``key`` may not.
    """

    weight: float | Array
    """``w``: one number, or one per row."""

    @property
    def dimension(self) -> int:
        """Number of rows."""

    @property
    def key(self) -> tuple:
        """What makes two tasks interchangeable in one declared problem."""

    @property
    def diagonal(self) -> bool:
        """Whether each row concerns one acceleration with coefficient 1; then ``rows`` has no ``A``."""

    @property
    def frames(self) -> tuple[str, ...]:
        """Frames whose terms it reads."""

    def rows(self, terms: Terms) -> tuple[NDArray, Array]:
        """Return ``A (m, nv)`` and ``b (m,)``; for a diagonal task the indices (m,) in ``vd`` and ``b``."""


def unknown_of(task: Any) -> str:
    """Return what the rows of a task multiply: ``vd``, or for a task that says so ``force`` or ``torque``."""
    return getattr(task, "unknown", "vd")


def damping(kp: float, kd: float | None) -> float:
    """Return ``kd``, or critical damping ``2 sqrt(kp)`` where it is not given."""
    return 2.0 * float(np.sqrt(kp)) if kd is None else float(kd)


def weights(task: Task) -> Array:
    """Return the weight of each row."""
    return np.broadcast_to(np.asarray(task.weight, dtype=np.float64), (task.dimension,))
