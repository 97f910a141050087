"""Many arrays packed into three: passing an array from Python to a kernel costs 0.1 µs, a view in the kernel nothing.

A bundle is one array of floats, one of integers, and one with the start of each packed array and its lengths along up
to three axes. In a kernel ``axes2(bundle.real, bundle.layout, k)`` is array k.

`check` tests an array for NaN and infinity in one call; NumPy would take as long as the dynamics.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mcplan.core.jit import jit, jit_view


class Bundle(NamedTuple):
    """Arrays packed end to end."""

    real: np.ndarray  # (R,) float64
    integer: np.ndarray  # (I,) int64
    layout: np.ndarray  # (arrays, 4) int64: first entry, lengths along the axes (1 where there is none)


def bundle(arrays: Sequence[np.ndarray]) -> tuple[Bundle, list[np.ndarray]]:
    """Pack arrays into a bundle; return it and the arrays as views of it. It is read-only if all arrays are."""
    lengths, layout = {"f": 0, "i": 0}, []
    for array in arrays:
        kind = array.dtype.kind
        layout.append([lengths[kind], *array.shape, *[1] * (3 - array.ndim)])
        lengths[kind] += array.size
    buffers = {"f": np.zeros(lengths["f"]), "i": np.zeros(lengths["i"], np.int64)}
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
    """Return the arrays of a nested tuple, in the order in which the kernels unpack them."""
    return [array for field in fields for array in (flat(field) if isinstance(field, tuple) else [field])]


@jit_view(axes=1)
def axes1(buffer, layout, k):
    """Return array k of a buffer, with one axis."""
    return layout[k, 0], layout[k, 1]


@jit_view(axes=2)
def axes2(buffer, layout, k):
    """Return array k of a buffer, with two axes."""
    return layout[k, 0], layout[k, 1], layout[k, 2]


@jit_view(axes=3)
def axes3(buffer, layout, k):
    """Return array k of a buffer, with three axes."""
    return layout[k, 0], layout[k, 1], layout[k, 2], layout[k, 3]


SOUND, NOT_FINITE, NOT_A_UNIT_QUATERNION = range(3)
"""Results of ``check``."""

QUATERNION_TOLERANCE = 1e-6
"""Largest deviation of the length of a base quaternion from 1."""


@jit
def check(array, is_configuration):
    """Return SOUND, NOT_FINITE or, for a configuration (nq,), NOT_A_UNIT_QUATERNION."""
    for k in range(len(array)):
        if not math.isfinite(array[k]):
            return NOT_FINITE
    if is_configuration:
        length = math.sqrt(array[3] ** 2 + array[4] ** 2 + array[5] ** 2 + array[6] ** 2)
        if abs(length - 1.0) > QUATERNION_TOLERANCE:
            return NOT_A_UNIT_QUATERNION
    return SOUND
