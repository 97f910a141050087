"""Contacts: the conventions of the patch frame in contact, as theorems."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mcplan.errors import InputError
from mcplan.scene.contact import Carrier
from mcplan.scene.placement import make_contact

SURFACES = ["floor", "ramp", "wall"]
BARS = ["rail", "rung", "pole"]


def place(robot, environment, **spec):
    return make_contact(robot, environment, spec)


def check_frames(contact):
    for R in (contact.R, contact.axes):
        assert np.allclose(R.T @ R, np.eye(3), atol=1e-12)
        assert np.linalg.det(R) == pytest.approx(1.0)
    rows = contact.selection
    assert np.allclose(rows @ rows.T, np.eye(len(rows)), atol=1e-12)


@pytest.mark.parametrize("name", SURFACES)
@pytest.mark.parametrize("yaw", [-2.5, 0.0, 0.4])
def test_a_patch_on_a_surface(robot, environment, name, yaw):
    surface = environment.support(name)
    middle = surface.polygon.mean(axis=0)
    contact = place(robot, environment, patch="sole", surface=name, x=middle[0], y=middle[1], yaw=yaw)
    check_frames(contact)
    assert np.allclose(contact.R[:, 2], -surface.normal)
    assert np.allclose(contact.normal, surface.normal)
    # every point lies on the surface, and the origin at (x, y)
    local = (contact.world_points - surface.p) @ surface.R
    assert np.allclose(local[:, 2], 0, atol=1e-12)
    assert np.allclose((contact.p - surface.p) @ surface.R, [*middle, 0])
    # yaw turns the patch's x axis from the surface's x axis about the normal; y follows mirrored
    assert np.allclose(surface.R.T @ contact.R[:, 0], [np.cos(yaw), np.sin(yaw), 0])
    assert np.allclose(surface.R.T @ contact.R[:, 1], [np.sin(yaw), -np.cos(yaw), 0])
    assert contact.selection.shape == (6, 6)


def test_a_sole_on_the_floor_has_z_down_and_y_to_the_right(robot, environment):
    contact = place(robot, environment, patch="sole", surface="floor", x=0.1, y=0.2, yaw=0)
    assert np.allclose(contact.R, np.diag([1, -1, -1]))


@pytest.mark.parametrize("name", ["toe", "edge"])
def test_an_edge_is_free_to_turn_about_itself_only(robot, environment, name):
    contact = place(robot, environment, patch=name, surface="ramp", x=0.25, y=0.2, yaw=0.3)
    check_frames(contact)
    assert contact.selection.shape == (5, 6)
    (free,) = np.linalg.svd(contact.selection)[2][5:]
    # the points of the edge stand still under the motion that is left, and it is a rotation
    assert np.linalg.norm(free[3:]) > 0.1
    for point in contact.points:
        assert np.allclose(free[:3] + np.cross(free[3:], point), 0, atol=1e-12)


def test_a_point_is_free_to_turn(robot, environment):
    contact = place(robot, environment, patch="tip", surface="wall", x=0.1, y=0.2)
    check_frames(contact)
    assert np.allclose(contact.selection, np.eye(6)[:3])
    assert np.allclose(contact.points, 0)
    assert np.allclose(contact.normal, [-1, 0, 0])
    as_point = place(robot, environment, patch="sole", surface="floor", kind="point", x=1.99, y=0)
    assert as_point.kind == "point"
    assert as_point.points.shape == (1, 3)


@pytest.mark.parametrize("name", BARS)
@pytest.mark.parametrize("flip", [False, True])
def test_a_grasp(robot, environment, name, flip):
    bar = environment.support(name)
    at_zero = place(robot, environment, patch="grip", surface=name, along=0.3, angle=0, flip=flip)
    check_frames(at_zero)
    assert np.allclose(at_zero.p, bar.ends[0] + 0.3 * bar.direction)
    assert np.allclose(at_zero.R[:, 1], -bar.direction if flip else bar.direction)
    assert np.allclose(at_zero.axes, at_zero.R)
    assert np.allclose(at_zero.normal, -at_zero.R[:, 2])  # from the bar to the hand, against the patch's outward z
    assert (at_zero.max_force, at_zero.max_moment) == (200, 20)
    assert np.allclose(at_zero.selection, np.eye(6))
    # no other angle brings z_P nearer to down (to world x on the vertical pole)
    wanted = np.array([1, 0, 0]) if name == "pole" else np.array([0, 0, -1])
    for angle in np.linspace(-3, 3, 31):
        turned = place(robot, environment, patch="grip", surface=name, along=0.3, angle=angle, flip=flip)
        assert turned.R[:, 2] @ wanted <= at_zero.R[:, 2] @ wanted + 1e-12
        assert np.allclose(turned.R, at_zero.R @ Rotation.from_rotvec([0, angle, 0]).as_matrix())


@pytest.mark.parametrize("yaw", [0.0, 0.6, 2.5, -1.2])
def test_of_a_turned_sole_over_an_edge_that_part_bears_which_is_on_the_surface(robot, environment, yaw):
    surface = environment.support("floor")
    edge = surface.polygon[:, 0].max()
    contact = place(robot, environment, patch="sole", surface="floor", x=edge, y=0.1, yaw=yaw, overhang=True)
    whole = place(robot, environment, patch="sole", surface="floor", x=edge - 1.0, y=0.1, yaw=yaw)
    found, corners = ((c.world_points - surface.p) @ surface.R for c in (contact, whole))
    corners[:, 0] += 1.0
    on = corners[corners[:, 0] <= edge]
    assert all(np.linalg.norm(found - corner, axis=1).min() < 1e-9 for corner in on)
    assert len(found) == len(on) + 2
    assert np.count_nonzero(np.abs(found[:, 0] - edge) < 1e-9) == 2


@pytest.mark.parametrize("name", BARS)
@pytest.mark.parametrize("offset", [0.0, 0.05, -0.1])
def test_a_sole_on_a_bar(robot, environment, name, offset):
    bar = environment.support(name)
    contact = place(robot, environment, patch="sole", surface=name, along=0.3, offset=offset)
    check_frames(contact)
    # the bar's axis is parallel to patch y, radius beyond the patch plane, at patch x = offset
    axis = (bar.ends - contact.p) @ contact.R
    assert np.allclose(axis[:, 0], offset)
    assert np.allclose(axis[:, 2], bar.radius)
    assert contact.p @ bar.direction == pytest.approx(bar.ends[0] @ bar.direction + 0.3)
    # two points: on the line of the patch plane nearest to the axis, at the sole's borders
    assert np.allclose(np.sort(contact.points[:, 1]), [-0.075, 0.056])
    for point in contact.world_points:
        off_axis = np.cross(point - bar.ends[0], bar.direction)
        assert np.linalg.norm(off_axis) == pytest.approx(bar.radius)
    assert np.allclose(contact.normal, -contact.R[:, 2])
    (free,) = np.linalg.svd(contact.selection)[2][5:]
    for point in contact.points:
        assert np.allclose(free[:3] + np.cross(free[3:], point), 0, atol=1e-12)


def test_a_sole_takes_its_cone_along_when_it_rolls_on_a_bar(robot, environment):
    turn = Rotation.from_rotvec(0.3 * environment.support("rung").direction).as_matrix()
    on_bar = place(robot, environment, patch="sole", surface="rung", along=0.3, offset=0.05)
    assert np.allclose(on_bar.at(turn @ on_bar.R, on_bar.p).normal, -turn @ on_bar.R[:, 2])
    assert np.allclose(on_bar.axes_at(on_bar.R), on_bar.axes)
    on_floor = place(robot, environment, patch="sole", surface="floor", x=0.0, y=0.0, yaw=0.2)
    assert np.allclose(on_floor.at(turn @ on_floor.R, on_floor.p).normal, [0.0, 0.0, 1.0])


def test_a_point_on_a_bar_lies_on_its_hull(robot, environment):
    bar = environment.support("rail")
    contact = place(robot, environment, patch="tip", surface="rail", along=0.4, angle=0.5)
    from_axis = contact.p - (bar.ends[0] + 0.4 * bar.direction)
    assert np.allclose(from_axis, bar.radius * contact.normal)
    assert np.allclose(contact.selection, np.eye(6)[:3])


def test_free_directions_and_limits_of_a_contact(robot, environment):
    spec = {"patch": "grip", "surface": "rung", "along": 0.35, "angle": 0.0}
    hinged = make_contact(robot, environment, spec | {"hinge": "y", "max_force": 50.0})
    assert hinged.selection.shape == (5, 6)
    assert np.allclose(hinged.selection[:, 4], 0)
    assert hinged.max_force == 50
    spec = {"patch": "sole", "surface": "floor", "x": 0.0, "y": 0.0, "yaw": 0.0, "slide": ["x"], "friction": 0.2}
    sliding = make_contact(robot, environment, spec)
    assert np.allclose(sliding.selection, np.delete(np.eye(6), 0, axis=0))
    assert sliding.friction == 0.2
    assert sliding.max_force == np.inf


def test_overhang_keeps_the_part_on_the_surface(robot, environment):
    spec = {"patch": "sole", "surface": "stone", "x": 0.0, "y": 0.0, "yaw": 0.0}
    with pytest.raises(InputError, match="50 mm beyond `stone`"):
        make_contact(robot, environment, spec)
    contact = make_contact(robot, environment, spec | {"overhang": True})
    local = contact.world_points - environment.support("stone").p
    assert np.abs(local[:, :2]).max() <= 0.08 + 1e-12
    # on the stone: 0.08 to both sides in x, the whole sole in y
    assert np.allclose(np.ptp(local, axis=0), [0.16, 0.131, 0])
    with pytest.raises(InputError, match="nothing of the patch"):
        make_contact(robot, environment, spec | {"x": 0.5, "overhang": True})


def test_a_millimetre_beyond_is_allowed(robot, environment):
    on_border = {"patch": "sole", "surface": "floor", "x": 2 - 0.13, "y": 0, "yaw": 0}
    make_contact(robot, environment, on_border | {"x": 2 - 0.13 + 0.0009})
    with pytest.raises(InputError, match="beyond"):
        make_contact(robot, environment, on_border | {"x": 2 - 0.13 + 0.0011})


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({"patch": "sol", "surface": "floor"}, "did you mean `sole`"),
        ({"patch": "sole", "surface": "flor"}, "did you mean `floor`"),
        ({"patch": "sole", "surface": "floor", "x": 0}, "y, yaw left out"),
        ({"patch": "sole", "surface": "floor", "along": 0}, "given by x, y and yaw"),
        ({"patch": "grip", "surface": "floor", "x": 0, "y": 0, "yaw": 0}, "a grasp needs a bar"),
        ({"patch": "grip", "surface": "rung", "x": 0}, "is given by along, angle, flip"),
        ({"patch": "grip", "surface": "rung", "along": 0.9, "angle": 0}, "200 mm beyond the end"),
        ({"patch": "sole", "surface": "rung", "along": 0.3, "offset": 0.2}, "offset 0.200 is outside"),
        ({"patch": "toe", "surface": "rung", "along": 0.3, "offset": 0.0}, "cannot rest on a bar"),
        (
            {"patch": "sole", "surface": "rung", "kind": "grasp", "along": 0.3, "angle": 0, "max_force": 100},
            r"`sole` is a surface, so .* kind grasp: a gripper needs `kind: grasp`, max_force and max_moment",
        ),
        ({"patch": "tip", "surface": "floor", "kind": "surface", "x": 0, "y": 0, "yaw": 0}, "has no polygon"),
    ],
)
def test_contacts_that_cannot_be(robot, environment, spec, says):
    with pytest.raises(InputError, match=says):
        make_contact(robot, environment, spec)


def test_same_place(robot, environment):
    spec = {"patch": "sole", "surface": "floor", "x": 0.1, "y": 0.2, "yaw": 0.0}
    contact = make_contact(robot, environment, spec)
    assert contact.same_place(make_contact(robot, environment, spec))
    for name, change in (("x", 1e-4), ("y", -1e-4), ("yaw", 1e-4), ("yaw", np.pi)):
        assert not contact.same_place(make_contact(robot, environment, spec | {name: spec[name] + change}))
    point = {"patch": "tip", "surface": "floor", "x": 0.1, "y": 0.2}
    assert make_contact(robot, environment, point).same_place(make_contact(robot, environment, point | {"yaw": 1.0}))


def test_a_written_contact_reads_back_the_same(robot, environment):
    for spec in (
        {"patch": "sole", "surface": "ramp", "x": 0.2, "y": 0.2, "yaw": 0.1 + 0.2, "friction": 0.3, "max_force": 90.0},
        {"patch": "grip", "surface": "rail", "along": 0.5, "angle": 1.0, "flip": True, "hinge": "y"},
        {"patch": "sole", "surface": "rung", "along": 0.3, "offset": 0.05, "angle": 0.1},
    ):
        contact = make_contact(robot, environment, spec)
        again = make_contact(robot, environment, contact.to_data())
        for name in ("R", "p", "points", "axes", "selection", "friction", "max_force"):
            assert np.array_equal(getattr(contact, name), getattr(again, name))


@pytest.mark.parametrize("flip", [False, True])
def test_a_sole_on_a_bar_may_come_as_near_to_each_end_as_its_own_edge_allows(robot, environment, flip):
    """The sole is wider to one side of its frame: 75 mm against 56; flipped, that side is at the other end."""
    bar = environment.support("rung")
    first, last = (0.075, 0.056) if not flip else (0.056, 0.075)
    spec = {"patch": "sole", "surface": "rung", "offset": 0.0, "flip": flip}
    for along, edge in ((first, -1.0), (bar.length - last, 1.0)):
        inside = make_contact(robot, environment, spec | {"along": along})
        ends = (inside.world_points - bar.ends[0]) @ bar.direction
        assert ends.min() > -1e-9
        assert ends.max() < bar.length + 1e-9
        with pytest.raises(InputError, match="beyond the end"):
            make_contact(robot, environment, spec | {"along": along + 0.003 * edge})


def test_a_share_of_a_contact_bears_that_share_of_all_that_it_may(robot, environment):
    whole = place(robot, environment, patch="grip", surface="rail", along=0.3, angle=0.0)
    half = whole.with_margin(0.5)
    assert (half.max_force, half.max_moment) == (0.5 * whole.max_force, 0.5 * whole.max_moment)
    strong = whole.with_margin(0.5, 0.8)
    assert strong.friction == 0.5 * whole.friction
    assert (strong.max_force, strong.max_moment) == (0.8 * whole.max_force, 0.8 * whole.max_moment)
    sole = place(robot, environment, patch="sole", surface="floor", x=0.1, y=0.2, yaw=0)
    assert sole.with_margin(0.8).friction == pytest.approx(0.8 * sole.friction)


@pytest.mark.parametrize("rests", [True, False])
def test_an_object_keeps_its_centre_of_mass_and_what_it_rests_with_as_it_is_moved(robot, environment, rests):
    rest = place(robot, environment, patch="sole", surface="floor", x=0.1, y=0.2, yaw=0.3)
    box = Carrier("box", 20.0, np.array([0.4, -0.3, 0.5]), rest)
    begin = Rotation.from_euler("xyz", [0.1, 0.2, 0.3]).as_matrix(), np.array([0.3, -0.2, 0.4])
    end = Rotation.from_euler("xyz", [-0.5, 0.4, 2.0]).as_matrix(), np.array([-1.0, 0.6, 0.7])
    moved = box.moved(begin, end, rests)
    np.testing.assert_allclose(end[0].T @ (moved.com - end[1]), begin[0].T @ (box.com - begin[1]), atol=1e-12)
    assert (moved.name, moved.mass) == (box.name, box.mass)
    if not rests:
        assert moved.rest is None
        return
    np.testing.assert_allclose(end[0].T @ (moved.rest.p - end[1]), begin[0].T @ (rest.p - begin[1]), atol=1e-12)
    for name in ("R", "axes"):
        np.testing.assert_allclose(end[0].T @ getattr(moved.rest, name), begin[0].T @ getattr(rest, name), atol=1e-12)
