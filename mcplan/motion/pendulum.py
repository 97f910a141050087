"""Linear inverted pendulum: the centre of mass of a robot that falls or is caught.

At a height z above its centre of pressure u the centre of mass c follows ``c'' = w² (c - u)``, ``w² = g / z``, and its
capture point ``xi = c + c' / w`` runs away from the pressure, ``xi' = w (xi - u)``: with the pressure there the robot
comes to rest (Pratt et al. 2006; Englsberger et al. 2011).
"""

from collections.abc import Sequence

import numpy as np

from mcplan.core.rigid_body.tree import GRAVITY
from mcplan.motion.quintic import ReferenceSample
from mcplan.scene.contact import Contact

LEAST_HEIGHT = 0.1
"""m: so high above its lowest contact a centre of mass is taken to be at least, for a robot of the size of HRP-2."""


def frequency(com: np.ndarray, contacts: Sequence[Contact], size: float = 1.0) -> float:
    """Return w (1/s) of a centre of mass (3,) on some contacts, of a robot of a size: ``w² = g / z``."""
    ground = min((contact.ground for contact in contacts), default=np.inf)
    return float(np.sqrt(GRAVITY / max(float(com[2]) - ground, size * LEAST_HEIGHT)))


class Pendulum:
    """Reference of a centre of mass whose capture point leaves a point r, or comes to rest there.

        xi(t) = r + (xi_0 - r) e^(-k t),   c' = w (xi - c)
        c(t)  = r + A e^(-k t) + (c_0 - r - A) e^(-w t),   A = w (xi_0 - r) / (w - k)

    The pressure that this takes is at ``u = xi + k / w (xi - r)``. With ``k = -w`` it stays at r, over which the robot
    falls; with ``k = 0`` it is at the capture point, and neither moves.

    Parameters
    ----------
    com, velocity : (3,) at the start (m, m/s); the height stays.
    rest : (2,) r, horizontal (m).
    omega : w (1/s).
    rate : k < w (1/s).
    start_time : s.
    """

    def __init__(
        self, com: np.ndarray, velocity: np.ndarray, rest: np.ndarray, omega: float, rate: float, start_time: float
    ):
        self.rest, self.rate, self.omega, self.start_time = np.array(rest, float), rate, omega, start_time
        self._slow = omega / (omega - rate) * (com[:2] + velocity[:2] / omega - self.rest)
        self._fast = com[:2] - self.rest - self._slow
        self._height = float(com[2])

    def sample(self, t: float) -> ReferenceSample:
        """Return the reference at time t (s)."""
        tau, k, w = max(t - self.start_time, 0.0), self.rate, self.omega
        slow, fast = np.exp(-k * tau) * self._slow, np.exp(-w * tau) * self._fast
        return ReferenceSample(
            np.append(self.rest + slow + fast, self._height),
            np.append(-k * slow - w * fast, 0.0),
            np.append(k * k * slow + w * w * fast, 0.0),
        )

    @property
    def end_time(self) -> float:
        """It comes to rest gradually."""
        return self.start_time
