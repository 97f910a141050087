"""Minimum-jerk motion in SO(3), from any angular motion to rest."""

import numpy as np

from mcplan.coordinates.rotation_vector import ROTATION_VECTOR
from mcplan.core.algebra import minimum_jerk as core
from mcplan.core.algebra.rotation import rotation_log
from mcplan.motion.quintic import Quintic, Sample


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


class RotationTrajectory:
    """``R(t) = exp(phi(t)) R(start)`` with phi of degree five: the shortest turn when it starts at rest.

    Parameters
    ----------
    start, end : (3,3) rotations.
    duration : s, positive.
    velocity, acceleration : (3,) angular, in the axes in which ``start`` is given (rad/s, rad/s²); None is zero.
    start_time : s.
    """

    def __init__(
        self,
        start: np.ndarray,
        end: np.ndarray,
        duration: float,
        velocity: np.ndarray | None = None,
        acceleration: np.ndarray | None = None,
        start_time: float = 0.0,
    ):
        self.start, self.end = np.array(start, float, order="C"), np.array(end, float, order="C")
        self.phi = Quintic(
            np.zeros(3), rotation_vector(self.end @ self.start.T), duration, velocity, acceleration, start_time
        )
        self._rest = Sample(self.end, np.zeros(3), np.zeros(3))

    def sample(self, t: float) -> Sample:
        """Return R (3,3), angular velocity and acceleration (3,) at time t."""
        if t >= self.phi.end_time:
            return self._rest
        out = np.empty((5, 3))
        core.turn(np.array(self.phi.sample(t)), self.start, out[:3], out[3], out[4])
        return Sample(out[:3], out[3], out[4])

    @property
    def angle(self) -> float:
        """Angle between start and end (rad)."""
        return float(np.linalg.norm(self.phi.end))

    @property
    def end_time(self) -> float:
        """Time from which the end is held (s)."""
        return self.phi.end_time
