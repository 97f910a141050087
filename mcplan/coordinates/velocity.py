"""One velocity of a frame in three ways of writing it (S2 section 2.4, Traversaro, Pucci and Nori 2017).

    inertial   [o_rate - omega x o; omega]      of the body's point at the world's origin (right-trivialised)
    body       [R' o_rate; R' omega]            in the axes of the frame (left-trivialised)
    mixed      [o_rate; omega]                  of the frame's origin, in world axes: what the robot's v is

with ``o`` and ``R`` the frame's origin and rotation in the world, linear part first.
"""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from mcplan.coordinates.chart import Array, numbers, real
from mcplan.coordinates.transform import velocity_transform
from mcplan.errors import InputError
from mcplan.model.pose import cross_matrix

Representation = Literal["inertial", "body", "mixed"]
REPRESENTATIONS = ("inertial", "body", "mixed")


def _to_mixed(X: Array, representation: str) -> Array:
    """Return the matrix (6, 6) from a representation to the mixed one."""
    if representation not in REPRESENTATIONS:
        raise InputError(f"representation {representation!r}; expected one of {', '.join(REPRESENTATIONS)}")
    here = np.eye(4)
    if representation == "inertial":
        here[:3, 3] = -X[:3, 3]  # the frame at the origin of the world, seen from the frame's own origin
    elif representation == "body":
        here[:3, :3] = X[:3, :3]
    return velocity_transform(here)


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
