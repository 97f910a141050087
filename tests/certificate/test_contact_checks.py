"""Geometry and frames behind the lines about contacts, each against its definition."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mcplan.certificate.contact_checks import _distance_to_polygon, _distance_to_segment, _free_components
from mcplan.certificate.motion_checks import worst

POLYGON = np.array([[0.3, 0.0, 0.0], [0.1, 0.2, 0.0], [-0.3, 0.1, 0.0], [-0.2, -0.2, 0.0], [0.2, -0.2, 0.0]])


def nearest(point, polygon):
    """How far a point is from a polygon, by all convex combinations on a fine grid of its border and its inside."""
    a, b = polygon, np.roll(polygon, -1, axis=0)
    share = np.linspace(0.0, 1.0, 2001)[:, None]
    border = np.concatenate([begin + share * (end - begin) for begin, end in zip(a, b, strict=True)])
    return float(np.linalg.norm(border - point, axis=1).min())


@pytest.mark.parametrize("turned_round", [False, True])
def test_a_point_is_off_a_patch_by_what_it_is_beyond_its_edge_and_off_its_plane(turned_round):
    polygon = POLYGON[::-1] if turned_round else POLYGON
    inside = np.array([[0.0, 0.0, 0.0], [0.1, -0.1, 0.02], [-0.1, 0.05, -0.03]])
    assert _distance_to_polygon(inside, polygon) == pytest.approx([0.0, 0.02, 0.03])
    for begin, end in zip(POLYGON, np.roll(POLYGON, -1, axis=0), strict=True):
        middle, shift = (begin + end) / 2, end - begin
        normal = np.array([shift[1], -shift[0], 0.0]) / np.linalg.norm(shift)
        normal *= np.sign(normal @ middle)
        off = middle + 0.01 * normal
        assert _distance_to_polygon(off[None], polygon) == pytest.approx([nearest(off, POLYGON)], abs=1e-6)
        assert _distance_to_polygon(np.array([[off[0], off[1], -0.03]]), polygon) == pytest.approx(
            [np.hypot(0.01, 0.03)]
        )


def test_a_point_is_off_an_edge_by_its_distance_from_the_segment():
    """Beyond an end by the distance from that end, beside it by the distance from the line."""
    rng = np.random.default_rng(0)
    ends, points = rng.normal(size=(2, 3)), rng.normal(size=(200, 3)) * 2.0
    shift = np.linspace(0.0, 1.0, 4001)[:, None]
    segment = ends[0] + shift * (ends[1] - ends[0])
    expected = [np.linalg.norm(segment - point, axis=1).min() for point in points]
    assert _distance_to_segment(points, ends) == pytest.approx(np.array(expected), abs=1e-5)
    beyond = ends[1] + 0.5 * (ends[1] - ends[0])
    assert _distance_to_segment(beyond[None], ends) == pytest.approx([0.5 * np.linalg.norm(ends[1] - ends[0])])


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_what_acts_along_a_free_direction_is_told_in_the_axes_of_the_patch(sign):
    """A grasp that slides along its y axis and turns about it: all of a wrench along these, nothing of the others."""
    R = Rotation.random(4, random_state=1).as_matrix()
    kept = np.diag([1.0, 0.0, 1.0, 1.0, 0.0, 1.0])
    for part, axis, free in ((0, 1, True), (3, 1, True), (0, 0, False), (0, 2, False), (3, 0, False), (3, 2, False)):
        wrench = np.zeros((4, 1, 6))
        wrench[:, 0, part : part + 3] = sign * 7.0 * R[:, :, axis]
        evidence = SimpleNamespace(
            motion=SimpleNamespace(R={"grip": R}),
            run=SimpleNamespace(wrench=wrench, patches=["grip"]),
            selections=[kept],
        )
        found = _free_components(evidence, 0, "grip", np.arange(4))
        assert found == pytest.approx(np.full(4, 7.0 if free else 0.0), abs=1e-12)


def test_what_is_not_a_number_is_the_worst():
    assert worst(np.array([1.0, np.nan, 3.0])) == (1,)
    assert worst(np.array([[1.0, 5.0], [-np.inf, 3.0]])) == (0, 1)
