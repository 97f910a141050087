"""The reference tick: what is asked of every program that is measured with it."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Definition:
    """Double support in half-sitting, the centre of mass sways sideways: ``c* = c_0 + sway sin(2 pi f t) e_y``.

    Hard: equation of motion; the six accelerations of both feet; ``|f_x|, |f_y| <= friction f_n`` at four corners per
    foot, the normal force of each foot within its bounds; torque limits; velocity limits over one period. Soft: centre
    of mass, joint posture, ``force_weight |diag(force_scale) w|^2`` per foot with the wrench ``w`` at the origin and in
    the axes of the foot's link, ``regularisation`` on the square of every unknown, torques too. No armature.

    Parameters
    ----------
    dt : period, s.
    sway, frequency : m, Hz.
    contact_kp, contact_kd : feedback of the feet, 1/s² and 1/s.
    min_force, max_force : of each foot, N.
    com_weight, posture_weight : cost weights.
    kp : stiffness of both tasks, 1/s²; the damping is critical.
    """

    posture: str = "half_sitting"
    patches: tuple[str, ...] = ("left_sole", "right_sole")
    dt: float = 1e-3
    sway: float = 0.02
    frequency: float = 0.5
    friction: float = 0.5
    min_force: float = 1.0
    max_force: float = 1000.0
    contact_kp: float = 100.0
    contact_kd: float = 20.0
    com_weight: float = 1.0
    posture_weight: float = 0.1
    kp: float = 10.0
    force_weight: float = 1e-5
    force_scale: tuple[float, ...] = (1.0, 1.0, 1e-3, 2.0, 2.0, 2.0)
    regularisation: float = 1e-8
    torque_regularisation: float = 1e-8

    @property
    def kd(self) -> float:
        """Critical damping of the tasks, 1/s."""
        return 2.0 * float(np.sqrt(self.kp))

    @property
    def wrench_weight(self) -> tuple[float, ...]:
        """Cost of each component of a foot's wrench squared."""
        return tuple(self.force_weight * scale**2 for scale in self.force_scale)

    def reference(self, t: float) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Return displacement, velocity and acceleration (3,) of the centre of mass wanted at time t."""
        w = 2 * np.pi * self.frequency
        s, c = np.sin(w * t), np.cos(w * t)
        y = np.array([0.0, self.sway, 0.0])
        return y * s, y * (w * c), y * (-w * w * s)

    def to_json(self) -> dict[str, Any]:
        """Return what a peer has to know, as plain values."""
        return {**asdict(self), "kd": self.kd}
