"""Many arrays as few: each array that crosses from Python to a kernel costs 0.1 µs, a view of one costs nothing.

A bundle is one array of numbers, one of integers, and one that says where each of the arrays begins and how long it is
along up to three axes. In a kernel ``real2(bundle, k)`` is array k again.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mcplan.core.jit import jit_inline


class Bundle(NamedTuple):
    """Arrays laid end to end."""

    real: np.ndarray  # (R,) float64
    whole: np.ndarray  # (W,) int64
    layout: np.ndarray  # (arrays, 4) int64: first entry, lengths along the axes (1 where there is none)


def bundle(arrays: Sequence[np.ndarray]) -> tuple[Bundle, list[np.ndarray]]:
    """Return the bundle of some arrays, read-only if they all are, and the arrays as views of it."""
    ends, layout = {"f": 0, "i": 0}, []
    for array in arrays:
        kind = array.dtype.kind
        layout.append([ends[kind], *array.shape, *[1] * (3 - array.ndim)])
        ends[kind] += array.size
    buffers = {"f": np.zeros(ends["f"]), "i": np.zeros(ends["i"], np.int64)}
    views = []
    for array, (first, *_) in zip(arrays, layout, strict=True):
        view = buffers[array.dtype.kind][first : first + array.size].reshape(array.shape)
        view[...] = array
        views.append(view)
    packed = Bundle(buffers["f"], buffers["i"], np.array(layout, np.int64).reshape(-1, 4))
    packed.layout.flags.writeable = False
    if not any(array.flags.writeable for array in arrays):
        for buffer in (*packed, *views):
            buffer.flags.writeable = False
    return packed, views


def flat(fields: NamedTuple) -> list[np.ndarray]:
    """Return the arrays of a tuple, those of tuples in it included, in the order in which they are opened."""
    return [array for field in fields for array in (flat(field) if isinstance(field, tuple) else [field])]


@jit_inline
def real1(packed, k):
    """Array k of numbers with one axis."""
    first = packed.layout[k, 0]
    return packed.real[first : first + packed.layout[k, 1]]


@jit_inline
def real2(packed, k):
    """Array k of numbers with two axes."""
    first, rows, columns = packed.layout[k, 0], packed.layout[k, 1], packed.layout[k, 2]
    return packed.real[first : first + rows * columns].reshape((rows, columns))


@jit_inline
def real3(packed, k):
    """Array k of numbers with three axes."""
    first, a, b, c = packed.layout[k, 0], packed.layout[k, 1], packed.layout[k, 2], packed.layout[k, 3]
    return packed.real[first : first + a * b * c].reshape((a, b, c))


@jit_inline
def whole1(packed, k):
    """Array k of integers with one axis."""
    first = packed.layout[k, 0]
    return packed.whole[first : first + packed.layout[k, 1]]


@jit_inline
def whole2(packed, k):
    """Array k of integers with two axes."""
    first, rows, columns = packed.layout[k, 0], packed.layout[k, 1], packed.layout[k, 2]
    return packed.whole[first : first + rows * columns].reshape((rows, columns))
