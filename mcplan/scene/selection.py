"""Which motions of a patch a contact rules out."""

from collections.abc import Sequence

import numpy as np

_AXIS = {"x": 0, "y": 1, "z": 2}


def constrained_directions(free: Sequence[np.ndarray]) -> np.ndarray:
    """Return orthonormal rows (m,6) that span the complement of the ``free`` twists (6,).

    The unit vectors are projected one after the other, so that rows along the patch axes stay such.
    """
    taken: list[np.ndarray] = []
    for twist in free:
        rest = _beside(np.array(twist, float), taken)
        if np.linalg.norm(rest) > 1e-9:
            taken.append(rest / np.linalg.norm(rest))
    count = len(taken)
    for unit in np.eye(6):
        rest = _beside(_beside(unit, taken), taken)
        if np.linalg.norm(rest) > 1e-6 and len(taken) < 6:
            taken.append(rest / np.linalg.norm(rest))
    return np.array(taken[count:]).reshape(-1, 6)


def of_a_ball(radius: float) -> np.ndarray:
    """Return the rows (3,6) of a ball whose lowest point, at ``radius`` along z from its centre, does not move.

    The point's velocity is ``v + w x (0, 0, r) = (vx + r wy, vy - r wx, vz)``, in the axes of the contact.
    """
    rows = np.eye(6)[:3]
    rows[0, 4], rows[1, 3] = radius, -radius
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def rotation_about(direction: np.ndarray, point: np.ndarray) -> np.ndarray:
    """Return the twist (6,) at the patch origin of a rotation about a line: ``v = -e x r``, ``w = e``."""
    return np.concatenate([-np.cross(direction, point), direction])


def named_freedoms(slide: Sequence[str], hinge: Sequence[str]) -> list[np.ndarray]:
    """Return the twists (6,) of translations along, and rotations about, the named patch axes."""
    return [np.eye(6)[_AXIS[name]] for name in slide] + [np.eye(6)[3 + _AXIS[name]] for name in hinge]


def _beside(vector: np.ndarray, taken: Sequence[np.ndarray]) -> np.ndarray:
    for other in taken:
        vector = vector - (vector @ other) * other
    return vector
