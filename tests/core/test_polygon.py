"""Polygons that are cut to polygons."""

import numpy as np
import pytest

from mcplan.core.algebra.polygon import clip_polygon, nearest_on_border

UNIT = np.array([[0.0, 0], [1, 0], [1, 1], [0, 1]])


def cut(points, corners=UNIT):
    clip = np.zeros((2, 12, 3))
    clip[0, : len(points)] = points
    left = clip_polygon(corners, 0, len(corners), clip, len(points))
    return clip[0, :left]


def test_a_segment_is_cut_where_it_crosses_the_border_and_its_height_follows():
    assert cut([[-1.0, 0.5, 0.0], [3.0, 0.5, 4.0]]) == pytest.approx(np.array([[0, 0.5, 1], [1, 0.5, 2]]))
    assert cut([[3.0, 0.5, 4.0], [0.25, 0.5, -7.0]]) == pytest.approx(np.array([[1, 0.5, -4], [0.25, 0.5, -7]]))


def test_a_corner_over_an_edge_is_put_where_its_sides_cross_it():
    found = cut([[0.25, 0.5, 0.0], [1.75, 0.25, 3.0], [0.5, 0.75, 1.0]])
    crossings = [[1.0, 0.375, 1.5], [1.0, 0.55, 1.8]]
    assert found == pytest.approx(np.array([[0.25, 0.5, 0.0], *crossings, [0.5, 0.75, 1.0]]))


def test_what_lies_inside_stays_and_what_lies_outside_goes():
    triangle = [[0.2, 0.2, 1.0], [0.8, 0.3, 2.0], [0.4, 0.9, 3.0]]
    assert cut(triangle) == pytest.approx(np.array(triangle))
    assert len(cut(np.add(triangle, [2.0, 0.0, 0.0]))) == 0


def test_the_nearest_point_of_a_border_is_at_most_at_the_ends_of_its_edges():
    """From outside a square it is the point clipped to it; from inside one on the nearest side."""
    rng = np.random.default_rng(0)
    for place in (*rng.uniform(-2.0, 3.0, (200, 2)), *rng.uniform(0.0, 1.0, (50, 2))):
        found = np.array(nearest_on_border(UNIT, 0, len(UNIT), *place))
        inside = np.minimum(place, 1.0 - place).min()
        if inside < 0.0:
            np.testing.assert_allclose(found, np.clip(place, 0.0, 1.0), atol=1e-12)
        else:
            assert np.linalg.norm(found - place) == pytest.approx(inside)
            assert np.minimum(found, 1.0 - found).min() == pytest.approx(0.0, abs=1e-12)
