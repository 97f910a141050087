"""Numbers that change between ticks: one array that kernels read, and attributes that are parts of it."""

from collections.abc import Sequence
from operator import is_
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


class View:
    """An attribute that is a part of the owner's ``values``: reading gives a view, assigning writes into it.

    So ``task.position[2] = 0.8`` and ``task.position = p`` both reach the kernels, and one number assigned to many is
    taken for all of them.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> "View": ...
    @overload
    def __get__(self, instance: Any, owner: type) -> Array: ...
    def __get__(self, instance, owner):
        """Return the view."""
        return self if instance is None else instance.slots[self._name]

    def __set__(self, instance: Any, value: ArrayLike) -> None:
        """Write into it."""
        instance.slots[self._name][...] = value


class NumberView:
    """A slot of one number, which reads as one."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> "NumberView": ...
    @overload
    def __get__(self, instance: Any, owner: type) -> float: ...
    def __get__(self, instance, owner):
        """Return the number."""
        return self if instance is None else instance.slots[self._name].item()

    def __set__(self, instance: Any, value: float) -> None:
        """Change it."""
        instance.slots[self._name][...] = value


class FlatParameters:
    """Base of classes with views.

    Attributes
    ----------
    values : all its numbers, in the order in which they were allocated; never another array.
    """

    values: Array
    slots: dict[str, Array]

    def allocate(self, **shapes: int | tuple[int, ...]) -> None:
        """Make ``values`` and the views on it, one per slot, zero at first."""
        sizes = [int(np.prod(shape)) for shape in shapes.values()]
        self.values = np.zeros(sum(sizes))
        parts = np.split(self.values, np.cumsum(sizes)[:-1])
        self.slots = {name: part.reshape(shape) for (name, shape), part in zip(shapes.items(), parts, strict=True)}


def is_unchanged(given: Sequence[object], kept: Sequence[object]) -> bool:
    """Say whether two sequences hold the same objects; whether equal ones would do is theirs to know."""
    return len(given) == len(kept) and all(map(is_, given, kept))
