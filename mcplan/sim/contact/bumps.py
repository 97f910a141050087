"""Shapes as the contact kernels see them: corners, balls and rims."""

import numpy as np

from mcplan.core.contact.model import BALL, RIM
from mcplan.model.geometry import Box, Capsule, Cylinder, MeshShape, Shape, Sphere
from mcplan.model.solid import hull_corners

Bump = tuple[int, np.ndarray, float, np.ndarray]
"""Kind, centre (3,), radius, axis (3,)."""


def shape_bumps(shape: Shape, R: np.ndarray, p: np.ndarray) -> list[Bump]:
    """Return the bumps of a shape whose frame has the pose ``R``, ``p``: what of it can touch a plane first.

    A cylinder touches with the lowest points of its rims; three more points on each rim hold it when it stands on end.
    """
    nowhere = np.zeros(3)
    if isinstance(shape, Sphere):
        return [(BALL, p, shape.radius, nowhere)]
    if isinstance(shape, Capsule):
        return [(BALL, p + R[:, 2] * z, shape.radius, nowhere) for z in (-shape.length / 2, shape.length / 2)]
    if isinstance(shape, Box):
        corners = np.array(np.meshgrid(*[(-s / 2, s / 2) for s in shape.size], indexing="ij")).reshape(3, -1).T
        return [(BALL, p + R @ corner, 0.0, nowhere) for corner in corners]
    if isinstance(shape, Cylinder):
        found: list[Bump] = []
        for z in (-shape.length / 2, shape.length / 2):
            centre = p + R[:, 2] * z
            found.append((RIM, centre, shape.radius, R[:, 2]))
            for angle in 2 * np.pi * np.arange(3) / 3:
                arm = shape.radius * (np.cos(angle) * R[:, 0] + np.sin(angle) * R[:, 1])
                found.append((BALL, centre + arm, 0.0, nowhere))
        return found
    if isinstance(shape, MeshShape):
        return [(BALL, p + R @ corner, 0.0, nowhere) for corner in hull_corners(shape.vertices)[0]]
    raise TypeError(f"unknown shape {type(shape).__name__}")
