"""Joint impedance: the joints are held to the motion that the program expects, within a short memory."""

import numpy as np

from mcplan.core.algebra.impedance import add_impedance

REFERENCE_TORQUE = 150.0
"""N m; the gains are those of a joint with this torque limit, and grow with the limit."""

DAMPED = 0.2
"""What part of a joint's speed its damper may take away within one control period. Beyond 1 it reverses the speed, and
light limbs without rotor inertia swing up; what contacts and other joints add calls for a distance from that."""


class JointImpedance:
    """Adds to the torques of the program a spring and a damper around the motion that it expects.

        tau = tau_QP + s kp (q_d - q) + s kd (v_d - v),   s = min(torque limit / 150 N m, 0.2 inertia / (kd dt))
        v_d+ = v_d + dt (vd + (v - v_d) / leak),   q_d+ = q_d + dt (v_d + (q - q_d) / leak)

    What pushes the joints off (friction, a wrong mass) is answered at once, as a program that only sees the measured
    state cannot do; the leak lets the expected motion forget, so that it does not drift away from the robot.

    Parameters
    ----------
    kp, kd : N m/rad and N m s/rad at a joint of ``REFERENCE_TORQUE``.
    leak : time constant of forgetting (s).
    limit : (n,) torque limits (N m); the sum is cut to them.
    inertia : (n,) that a joint moves when all others are free, the least of it (kg m²).
    dt : control period (s).
    """

    def __init__(self, kp: float, kd: float, leak: float, limit: np.ndarray, inertia: np.ndarray, dt: float):
        scale = np.where(np.isfinite(limit), limit / REFERENCE_TORQUE, 1.0)
        if kd > 0.0:
            scale = np.minimum(scale, DAMPED * inertia / (kd * dt))
        self.kp, self.kd, self.leak, self.limit, self.dt = kp * scale, kd * scale, max(leak, dt), limit, dt
        self._q: np.ndarray | None = None
        self._v = np.zeros(len(limit))

    def rehearse(self) -> None:
        """Ask for torques once and forget it: compiled code is loaded where it is first called."""
        none = np.zeros(len(self._v))
        self.torque(none, none, none, none)
        self._q = None

    def meet(self, v: np.ndarray) -> None:
        """Expect the velocities (n,) that are measured: a patch has met its support, and these have changed at once."""
        self._v[:] = v

    def torque(self, q: np.ndarray, v: np.ndarray, vd: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """Return the torques to send (n,), N m.

        Parameters
        ----------
        q, v : (n,) measured joint positions and velocities.
        vd, tau : (n,) accelerations and torques of the program.
        """
        if self._q is None:
            self._q, self._v = q.copy(), v.copy()
        sent = np.empty(len(tau))
        add_impedance(q, v, vd, tau, self.kp, self.kd, self.leak, self.limit, self.dt, self._q, self._v, sent)
        return sent
