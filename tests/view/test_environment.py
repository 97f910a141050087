"""What stands around the robot is drawn where it is, and the camera looks past it."""

import json
import re

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mcplan.analysis.regions import SupportRegionCache
from mcplan.robot.description import Box, MeshShape
from mcplan.robot.robot_file import load_robot
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Bar, Environment, FreeObject, Obstacle, Surface
from mcplan.statics.support_region import support_region
from mcplan.view.drawing import Drawing, item_name, node_name
from mcplan.view.environment import HALF_FIELD_OF_VIEW, animate_objects, draw_environment, set_stage
from mcplan.view.film import Film, PatchForce
from mcplan.view.page import arrows, layers
from mcplan.view.plan_replay import margin_labels
from mcplan.view.sheets import robot_page
from mcplan.view.support import UNBOUNDED_MARGIN_M, support_polygon
from tests.statics.contacts import surface_contact
from tests.view.tracks import Scene, at, tracks_of

PATH = np.array([[0.0, 0.0, 0.8], [0.1, 0.0, 0.8]])


def wall(name, R, p):
    corners = np.array([[-2.0, -2.0], [2.0, -2.0], [2.0, 2.0], [-2.0, 2.0]])
    return Surface(name, R, np.array(p), corners, 0.05, 0.7)


def test_it_stands_in_front_on_the_left_when_nothing_is_in_the_way():
    drawing = Drawing()
    set_stage(drawing, PATH, Environment())
    target, eye = drawing.camera
    assert np.all(eye[:2] > target[:2])


def test_a_wall_on_the_left_makes_it_look_from_the_right():
    drawing = Drawing()
    along_x = np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])  # its normal is -y
    set_stage(drawing, PATH, Environment(surfaces=(wall("left", along_x, [0.0, 0.6, 0.8]),)))
    target, eye = drawing.camera
    assert eye[1] < target[1]


def test_the_ground_is_the_lowest_level_support_whatever_else_there_is():
    """Neither a pit's slope nor a wall's foot, and the height 0 where nothing is level."""
    level, slope = np.eye(3), Rotation.from_rotvec([0.0, 0.2, 0.0]).as_matrix()
    step, floor = wall("step", level, [0.6, 0.0, 0.2]), wall("floor", level, [0.0, 0.0, -0.3])
    ramp = wall("ramp", slope, [0.0, 0.0, -1.0])
    for surfaces, ground in (([step, floor, ramp], -0.3), ([floor, step], -0.3), ([step], 0.2), ([ramp], 0.0)):
        drawing = Drawing()
        set_stage(drawing, PATH, Environment(surfaces=tuple(surfaces)))
        assert drawing.ground == ground


SINGLE = 2e-6  # pages hold single precision
SIDES = {"left": 0.1, "right": -0.1}
TURN = Rotation.from_rotvec([0.4, -0.7, 1.1]).as_matrix()


