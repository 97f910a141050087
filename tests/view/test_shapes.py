"""Solids that a replay is drawn with."""

import numpy as np
import pytest

from mcplan.view.shapes import capsule, prism, rotation_from_z


def volume(vertices, faces):
    """Signed volume by the divergence theorem: positive when every face looks outward."""
    a, b, c = (vertices[faces[:, i]] for i in range(3))
    return float(np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6)


@pytest.mark.parametrize("order", [1, -1])
def test_a_prism_is_closed_and_looks_outward_whatever_the_order_of_its_polygon(order):
    square = np.array([[0, 0], [2, 0], [2, 1], [0, 1]], dtype=float)[::order]
    assert volume(*prism(square, 0.5, -0.5)) == pytest.approx(2.0)


def test_a_capsule_has_the_volume_of_a_cylinder_and_a_sphere():
    exact = np.pi * 0.1**2 * 0.5 + 4 / 3 * np.pi * 0.1**3
    assert volume(*capsule(0.1, 0.5, around=64, along=32)) == pytest.approx(exact, rel=5e-3)  # inscribed polyhedron


def test_arrows_turn_z_to_their_direction():
    rng = np.random.default_rng(0)
    direction = np.vstack([rng.standard_normal((50, 3)), [[0, 0, 1], [0, 0, -1], [0, 0, -3]]])
    w, x, y, z = rotation_from_z(direction).T
    turned = np.column_stack([2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)])
    assert np.allclose(turned, direction / np.linalg.norm(direction, axis=1, keepdims=True), atol=1e-12)
