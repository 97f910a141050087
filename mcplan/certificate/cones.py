"""Wrenches of forces in friction cones at points: shared with nothing that planned or commanded them.

A cone stands for the pyramid that is inscribed in it, whose edges are those of ``faces`` planes::

    e_k = n + mu (cos(2 pi k / faces) t_1 + sin(2 pi k / faces) t_2),   w = sum_ik f_ik (e_k, r_i x e_k),   f_ik >= 0
"""

import numpy as np
from scipy.optimize import nnls

from mcplan.certificate.independent import cross


def cone_edges(axes: np.ndarray, friction: float, faces: int) -> np.ndarray:
    """Return the edges (3, faces) of a cone about the third of axes (3, 3), each with a normal force of 1."""
    angle = 2 * np.pi * np.arange(faces) / faces
    return axes[:, 2:] + friction * (np.outer(axes[:, 0], np.cos(angle)) + np.outer(axes[:, 1], np.sin(angle)))


def along_edges(edges: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return the wrenches (6, P F) about the origin of forces along edges (3, F) at points (P, 3)."""
    force, arm = np.tile(edges, len(points)), np.repeat(points.T, edges.shape[1], axis=1)
    return np.concatenate([force, cross(arm, force)])


def missing_wrench(edges: np.ndarray, points: np.ndarray, w: np.ndarray) -> float:
    """Return how far a wrench (6,) about the origin is from all that forces in a cone at points (P, 3) give."""
    return float(nnls(along_edges(edges, points), w)[1])
