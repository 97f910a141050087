"""Equations of motion as matrices, their three derivations, and linear changes of the velocity (S1, S2).

Three derivations of ``M vd + b + g = force`` agree, and serve as checks of each other (S1, sec. 3.3-3.5). J_S and J_R
are the Jacobians of a link's centre of mass and rotation, m and I its mass and inertia, g_0 is gravity:

    projected        M = sum J_S' m J_S + J_R' I J_R                                  (3.43)
                     b = sum J_S' m Jdot_S v + J_R' (I Jdot_R v + w x I w)            (3.44)
                     g = - sum J_S' m g_0                                             (3.45)
    newton-euler     force = ID(q, v, vd), inverse dynamics from link to link:
                     g = ID(q, 0, 0),  b = ID(q, v, 0) - g,  M e_i = ID(q, 0, e_i) - g
    lagrange         d/dt (dT/dv) - dT/dq + dU/dq = force,  T = 1/2 v' M v,  U = sum m g_0 z        (3.27)

The angular velocity of the base is not a derivative of coordinates. With ``d(theta) = w dt`` about the world axes, its
three rows of the third derivation have Hamel's form, ``d/dt (dT/dw) + dT/dw x w - dT/dtheta``, where dT/dtheta is along
a rotation at constant ``v``. Derivatives are central differences, with an error of 1e-9 of the largest entry.

S0, S1 and S2: `docs/sources.md`.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mcplan.core.rigid_body.lagrangian import lagrangian_matrices
from mcplan.core.rigid_body.tree import GRAVITY, workspace
from mcplan.errors import InputError
from mcplan.robot.pose import cross, cross_matrix
from mcplan.robot.robot import Robot
from mcplan.textbook.coordinates.chart import Array, numbers
from mcplan.util.text import summary


@dataclass(frozen=True, eq=False)
class EquationsOfMotion:
    """``M nu_rate + C nu + G = phi`` at one state: S2 eq. 10b and 22b.

    ``M_rate - 2 C`` is skew-symmetric (property 2), so that ``M_rate = C + C'``.

    Attributes
    ----------
    M : (nv, nv) mass matrix, armature included.
    C : (nv, nv) Coriolis matrix.
    G : (nv,) gravity.
    nu : (nv,) velocity.
    """

    M: Array
    C: Array
    G: Array
    nu: Array

    __repr__ = summary

    @property
    def M_rate(self) -> Array:
        """Rate of the mass matrix (nv, nv) in the motion: ``C + C'``."""
        return self.C + self.C.T

    @property
    def kinetic_energy(self) -> float:
        """``nu' M nu / 2``, J: S2 eq. 11 and 24."""
        return 0.5 * float(self.nu @ self.M @ self.nu)

    def acceleration(self, phi: ArrayLike) -> Array:
        """Return ``nu_rate`` (nv,) under a generalized force (nv,)."""
        bias = self.C @ self.nu + self.G
        return np.asarray(np.linalg.solve(self.M, numbers(phi, bias.shape, "phi") - bias), dtype=np.float64)

    def force(self, nu_rate: ArrayLike) -> Array:
        """Return the generalized force (nv,) of an acceleration (nv,)."""
        return np.asarray(self.M @ numbers(nu_rate, self.nu.shape, "nu_rate") + self.C @ self.nu + self.G)


def equations_of_motion(robot: Robot, q: ArrayLike, v: ArrayLike) -> EquationsOfMotion:
    """Return M, C and G of a robot in its velocity v.

    ``C = sum J_t' m J_t_rate + J_r' I J_r_rate - J_r' [I w x] J_r`` over the bodies (S0 eq. 26, with the mixed velocity
    instead of a chart's rates). This choice makes ``M_rate - 2 C`` skew-symmetric; ``C v`` is the same for all choices.
    ``G = -M [g; 0; 0]`` (S2 eq. 12).

    Parameters
    ----------
    robot : the robot.
    q, v : (nq,), (nv,) state.
    """
    q, v = numbers(q, (robot.nq,), "q"), numbers(v, (robot.nv,), "v")
    G = robot.gravity_torque(q)  # checks the quaternion
    M, C = np.empty((robot.nv, robot.nv)), np.empty((robot.nv, robot.nv))
    rows = np.empty((12, robot.nv))
    lagrangian_matrices(robot.tree, q, v, np.eye(3), np.zeros((3, 3)), workspace(robot.tree), rows, M, C)
    M[:6, :6] += np.diag(robot.tree.armature[:6])
    return EquationsOfMotion(M, C, G, v.copy())


