"""Rotation vectors with their rates, and curves in SO(3) from any angular motion to rest."""

import numpy as np

from mcplan.core.algebra.rotation import rotation_log
from mcplan.textbook.coordinates.rotation_vector import ROTATION_VECTOR


def rotation_vector(R: np.ndarray) -> np.ndarray:
    """Return phi, |phi| <= pi, with R = exp(hat(phi))."""
    phi = np.empty(3)
    rotation_log(np.ascontiguousarray(R, dtype=np.float64), np.empty(4), phi)
    return phi


def vector_rates(phi: np.ndarray, velocity: np.ndarray, acceleration: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return phi' and phi'' (3,) of a rotation exp(phi) that turns with a velocity and acceleration (3,), world axes.

    ``w = E phi'`` and ``dw/dt = E phi'' + E' phi'`` with E(phi) of the chart.
    """
    back = ROTATION_VECTOR.E_inverse(phi)
    rate = back @ velocity
    return rate, back @ (acceleration - ROTATION_VECTOR.E_rate(phi, rate) @ rate)
