"""Poses and rotations: quaternions, roll-pitch-yaw, pose logarithm, base heading, cross products.

SciPy's rotations are imported where they are used: that takes longer than loading a robot.
"""

from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from scipy.spatial.transform import Rotation

Pose = tuple[np.ndarray, np.ndarray]
"""Rotation R (3,3) and position p (3,)."""


def rotation_from_rpy(rpy) -> np.ndarray:
    """Return ``R = Rz(yaw) Ry(pitch) Rx(roll)`` (3,3) for ``rpy`` (3,) in rad."""
    (cr, cp, cy), (sr, sp, sy) = np.cos(rpy), np.sin(rpy)
    return np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


def rotation_from_quat(quat_wxyz) -> np.ndarray:
    """Return the rotation (3,3) of a quaternion w x y z (4,) of any length."""
    w, x, y, z = np.asarray(quat_wxyz, float) / np.linalg.norm(quat_wxyz)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def quat_from_rotation(R) -> np.ndarray:
    """Return the unit quaternion w x y z (4,) with ``w >= 0`` of a rotation (3,3).

    The largest of the four components follows from the diagonal, the others by division by it (Shepperd 1978).
    """
    R = np.asarray(R, float)
    trace = np.trace(R)
    diagonals = np.array([trace, R[0, 0], R[1, 1], R[2, 2]])
    largest = int(np.argmax(diagonals))
    quat = np.empty(4)
    quat[largest] = 1 + 2 * diagonals[largest] - trace if largest else 1 + trace
    antisymmetric = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    if largest == 0:
        quat[1:] = antisymmetric
    else:
        i = largest - 1
        quat[0] = antisymmetric[i]
        for j in {0, 1, 2} - {i}:
            quat[1 + j] = R[i, j] + R[j, i]
    quat /= np.linalg.norm(quat)
    return -quat if quat[0] < 0 else quat


def axis_rotation(axis: np.ndarray, angle: float) -> np.ndarray:
    """Return ``exp(angle [axis]x)`` (3,3) for a unit axis (3,): Rodrigues' formula."""
    x, y, z = axis
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * (K @ K)


def rotation_onto(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the rotation (3,3) of least angle from the direction of a (3,) to that of b (3,).

    With unit vectors, ``v = a x b`` and ``c = a'b``: ``1 + [v]x + [v]x² / (1 + c)``. Within a tick it replaces
    ``Rotation.align_vectors`` of SciPy, which takes twenty times as long.
    """
    a, b = a / np.linalg.norm(a), b / np.linalg.norm(b)
    c = float(a @ b)
    if c < -1.0 + 1e-9:  # opposite: half a turn about any axis normal to a
        axis = cross(a, np.eye(3)[np.argmin(np.abs(a))])
        return axis_rotation(axis / np.linalg.norm(axis), np.pi)
    V = cross_matrix(cross(a, b))
    return np.eye(3) + V + V @ V / (1.0 + c)


def rotation_vector(R: np.ndarray) -> np.ndarray:
    """Return the rotation vector (3,), axis times angle (rad), of a rotation (3,3)."""
    from scipy.spatial.transform import Rotation

    return np.asarray(Rotation.from_matrix(R).as_rotvec())


def base_orientation(q: np.ndarray) -> "Rotation":
    """Return the base orientation of a configuration (nq,) as a SciPy rotation."""
    from scipy.spatial.transform import Rotation

    return Rotation.from_quat(q[3:7], scalar_first=True)


def base_rotation(q: np.ndarray) -> np.ndarray:
    """Return the rotation (3,3) of the base of a configuration (nq,)."""
    w, x, y, z = q[3:7].tolist()
    length = sqrt(x * x + y * y + z * z + w * w)
    w, x, y, z = w / length, x / length, y / length, z / length
    return np.array(
        [
            [x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), -x * x + y * y - z * z + w * w, 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), -x * x - y * y + z * z + w * w],
        ]
    )


def with_base(q: np.ndarray, p: np.ndarray, orientation: "Rotation") -> np.ndarray:
    """Return a configuration (nq,) with another base position (3,) and orientation."""
    new_q = q.copy()
    new_q[:3], new_q[3:7] = p, orientation.as_quat(scalar_first=True)
    return new_q


def base_yaw(q: np.ndarray) -> float:
    """Return the heading of the base (rad), from its x axis, or from its y axis if the x axis is steep."""
    R = base_rotation(q)
    if np.hypot(*R[:2, 0]) > 0.5:
        return float(np.arctan2(R[1, 0], R[0, 0]))
    return float(np.arctan2(-R[0, 1], R[1, 1]))


def heading_rotation(q: np.ndarray) -> np.ndarray:
    """Return the rotation (3,3) about the vertical axis by the heading of the base."""
    from scipy.spatial.transform import Rotation

    return np.asarray(Rotation.from_euler("z", base_yaw(q)).as_matrix())


def rotate_z(yaw: float, offset: np.ndarray) -> np.ndarray:
    """Return ``Rz(yaw) offset`` (3,)."""
    c, s = np.cos(yaw), np.sin(yaw)
    return np.array([c * offset[0] - s * offset[1], s * offset[0] + c * offset[1], offset[2]])


def same_pose(pose: np.ndarray, other_pose: np.ndarray, tolerance: float) -> bool:
    """Return whether poses (7,), position and quaternion, agree within a tolerance; q and -q are equal rotations."""
    sign = -1.0 if pose[3:] @ other_pose[3:] < 0.0 else 1.0
    difference = np.append(pose[:3] - other_pose[:3], sign * pose[3:] - other_pose[3:])
    return bool(np.abs(difference).max() <= tolerance)


def pose_logarithm(R: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Return the twist (6,), linear then angular, whose exponential is the pose ``(R, p)``.

    Source: Lynch & Park, Modern Robotics (2017), §3.3.3.
    """
    w = rotation_vector(R)
    angle = float(np.linalg.norm(w))
    W = cross_matrix(w)
    if angle < 1e-4:
        factor = 1.0 / 12.0 + angle**2 / 720.0
    else:
        factor = 1.0 / angle**2 - (1.0 + np.cos(angle)) / (2.0 * angle * np.sin(angle))
    return np.concatenate([p - 0.5 * W @ p + factor * W @ W @ p, w])


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return ``a x b`` (3,) of two vectors (3,), ten times as fast as ``np.cross``."""
    (a0, a1, a2), (b0, b1, b2) = a.tolist(), b.tolist()
    return np.array([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0])


def cross_matrix(p: np.ndarray) -> np.ndarray:
    """Return ``[p]x`` (3, 3): ``[p]x u = p x u``."""
    return np.array([[0.0, -p[2], p[1]], [p[2], 0.0, -p[0]], [-p[1], p[0], 0.0]])
