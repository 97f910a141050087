"""Objects that are placed elsewhere, and how they lie."""

import numpy as np
import pytest

from mcplan.errors import InputError
from mcplan.model.geometry import Box, Sphere
from mcplan.scene.environment import Environment, FreeObject, Surface
from mcplan.scene.resting import resting_contact

SQUARE = np.array([[-1.0, -1], [1, -1], [1, 1], [-1, 1]])
FLOOR = Surface("floor", np.eye(3), np.zeros(3), SQUARE)


def box(p, R=None):
    R, p = np.eye(3) if R is None else R, np.array(p, float)
    side = Surface("side", R @ np.array([[0, 0, 1.0], [0, 1, 0], [-1, 0, 0]]), p + R @ [0.2, 0, 0], SQUARE / 10)
    return FreeObject("box", Box((0.4, 0.6, 1.0)), R, p, 20.0, 0.4, (side,))


def test_surfaces_go_along_with_their_object():
    there = Environment((FLOOR,), objects=(box([0, 0, 0.5]),)).placed({"box": np.array([1, 2, 0.5, 0, 0, 0, 1.0])})
    side = there.support("side")
    assert np.allclose(side.p, [0.8, 2, 0.5])
    assert np.allclose(side.normal, [-1, 0, 0])
    assert np.allclose(there.objects[0].pose, [1, 2, 0.5, 0, 0, 0, 1])
    assert there.owners == {"side": "box"}


def test_an_unknown_object_is_named():
    with pytest.raises(InputError, match="no object `crate`; there are: box"):
        Environment(objects=(box([0, 0, 0.5]),)).placed({"crate": np.eye(7)[3]})


def test_a_box_rests_on_its_corners():
    contact = resting_contact(box([0.1, 0, 0.5]), Environment((FLOOR,)))
    assert contact is not None
    assert (contact.support, contact.friction) == ("floor", 0.4)
    assert np.allclose(sorted(map(tuple, contact.points)), [(x, y, -0.5) for x in (-0.2, 0.2) for y in (-0.3, 0.3)])


@pytest.mark.parametrize("p", [[0, 0, 0.51], [0.9, 0, 0.5]])
def test_a_box_in_the_air_or_over_the_edge_does_not(p):
    assert resting_contact(box(p), Environment((FLOOR,))) is None


def test_a_ball_has_no_face():
    ball = FreeObject("ball", Sphere(0.1), np.eye(3), np.array([0, 0, 0.1]), 1.0, 0.4)
    with pytest.raises(InputError, match="a sphere has no corners"):
        resting_contact(ball, Environment((FLOOR,)))