def reject_massless_root(robot: Robot) -> None:
    """Raise an error for a fixed-base robot with a massless root link, because these coordinates let the base move.

    The root has an armature (`robot.assemble`) that represents no body, so its free motion is undefined.
    """
    if robot.tree.armature[:6].any():
        root = robot.description.root
        raise InputError(f"{robot.name}: the root link {root!r} has no mass: its free motion is undefined")


def gravity_acceleration(size: int) -> Array:
    """Return ``[g; 0; ...]`` (size,), m/s²."""
    out = np.zeros(size)
    out[2] = -GRAVITY
    return out


@dataclass(frozen=True, eq=False)
class VelocityChange:
    """Change of velocity coordinates, ``nu_D = T nu_B``, applied to forces, Jacobians and equations (S2 section 4).

    Attributes
    ----------
    T, T_rate : (nv, nv) the map and its rate in the motion.
    """

    T: Array
    T_rate: Array

    __repr__ = summary

    @property
    def inverse(self) -> "VelocityChange":
        """The inverse change: ``T^-1``, whose rate is ``-T^-1 T_rate T^-1``."""
        inverse = np.asarray(np.linalg.inv(self.T), dtype=np.float64)
        return VelocityChange(inverse, -inverse @ self.T_rate @ inverse)

    def __matmul__(self, first: "VelocityChange") -> "VelocityChange":
        """Return the composition of two changes, the right one first."""
        return VelocityChange(self.T @ first.T, self.T_rate @ first.T + self.T @ first.T_rate)

    def velocity(self, nu: ArrayLike) -> Array:
        """Return ``T nu`` (nv,): S2 eq. 17b."""
        return np.asarray(self.T @ numbers(nu, (len(self.T),), "nu"))

    def acceleration(self, nu: ArrayLike, nu_rate: ArrayLike) -> Array:
        """Return ``T nu_rate + T_rate nu`` (nv,): S2 eq. 50."""
        nu, nu_rate = numbers(nu, (len(self.T),), "nu"), numbers(nu_rate, (len(self.T),), "nu_rate")
        return np.asarray(self.T @ nu_rate + self.T_rate @ nu)

    def force(self, phi: ArrayLike) -> Array:
        """Return ``T^-T phi`` (nv,), which has the same power: S2 eq. 19."""
        return np.asarray(np.linalg.solve(self.T.T, numbers(phi, (len(self.T),), "phi")), dtype=np.float64)

    def jacobian(self, J: ArrayLike) -> Array:
        """Return ``J T^-1`` (k, nv): S2 eq. 21."""
        return np.asarray(np.linalg.solve(self.T.T, numbers(J, (None, len(self.T)), "J").T).T, dtype=np.float64)

    def equations(self, old: EquationsOfMotion) -> EquationsOfMotion:
        """Return the equations of motion in the new velocity: S2 eq. 23.

        ``M_D = T^-T M T^-1``, ``C_D = T^-T (M (T^-1)_rate + C T^-1)``, ``G_D = T^-T G``; C keeps its skew symmetry.
        """
        inverse = self.inverse
        S = inverse.T.T  # T^-T, which transforms forces
        return EquationsOfMotion(
            S @ old.M @ inverse.T, S @ (old.M @ inverse.T_rate + old.C @ inverse.T), S @ old.G, self.velocity(old.nu)
        )


DerivationMethod = Literal["projected", "newton-euler", "lagrange"]

DIFFERENCE_STEP = 1e-5
"""Step of central differences (rad, m), at which truncation and rounding errors are of the same size."""


class EquationOfMotion(NamedTuple):
    """``M vd + b + g = force`` at a state, of a floating base with its six rows.

    M : (nv, nv) mass matrix, armature included.
    b : (nv,) Coriolis and centrifugal forces.
    g : (nv,) gravity forces.
    """

    M: np.ndarray
    b: np.ndarray
    g: np.ndarray

    def __repr__(self) -> str:
        return summary(self)


