"""Minimum-jerk motion in SO(3), from any angular motion to rest."""

import numpy as np
from scipy.spatial.transform import Rotation

from mcplan.control.quintic import Quintic, Sample


def hat(a: np.ndarray) -> np.ndarray:
    """Return the matrix of ``a x``."""
    x, y, z = a
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def rotation_vector(R: np.ndarray) -> np.ndarray:
    """Return phi, |phi| <= pi, with R = exp(hat(phi))."""
    return Rotation.from_matrix(R).as_rotvec()


def exponential(phi: np.ndarray, phi_d: np.ndarray, phi_dd: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return E = exp(hat(phi)) and its angular velocity and acceleration, in the axes that E rotates into.

    With theta = |phi|, P = hat(phi), a = sin theta / theta, b = (1 - cos theta) / theta², c = (theta - sin theta) /
    theta³:

        E = 1 + a P + b P²,  J = 1 + b P + c P²,  w = J phid,  wd = J phidd + Jd phid

    Source: Chirikjian, Stochastic Models, Information Theory and Lie Groups, vol. 2, sec. 10 (left Jacobian).
    """
    x = float(phi @ phi)
    if x < 1e-4:
        # Series in x = theta²; the first term left out is below 1e-16.
        a = 1 - x / 6 * (1 - x / 20 * (1 - x / 42))
        b = 0.5 * (1 - x / 12 * (1 - x / 30 * (1 - x / 56)))
        c = (1 - x / 20 * (1 - x / 42 * (1 - x / 72))) / 6
        slope_b = -(1 - x / 15 * (1 - x / 37.333333333333336)) / 24
        slope_c = -(1 - x / 21 * (1 - x / 48)) / 120
    else:
        theta = np.sqrt(x)
        a = np.sin(theta) / theta
        b = (1 - np.cos(theta)) / x
        c = (1 - a) / x
        slope_b = (a / 2 - b) / x
        slope_c = (b - 3 * c) / (2 * x)
    P, Pd = hat(phi), hat(phi_d)
    P2, identity = P @ P, np.eye(3)
    x_d = 2 * float(phi @ phi_d)
    J = identity + b * P + c * P2
    Jd = slope_b * x_d * P + b * Pd + slope_c * x_d * P2 + c * (Pd @ P + P @ Pd)
    return identity + a * P + b * P2, J @ phi_d, J @ phi_dd + Jd @ phi_d


class RotationTrajectory:
    """R(t) = exp(phi(t)) R(start) with phi of degree five: the shortest turn when it starts at rest.

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
        self.start, self.end = np.array(start, float), np.array(end, float)
        self.phi = Quintic(
            np.zeros(3), rotation_vector(self.end @ self.start.T), duration, velocity, acceleration, start_time
        )
        self._rest = Sample(self.end, np.zeros(3), np.zeros(3))

    def sample(self, t: float) -> Sample:
        """Return R (3,3), angular velocity and acceleration (3,) at time t."""
        if t >= self.phi.end_time:
            return self._rest
        E, w, wd = exponential(*self.phi.sample(t))
        return Sample(E @ self.start, w, wd)

    @property
    def angle(self) -> float:
        """Angle between start and end (rad)."""
        return float(np.linalg.norm(self.phi.end))

    @property
    def end_time(self) -> float:
        """Time from which the end is held (s)."""
        return self.phi.end_time
