"""Triangles drawn with a depth buffer, against rays through the pixels."""

import numpy as np
import pytest

from mcplan.core.picture.raster import paint


def test_at_each_pixel_the_nearest_triangle_is_seen():
    """Against rays through the middles of pixels, for triangles that cut through each other."""
    rng = np.random.default_rng(3)
    space = np.concatenate([rng.uniform(-1.0, 1.0, (12, 3, 2)), rng.uniform(1.0, 3.0, (12, 3, 1))], axis=2)
    colours = np.column_stack([rng.uniform(size=(12, 3)), np.ones(12)])
    width, height = 40, 30
    near = 1.0 / space[..., 2]
    place = np.array([width, height]) / 2 + 30.0 * space[..., :2] * near[..., None]
    picture, nearest = np.zeros((height, width, 3)), np.zeros((height, width))
    paint(np.dstack([place, near]), colours, nearest, picture)
    again, depth = np.zeros((height, width, 3)), np.zeros((height, width))
    paint(np.dstack([place, near])[::-1].copy(), colours[::-1].copy(), depth, again)
    assert np.array_equal(picture, again)
    hits = 0
    for row in range(height):
        for column in range(width):
            ray = np.array([(column + 0.5 - width / 2) / 30.0, (row + 0.5 - height / 2) / 30.0, 1.0])
            found, colour = np.inf, np.zeros(3)
            for corners, tint in zip(space, colours, strict=True):
                shares = np.linalg.solve(corners.T, ray)  # ray / depth is a mean of the corners
                if (shares >= 0.0).all() and 1.0 / shares.sum() < found:
                    found, colour = 1.0 / shares.sum(), tint[:3]
            assert picture[row, column] == pytest.approx(colour)
            assert nearest[row, column] == pytest.approx(0.0 if found == np.inf else 1.0 / found)
            hits += found < np.inf
    assert 0.3 < hits / (width * height) < 1.0


def test_what_is_transparent_lets_its_colour_be_seen_and_hides_nothing():
    def half(depth):
        return np.array([[-50.0, -50, 1 / depth], [150, -50, 1 / depth], [-50, 150, 1 / depth]])

    picture, nearest = np.zeros((20, 20, 3)), np.zeros((20, 20))
    corners = np.array([half(2.0), half(3.0), half(1.0), half(1.5)])
    colours = np.array([[1.0, 0, 0, 1.0], [0, 1.0, 0, 0.5], [0, 0, 1.0, 0.25], [0, 1.0, 0, 1.0]])
    paint(corners[:3], colours[:3], nearest, picture)
    assert picture[10, 10] == pytest.approx([0.75, 0.0, 0.25])
    paint(corners[3:], colours[3:], nearest, picture)
    assert picture[10, 10] == pytest.approx([0.0, 1.0, 0.0])