def derive_equation_of_motion(
    robot: Robot, q: ArrayLike, v: ArrayLike, method: DerivationMethod = "projected"
) -> EquationOfMotion:
    """Return the equation of motion at a state, derived by a method.

    Parameters
    ----------
    robot, q, v : Robot, and its state (nq,), (nv,).
    method : ``projected`` (link by link, by Jacobians), ``newton-euler`` (recursively), ``lagrange`` (from energies).

    Raises
    ------
    InputError
        The method is unknown, or the state is invalid.
    """
    q, v = numbers(q, (robot.nq,), "q").copy(), numbers(v, (robot.nv,), "v").copy()
    if method == "projected":
        return _projected(robot, q, v)
    if method == "newton-euler":
        return _newton_euler(robot, q, v)
    if method == "lagrange":
        return _lagrange(robot, q, v)
    raise InputError(f"method {method!r}: expected 'projected', 'newton-euler' or 'lagrange'")


def _projected(robot: Robot, q: np.ndarray, v: np.ndarray) -> EquationOfMotion:
    """Sum the Newton-Euler equations of the links, projected by their Jacobians (3.43-3.45)."""
    nv = robot.nv
    M, b, g = np.diag(robot.tree.armature), np.zeros(nv), np.zeros(nv)
    for name, link in robot.description.links.items():
        if link.inertia is None:
            continue
        m, J = link.inertia.mass, robot.frame_jacobian(q, name)
        R, bias = robot.frame_pose(q, name)[:3, :3], robot.frame_bias_acceleration(q, v, name)
        r, inertia = R @ link.inertia.com, R @ link.inertia.matrix @ R.T
        w = J[3:] @ v
        J_S, rate_S = J[:3] - cross_matrix(r) @ J[3:], bias[:3] + cross(bias[3:], r) + cross(w, cross(w, r))
        M += m * J_S.T @ J_S + J[3:].T @ inertia @ J[3:]
        b += m * J_S.T @ rate_S + J[3:].T @ (inertia @ bias[3:] + cross(w, inertia @ w))
        g += m * GRAVITY * J_S[2]
    return EquationOfMotion(M, b, g)


def _newton_euler(robot: Robot, q: np.ndarray, v: np.ndarray) -> EquationOfMotion:
    """Derive M column by column, g and b, from inverse dynamics."""
    rest = np.zeros(robot.nv)
    g = robot.inverse_dynamics(q, rest, rest)
    M = np.column_stack([robot.inverse_dynamics(q, rest, unit) - g for unit in np.eye(robot.nv)])
    return EquationOfMotion(M, robot.inverse_dynamics(q, v, rest) - g, g)


def _lagrange(robot: Robot, q: np.ndarray, v: np.ndarray) -> EquationOfMotion:
    """Differentiate kinetic and potential energy (3.27) by central differences."""

    def mass(x: np.ndarray) -> np.ndarray:
        """Return the mass matrix (nv, nv): the Hessian of the kinetic energy, summed over the links."""
        total = np.diag(robot.tree.armature)
        for name, link in robot.description.links.items():
            if link.inertia is not None:
                J, R = robot.frame_jacobian(x, name), robot.frame_pose(x, name)[:3, :3]
                J_S = J[:3] - cross_matrix(R @ link.inertia.com) @ J[3:]
                total += link.inertia.mass * J_S.T @ J_S + J[3:].T @ R @ link.inertia.matrix @ R.T @ J[3:]
        return total

    def potential(x: np.ndarray) -> float:
        return robot.mass * GRAVITY * float(robot.com(x)[2])

    M, h = mass(q), DIFFERENCE_STEP
    M_rate_v = (mass(robot.integrate(q, v, h)) - mass(robot.integrate(q, v, -h))) @ v / (2.0 * h)
    b, g = M_rate_v, np.zeros(robot.nv)
    for i, unit in enumerate(np.eye(robot.nv)):
        q_plus, q_minus = robot.integrate(q, unit, h), robot.integrate(q, unit, -h)
        g[i] = (potential(q_plus) - potential(q_minus)) / (2.0 * h)
        b[i] -= 0.5 * v @ (mass(q_plus) - mass(q_minus)) @ v / (2.0 * h)
    b[3:6] += cross((M @ v)[3:6], v[3:6])  # Hamel: dT/dw x w
    return EquationOfMotion(M, b, g)
