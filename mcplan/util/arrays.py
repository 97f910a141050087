"""Read-only arrays: what the kernels are compiled for, and what values share."""

import numpy as np


def read_only(array: np.ndarray) -> np.ndarray:
    """Return the array, contiguous and read-only; a contiguous one is itself made read-only."""
    array = np.ascontiguousarray(array)
    array.flags.writeable = False
    return array
