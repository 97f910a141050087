"""The rotation vector between two orientations."""

from math import acos, sqrt

import numpy as np
from numpy.typing import NDArray


def rotation_error(target: NDArray[np.float64], R: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ``log(R* R')``: the rotation vector, in world axes, turning ``R`` onto ``R*`` (rad, at most pi long)."""
    D = target @ R.T
    twice = np.array([D[2, 1] - D[1, 2], D[0, 2] - D[2, 0], D[1, 0] - D[0, 1]])
    sine = 0.5 * sqrt(float(twice @ twice))
    cosine = 0.5 * (float(D[0, 0] + D[1, 1] + D[2, 2]) - 1.0)
    if cosine > 0.9:  # the sine is the well-conditioned one near zero
        if sine < 1e-9:
            return 0.5 * twice
        return twice * (0.5 * np.arcsin(min(sine, 1.0)) / sine)
    angle = acos(max(-1.0, min(1.0, cosine)))
    if cosine > -0.99:
        return twice * (0.5 * angle / sine)
    # near pi the axis comes from the symmetric part, its sign from what is left of the other one
    angle = np.pi - np.arcsin(min(sine, 1.0))
    B = 0.5 * (D + np.eye(3))
    column = int(np.argmax(np.diag(B)))
    axis = B[:, column] / np.linalg.norm(B[:, column])
    return angle * (axis if axis @ twice >= 0 else -axis)
