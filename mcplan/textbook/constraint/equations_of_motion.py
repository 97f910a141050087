"""The equation of motion ``M vd + b + g = force`` in three ways that give the same: each is a check of the others.

    projected        M = sum J_S' m J_S + J_R' I J_R                                  (3.43)
                     b = sum J_S' m Jdot_S v + J_R' (I Jdot_R v + w x I w)            (3.44)
                     g = - sum J_S' m g_0                                             (3.45)
    newton-euler     force = ID(q, v, vd), recursively from link to link:
                     g = ID(q, 0, 0),  b = ID(q, v, 0) - g,  M e_i = ID(q, 0, e_i) - g
    lagrange         d/dt (dT/dv) - dT/dq + dU/dq = force,  T = 1/2 v' M v,  U = sum m g_0 z        (3.27)

The velocity of the base is no derivative of coordinates; about the axes of the world ``d(theta) = w dt`` gives Hamel's
form of the third, ``d/dt (dT/dw) + dT/dw x w - dT/dtheta`` for its three rows, where dT/dtheta is along a rotation with
``v`` held. Its derivatives are central differences, with an error of 1e-9 of the largest entry.

Source: S1, sec. 3.3-3.5.
"""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mcplan.core.rigid_body.tree import GRAVITY
from mcplan.errors import InputError
from mcplan.robot.pose import cross, cross_matrix
from mcplan.robot.robot import Robot
from mcplan.textbook.coordinates.chart import numbers
from mcplan.util.text import short

Method = Literal["projected", "newton-euler", "lagrange"]

STEP = 1e-5
"""rad, m: of central differences; their truncation and rounding are then of the same size."""


class EquationOfMotion(NamedTuple):
    """``M vd + b + g = force`` at a state, of a floating base with its six rows.

    M : (nv, nv) mass matrix, armature included.
    b : (nv,) Coriolis and centrifugal forces.
    g : (nv,) forces against gravity.
    """

    M: np.ndarray
    b: np.ndarray
    g: np.ndarray

    def __repr__(self) -> str:
        return short(self)


def equations_of_motion(robot: Robot, q: ArrayLike, v: ArrayLike, method: Method = "projected") -> EquationOfMotion:
    """Return the equation of motion at a state, derived by a method.

    Parameters
    ----------
    robot, q, v : Robot, and its state (nq,), (nv,).
    method : ``projected`` (link by link, by Jacobians), ``newton-euler`` (recursively), ``lagrange`` (from energies).

    Raises
    ------
    InputError
        There is no such method, or the state is none.
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
    rest = np.zeros(robot.nv)
    g = robot.inverse_dynamics(q, rest, rest)
    M = np.column_stack([robot.inverse_dynamics(q, rest, unit) - g for unit in np.eye(robot.nv)])
    return EquationOfMotion(M, robot.inverse_dynamics(q, v, rest) - g, g)


def _lagrange(robot: Robot, q: np.ndarray, v: np.ndarray) -> EquationOfMotion:
    def mass(x: np.ndarray) -> np.ndarray:
        """Hessian of the kinetic energy: that of the links, summed."""
        total = np.diag(robot.tree.armature)
        for name, link in robot.description.links.items():
            if link.inertia is not None:
                J, R = robot.frame_jacobian(x, name), robot.frame_pose(x, name)[:3, :3]
                J_S = J[:3] - cross_matrix(R @ link.inertia.com) @ J[3:]
                total += link.inertia.mass * J_S.T @ J_S + J[3:].T @ R @ link.inertia.matrix @ R.T @ J[3:]
        return total

    def potential(x: np.ndarray) -> float:
        return robot.mass * GRAVITY * float(robot.com(x)[2])

    M = mass(q)
    rate = (mass(robot.integrate(q, v, STEP)) - mass(robot.integrate(q, v, -STEP))) @ v / (2.0 * STEP)
    b, g = rate, np.zeros(robot.nv)
    for i, unit in enumerate(np.eye(robot.nv)):
        ahead, behind = robot.integrate(q, unit, STEP), robot.integrate(q, unit, -STEP)
        g[i] = (potential(ahead) - potential(behind)) / (2.0 * STEP)
        b[i] -= 0.5 * v @ (mass(ahead) - mass(behind)) @ v / (2.0 * STEP)
    b[3:6] += cross((M @ v)[3:6], v[3:6])
    return EquationOfMotion(M, b, g)
