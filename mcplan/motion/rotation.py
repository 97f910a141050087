"""Rotation vectors and their time derivatives."""

import numpy as np

from mcplan.core.algebra.rotation import rotation_log
from mcplan.textbook.coordinates.rotation_vector import ROTATION_VECTOR


def rotation_vector(R: np.ndarray) -> np.ndarray:
    """Return phi, |phi| <= pi, with R = exp(hat(phi))."""
    phi = np.empty(3)
    rotation_log(np.ascontiguousarray(R, dtype=np.float64), np.empty(4), phi)
    return phi


def vector_rates(phi: np.ndarray, velocity: np.ndarray, acceleration: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return phi' and phi'' (3,) of the rotation exp(phi) at an angular velocity w and acceleration dw/dt (3,) (world).

    They solve ``w = E phi'`` and ``dw/dt = E phi'' + E' phi'``, with E(phi) of `ROTATION_VECTOR`.
    """
    back = ROTATION_VECTOR.E_inverse(phi)
    rate = back @ velocity
    return rate, back @ (acceleration - ROTATION_VECTOR.E_rate(phi, rate) @ rate)
