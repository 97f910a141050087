"""Read-only arrays: the type for which kernels are compiled; safe to share between objects."""

import numpy as np


def read_only(array: np.ndarray) -> np.ndarray:
    """Return the array, contiguous and read-only; a contiguous one is itself made read-only."""
    array = np.ascontiguousarray(array)
    array.flags.writeable = False
    return array