def test_supports_obstacles_and_objects_stand_where_they_are():
    polygon = np.array([[0.0, 0.0], [0.6, 0.0], [0.5, 0.4], [0.0, 0.3]])
    ramp = Surface("ramp", TURN, np.array([1.0, 0.5, 0.2]), polygon, 0.07)
    bar = Bar("rail", np.array([[0.0, 0.5, 0.8], [0.9, 0.9, 1.3]]), 0.02)
    wedge = MeshShape(np.array([[0.0, 0, 0], [0.3, 0, 0], [0, 0.2, 0], [0, 0, 0.4]]), np.array([[0, 2, 1], [0, 1, 3]]))
    stone = Obstacle("stone", wedge, TURN.T, np.array([0.1, -0.2, 0.3]))
    crate = FreeObject("crate", Box((0.2, 0.3, 0.4)), TURN, np.array([2.0, 0.0, 0.5]), 5.0, 0.4)
    drawing = Drawing(np.arange(3.0))
    environment = Environment((ramp,), (bar,), (stone,), (crate,))
    draw_environment(drawing, environment)
    quat = Rotation.random(3, random_state=1).as_quat(scalar_first=True)
    poses = np.column_stack([np.arange(9.0).reshape(3, 3), quat])[:, None]
    animate_objects(drawing, environment, poses)
    scene = Scene(drawing)
    slab = (scene.vertices("environment/surfaces/n:ramp") - ramp.p) @ TURN
    assert (slab[:, 2].min(), slab[:, 2].max()) == pytest.approx((-0.07, 0.0), abs=SINGLE)
    for corner in polygon:
        for z in (0.0, -0.07):
            assert np.abs(slab - [*corner, z]).max(axis=1).min() < SINGLE
    (cylinder,) = scene.object["environment/bars/n:rail"]["geometries"]
    assert cylinder["height"] == pytest.approx(bar.length)
    assert cylinder["radiusTop"] == cylinder["radiusBottom"] == pytest.approx(0.02)
    X = scene.constant["environment/bars/n:rail"]
    ends = np.array([[0, -0.5, 0], [0, 0.5, 0]]) * cylinder["height"] @ X[:3, :3].T + X[:3, 3]
    assert ends == pytest.approx(bar.ends, abs=SINGLE)
    drawn = scene.vertices("environment/obstacles/n:stone")
    assert np.unique(np.round(drawn, 4), axis=0) == pytest.approx(
        np.unique(np.round(stone.p + wedge.vertices @ stone.R.T, 4), axis=0), abs=1e-4
    )
    box = scene.object["environment/objects/n:crate/shape"]["geometries"][0]
    assert (box["width"], box["height"], box["depth"]) == pytest.approx((0.2, 0.3, 0.4))
    assert scene.constant["environment/objects/n:crate"][:3, :3] == pytest.approx(TURN, abs=SINGLE)
    for k in range(3):
        x, y, z, w = scene.value("environment/objects/n:crate", ".quaternion", k, None)
        assert abs(np.dot([w, x, y, z], quat[k])) == pytest.approx(1.0, abs=1e-5)
        assert scene.value("environment/objects/n:crate", ".position", k, None) == pytest.approx(poses[k, 0, :3])


@pytest.fixture(scope="module")
def shown():
    """Three frames of HRP-2: on one foot, then on both, then in the air."""
    robot = load_robot("hrp2")
    q = np.array([robot.random_configuration(k) for k in range(3)])
    down = np.diag([1.0, -1.0, -1.0])
    feet = [
        Contact(
            f"{side}_sole", "floor", "surface", down, np.array([0.0, y, 0.1]),
            robot.patches[f"{side}_sole"].points, np.eye(3), 0.7, np.inf, np.inf, np.eye(6),
        )
        for side, y in SIDES.items()
    ]  # fmt: skip
    film = Film(
        robot=robot, environment=Environment(), times=np.arange(3.0), q=q, com=np.array([robot.com(one) for one in q]),
        ground=np.array([0.1, 0.2, 0.3]),
        touching={"left_sole": np.array([True, True, False]), "right_sole": np.array([False, True, False])},
        moved={"right_sole": np.array([False, True, False])},
        carrying=[(feet[0],), tuple(feet), ()],
    )  # fmt: skip
    return robot, film, Scene(film.draw())


def test_links_are_drawn_with_their_geometry_where_they_are(shown):
    robot, film, scene = shown
    for link in ("BODY", "LLEG_LINK3", "RARM_LINK4"):
        geometry = next(g for g in robot.geometry[link] if g.role != "collision")
        X = scene.constant[f"robot/n:{link}/shape0"]
        solid = np.eye(3) if isinstance(geometry.shape, MeshShape) else None
        if solid is not None:
            assert X[:3, :3] == pytest.approx(geometry.R, abs=SINGLE)
        assert X[:3, 3] == pytest.approx(geometry.p, abs=SINGLE)
        for k, q in enumerate(film.q):
            expected = robot.frame_pose(q, link)
            x, y, z, w = scene.value(f"robot/n:{link}", ".quaternion", k, None)
            assert Rotation.from_quat([x, y, z, w]).as_matrix() == pytest.approx(expected[:3, :3], abs=1e-5)
            assert scene.value(f"robot/n:{link}", ".position", k, None) == pytest.approx(expected[:3, 3], abs=1e-5)


