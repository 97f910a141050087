"""A hull's furthest vertex, found from edge to edge, is the furthest of all."""

import numpy as np
import pytest
from numba import njit

from mcplan.core.distance.shape import CELLS, GRAPH, farthest_vertex
from mcplan.robot.solid import MIN_GRAPH_VERTICES, hull, hull_graph, pack


def ellipsoid(rng):
    points = rng.normal(size=(400, 3))
    return points / np.linalg.norm(points, axis=1)[:, None] * [0.3, 0.1, 0.02]


def drum(rng):
    """Two caps of 60 corners in a plane each, beside flat sides."""
    angle = np.linspace(0.0, 2.0 * np.pi, 60, endpoint=False)
    cap = np.column_stack([0.1 * np.cos(angle), 0.1 * np.sin(angle), np.zeros(60)])
    return np.concatenate([cap, cap + np.array([0.0, 0.0, 0.3])])


def rounded_box(rng):
    """Eight corners of nine points each, as meshes of links have them."""
    corners = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float)
    knobs = np.abs(rng.normal(size=(9, 3)))
    knobs /= np.linalg.norm(knobs, axis=1)[:, None]
    return np.concatenate([corner * ([0.2, 0.1, 0.05] + 0.01 * knobs) for corner in corners])


@njit
def furthest(shapes, directions):
    return np.array([farthest_vertex(shapes, 1, d[0], d[1], d[2]) for d in directions])


@pytest.mark.parametrize("make", [ellipsoid, drum, rounded_box])
def test_from_edge_to_edge_one_comes_to_the_furthest_vertex(make):
    rng = np.random.default_rng(3)
    solids = [hull(make(rng), np.eye(3), np.zeros(3)) for _ in range(2)]  # the second does not begin at zero
    shapes = pack(solids, [-1, -1])
    axes = np.array([(x, y, z) for x in (-1, 0, 1) for y in (-1, 0, 1) for z in (-1, 0, 1)], float)
    directions = np.concatenate([axes, rng.normal(size=(3000, 3)), 1e-9 * rng.normal(size=(10, 3))])
    vertices = solids[1].vertices
    assert len(vertices) >= MIN_GRAPH_VERTICES
    found = furthest(shapes, directions)
    heights = directions @ vertices.T
    assert np.all(heights[np.arange(len(found)), found] >= heights.max(axis=1) - 1e-15)
    # the middles of cells need no step
    parts = solids[1].graph[: 6 * CELLS**2]
    assert set(parts.tolist()) <= set(range(len(vertices)))
    assert len(set(parts.tolist())) > len(vertices) / 10


def test_few_vertices_and_flat_ones_have_no_graph():
    rng = np.random.default_rng(0)
    flat = np.column_stack([rng.normal(size=(40, 2)), np.zeros(40)])
    for points in (rng.normal(size=(12, 3)), flat):
        shapes = pack([hull(points, np.eye(3), np.zeros(3))], [-1])
        assert shapes.index[0, GRAPH] == -1
        assert len(shapes.graph) == 0


def test_each_vertex_has_its_neighbours():
    """Those of an octahedron: all but itself and the one across."""
    vertices = np.vstack([np.eye(3), -np.eye(3)])
    faces = np.array([(x, y, z) for x in (0, 3) for y in (1, 4) for z in (2, 5)])
    graph = hull_graph(vertices, faces)
    fans = graph[6 * CELLS**2 : 6 * CELLS**2 + 7]
    for i in range(6):
        assert graph[fans[i] : fans[i + 1]].tolist() == [j for j in range(6) if j % 3 != i % 3]


def test_a_direction_that_is_no_number_ends_at_a_vertex():
    rng = np.random.default_rng(5)
    solids = [hull(ellipsoid(rng), np.eye(3), np.zeros(3)) for _ in range(2)]
    shapes = pack(solids, [-1, -1])
    directions = np.array([(x, y, z) for x in (np.nan, 1.0) for y in (np.nan, 1.0) for z in (np.nan, np.inf)])
    assert set(furthest(shapes, directions).tolist()) <= set(range(len(solids[1].vertices)))
