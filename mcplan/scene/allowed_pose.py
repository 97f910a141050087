"""Pose projection onto a contact: free directions follow the patch, constrained ones the contact.

    X* = X_c exp((1 - S' S) xi),   xi = log(X_c^-1 X)

``X_c`` is a pose in contact, X the pose of the patch; the rows of S are the constrained directions. Free directions
come from X, constrained ones from the contact. The exponential is that of SE(3), because a patch that rolls about a bar
moves on a circle: separate exponentials of position and rotation would end centimetres off the bar. Contacts with free
directions are edges, points, balls, soles on bars, and those with ``slide`` or ``hinge``.

Source: Lynch & Park, Modern Robotics (2017), §3.3.3.
"""

import numpy as np

from mcplan.core.algebra.free_motion import free_motion
from mcplan.robot.pose import Pose, cross_matrix, pose_logarithm
from mcplan.scene.contact import Contact

MAX_PROJECTIONS, FREE_MOTION_TOLERANCE = 5, 1e-10
"""Maximum number of projections, and norm of ``(1 - S' S) xi`` at which they stop (m, rad). One free axis needs one
projection."""

MAX_DEVIATION = 2e-3
"""Deviation (m, rad) from which a pose in contact is updated; the error of the linearisation is micrometres then."""


def allowed_pose(contact: Contact, pose: Pose, contact_pose: Pose | None = None) -> Pose:
    """Project a pose of a patch onto the poses that its contact allows.

    Parameters
    ----------
    contact : the contact of the patch, with its constrained directions.
    pose : pose of the patch.
    contact_pose : a pose in contact, close to the result; None: the nominal pose of the contact.
    """
    R, p = contact_pose or (contact.R, contact.p)
    S = contact.selection
    if len(S) == 6:
        return R, p
    if contact.radius:  # a ball: it rolls
        return pose[0], p + contact.rolled(pose[0])
    free = contact.free
    if not S[:, 3:].any():  # all rotations are free: the position needs no iteration
        return pose[0], p + pose[0] @ free[:3, :3] @ pose[0].T @ (pose[1] - p)
    for _ in range(MAX_PROJECTIONS):
        xi = free @ pose_logarithm(R.T @ pose[0], R.T @ (pose[1] - p))
        if np.linalg.norm(xi) < FREE_MOTION_TOLERANCE:
            break
        exp_R, exp_p = _exponential(xi)
        R, p = R @ exp_R, p + R @ exp_p
    return R, p


def is_outdated(contact: Contact, contact_pose: Pose, pose: Pose) -> bool:
    """Whether a pose in contact deviates from that of the patch, in free directions, by more than ``MAX_DEVIATION``."""
    if len(contact.selection) == 6 or contact.radius:
        return False
    return free_motion(contact.free, *contact_pose, *pose) > MAX_DEVIATION


def _exponential(xi: np.ndarray) -> Pose:
    """Return the pose whose logarithm is the twist ``xi`` (6,), linear then angular."""
    from scipy.spatial.transform import Rotation

    W, angle = cross_matrix(xi[3:]), float(np.linalg.norm(xi[3:]))
    if angle < 1e-4:
        b, c = 0.5 - angle**2 / 24.0, 1.0 / 6.0 - angle**2 / 120.0
    else:
        b, c = (1.0 - np.cos(angle)) / angle**2, (angle - np.sin(angle)) / angle**3
    V = np.eye(3) + b * W + c * W @ W
    return Rotation.from_rotvec(xi[3:]).as_matrix(), V @ xi[:3]
