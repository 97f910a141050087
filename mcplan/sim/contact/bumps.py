"""Shapes as the contact kernels see them: corners, balls and rims."""

import numpy as np
from scipy.spatial import ConvexHull

from mcplan.core.contact_model import BALL, RIM
from mcplan.model.geometry import Box, Capsule, Cylinder, MeshShape, Shape, Sphere

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
        vertices = shape.vertices[ConvexHull(shape.vertices).vertices]
        return [(BALL, p + R @ vertex, 0.0, nowhere) for vertex in vertices]
    raise TypeError(f"unknown shape {type(shape).__name__}")


def shape_inertia(shape: Shape, mass: float) -> tuple[np.ndarray, np.ndarray]:
    """Return centre (3,) and inertia (3,) about the axes of a shape of even density; a mesh counts as its box."""
    if isinstance(shape, Sphere):
        return np.zeros(3), np.full(3, 0.4 * mass * shape.radius**2)
    if isinstance(shape, Box):
        x, y, z = np.square(shape.size)
        return np.zeros(3), mass / 12 * np.array([y + z, x + z, x + y])
    if isinstance(shape, MeshShape):
        low, high = shape.vertices.min(axis=0), shape.vertices.max(axis=0)
        return (low + high) / 2, shape_inertia(Box(tuple(high - low)), mass)[1]
    r, length = shape.radius, shape.length
    if isinstance(shape, Cylinder):
        side = mass * (3 * r**2 + length**2) / 12
        return np.zeros(3), np.array([side, side, mass * r**2 / 2])
    # capsule: a cylinder and two half balls
    tube, ball = length, 4 * r / 3
    m, b = mass * tube / (tube + ball), mass * ball / (tube + ball)
    side = m * (3 * r**2 + length**2) / 12 + b * (0.4 * r**2 + length**2 / 4 + 3 * length * r / 8)
    return np.zeros(3), np.array([side, side, m * r**2 / 2 + b * 0.4 * r**2])
