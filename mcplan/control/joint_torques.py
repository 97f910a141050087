"""Joint impedance: the joints are held to the motion that the program expects, within a short memory.

Friction of the joints, as the robot's file gives it: the torques that make up for it.

A wrist of 3 N m that rubs with 1 N m does not lay its hand flat: the program's forces are not those that arrive.
"""

import numpy as np

from mcplan.core.algebra.impedance import add_impedance
from mcplan.robot.robot import Robot

REFERENCE_TORQUE = 150.0
"""N m; the gains are those of a joint with this torque limit, and grow with the limit."""

IMPEDANCE_KP_NM_RAD, IMPEDANCE_KD_NM_S_RAD, IMPEDANCE_LEAK_S = 1000.0, 20.0, 0.05
"""Joint impedance of a joint with the torque limit above where contacts are compliant, and the time constant with which
the expected motion approaches the measured one."""

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


AHEAD = 0.05
"""s: a joint at rest is about to move as its acceleration says after such a time; on the way it moves as it does."""

SLOW = 0.05
"""rad/s (m/s): at slower speeds a joint is given less than its whole friction, so that it does not jump to and fro."""


class JointFriction:
    """Gives what friction and damping take of the joints' torques.

        tau = share (d (v + dt vd) + c tanh((v + T vd_last) / e)),   T = 0.05 s, e = 0.05 rad/s

    The damping is that of the end of a tick, so that ``dt d`` counts as inertia: the wrist of a small robot is damped
    within less than a tick. ``vd_last`` is what was last asked of the joint: at rest its friction is made up for where
    it is to move.

    Parameters
    ----------
    robot : with damping d (N m s/rad) and friction c (N m) of its joints.
    share : of them that is made up for, 0 to 1.
    dt : time from one tick to the next (s).
    """

    def __init__(self, robot: Robot, share: float, dt: float):
        self.damping, self.friction = share * robot.joint_damping, share * robot.joint_friction
        self._inertia = dt * self.damping
        self._joints = 6 + np.arange(len(self.damping))
        self._any = bool(self.damping.any() or self.friction.any())

    def __bool__(self) -> bool:
        """Whether there is anything to make up for."""
        return self._any

    def add(self, M: np.ndarray, h: np.ndarray, v: np.ndarray, vd: np.ndarray) -> None:
        """Add to the mass matrix and to the nonlinear effects, at speeds (n,) and accelerations (n,) last asked for."""
        joints = self._joints
        M[joints, joints] += self._inertia
        h[joints] += self.damping * v + self.friction * np.tanh((v + AHEAD * vd) / SLOW)
