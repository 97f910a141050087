"""Linear inverted pendulum: CoM references of a robot that falls or recovers its balance.

At a height z above its centre of pressure u the centre of mass c follows ``c'' = w² (c - u)``, ``w² = g / z``. Its
capture point ``xi = c + c' / w`` diverges from the pressure, ``xi' = w (xi - u)``: with the pressure at xi the robot
comes to rest (Pratt et al. 2006; Englsberger et al. 2011).
"""

import math
from collections.abc import Sequence

import numpy as np

from mcplan.core.motion.balance import pendulum_frequency
from mcplan.motion.spline import ReferenceSample
from mcplan.scene.contact import Contact


def frequency(com: np.ndarray, contacts: Sequence[Contact], size: float = 1.0) -> float:
    """Return w (1/s), ``w² = g / z``, of a centre of mass (3,) above contacts; ``size`` is relative to HRP-2."""
    return pendulum_frequency(float(com[2]) - lowest(contacts), float(size))


def lowest(contacts: Sequence[Contact]) -> float:
    """Return the height of the lowest contact (m)."""
    return min((contact.ground for contact in contacts), default=math.inf)


class Pendulum:
    """CoM reference whose capture point diverges from a point r, or converges to it.

        xi(t) = r + (xi_0 - r) e^(-k t),   c' = w (xi - c)
        c(t)  = r + A e^(-k t) + (c_0 - r - A) e^(-w t),   A = w (xi_0 - r) / (w - k)

    It needs the centre of pressure ``u = xi + k / w (xi - r)``. With ``k = -w`` the pressure stays at r, and the robot
    falls about it; with ``k = 0`` it is at the capture point, and both rest.

    Parameters
    ----------
    com, velocity : (3,) at the start (m, m/s); the height is constant.
    rest : (2,) r, horizontal position (m).
    omega : w, see `frequency` (1/s).
    rate : k < w, rate of convergence of the capture point; negative: it diverges (1/s).
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
        """The start time: the reference converges asymptotically and has no end (s)."""
        return self.start_time