NAMES = ("stairs", "stairs/1", "table/", "/floor", "constructor", "__proto__", "..", "a b: é%2F")


def test_whatever_things_are_called_each_has_a_node_of_its_own_in_its_place():
    things = [wall(name, np.eye(3), [float(k), 0.0, 0.0]) for k, name in enumerate(NAMES)]
    stones = [Obstacle(thing.name, Box((1.0, 1.0, 1.0)), thing.R, thing.p) for thing in things]
    crates = [FreeObject(thing.name, Box((1.0, 1.0, 1.0)), thing.R, thing.p, 5.0, 0.4) for thing in things]
    bars = [Bar(thing.name, thing.p + np.array([[0.0, 0, 1], [0, 1, 1]]), 0.02) for thing in things]
    drawing = Drawing(np.arange(2.0))
    environment = Environment(things, bars, stones, crates)
    draw_environment(drawing, environment)
    poses = np.tile([crate.pose for crate in crates], (2, 1, 1))
    animate_objects(drawing, environment, poses)
    scene = Scene(drawing)
    for kind, below in (("surfaces", ""), ("bars", ""), ("obstacles", ""), ("objects", "/shape")):
        nodes = [f"environment/{kind}/{node_name(name)}" for name in NAMES]
        assert [path for path in scene.object if path.startswith(f"environment/{kind}/")] == [n + below for n in nodes]
        assert [scene.constant[node][0, 3] for node in nodes] == pytest.approx(range(len(NAMES)))
        assert {node.count("/") for node in nodes} == {2}
    assert list(scene.tracks) == [f"environment/objects/{node_name(name)}" for name in NAMES]
    assert [item_name(node_name(name)) for name in NAMES] == list(NAMES)
    assert not any(hasattr(dict, node_name(name)) or node_name(name).startswith("_") for name in NAMES)


def test_whatever_links_and_patches_are_called_they_are_drawn_in_the_robot(tmp_path):
    (tmp_path / "links.urdf").write_text(LINKS.format("").replace('"carriage"', '"/arm"'))
    patch = "{link: /arm, pose: {xyz: [0, 0, -0.1]}, polygon: [[0.1, 0.1], [-0.1, 0.1], [-0.1, -0.1], [0.1, -0.1]]}"
    (tmp_path / "robot.yaml").write_text(f"mcplan: 1\nurdf: links.urdf\npatches: {{foot/left: {patch}}}\n")
    robot = load_robot(tmp_path / "robot.yaml")
    q, seen = np.array([robot.neutral()] * 2), np.ones(2, bool)
    up, place = np.tile([0.0, 0.0, 100.0], (2, 1)), np.zeros((2, 3))
    film = Film(
        robot=robot, environment=Environment(), times=np.arange(2.0), q=q, com=q[:, :3], ground=np.zeros(2),
        touching={"foot/left": seen}, carrying=[(), ()],
        forces={"foot/left": PatchForce(place, up, up / 100.0, np.ones(2))},
    )  # fmt: skip
    drawing = film.draw()
    assert {path.split("/")[0] for path in drawing.paths} == {"robot", "forces", "cones", "com"}
    assert set(drawing.clips()) >= {
        "robot/n:%2Farm", "robot/n:%2Farm/patch foot%2Fleft", "cones/n:foot%2Fleft", "forces/n:foot%2Fleft/head"
    }  # fmt: skip
    assert arrows(drawing) == [{"name": "foot/left", "node": "forces/n:foot%2Fleft"}]
    (frames,) = [layer["nodes"] for layer in layers(drawing) if layer["key"] == "frames"]
    assert frames == ["robot/n:%2Farm/frame foot%2Fleft", "robot/n:base/frame base"]
    for shown in ((), ("frames",), ("collision",)):
        visible = {layer["key"]: layer["on"] for layer in layers(drawing, shown)}
        assert visible == {"forces": True, "cones": True, "com": True, "frames": "frames" in shown}


