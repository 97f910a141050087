"""Joint impedance around the expected motion, and compensation of joint friction.

Friction (as in the robot's file) matters: a wrist of 3 N m with 1 N m of friction does not lay its hand flat, because
the forces at the contact differ from those of the program.
"""

import numpy as np

from mcplan.core.algebra.impedance import add_impedance
from mcplan.robot.robot import Robot

REFERENCE_TORQUE = 150.0
"""The gains below are those of a joint with this torque limit (N m), and are proportional to the limit."""

IMPEDANCE_KP_NM_RAD, IMPEDANCE_KD_NM_S_RAD, IMPEDANCE_LEAK_S = 1000.0, 20.0, 0.05
"""Stiffness, damping and leak time constant of the joint impedance with compliant contacts."""

MAX_DAMPED_FRACTION = 0.2
"""Largest fraction of a joint's speed that its damper may remove within one control period. Beyond 1 it would reverse
the speed, and light limbs without rotor inertia would oscillate; contacts and other joints require a margin."""


class JointImpedance:
    """Joint impedance control around the motion that the program expects.

        tau = tau_QP + s kp (q_d - q) + s kd (v_d - v),   s = min(torque limit / 150 N m, 0.2 inertia / (kd dt))
        v_d+ = v_d + dt (vd + (v - v_d) / leak),   q_d+ = q_d + dt (v_d + (q - q_d) / leak)

    It counters disturbances of the joints (friction, a wrong mass), of which a program that starts from the measured
    state knows nothing. The leak keeps the expected motion from drifting away from the measured one.

    Parameters
    ----------
    kp, kd : N m/rad and N m s/rad at a joint of ``REFERENCE_TORQUE``.
    leak : time constant with which the expected motion approaches the measured one (s).
    limit : (n,) torque limits (N m); the sum is clipped to them.
    inertia : (n,) smallest effective inertia of each joint with all others free (kg m²).
    dt : control period (s).
    """

    def __init__(self, kp: float, kd: float, leak: float, limit: np.ndarray, inertia: np.ndarray, dt: float):
        scale = np.where(np.isfinite(limit), limit / REFERENCE_TORQUE, 1.0)
        if kd > 0.0:
            scale = np.minimum(scale, MAX_DAMPED_FRACTION * inertia / (kd * dt))
        self.kp, self.kd, self.leak, self.limit, self.dt = kp * scale, kd * scale, max(leak, dt), limit, dt
        self._q, self._v = np.zeros((2, len(limit)))
        self._has_begun = False

    def rehearse(self) -> None:
        """Call `torque` once, without effect on the run, to load the compiled kernel."""
        zero = np.zeros(len(self._v))
        self.torque(zero, zero, zero, zero)
        self._has_begun = False

    @property
    def arguments(self) -> tuple:
        """Arguments of the kernel ``add_impedance`` between the state and the torques; `torque` has to come first."""
        return self.kp, self.kd, self.leak, self.limit, self.dt, self._q, self._v

    def reset_velocity(self, v: np.ndarray) -> None:
        """Reset the expected velocities (n,) to the measured ones, which jump when a patch hits its support."""
        self._v[:] = v

    def torque(self, q: np.ndarray, v: np.ndarray, vd: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """Return the commanded torques (n,), N m.

        Parameters
        ----------
        q, v : (n,) measured joint positions and velocities.
        vd, tau : (n,) accelerations and torques of the program.
        """
        if not self._has_begun:
            self._q[:], self._v[:], self._has_begun = q, v, True
        commanded = np.empty(len(tau))
        add_impedance(q, v, vd, tau, *self.arguments, commanded)
        return commanded


PREDICTION_TIME_S = 0.05
"""Time over which the speed of a joint is predicted with its last commanded acceleration, for the sign of friction (s).
A joint at rest is about to move in that direction."""

FRICTION_SPEED = 0.05
"""Joint speed below which the friction compensation is reduced, so that it does not chatter (rad/s or m/s)."""


class JointFriction:
    """Compensation of friction and viscous damping in the joints.

        tau = share (d (v + dt vd) + c tanh((v + T vd_last) / e)),   T = 0.05 s, e = 0.05 rad/s

    Damping is implicit (taken at the end of the tick), so ``dt d`` adds to the inertia: the wrist of a small robot is
    damped within less than a tick. ``vd_last`` is the last commanded acceleration: at rest it determines the direction
    of the friction that is compensated.

    Parameters
    ----------
    robot : robot, with damping d (N m s/rad) and friction c (N m) of its joints.
    share : fraction that is compensated, 0 to 1.
    dt : control period (s).
    """

    def __init__(self, robot: Robot, share: float, dt: float):
        self.damping, self.friction = share * robot.joint_damping, share * robot.joint_friction
        self._inertia = dt * self.damping
        self._joints = 6 + np.arange(len(self.damping))
        self._is_needed = bool(self.damping.any() or self.friction.any())

    def __bool__(self) -> bool:
        """Whether there is friction or damping to compensate."""
        return self._is_needed

    def add(self, M: np.ndarray, h: np.ndarray, v: np.ndarray, vd: np.ndarray) -> None:
        """Add to mass matrix and nonlinear effects, at joint speeds and last commanded accelerations (n,)."""
        joints = self._joints
        M[joints, joints] += self._inertia
        h[joints] += self.damping * v + self.friction * np.tanh((v + PREDICTION_TIME_S * vd) / FRICTION_SPEED)
