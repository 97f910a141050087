"""Homogeneous transformations, and the velocity and acceleration of points of moving bodies (S1 2.6 and 2.7).

A pose ``X_AB`` (4, 4) takes coordinates in B to coordinates in A; poses in a chain multiply, ``X_AC = X_AB X_BC``
(S1 eq. 2.112), with ``@``.
"""

import numpy as np
from numpy.typing import ArrayLike

from mcplan.coordinates.chart import Array, numbers
from mcplan.model.pose import cross, cross_matrix


def pose(R: ArrayLike, p: ArrayLike) -> Array:
    """Return ``X = [R p; 0 1]`` (4, 4) of a rotation (3, 3) and a position (3,): S1 eq. 2.110."""
    X = np.eye(4)
    X[:3, :3], X[:3, 3] = numbers(R, (3, 3), "rotation"), numbers(p, (3,), "position")
    return X


def inverse(X: ArrayLike) -> Array:
    """Return ``X^-1 = [R' -R'p; 0 1]`` (4, 4): S1 eq. 2.111."""
    X = numbers(X, (4, 4), "pose")
    R = X[:3, :3]
    return pose(R.T, -R.T @ X[:3, 3])


def transformed(X: ArrayLike, point: ArrayLike) -> Array:
    """Return ``R r + p`` (3,), a point's coordinates in A from those in B: S1 eq. 2.109.

    Parameters
    ----------
    X : (4, 4) pose of B in A.
    point : (3,) coordinates in B, m.
    """
    X = numbers(X, (4, 4), "pose")
    return np.asarray(X[:3, :3] @ numbers(point, (3,), "point") + X[:3, 3], dtype=np.float64)


def velocity_transform(X: ArrayLike) -> Array:
    """Return ``[R [p x] R; 0 R]`` (6, 6): a 6D velocity written in B, in A (S2 section 2.2).

    S2 prints ``o`` for the upper right block, and means ``[o x] R``.

    Parameters
    ----------
    X : (4, 4) pose of B in A.
    """
    X = numbers(X, (4, 4), "pose")
    out = np.zeros((6, 6))
    out[:3, :3] = out[3:, 3:] = X[:3, :3]
    out[:3, 3:] = cross_matrix(X[:3, 3]) @ X[:3, :3]
    return out


def force_transform(X: ArrayLike) -> Array:
    """Return ``[R 0; [p x] R R]`` (6, 6): a 6D force written in B, in A; the inverse transpose of the other.

    Parameters
    ----------
    X : (4, 4) pose of B in A.
    """
    X = numbers(X, (4, 4), "pose")
    out = np.zeros((6, 6))
    out[:3, :3] = out[3:, 3:] = X[:3, :3]
    out[3:, :3] = cross_matrix(X[:3, 3]) @ X[:3, :3]
    return out


def point_velocity(twist: ArrayLike, arm: ArrayLike) -> Array:
    """Return ``v_P = v_B + omega x r_BP`` (3,): S1 eq. 2.121.

    Parameters
    ----------
    twist : (6,) linear velocity of the body's origin and angular velocity, in any one set of axes at rest.
    arm : (3,) from the body's origin to the point, same axes, m.
    """
    twist, arm = numbers(twist, (6,), "velocity"), numbers(arm, (3,), "arm")
    return np.asarray(twist[:3] + cross(twist[3:], arm), dtype=np.float64)


def point_acceleration(twist: ArrayLike, acceleration: ArrayLike, arm: ArrayLike) -> Array:
    """Return ``a_P = a_B + psi x r_BP + omega x (omega x r_BP)`` (3,): S1 eq. 2.122.

    Parameters
    ----------
    twist, acceleration : (6,) of the body: of its origin, and angular, in axes at rest.
    arm : (3,) from the body's origin to the point, same axes, m.
    """
    twist, arm = numbers(twist, (6,), "velocity"), numbers(arm, (3,), "arm")
    acceleration = numbers(acceleration, (6,), "acceleration")
    a, psi, omega = acceleration[:3], acceleration[3:], twist[3:]
    return np.asarray(a + cross(psi, arm) + cross(omega, cross(omega, arm)), dtype=np.float64)


def velocity_from_moving_axes(R: ArrayLike, omega: ArrayLike, r: ArrayLike, r_rate: ArrayLike) -> Array:
    """Return ``B_v = B_r_rate + B_omega x B_r`` (3,), the velocity in axes that turn: S1 eq. 2.129.

    Parameters
    ----------
    R : (3, 3) from the axes that turn to those at rest.
    omega : (3,) their angular velocity, in axes at rest, rad/s.
    r, r_rate : (3,) coordinates in the axes that turn, and their rates.
    """
    R, r = numbers(R, (3, 3), "rotation"), numbers(r, (3,), "position")
    turning = R.T @ numbers(omega, (3,), "angular velocity")
    return np.asarray(numbers(r_rate, (3,), "rate") + cross(turning, r), dtype=np.float64)
