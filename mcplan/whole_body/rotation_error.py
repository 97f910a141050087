"""The rotation vector between two orientations, and how quickly it changes."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mcplan.core.algebra import rotation_error as core


def rotation_error(target: ArrayLike, R: ArrayLike) -> NDArray[np.float64]:
    """Return ``log(R* R')``: the rotation vector, in world axes, turning ``R`` onto ``R*`` (rad, at most pi long)."""
    error = np.empty(3)
    both = [np.ascontiguousarray(matrix, dtype=np.float64).reshape(9) for matrix in (target, R)]
    core.rotation_error(both[0], both[1], np.empty(13), error)
    return error


def rotation_error_rate(error: ArrayLike, spin: ArrayLike) -> NDArray[np.float64]:
    """Return ``-d/dt log(R* R')`` (rad/s) where R turns with ``spin`` (3,), world axes, and the error is this."""
    rate = np.empty(3)
    core.rotation_error_rate(np.asarray(error, float), np.asarray(spin, float), rate)
    return rate