MASS = "<inertial><mass value='1'/><inertia ixx='1' iyy='1' izz='1' ixy='0' ixz='0' iyz='0'/></inertial>"
LINKS = f"""<robot name="links"><link name="base">{MASS}</link>
<joint name="lift" type="prismatic"><parent link="base"/><child link="carriage"/><axis xyz="0 0 1"/>
<limit lower="0" upper="1" velocity="1" effort="9"/></joint><link name="carriage">{MASS}{{}}</link></robot>"""


@pytest.mark.parametrize("shape", ["", "<visual><geometry><sphere radius='0.1'/></geometry></visual>"])
def test_links_without_shapes_have_their_places_and_the_axes_of_the_base_go_with_it(tmp_path, shape):
    (tmp_path / "links.urdf").write_text(LINKS.format(shape))
    robot = load_robot(tmp_path / "links.urdf")
    assert margin_labels(robot)["position"][1].format(0.25) == "0.250 m"
    q = np.array([[0.3, 0.0, 0.5, 1.0, 0.0, 0.0, 0.0, 0.2], [0.4, 0.0, 0.5, 1.0, 0.0, 0.0, 0.0, 0.7]])
    assert robot_page(robot)
    film = Film(
        robot=robot, environment=Environment(), times=np.arange(2.0), q=q, com=q[:, :3], ground=np.zeros(2),
        touching={}, carrying=[(), ()],
    )  # fmt: skip
    scene = Scene(film.draw())
    for link in robot.link_names:
        for k in range(2):
            expected = robot.frame_pose(q[k], link)[:3, 3]
            assert scene.value(f"robot/n:{link}", ".position", k, None) == pytest.approx(expected, abs=SINGLE)


def test_postures_of_a_robot_are_shown_one_a_second_and_each_is_held():
    robot = load_robot("hrp2")
    names = ("half_sitting", "kneel", "squat")
    data = json.loads(re.search(r"^const data = (.*);$", robot_page(robot, names), re.MULTILINE)[1])
    assert [(band["begin"], band["end"], band["name"]) for band in data["bands"]] == [
        (0.0, 1.0, "half_sitting"), (1.0, 2.0, "kneel"), (2.0, 3.0, "squat"),
    ]  # fmt: skip
    assert data["duration"] == 3.0
    way = tracks_of(data["tracks"])["robot/n:RLEG_LINK5"][".position"]
    for k, name in enumerate(names):
        expected = robot.frame_pose(robot.posture(name), "RLEG_LINK5")[:3, 3]
        for t in (k, k + 0.5, k + 0.99):
            assert at(way, t) == pytest.approx(expected, abs=SINGLE)
    assert '"duration": 0.0' in robot_page(robot, ("kneel",))


def test_patches_in_contact_show_in_the_colour_of_what_they_do(shown):
    robot, _, scene = shown
    for patch, plain, moved in (("left_sole", [1, 1, 0], [0, 0, 0]), ("right_sole", [0, 0, 0], [0, 1, 0])):
        node = f"robot/n:{robot.patches[patch].link}"
        assert [int(scene.value(f"{node}/patch {patch}", ".visible", k, None)) for k in range(3)] == plain
        assert [int(scene.value(f"{node}/moved {patch}", ".visible", k, None)) for k in range(3)] == moved
        X = scene.constant[f"{node}/patch {patch}"]
        assert X[:3, 3] == pytest.approx(robot.patches[patch].p, abs=SINGLE)
        assert X[:3, :3] == pytest.approx(robot.patches[patch].R, abs=SINGLE)


def test_a_line_hangs_from_the_centre_of_mass_to_the_ground(shown):
    _, film, scene = shown
    for k, (com, ground) in enumerate(zip(film.com, film.ground, strict=True)):
        assert scene.value("com/ball", ".position", k, None) == pytest.approx(com, abs=SINGLE)
        bottom, top = scene.ends("com/line", k)
        assert top == pytest.approx(com, abs=2e-5)
        assert bottom == pytest.approx([*com[:2], ground + 0.006], abs=2e-5)


