"""Whether the equation of motion has a solution: a mass matrix that is singular cannot be used."""

import numpy as np

from mcplan.core.rigid_body.mass_matrix import mass_matrix
from mcplan.core.rigid_body.tree import MASS, workspace
from mcplan.model.assemble import Assembly

SINGULAR = 1e-13
"""Least eigenvalue of M, scaled to a unit diagonal, that counts as regular; rounding leaves about 1e-16 times nv."""


def singular_joint(assembly: Assembly) -> str | None:
    """Return the joint that moves most without moving any mass, ``""`` for the base, or None if M is regular.

    M is taken at a generic configuration, so that only a mechanism that is singular everywhere is found.
    """
    tree = assembly.tree
    nv = len(tree.armature)
    q = np.zeros(nv + 1)
    q[3] = 1.0
    q[7:] = 0.3 + 0.1 * np.sin(np.arange(nv - 6))  # no joint straight, no two alike
    M = np.empty((nv, nv))
    mass_matrix(tree, q, workspace(tree), M)
    # the base's moments and the joints' are compared to a length that the mechanism itself has
    scale = np.sqrt(np.maximum(np.diag(M), tree.inertia[:, MASS].sum() * 1e-12))
    values, vectors = np.linalg.eigh(M / np.outer(scale, scale))
    if values[0] > SINGULAR:
        return None
    moving = np.abs(vectors[:, 0])
    joints = moving[6:]
    if len(joints) and joints.max() > 0.1 * moving.max():
        return assembly.joint_names[int(np.argmax(joints))]
    return ""
