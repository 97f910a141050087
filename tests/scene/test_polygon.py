"""Convex polygons against sampling."""

import numpy as np
import pytest
from scipy.spatial import ConvexHull

from mcplan.scene.polygon import (
    area,
    clip,
    counter_clockwise,
    erode,
    half_planes,
    is_convex,
    max_excess,
    nearest,
    uncovered_area,
)


def random_polygon(rng, size=1.0):
    points = size * rng.normal(size=(8, 2))
    return points[ConvexHull(points).vertices]


@pytest.mark.parametrize("seed", range(10))
def test_clipping_keeps_exactly_what_is_in_both(seed):
    rng = np.random.default_rng(seed)
    first, second = random_polygon(rng), random_polygon(rng) + 0.3
    part = clip(first, *half_planes(second))
    assert max_excess(part, first) < 1e-12
    assert max_excess(part, second) < 1e-12
    points = rng.normal(size=(2000, 2))
    inside = [max(max_excess(p[None], first), max_excess(p[None], second)) for p in points]
    for point, depth in zip(points, inside, strict=True):
        if abs(depth) > 1e-9:
            assert (max_excess(point[None], part) < 0) == (depth < 0)


@pytest.mark.parametrize("seed", range(10))
def test_what_pieces_leave_of_a_polygon_is_what_lies_in_none_of_them(seed):
    """Though they overlap; one that covers it leaves nothing."""
    rng = np.random.default_rng(seed)
    polygon, pieces = random_polygon(rng), [random_polygon(rng, 0.5) + rng.normal(size=2) for _ in range(4)]
    left = uncovered_area(polygon, [half_planes(piece) for piece in pieces])
    low, high = polygon.min(axis=0), polygon.max(axis=0)
    places = low + (high - low) * rng.uniform(size=(40000, 2))
    inside = [(places @ A.T <= b).all(axis=1) for A, b in map(half_planes, [polygon, *pieces])]
    share = np.mean(inside[0] & ~np.any(inside[1:], axis=0))
    assert left == pytest.approx(share * np.prod(high - low), abs=0.02 * np.prod(high - low))
    assert uncovered_area(polygon, []) == pytest.approx(area(polygon))
    assert uncovered_area(polygon, [half_planes(polygon)]) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_nearest_point_of_an_eroded_polygon(seed):
    rng = np.random.default_rng(seed)
    polygon, shape, point = random_polygon(rng, 2), random_polygon(rng, 0.3), 3 * rng.normal(size=2)
    A, b = erode(polygon, shape)
    found = nearest(point, A, b)
    assert max_excess(found + shape, polygon) < 1e-8
    # the condition of a projection: every feasible point lies behind the plane through the nearest one
    feasible = [u for u in 2 * rng.normal(size=(500, 2)) if np.all(A @ u <= b)]
    assert feasible
    assert all((u - found) @ (point - found) <= 1e-7 for u in feasible)


def test_clipping_an_edge_and_a_point():
    square = half_planes(np.array([[0.0, 0], [1, 0], [1, 1], [0, 1]]))
    edge = clip(np.array([[-1.0, 0.5], [0.5, 0.5]]), *square)
    assert np.allclose(np.sort(edge, axis=0), [[0, 0.5], [0.5, 0.5]])
    assert clip(np.array([[0.5, 0.5]]), *square).shape == (1, 2)
    assert clip(np.array([[1.5, 0.5]]), *square).shape == (0, 2)
    assert clip(np.array([[2.0, 0.0], [2.0, 1.0]]), *square).shape == (0, 2)


def test_no_room_at_all():
    square = np.array([[0.0, 0], [1, 0], [1, 1], [0, 1]])
    assert nearest(np.zeros(2), *erode(square, 2 * square)) is None
    assert np.allclose(nearest(np.zeros(2), *erode(square, square)), 0)


def test_convexity_and_order():
    square = np.array([[0.0, 0], [1, 0], [1, 1], [0, 1]])
    assert is_convex(square)
    assert is_convex(square[::-1])
    assert area(counter_clockwise(square[::-1])) == pytest.approx(1)
    assert np.allclose(counter_clockwise(square[::-1])[0], square[-1])
    assert not is_convex(np.array([[0.0, 0], [1, 0], [0.2, 0.2], [0, 1]]))
    turns = 4 * np.pi * np.arange(5) / 5
    assert not is_convex(np.column_stack([np.cos(turns), np.sin(turns)]))  # a pentagram turns left everywhere
    assert not is_convex(np.array([[0.0, 0], [1, 0], [2, 0]]))