def test_the_support_region_lies_on_the_ground_while_its_contacts_carry(shown):
    robot, _, scene = shown
    one, both = scene.vertices("support/1"), scene.vertices("support/2")
    assert [int(scene.value("support/1", ".visible", k, None)) for k in range(3)] == [1, 0, 0]
    assert [int(scene.value("support/2", ".visible", k, None)) for k in range(3)] == [0, 1, 0]
    assert one[:, 2].min() == pytest.approx(0.102, abs=1e-5)
    assert both[:, 2].min() == pytest.approx(0.202, abs=1e-5)
    feet = {side: robot.patches[f"{side}_sole"].points[:, :2] * [1, -1] + [0, y] for side, y in SIDES.items()}
    for found, corners in ((one, feet["left"]), (both, np.vstack(list(feet.values())))):
        assert found[:, :2].min(axis=0) == pytest.approx(corners.min(axis=0), abs=2e-3)
        assert found[:, :2].max(axis=0) == pytest.approx(corners.max(axis=0), abs=2e-3)


@pytest.mark.parametrize(
    "change",
    [{"yaw": 0.5 * np.pi}, {"normal": (0.6, 0.0, 0.8)}, {"half": (0.2, 0.1)}, {"max_force": 300.0}, {"kind": "point"},
     {"friction": 0.1}],
)  # fmt: skip
def test_a_contact_that_changes_where_it_is_has_another_region(change):
    """A slope and a foot that bears little beside another foot, so that each of these moves an edge."""
    regions = SupportRegionCache(50.0)
    other = surface_contact("other", [0.0, 0.5, 0.2], (0.0, -0.5, 0.8), friction=0.8)
    here = {"normal": (0.0, 0.3, 0.9), "friction": 0.7}
    for settings in (here, here | change):
        contacts = [surface_contact("foot", [0.1, 0.0, 0.0], **settings), other]
        expected = support_region(contacts, 50.0).vertices
        found = regions(contacts).vertices
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, atol=1e-9)


def test_a_region_without_bounds_is_drawn_a_quarter_of_a_metre_around_its_contacts():
    walls = [
        surface_contact("left", [0.1, 0.3, 0.8], [0.0, -1.0, 0.0], half=(0.1, 0.1), friction=0.8),
        surface_contact("right", [-0.2, -0.3, 0.8], [0.0, 1.0, 0.0], half=(0.1, 0.1), friction=0.8),
    ]
    assert not support_region(walls, 55.0).bounded
    corners = support_polygon(walls, 55.0)
    # as far as the region reaches, and no farther
    region = support_region(walls, 55.0).vertices
    low = np.maximum(np.array([-0.2, -0.3]) - UNBOUNDED_MARGIN_M, region.min(axis=0))
    high = np.minimum(np.array([0.1, 0.3]) + UNBOUNDED_MARGIN_M, region.max(axis=0))
    assert corners.min(axis=0) == pytest.approx(low)
    assert corners.max(axis=0) == pytest.approx(high)
    assert np.all(np.ptp(region, axis=0) > 0.0)
    assert np.any(np.ptp(region, axis=0) > np.ptp(corners, axis=0))


@pytest.mark.parametrize("height", [0.4, 1.7, 4.0])
def test_the_whole_body_is_in_the_picture_whichever_end_is_up(height):
    """A line from each of its points to the eye is within half of the camera's angle of where it looks, upright."""
    drawing, path = Drawing(), np.array([[0.0, 0.0, 0.3 * height], [0.2, 0.0, 0.7 * height]])
    body = np.array([[x, y, z] for x in (0.0, 0.2) for y in (-0.2, 0.2) for z in np.linspace(0.0, height, 9)])
    set_stage(drawing, path, Environment(), body)
    target, eye = drawing.camera
    ahead = target - eye
    level = np.cross(ahead, [0.0, 0.0, 1.0])
    upright = np.cross(level, ahead) / np.linalg.norm(np.cross(level, ahead))
    rays = body - eye
    angles = np.arctan2(rays @ upright, rays @ ahead / np.linalg.norm(ahead))
    assert np.abs(angles).max() < HALF_FIELD_OF_VIEW
