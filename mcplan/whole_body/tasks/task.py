"""Interface of tasks of the whole-body program."""

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mcplan.errors import InputError
from mcplan.robot.terms import Terms
from mcplan.util.text import summary
from mcplan.whole_body.packed import Array, FlatParameters, View

__all__ = [
    "Array",
    "KernelTask",
    "Task",
    "checked_rows",
    "damping",
    "filled_by_kernel",
    "priority_of",
    "unknown_of",
    "weights",
]


if TYPE_CHECKING:
    member = property
else:

    class member:  # noqa: N801 (used like property)
        """Default value of a member of `Task`: like a property, but subclasses and objects may override it."""

        def __init__(self, default: Callable):
            self.__doc__ = default.__doc__
            self._default = default

        def __get__(self, task: Any, owner: type) -> Any:
            return self if task is None else self._default(task)


class Task(Protocol):
    """Task on the accelerations, with the cost ``sum_i w_i (A vd - b)_i^2``.

    Every class with these members is a task. A subclass of ``Task`` needs only ``dimension`` and ``rows``, as class
    attributes or set in ``__init__``; the rows of a ``KernelTask`` are computed by a kernel. ``weight``, gains and
    targets may change between ticks; ``key`` may not.

    Examples
    --------
    >>> class Level(mc.Task):
    ...     dimension, frames = 1, ("HEAD_LINK1",)
    ...     def rows(self, terms):
    ...         head = terms.frame("HEAD_LINK1")
    ...         return head.J[4:5], -20.0 * head.velocity[4:5] - head.bias[4:5]
    >>> Level().weight, Level().key
    (1.0, ('Level', 1))
    """

    @member
    def weight(self) -> float | Array:
        """Weight ``w``: one number, or one per row; default 1."""
        return 1.0

    @member
    def dimension(self) -> int:
        """Return the number of rows."""
        raise TypeError(f"task {type(self).__qualname__}: it has no 'dimension', the number of its rows")

    @member
    def key(self) -> tuple:
        """Structure key; tasks with equal keys share a declared problem. Default: class name and number of rows."""
        return type(self).__qualname__, self.dimension

    @member
    def diagonal(self) -> bool:
        """Whether each row concerns one acceleration with coefficient 1; then ``rows`` has no ``A``."""
        return False

    @member
    def frames(self) -> tuple[str, ...]:
        """Frames whose terms the task reads; default none."""
        return ()

    @abstractmethod
    def rows(self, terms: Terms) -> tuple[NDArray, Array]:
        """Return ``A (m, nv)`` and ``b (m,)``; for a diagonal task the indices (m,) in ``vd`` and ``b``."""


class KernelTask(FlatParameters):
    """Base class of tasks whose rows a kernel (`mcplan.core.whole_body.tasks`) computes from their flat parameters.

    Attributes
    ----------
    code : number of the kind of task in the kernel.
    selected : indices of the rows in use, of three or six; empty for a diagonal task.
    weight : (m,) weight of each row; one number may be assigned.
    priority : level of the task, see `priority_of`.
    """

    code: int
    priority: int = 1
    selected: tuple[int, ...] = ()
    weight = View()

    def __repr__(self) -> str:
        return summary(self, self.slots)


def filled_by_kernel(task: KernelTask) -> bool:
    """Whether a kernel computes the rows of a task: not if a subclass overrides ``rows``."""
    kernel_class: Any = next(kind for kind in type(task).__mro__ if "code" in vars(kind))
    return getattr(type(task), "rows", None) is kernel_class.rows


def checked_rows(owner: Any, rows: tuple[Any, Any], columns: int) -> tuple[Any, Any]:
    """Validate the rows of a task or a limit: ``A (m, columns)``, if diagonal ``(m,)``, and ``b (m,)``.

    Raises
    ------
    InputError : other shapes, which numpy would broadcast, or reject without the name of the task.
    """
    m = owner.dimension
    expected = (m,) if getattr(owner, "diagonal", False) else (m, columns), (m,)
    if (shape := (np.shape(rows[0]), np.shape(rows[1]))) != expected:
        name = f"task {owner.key[0]}" if hasattr(owner, "key") else f"limit {type(owner).__qualname__}"
        shapes = [f"{A} and {b}" for A, b in (shape, expected)]
        raise InputError(f"{name}: rows() returned arrays of the shapes {shapes[0]}, expected {shapes[1]}")
    return rows


def unknown_of(task: Any) -> str:
    """Return the unknown of a task: ``vd`` (default), ``force`` or ``torque``."""
    return getattr(task, "unknown", "vd")


def priority_of(task: Any) -> int:
    """Return the ``priority`` of a task, default 1; lower numbers take precedence."""
    return getattr(task, "priority", 1)


def damping(kp: ArrayLike, kd: ArrayLike | None) -> Array:
    """Return ``kd``, by default critical damping ``2 sqrt(kp)``."""
    return 2.0 * np.sqrt(np.asarray(kp, dtype=np.float64)) if kd is None else np.asarray(kd, dtype=np.float64)


def weights(task: Task) -> Array:
    """Return the weight of each row."""
    return np.broadcast_to(np.asarray(task.weight, dtype=np.float64), (task.dimension,))
