"""Objects that are placed elsewhere, and how they lie."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from mcplan.errors import InputError
from mcplan.robot.description import Box, MeshShape, Sphere
from mcplan.robot.robot_file import load_robot
from mcplan.scene.environment import Environment, FreeObject, Surface
from mcplan.scene.placement import contact
from mcplan.scene.resting import carrier, resting_contact, slides

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
    top = Surface("top", np.eye(3), np.array([0.0, 0.0, 1.0]), SQUARE / 10)
    one = replace(box([0, 0, 0.5]), surfaces=(*box([0, 0, 0.5]).surfaces, top))
    two = FreeObject(
        "crate", Box((0.4, 0.6, 1.0)), np.eye(3), np.array([3.0, 0, 0.5]), 20.0, 0.4, (replace(top, name="lid"),)
    )
    both = Environment((FLOOR,), objects=(one, two))
    assert both.owners == {"side": "box", "top": "box", "lid": "crate"}


@pytest.mark.parametrize("before", [[0.0, 0.0, 0.0], [0.4, -0.2, 1.0]])
def test_surfaces_of_a_turned_object_are_where_its_body_has_them(before):
    """However it stood when it was described."""
    turn = Rotation.from_rotvec([0.3, 0.5, -0.7])
    described = box([0.2, 0.1, 0.5], Rotation.from_rotvec(before).as_matrix())
    side = described.placed(np.r_[1, 2, 3, turn.as_quat(scalar_first=True)]).surfaces[0]
    expected = box([1.0, 2.0, 3.0], turn.as_matrix()).surfaces[0]
    np.testing.assert_allclose(side.R, expected.R, atol=1e-12)
    np.testing.assert_allclose(side.p, expected.p, atol=1e-12)


def test_an_unknown_object_is_named():
    with pytest.raises(InputError, match="no object `crate`; there are: box"):
        Environment(objects=(box([0, 0, 0.5]),)).placed({"crate": np.eye(7)[3]})


def test_a_box_rests_on_its_corners():
    contact = resting_contact(box([0.1, 0, 0.5]), Environment((FLOOR,)))
    assert contact is not None
    assert (contact.support, contact.friction) == ("floor", 0.4)
    assert np.allclose(sorted(map(tuple, contact.points)), [(x, y, -0.5) for x in (-0.2, 0.2) for y in (-0.3, 0.3)])


@pytest.mark.parametrize("yaw", [0.0, 0.9, -2.0])
def test_corners_on_which_an_object_rests_are_told_in_its_own_axes(yaw):
    R = Rotation.from_euler("z", yaw).as_matrix()
    contact = resting_contact(box([0.3, 0.2, 0.5], R), Environment((FLOOR,)))
    expected = [(x, y, -0.5) for x in (-0.2, 0.2) for y in (-0.3, 0.3)]
    assert np.allclose(sorted(map(tuple, contact.points.round(9))), expected)
    assert np.allclose(contact.world_points[:, 2], 0.0)


def test_what_carries_a_contact_weighs_down_at_its_centre_of_mass():
    """A wedge, described from one of its corners; a mesh has the mass of the box around it."""
    corners = np.array([[0.0, 0, 0], [0.3, 0, 0], [0, 0.2, 0], [0, 0, 0.4], [0.3, 0, 0.4], [0, 0.2, 0.4]])
    faces = np.array([[0, 2, 1], [3, 4, 5], [0, 1, 4], [0, 4, 3], [0, 3, 5], [0, 5, 2], [1, 2, 5], [1, 5, 4]])
    wedge = MeshShape(corners, faces)
    R = Rotation.from_euler("z", 1.0).as_matrix()
    thing = FreeObject("wedge", wedge, R, np.array([0.3, -0.2, 0.0]), 5.0, 0.4)
    carried = carrier(Environment((FLOOR,), objects=(thing,)), "wedge")
    assert carried.com == pytest.approx(thing.p + R @ [0.15, 0.1, 0.2])
    assert (carried.mass, carried.rest.support) == (5.0, "floor")


@pytest.mark.parametrize("p", [[0, 0, 0.51], [1.199, 0, 0.5], [1.3, 0, 0.5]])
def test_a_box_in_the_air_or_beside_the_edge_does_not(p):
    assert resting_contact(box(p), Environment((FLOOR,))) is None


def test_beyond_an_edge_nothing_bears_a_box():
    contact = resting_contact(box([0.9, 0, 0.5]), Environment((FLOOR,)))
    found = sorted(map(tuple, contact.points.round(9)))
    assert found == [(x, y, -0.5) for x in (-0.2, 0.1) for y in (-0.3, 0.3)]


def tiles(*corners, height=0.0):
    """Level rectangles (x0, y0, x1, y1)."""
    outlines = [np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]]) for x0, y0, x1, y1 in corners]
    return tuple(Surface(f"tile{k}", np.eye(3), [0, 0, height], polygon) for k, polygon in enumerate(outlines))


@pytest.mark.parametrize("yaw", [0.0, 0.4])
def test_parts_of_one_plane_bear_a_box_together(yaw):
    """Four tiles meet below it; it is named after the first one that it touches."""
    four = tiles((3, 3, 4, 4), (-1, -1, 0, 0), (0, -1, 1, 0), (-1, 0, 0, 1), (0, 0, 1, 1))
    R = Rotation.from_euler("z", yaw).as_matrix()
    contact = resting_contact(box([0.05, 0.02, 0.5], R), Environment(four))
    whole = resting_contact(box([0.05, 0.02, 0.5], R), Environment((FLOOR,)))
    assert contact.support == "tile1"
    places = contact.points.round(6)
    assert {tuple(p) for p in whole.points.round(6)} <= {tuple(p) for p in places}
    assert np.abs(places).max(axis=0) == pytest.approx([0.2, 0.3, 0.5])


def test_a_box_lies_on_the_floor_and_not_on_the_wall_that_it_touches():
    wall = Surface("wall", size=(2, 2), xyz=(0.2, 0, 0.5), rpy=(0, -np.pi / 2, 0))
    assert resting_contact(box([0, 0, 0.5]), Environment((wall, FLOOR))).support == "floor"


L_SHAPE = tiles((0, 0, 1, 1), (1, 0, 2, 1), (1, 1, 2, 2))


@pytest.mark.parametrize(
    ("surfaces", "begin", "end", "does"),
    [
        ((FLOOR,), [-0.5, 0], [0.5, 0], True),
        (tiles((0, 0, 1, 1), (1, 0, 2, 1)), [0.5, 0.5], [1.5, 0.5], True),  # over the seam
        (tiles((0, 0, 1, 1), (1.1, 0, 2, 1)), [0.5, 0.5], [1.5, 0.5], False),  # over a gap
        (L_SHAPE, [1.5, 0.5], [1.5, 1.5], True),
        (L_SHAPE, [0.7, 0.5], [1.5, 1.5], False),  # beyond the corner
        ((FLOOR,), [0.9, 0], [0.5, 0], True),  # what is over the edge comes to lie on the floor as well
        ((FLOOR,), [0.9, -0.2], [0.9, 0.2], True),  # it stays over the edge
        ((FLOOR,), [0.5, 0], [0.9, 0], False),
        (tiles((0, 0, 1, 1)) + tiles((1, 0, 2, 1), height=0.1), [0.5, 0.5], [1.5, 0.5], False),
    ],
)
def test_what_bears_an_object_that_slides_has_one_plane_below_it_all_the_way(surfaces, begin, end, does):
    scene = Environment(surfaces)
    there, here = (resting_contact(box([*p, 0.5]), scene) for p in (begin, end))
    assert slides(there, here, scene) == does


BLOCK = np.array([[x, y, z] for x, y in 0.3 * SQUARE for z in (-0.5, 0.5)])
LID = Surface("lid", size=(0.4, 0.6), xyz=(0, 0, 1))


@pytest.mark.parametrize("lid", [(), (LID,)])
@pytest.mark.parametrize("shape", [Box((0.4, 0.6, 1.0)), MeshShape(BLOCK, ConvexHull(BLOCK).simplices)])
def test_a_stack_is_refused_by_name(shape, lid):
    """A crate on a box, whether its top has a name or not, and the box below it."""
    lower, upper = box([0, 0, 0.5]), FreeObject("crate", Box((0.2, 0.2, 0.2)), np.eye(3), [0, 0, 1.1], 1.0, 0.4)
    scene = Environment((FLOOR,), objects=(upper, replace(lower, shape=shape, surfaces=(*lower.surfaces, *lid))))
    for name in ("box", "crate"):
        with pytest.raises(InputError, match="the object crate lies on the object box: contacts on stacked objects"):
            carrier(scene, name)
    for place in ([0.7, 0.7, 0.1], [0.401, 0.0, 0.1]):  # beside it
        beside = scene.placed({"crate": np.array([*place, 1, 0, 0, 0])})
        assert carrier(beside, "box").rest.support == carrier(beside, "crate").rest.support == "floor"


@pytest.mark.parametrize(("turn", "down"), [(0.0, 0.0), (0.6, 0.0), (0.0, 0.3)])
def test_what_has_its_centre_of_mass_beyond_an_edge_rests_on_nothing(turn, down):
    """Whichever way the edge runs. On a slope the plumb line counts: the box is 1 m high."""
    R = Rotation.from_euler("zy", [turn, down]).as_matrix()
    slope = Environment((Surface("slope", R, np.zeros(3), SQUARE),))
    edge = 1.0 - 0.5 * np.tan(down)
    for inside in (0.01, -0.01):
        thing = box(R @ [edge - inside, 0.0, 0.5], R)
        assert (resting_contact(thing, slope) is not None) == (inside > 0.0)


def test_a_ball_has_no_face():
    ball = FreeObject("ball", Sphere(0.1), np.eye(3), np.array([0, 0, 0.1]), 1.0, 0.4)
    with pytest.raises(InputError, match="a sphere has no corners"):
        resting_contact(ball, Environment((FLOOR,)))


def test_a_contact_on_an_object_that_is_not_there_asks_for_the_environment():
    crate, hrp2 = box([0, 0, 0.5]), load_robot("hrp2")
    with pytest.raises(
        InputError, match=r"on a surface of the object box, which is not in the environment: give `environment=`"
    ):
        contact(hrp2, "left_sole", crate.surfaces[0], x=0.0, y=0.0, overhang=True)
