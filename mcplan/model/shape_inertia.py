"""What a shape of even density weighs in rotation."""

import numpy as np

from mcplan.model.geometry import Box, Cylinder, MeshShape, Shape, Sphere


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
