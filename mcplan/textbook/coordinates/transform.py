"""Homogeneous transformations; velocity and acceleration of points of moving bodies (S1 sections 2.6 and 2.7).

A pose ``X_AB`` (4, 4) takes coordinates in B to coordinates in A; poses in a chain multiply, ``X_AC = X_AB X_BC``
(S1 eq. 2.112), with ``@``.

The velocity of a frame has three representations (S2 section 2.4, Traversaro, Pucci and Nori 2017).

    inertial   [o_rate - omega x o; omega]      of the body's point at the world's origin (right-trivialised)
    body       [R' o_rate; R' omega]            in the axes of the frame (left-trivialised)
    mixed      [o_rate; omega]                  of the frame's origin, in world axes: as in the robot's v

with ``o`` and ``R`` the frame's origin and rotation in the world, linear part first.

S1 and S2: `docs/sources.md`.
"""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from mcplan.errors import InputError
from mcplan.robot.pose import cross, cross_matrix
from mcplan.textbook.coordinates.chart import Array, numbers, real


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
    """Return ``[R [p x] R; 0 R]`` (6, 6), which transforms 6D velocities from B to A (S2 section 2.2).

    S2 has a misprint: the upper right block is ``[o x] R``, not ``o``.

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
    """Return ``[R 0; [p x] R R]`` (6, 6), which transforms 6D forces from B to A: ``velocity_transform``^-T.

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
    """Return ``B_v = B_r_rate + B_omega x B_r`` (3,), a velocity in rotating axes: S1 eq. 2.129.

    Parameters
    ----------
    R : (3, 3) from the rotating axes to those at rest.
    omega : (3,) angular velocity of the rotating axes, in axes at rest, rad/s.
    r, r_rate : (3,) coordinates in the rotating axes, and their rates.
    """
    R, r = numbers(R, (3, 3), "rotation"), numbers(r, (3,), "position")
    omega_local = R.T @ numbers(omega, (3,), "angular velocity")
    return np.asarray(numbers(r_rate, (3,), "rate") + cross(omega_local, r), dtype=np.float64)


Representation = Literal["inertial", "body", "mixed"]
REPRESENTATIONS = ("inertial", "body", "mixed")
"""Representations of the velocity of a frame; see the module."""


def _to_mixed(X: Array, representation: str) -> Array:
    """Return the matrix (6, 6) from a representation to the mixed one."""
    if representation not in REPRESENTATIONS:
        raise InputError(f"representation {representation!r}; expected one of {', '.join(REPRESENTATIONS)}")
    relative = np.eye(4)
    if representation == "inertial":
        relative[:3, 3] = -X[:3, 3]  # position of the world's origin relative to the frame's origin
    elif representation == "body":
        relative[:3, :3] = X[:3, :3]
    return velocity_transform(relative)


def representation_change(X: ArrayLike, source: Representation, target: Representation) -> Array:
    """Return the matrix (6, 6) that takes a frame's velocity from one representation to another.

    Parameters
    ----------
    X : (4, 4) pose of the frame in the world.
    source, target : ``inertial``, ``body`` or ``mixed``.
    """
    X = numbers(X, (4, 4), "pose")
    return np.asarray(np.linalg.solve(_to_mixed(X, target), _to_mixed(X, source)), dtype=np.float64)


def convert_velocity(velocity: ArrayLike, X: ArrayLike, source: Representation, target: Representation) -> Array:
    """Return a frame's velocity (6,) in another representation, or its Jacobian (6, ...).

    Parameters
    ----------
    velocity : (6,) or (6, k) in the representation ``source``.
    X : (4, 4) pose of the frame in the world.
    source, target : ``inertial``, ``body`` or ``mixed``.
    """
    given = real(velocity, "velocity")
    given = numbers(given, (6,) if given.ndim < 2 else (6, None), "velocity")
    return np.asarray(representation_change(X, source, target) @ given)


def convert_force(force: ArrayLike, X: ArrayLike, source: Representation, target: Representation) -> Array:
    """Return a 6D force (6,) on a frame in another representation, so that its power is the same.

    Parameters
    ----------
    force : (6,) in the representation ``source``.
    X : (4, 4) pose of the frame in the world.
    source, target : ``inertial``, ``body`` or ``mixed``.
    """
    return np.asarray(representation_change(X, target, source).T @ numbers(force, (6,), "force"))


def convert_acceleration(
    acceleration: ArrayLike, velocity: ArrayLike, X: ArrayLike, source: Representation, target: Representation
) -> Array:
    """Return the rate (6,) of a frame's velocity in another representation.

    ``vd_target = A vd_source + A_rate v_source``, where A changes the representation and moves with the frame.

    Parameters
    ----------
    acceleration, velocity : (6,) rate of the velocity, and the velocity, in the representation ``source``.
    X : (4, 4) pose of the frame in the world.
    source, target : ``inertial``, ``body`` or ``mixed``.
    """
    X = numbers(X, (4, 4), "pose")
    given = numbers(velocity, (6,), "velocity")
    to_mixed, from_mixed = _to_mixed(X, source), np.linalg.inv(_to_mixed(X, target))
    mixed = to_mixed @ given
    rate = from_mixed @ (_rate(X, mixed, source) - _rate(X, mixed, target) @ from_mixed @ to_mixed) @ given
    return np.asarray(from_mixed @ to_mixed @ numbers(acceleration, (6,), "acceleration") + rate, dtype=np.float64)


def _rate(X: Array, mixed: Array, representation: str) -> Array:
    """Return the rate of ``_to_mixed`` (6, 6) of a frame that moves with a mixed velocity."""
    out = np.zeros((6, 6))
    if representation == "inertial":
        out[:3, 3:] = -cross_matrix(mixed[:3])
    elif representation == "body":
        out[:3, :3] = out[3:, 3:] = cross_matrix(mixed[3:]) @ X[:3, :3]
    return out
