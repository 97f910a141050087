"""Flat parameter vectors for kernels: attributes as views on one array."""

from collections.abc import Sequence
from operator import is_
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


class View:
    """Attribute that is a view on the owner's ``values``: assignment writes into it.

    So ``task.position[2] = 0.8`` and ``task.position = p`` both reach the kernels; scalars are broadcast.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> "View": ...
    @overload
    def __get__(self, instance: Any, owner: type) -> Array: ...
    def __get__(self, instance, owner):
        """Return the view, or on the class the descriptor."""
        return self if instance is None else instance.slots[self._name]

    def __set__(self, instance: Any, value: ArrayLike) -> None:
        """Write a value into the view."""
        instance.slots[self._name][...] = value


class NumberView:
    """Attribute that is one number in the owner's ``values``."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> "NumberView": ...
    @overload
    def __get__(self, instance: Any, owner: type) -> float: ...
    def __get__(self, instance, owner):
        """Return the number, or on the class the descriptor."""
        return self if instance is None else instance.slots[self._name].item()

    def __set__(self, instance: Any, value: float) -> None:
        """Set the number."""
        instance.slots[self._name][...] = value


class FlatParameters:
    """Base class of objects whose numbers are views on one array.

    Attributes
    ----------
    values : all numbers, in the order of allocation; always the same array.
    slots : name -> view on ``values``.
    """

    values: Array
    slots: dict[str, Array]

    def allocate(self, **shapes: int | tuple[int, ...]) -> None:
        """Allocate ``values``, initially zero, with one view per argument."""
        sizes = [int(np.prod(shape)) for shape in shapes.values()]
        self.values = np.zeros(sum(sizes))
        parts = np.split(self.values, np.cumsum(sizes)[:-1])
        self.slots = {name: part.reshape(shape) for (name, shape), part in zip(shapes.items(), parts, strict=True)}


def is_unchanged(present: Sequence[object], previous: Sequence[object]) -> bool:
    """Whether two sequences hold identical objects (compared by identity, not equality)."""
    return len(present) == len(previous) and all(map(is_, present, previous))
