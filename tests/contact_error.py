"""How far a patch is from its contact, in the directions that the contact holds."""

import numpy as np

from mcplan.robot.pose import pose_logarithm


def contact_error(robot, q, contact) -> np.ndarray:
    """Return ``S log(X_t^-1 X)`` in m and rad; where only places count, the rotation may be anything."""
    X = robot.frame_pose(q, contact.patch)
    S, p = contact.selection, contact.R.T @ (X[:3, 3] - contact.p)
    if not S[:, 3:].any():
        return S[:, :3] @ p
    return S @ pose_logarithm(contact.R.T @ X[:3, :3], p)
