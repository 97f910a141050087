"""Inertia of solid shapes against the sum over their points."""

import numpy as np
import pytest

from mcplan.robot.description import Box, Capsule, Cylinder, MeshShape, Sphere
from mcplan.robot.solid import shape_inertia

SHAPES = {
    "box": (Box((0.2, 0.3, 0.5)), lambda p: np.all(np.abs(p) <= [0.1, 0.15, 0.25], axis=1)),
    "sphere": (Sphere(0.2), lambda p: np.linalg.norm(p, axis=1) <= 0.2),
    "cylinder": (Cylinder(0.15, 0.4), lambda p: (np.hypot(p[:, 0], p[:, 1]) <= 0.15) & (np.abs(p[:, 2]) <= 0.2)),
    "capsule": (
        Capsule(0.12, 0.3),
        lambda p: np.linalg.norm(p - np.column_stack([0 * p[:, :2], np.clip(p[:, 2], -0.15, 0.15)]), axis=1) <= 0.12,
    ),
}


@pytest.mark.parametrize("name", SHAPES)
def test_the_inertia_is_that_of_even_density(name):
    shape, inside = SHAPES[name]
    axis = (np.arange(120) + 0.5) / 120 * 0.6 - 0.3
    points = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1).reshape(-1, 3)
    points = points[inside(points)]
    square = (points**2).mean(axis=0)
    centre, inertia = shape_inertia(shape, 3.0)
    assert centre == pytest.approx(np.zeros(3))
    # cells of 5 mm
    assert inertia == pytest.approx(3.0 * (square.sum() - square), rel=0.02)


def test_a_mesh_counts_as_the_box_around_it():
    vertices = np.array([[0.1, 0.2, 0.3], [0.3, 0.2, 0.3], [0.1, 0.6, 0.3], [0.1, 0.2, 1.1]])
    centre, inertia = shape_inertia(MeshShape(vertices, np.array([[0, 1, 2]])), 2.0)
    assert centre == pytest.approx([0.2, 0.4, 0.7])
    assert inertia == pytest.approx(shape_inertia(Box((0.2, 0.4, 0.8)), 2.0)[1])
