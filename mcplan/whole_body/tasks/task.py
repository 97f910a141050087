"""What the whole-body program asks of a task."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mcplan.model.terms import Terms
from mcplan.short import short
from mcplan.whole_body.packed import Array, Packed, Slot

__all__ = ["Array", "KernelTask", "Task", "damping", "priority_of", "unknown_of", "weights"]


class Task(Protocol):
    """A wish for the accelerations, with the cost ``sum_i w_i (A vd - b)_i^2``.

    ``weight``, gains and targets may be changed between ticks; ``key`` may not. A class with these members is a task,
    filled by its ``rows``; one that derives from ``KernelTask`` is filled by a kernel.
    """

    @property
    def weight(self) -> float | Array:
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


class KernelTask(Packed):
    """Base of the tasks whose rows ``core.qp_tasks`` knows how to fill from their packed numbers.

    Attributes
    ----------
    code : which of the kernel's tasks it is.
    selected : which rows of that task, of three or six, it has; not of a diagonal one.
    weight : (m,) weight of each row; one number may be assigned.
    priority : level, see `priority_of`.
    """

    code: int
    priority: int = 1
    selected: tuple[int, ...] = ()
    weight = Slot()

    def __repr__(self) -> str:
        return short(self, self.slots)


def unknown_of(task: Any) -> str:
    """Return what the rows of a task multiply: ``vd``, or for a task that says so ``force`` or ``torque``."""
    return getattr(task, "unknown", "vd")


def priority_of(task: Any) -> int:
    """Return the level of a task: its ``priority``, 1 where it has none; a lower number goes before a higher one."""
    return getattr(task, "priority", 1)


def damping(kp: ArrayLike, kd: ArrayLike | None) -> Array:
    """Return ``kd``, or critical damping ``2 sqrt(kp)`` where it is not given."""
    return 2.0 * np.sqrt(np.asarray(kp, dtype=np.float64)) if kd is None else np.asarray(kd, dtype=np.float64)


def weights(task: Task) -> Array:
    """Return the weight of each row."""
    return np.broadcast_to(np.asarray(task.weight, dtype=np.float64), (task.dimension,))
