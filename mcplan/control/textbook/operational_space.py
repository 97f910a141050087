"""Operational space control: end-effector inertia, motion control in some directions, force control in the others.

    Lambda = (J M^-1 J')^-1                                                    (3.86)
    mu = Lambda (J M^-1 b - Jdot v),     p = Lambda J M^-1 g                    (3.87, 3.88)
    tau = J' (Lambda S_M w* + S_F F) + b - J' Lambda Jdot v + g                 (3.96 in the notation of 3.95)
    w*  = wd_ref + kp (r* - r, dphi) + kd (w_ref - w)                           (3.90)

and for redundant robots, in the null space of the frame's motion

    tau += (1 - J' Lambda J M^-1) tau_0,     tau_0 = M (kp_0 (q_0 - q) - kd_0 qd)

``S_M`` selects the directions of motion control, ``S_F = 1 - S_M`` those in which the frame exerts the force ``F`` on
its environment (Khatib's selection matrices, 3.97-3.98).

Source: S1 (docs/sources.md), sec. 3.9; O. Khatib, A unified approach for motion and force control of robot
manipulators, 1987.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from mcplan.control.textbook.joint_space import FramePath, FrameReference, gravity_torque
from mcplan.errors import InputError
from mcplan.robot.robot import Robot
from mcplan.robot.terms import Terms
from mcplan.util.text import summary

EIGENVALUE_TOLERANCE = 1e-6
"""Relative tolerance of eigenvalues of ``J M^-1 J'``: at a singularity (stretched arm) the frame cannot move in a
direction whose apparent inertia is a million times larger."""

Force = Callable[[float], np.ndarray]
"""Force and moment (6,) that a frame exerts on its environment, as a function of time (s); world axes, N, N m."""


class EndEffectorDynamics(NamedTuple):
    """End-effector dynamics ``inertia wd + mu + p = F`` of a frame under a force F on it.

    inertia : (6, 6) ``Lambda``: kg, kg m, kg m².
    mu, p : (6,) Coriolis and centrifugal, and gravity: N, N m.
    """

    inertia: np.ndarray
    mu: np.ndarray
    p: np.ndarray


def end_effector_dynamics(terms: Terms, robot: Robot, frame: str) -> EndEffectorDynamics:
    """Return the dynamics of a frame (3.85) in all coordinates; with a fixed base in those of the joints only."""
    first = 6 if robot.fixed else 0
    M, J, bias = terms.M[first:, first:], terms.frame(frame).J[:, first:], terms.frame(frame).bias
    gravity = gravity_torque(terms, robot.mass)[first:]
    mobility = np.linalg.solve(M, J.T)
    inertia = np.linalg.pinv(J @ mobility, EIGENVALUE_TOLERANCE, hermitian=True)
    mu = inertia @ (mobility.T @ (terms.h[first:] - gravity) - bias)
    return EndEffectorDynamics(inertia, mu, inertia @ (mobility.T @ gravity))


class OperationalSpaceControl:
    """Operational space control of a frame: hybrid motion and force control.

    Parameters
    ----------
    robot : robot with a fixed base.
    frame : name of the controlled link or patch.
    path : reference of the frame, a function of time.
    force : (6,) force and moment that the frame should exert, or a function of time.
    axes : (3,3) columns in the world: the axes of ``motion``, ``C'`` of (3.98).
    motion : six of 0 and 1, linear and angular along the axes: 1 for motion control, 0 for force control.
    kp, kd : 1/s², 1/s: one number, or (6,) in world axes; ``kd`` None is critical damping.
    posture : (n,) joint reference in the null space of the frame's motion.
    posture_kp : gain of the posture, 1/s².
    press_damping : damping of the motion in the directions of force control, for a soft touch, 1/s.

    Raises
    ------
    InputError
        The base is not fixed, or an argument has another shape.
    """

    __repr__ = summary

    def __init__(
        self,
        robot: Robot,
        frame: str,
        path: FramePath,
        force: ArrayLike | Force = (0.0,) * 6,
        axes: ArrayLike = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
        motion: ArrayLike = (1, 1, 1, 1, 1, 1),
        kp: ArrayLike = 100.0,
        kd: ArrayLike | None = None,
        posture: ArrayLike | None = None,
        posture_kp: float = 10.0,
        press_damping: float = 20.0,
    ):
        if not robot.fixed:
            raise InputError(f"operational space control is for a fixed base; {robot.name} floats")
        robot.frame(frame)
        self.robot, self.frame, self.frames, self.path = robot, frame, (frame,), path
        self.force: Force = force if callable(force) else _constant(force)
        self.kp = np.broadcast_to(np.asarray(kp, float), 6)
        self.kd = 2.0 * np.sqrt(self.kp) if kd is None else np.broadcast_to(np.asarray(kd, float), 6)
        self.motion, self.press = selections(axes, motion)
        self.posture = None if posture is None else np.asarray(posture, float)
        self.posture_kp, self.press_damping = float(posture_kp), float(press_damping)

    def torque(self, t: float, terms: Terms, wrenches: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the torques (n,)."""
        frame = terms.frame(self.frame)
        M, J = terms.M[6:, 6:], frame.J[:, 6:]
        dynamics = end_effector_dynamics(terms, self.robot, self.frame)
        target = self.motion @ self.acceleration(self.path(t), frame.R, frame.p, frame.velocity)
        target -= self.press_damping * self.press @ frame.velocity
        tau = J.T @ (dynamics.inertia @ (target - frame.bias) + self.press @ self.force(t)) + terms.h[6:]
        vd_0 = -2.0 * np.sqrt(self.posture_kp) * terms.v[6:]
        if self.posture is not None:
            vd_0 += self.posture_kp * (self.posture - terms.q[7:])
        tau_0 = M @ vd_0
        return np.asarray(tau + tau_0 - J.T @ (dynamics.inertia @ (J @ vd_0)))

    def acceleration(self, wanted: FrameReference, R: np.ndarray, p: np.ndarray, velocity: np.ndarray) -> np.ndarray:
        """Return ``w*`` (6,), (3.90), with the rotation error as a rotation vector in world axes."""
        rotation = Rotation.from_matrix(wanted.R @ R.T).as_rotvec()
        error = np.concatenate([wanted.p - p, rotation])
        return np.asarray(wanted.acceleration + self.kp * error + self.kd * (wanted.velocity - velocity))


def selections(axes: ArrayLike, motion: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Return ``S_M`` and ``S_F`` (6,6) of (3.98): ``C' Sigma C`` and ``C' (1 - Sigma) C``, in world axes.

    Parameters
    ----------
    axes : (3,3) orthonormal columns, ``C'``.
    motion : six of 0 and 1.
    """
    C, sigma = np.asarray(axes, float).T, np.asarray(motion, float)
    if C.shape != (3, 3) or np.abs(C @ C.T - np.eye(3)).max() > 1e-9:
        raise InputError("axes: expected three orthonormal columns (3, 3)")
    if sigma.shape != (6,) or not np.isin(sigma, (0.0, 1.0)).all():
        raise InputError(f"motion = {sigma.tolist()}: expected six of 0 and 1")
    C6 = np.kron(np.eye(2), C)
    S_M = C6.T @ np.diag(sigma) @ C6
    return S_M, C6.T @ np.diag(1.0 - sigma) @ C6


def _constant(force: ArrayLike) -> Force:
    """Return a constant force as a function of time."""
    wrench = np.asarray(force, float)
    if wrench.shape != (6,):
        raise InputError(f"force has the shape {wrench.shape}; expected (6,): force, then moment")
    return lambda t: wrench
