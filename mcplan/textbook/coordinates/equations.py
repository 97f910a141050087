"""The equation of motion as matrices, and what a linear change of the velocity makes of it (S2 sections 3 and 4)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mcplan.core.rigid_body.lagrangian import lagrangian_matrices
from mcplan.core.rigid_body.tree import GRAVITY, workspace
from mcplan.errors import InputError
from mcplan.robot.robot import Robot
from mcplan.textbook.coordinates.chart import Array, numbers
from mcplan.util.text import short


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

    __repr__ = short

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
    """Return M, C and G of a robot in its own velocity v.

    ``C = sum J_t' m J_t_rate + J_r' I J_r_rate - J_r' [I w x] J_r`` over the bodies (S0 eq. 26, with the mixed velocity
    in the place of a chart's rates), which is the choice that makes ``M_rate - 2 C`` skew-symmetric; ``C v`` is the
    same for all choices. ``G = -M [g; 0; 0]`` (S2 eq. 12).

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


def refuse_massless_root(robot: Robot) -> None:
    """Refuse a held robot whose root link has no mass, where the coordinates leave that link free.

    It has an armature there (`model.assemble`), which stands for no body: free to move, what it does is undefined.
    """
    if robot.tree.armature[:6].any():
        root = robot.description.root
        raise InputError(f"{robot.name}: the root link {root!r} has no mass: these coordinates know it only held")


def gravity_acceleration(size: int) -> Array:
    """Return ``[g; 0; ...]`` (size,), m/s²."""
    out = np.zeros(size)
    out[2] = -GRAVITY
    return out


@dataclass(frozen=True, eq=False)
class VelocityChange:
    """A change of the velocity, ``nu_D = T nu_B``, and what it does to all that is written with it (S2 section 4).

    Attributes
    ----------
    T, T_rate : (nv, nv) the map and its rate in the motion.
    """

    T: Array
    T_rate: Array

    __repr__ = short

    @property
    def inverse(self) -> "VelocityChange":
        """The change back: ``T^-1``, whose rate is ``-T^-1 T_rate T^-1``."""
        back = np.asarray(np.linalg.inv(self.T), dtype=np.float64)
        return VelocityChange(back, -back @ self.T_rate @ back)

    def __matmul__(self, first: "VelocityChange") -> "VelocityChange":
        """Return the two changes one after the other, the right one first."""
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
        back = self.inverse
        S = back.T.T
        return EquationsOfMotion(
            S @ old.M @ back.T, S @ (old.M @ back.T_rate + old.C @ back.T), S @ old.G, self.velocity(old.nu)
        )
