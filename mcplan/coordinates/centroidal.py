"""The centre of mass and the average velocity as base velocities (S2 section 5, eq. 29 to 44).

``nu_G = [com velocity; average angular velocity; joint rates]``: the mass matrix falls into three blocks, and the
first three equations are Newton's law.
"""

import numpy as np
from numpy.typing import ArrayLike

from mcplan.coordinates.base_change import change_of_first_six
from mcplan.coordinates.chart import Array, numbers
from mcplan.coordinates.equations import VelocityChange, equations_of_motion
from mcplan.model.pose import cross_matrix
from mcplan.model.robot import Robot


def locked_inertia(robot: Robot, q: ArrayLike) -> Array:
    """Return ``I_C`` (6, 6) about the centre of mass, as if all joints were locked: S2 eq. 29 and 30; kg, kg m².

    Parameters
    ----------
    robot : the robot.
    q : (nq,) configuration.
    """
    q = numbers(q, (robot.nq,), "q")
    X = _to_com(robot, q)
    return np.asarray(X @ _of_links(robot, robot.mass_matrix(q))[:, :6] @ X.T, dtype=np.float64)


def average_velocity(robot: Robot, q: ArrayLike, v: ArrayLike) -> Array:
    """Return the velocity (6,) of the centre of mass and the average angular velocity, ``I_C^-1 h``: S2 eq. 32.

    The angular part is the one with which the robot would turn if all joints locked at once; it is the rate of no
    orientation.

    Parameters
    ----------
    robot : the robot.
    q, v : (nq,), (nv,) state.
    """
    q, v = numbers(q, (robot.nq,), "q"), numbers(v, (robot.nv,), "v")
    momentum = robot.centroidal_momentum_matrix(q) @ v
    return np.asarray(np.linalg.solve(locked_inertia(robot, q), momentum), dtype=np.float64)


def to_com(robot: Robot, q: ArrayLike, v: ArrayLike) -> VelocityChange:
    """Return the change to G[B]: velocity of the centre of mass, angular velocity of the base (S2 eq. 35 to 37).

    Parameters
    ----------
    robot : the robot.
    q, v : (nq,), (nv,) state.
    """
    eom = equations_of_motion(robot, q, v)
    J, J_rate = np.eye(6, robot.nv), np.zeros((6, robot.nv))
    J[:3], J_rate[:3] = _of_links(robot, eom.M)[:3] / robot.mass, eom.M_rate[:3] / robot.mass
    return change_of_first_six(J, J_rate)


def to_centroid(robot: Robot, q: ArrayLike, v: ArrayLike) -> VelocityChange:
    """Return the change to the average velocity, ``T = [I_C^-1 A; 0 1]`` with the momentum matrix A: S2 eq. 39.

    In it M is ``diag(m 1, L_C, H_G)`` and G is ``[-m g; 0; 0]`` (lemma 4).

    Parameters
    ----------
    robot : the robot.
    q, v : (nq,), (nv,) state.
    """
    eom = equations_of_motion(robot, q, v)
    X, X_rate, M = _to_com(robot, q), np.zeros((6, 6)), _of_links(robot, eom.M)
    X_rate[3:, :3] = -cross_matrix((M[:3] @ eom.nu) / robot.mass - eom.nu[:3])
    A, A_rate = X @ M, X_rate @ M + X @ eom.M_rate[:6]
    I = A[:, :6] @ X.T  # noqa: E741 - the locked inertia
    I_rate = A_rate[:, :6] @ X.T + A[:, :6] @ X_rate.T
    J = np.asarray(np.linalg.solve(I, A), dtype=np.float64)
    J_rate = np.asarray(np.linalg.solve(I, A_rate - I_rate @ J), dtype=np.float64)
    return change_of_first_six(J, J_rate)


def _to_com(robot: Robot, q: ArrayLike) -> Array:
    """Return the matrix (6, 6) that moves a 6D force from the base's origin to the centre of mass."""
    X = np.eye(6)
    X[3:, :3] = -cross_matrix(robot.com(q) - np.asarray(q, dtype=np.float64)[:3])
    return X


def _of_links(robot: Robot, M: Array) -> Array:
    """Return the momentum of the links about the base's origin (6, nv) by v: rows of M without a base's armature."""
    return np.asarray(M[:6] - np.eye(6, robot.nv) * robot.tree.armature, dtype=np.float64)
