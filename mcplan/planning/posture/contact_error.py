"""How far a patch is from its contact, and how that changes with the posture.

    e = S log(X_t^-1 X),     de = S J_r(xi)^-1 [R' J_lin; R' J_ang] v       X, X_t: pose of the patch now and in contact

``S`` selects the constrained directions in patch axes. The logarithm is that of SE(3), so that a patch which only turns
about its free axis (an edge, a sole on a bar) has exactly no error, however far it turned.

Source: Lynch & Park, Modern Robotics (2017), §3.3.3; Barfoot, State Estimation for Robotics (2017), §7.1.5.
"""

import numpy as np
from scipy.spatial.transform import Rotation

from mcplan.model.pose import cross_matrix
from mcplan.model.robot import Robot
from mcplan.scene.contact import Contact


def contact_error(robot: Robot, q: np.ndarray, contact: Contact) -> tuple[np.ndarray, np.ndarray]:
    """Return the error ``e`` (m,) in m and rad, and its Jacobian (m, nv).

    Parameters
    ----------
    q : (nq,).
    contact : its ``R``, ``p`` are the pose that the patch shall have, ``selection`` (m, 6) the directions that count.
    """
    X = robot.frame_pose(q, contact.patch)
    J = robot.frame_jacobian(q, contact.patch)
    S = contact.selection
    R, p = X[:3, :3], X[:3, 3]
    if not S[:, 3:].any():
        # Only places count: the rotation may be anything, also half a turn, where its logarithm jumps.
        return S[:, :3] @ contact.R.T @ (p - contact.p), S[:, :3] @ contact.R.T @ J[:3]
    xi = pose_logarithm(contact.R.T @ R, contact.R.T @ (p - contact.p))
    body = np.vstack([R.T @ J[:3], R.T @ J[3:]])
    return S @ xi, S @ (inverse_right_jacobian(xi) @ body)


def pose_logarithm(R: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Return the twist (6,), linear then angular, whose exponential is the pose ``(R, p)``."""
    w = Rotation.from_matrix(R).as_rotvec()
    angle = float(np.linalg.norm(w))
    W = cross_matrix(w)
    if angle < 1e-4:
        factor = 1.0 / 12.0 + angle**2 / 720.0
    else:
        factor = 1.0 / angle**2 - (1.0 + np.cos(angle)) / (2.0 * angle * np.sin(angle))
    return np.concatenate([p - 0.5 * W @ p + factor * W @ W @ p, w])


def inverse_right_jacobian(xi: np.ndarray) -> np.ndarray:
    """Return ``J_r(xi)^-1`` (6, 6) to the fourth power of ``xi``: exact enough for a Newton step."""
    V, W = cross_matrix(xi[:3]), cross_matrix(xi[3:])
    ad = np.block([[W, V], [np.zeros((3, 3)), W]])
    ad2 = ad @ ad
    return np.eye(6) + 0.5 * ad + ad2 / 12.0 - ad2 @ ad2 / 720.0
