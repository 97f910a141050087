"""Which bodies are looked at closely: every ball that touches a slab, none that is farther from the box around it.

A bar ends where it ends: it is a cylinder, as for the planner and the certificate.
"""

from typing import NamedTuple

import numpy as np
import pytest

from mcplan.core.contact.detect import DEEPEST, distance_to_bar, is_near_slab, max_depth
from mcplan.core.contact.model import BAR_END, BAR_RADIUS, RECTANGLE_CENTRE, RECTANGLE_HALF, SURFACE_SIZE, THICKNESS
from tests.core.random_trees import random_rotation

LOW, HIGH = np.array([-0.2, -0.3, -0.04]), np.array([0.8, -0.1, 0.0])
"""Corners of the box around the slab, in its axes."""


class Slabs(NamedTuple):
    """What ``is_near_slab`` reads of a scene."""

    surface: np.ndarray


@pytest.fixture
def rng():
    return np.random.default_rng(5)


@pytest.fixture
def slab(rng):
    """A turned slab, and the function that puts a point of its axes in the world."""
    row = np.zeros((1, SURFACE_SIZE))
    row[0, RECTANGLE_CENTRE : RECTANGLE_CENTRE + 2], row[0, RECTANGLE_HALF : RECTANGLE_HALF + 2] = (
        (LOW + HIGH)[:2] / 2,
        (HIGH - LOW)[:2] / 2,
    )
    row[0, THICKNESS] = -LOW[2]
    R, p = random_rotation(rng), rng.normal(size=3)
    row[0, :9], row[0, 9:12] = R.ravel(), p
    return Slabs(row), lambda x: p + R @ x


def test_a_ball_that_holds_a_point_of_the_slab_is_over_it(slab, rng):
    scene, world = slab
    for _ in range(300):
        point, way = rng.uniform(LOW, HIGH), rng.normal(size=3)
        radius = rng.uniform(0.01, 0.5)
        centre = world(point + rng.uniform(0.0, 0.999) * radius * way / np.linalg.norm(way))
        assert is_near_slab(scene, scene.surface, 0, *centre, radius, 1e-3)


def test_a_ball_beyond_the_margin_of_the_box_is_not(slab, rng):
    scene, world = slab
    far = 0
    for _ in range(300):
        x, radius = rng.uniform(LOW - 0.5, HIGH + 0.5), rng.uniform(0.01, 0.3)
        gap = np.linalg.norm(x - np.clip(x, LOW, HIGH)) - radius
        if gap > 1.01e-3:
            far += 1
            assert not is_near_slab(scene, scene.surface, 0, *world(x), radius, 1e-3)
    assert far > 50


def test_a_point_below_a_slab_is_not_in_it(slab):
    scene, _ = slab
    for thickness, deepest in ((0.004, 0.004), (0.5, DEEPEST), (0.0, DEEPEST)):
        scene.surface[0, THICKNESS] = thickness
        assert max_depth(scene, 0) == deepest


def test_a_point_is_off_a_bar_as_far_as_off_a_cylinder_with_flat_ends(rng):
    length, radius, inside, edges = 0.4, 0.1, 0, 0
    R, p = random_rotation(rng), rng.normal(size=3)
    bar = np.zeros((1, 8))
    bar[0, :3], bar[0, BAR_END : BAR_END + 3], bar[0, BAR_RADIUS] = p, p + length * R[:, 2], radius
    for _ in range(400):
        x = rng.uniform([-0.2, -0.2, -0.1], [0.2, 0.2, 0.5])
        off, *normal = distance_to_bar(bar, 0, *(p + R @ x))
        local, far = R.T @ normal, np.hypot(x[0], x[1])
        assert np.linalg.norm(normal) == pytest.approx(1.0)
        nearest = np.append(x[:2] * min(1.0, radius / far), np.clip(x[2], 0.0, length))
        if (away := np.linalg.norm(x - nearest)) > 0.0:
            assert off == pytest.approx(away)
            np.testing.assert_allclose(local, (x - nearest) / away, atol=1e-9)
            edges += far > radius and not 0.0 < x[2] < length
            continue
        inside += 1
        assert off == pytest.approx(-min(radius - far, x[2], length - x[2]))
        place = x - off * local  # on the surface
        assert min(radius - np.hypot(place[0], place[1]), place[2], length - place[2]) == pytest.approx(0.0, abs=1e-12)
    assert inside > 30
    assert edges > 30
    assert distance_to_bar(bar, 0, *(p + R @ [0.0, 0.0, 0.2]))[0] == pytest.approx(-radius)
