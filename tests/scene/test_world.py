"""Scenes of other programs: the same room as URDF, as SDF and as MJCF."""

import sys

import numpy as np
import pytest
import trimesh

import mcplan as mc
from mcplan.document.document import dump_document
from mcplan.errors import ScenarioError
from mcplan.robot.description import Box, Capsule, Cylinder, Sphere
from mcplan.robot.mesh_file import MeshError
from mcplan.scene.detection.detect import detect_scene
from mcplan.scene.detection.geometry import ROUND_SIDES, tessellate
from mcplan.scene.detection.settings import FindSettings
from mcplan.scene.detection.triangles import Triangles
from mcplan.scene.detection.world_file import read_world

# a floor, a block turned by 0.3 rad on it, a ramp on an arm of the block's frame, and a rail
URDF = """<robot name="room">
  <link name="floor"><collision><origin xyz="0 0 -0.05"/><geometry><box size="4 3 0.1"/></geometry></collision></link>
  <joint name="j" type="fixed"><parent link="floor"/><child link="block"/>
    <origin xyz="0.8 0.2 0" rpy="0 0 0.3"/></joint>
  <link name="block"><collision><origin xyz="0 0 0.075"/><geometry><box size="0.8 1 0.15"/></geometry></collision>
    <visual><geometry><box size="9 9 9"/></geometry></visual></link>
  <joint name="k" type="revolute"><parent link="block"/><child link="rail"/>
    <origin xyz="0 0.6 0.9" rpy="0 1.5707963 0"/><axis xyz="0 0 1"/>
    <limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
  <link name="rail"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><geometry><cylinder radius="0.02" length="1.2"/></geometry></collision></link>
</robot>"""

SDF = """<sdf version="1.9"><world name="room">
  <include><uri>model://sun</uri></include>
  <model name="floor"><static>true</static><link name="l"><collision name="c"><pose>0 0 -0.05 0 0 0</pose>
    <geometry><box><size>4 3 0.1</size></box></geometry></collision></link></model>
  <model name="block"><static>1</static><pose degrees="true">0.8 0.2 0 0 0 17.188733853924695</pose>
    <link name="l"><pose>0 0 0.075 0 0 0</pose>
      <collision name="c"><geometry><box><size>0.8 1 0.15</size></box></geometry></collision>
      <visual name="v"><geometry><box><size>9 9 9</size></box></geometry></visual></link>
    <model name="rail"><pose rotation_format="quat_xyzw">0 0.6 0.9 0 0.7071067811865476 0 0.7071067811865476</pose>
      <link name="l"><collision name="c"><geometry><cylinder><radius>0.02</radius><length>1.2</length></cylinder>
      </geometry></collision></link></model></model>
</world></sdf>"""

MJCF = """<mujoco><compiler angle="radian"/>
  <default><default class="rail"><geom type="cylinder" size="0.02 0.6"/></default></default>
  <worldbody><geom type="box" size="2 1.5 0.05" pos="0 0 -0.05"/>
    <body name="block" pos="0.8 0.2 0" euler="0 0 0.3"><geom type="box" size="0.4 0.5 0.075" pos="0 0 0.075"/>
      <geom type="box" size="9 9 9" contype="0" conaffinity="0"/>
      <body name="rail" pos="0 0.6 0.9" euler="0 1.5707963 0"><joint type="hinge"/><geom class="rail"/></body></body>
  </worldbody></mujoco>"""

ROOMS = {"room.urdf": URDF, "room.sdf": SDF, "room.world": SDF, "room.xml": MJCF}


def written(folder, name, text):
    (folder / name).write_text(text)
    return folder / name


@pytest.mark.parametrize("name", ROOMS)
def test_a_world_is_the_environment(tmp_path, name):
    world = read_world(written(tmp_path, name, ROOMS[name]))
    assert [notice.split(": ")[1] for notice in world.notices] == [{"room.urdf": "k"}.get(name, "rail")]
    found = detect_scene(Triangles.of(*world.triangles()), FindSettings())
    floor, *_ = found.surfaces
    assert floor.name == "floor"
    assert floor.p[2] == pytest.approx(0.0, abs=1e-6)
    (block,) = [surface for surface in found.surfaces if surface.name == "level1"]
    np.testing.assert_allclose(block.p, [0.8, 0.2, 0.15], atol=1e-3)
    assert block.thickness == pytest.approx(0.15, abs=1e-4)
    turn = np.array([[np.cos(0.3), -np.sin(0.3)], [np.sin(0.3), np.cos(0.3)]])
    local = (block.corners[:, :2] - [0.8, 0.2]) @ turn
    np.testing.assert_allclose(np.abs(local), np.tile([0.4, 0.5], (4, 1)), atol=1e-3)
    (rail,) = found.bars
    middle = np.array([0.8, 0.2]) + turn @ [0.0, 0.6]
    np.testing.assert_allclose(rail.ends.mean(axis=0), [*middle, 0.9], atol=1e-3)
    assert np.linalg.norm(rail.ends[1] - rail.ends[0]) == pytest.approx(1.2, abs=1e-3)
    along = np.abs((rail.ends[1] - rail.ends[0]) @ [*turn[:, 0], 0.0]) / 1.2
    assert along == pytest.approx(1.0, abs=1e-3)
    assert rail.radius == pytest.approx(0.02, abs=5e-4)


def test_a_scenario_names_a_world_and_says_what_can_move(tmp_path):
    written(tmp_path, "room.sdf", SDF)
    scenario = {
        "mcplan": 1, "name": "room", "robot": "hrp2", "environment": {"mesh": "room.sdf"},
        "start": {"base": {"xyz": [-0.6, 0, 0.648703]}, "contacts": [{"patch": "feet", "surface": "floor"}]},
        "goal": {"contacts": [{"patch": "feet", "surface": "level1"}]},
    }  # fmt: skip
    (tmp_path / "room.yaml").write_text(dump_document(scenario))
    loaded = mc.load_scenario(tmp_path / "room.yaml")
    assert {"floor", "level1"} <= {surface.name for surface in loaded.environment.surfaces}
    assert len(loaded.environment.bars) == 1
    written(tmp_path, "room.sdf", SDF.replace("<size>4 3 0.1</size>", "<size>4 3</size>"))
    with pytest.raises(ScenarioError, match=r"room\.sdf: line 4: floor: size='4 3' should be 3 numbers"):
        mc.load_scenario(tmp_path / "room.yaml")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("w.xml", '<mujoco><worldbody><geom type="plane" size="0 0 1" pos="0 0 0.2"/>'
                  '<geom type="box" size=".2 .2 .1" pos="1 0 .3"/></worldbody></mujoco>'),
        ("w.sdf", '<sdf version="1.6"><world name="w"><include><uri>model://ground_plane</uri>'
                  '<pose>0 0 0.2 0 0 0</pose></include><model name="m"><static>true</static><pose>1 0 0.3 0 0 0</pose>'
                  '<link name="l"><collision name="c"><geometry><box><size>.4 .4 .2</size></box></geometry>'
                  "</collision></link></model></world></sdf>"),
    ],
)  # fmt: skip
def test_a_plane_without_end_reaches_beyond_all_else(tmp_path, name, text):
    world = read_world(written(tmp_path, name, text))
    assert world.notices == []
    vertices, faces = world.triangles()
    plane = vertices[np.isclose(vertices[:, 2], 0.2)]
    assert plane[:, 0].min() < 0.8 - 1.5
    assert plane[:, 0].max() > 1.2 + 1.5
    found = detect_scene(Triangles.of(vertices, faces), FindSettings())
    assert [round(float(surface.p[2]), 4) for surface in found.surfaces if "_" not in surface.name] == [0.2, 0.4]


def test_a_plane_of_sdf_has_a_size_and_a_normal(tmp_path):
    text = """<sdf version="1.6"><model name="m"><static>true</static><link name="l"><collision name="c">
        <pose>0 0 1 0 0 0</pose><geometry><plane><normal>0 1 1</normal><size>2 2</size></plane></geometry>
        </collision></link></model></sdf>"""
    vertices, faces = read_world(written(tmp_path, "w.sdf", text)).triangles()
    normal = np.cross(*(vertices[faces[0, 1:]] - vertices[faces[0, 0]]))
    np.testing.assert_allclose(normal / np.linalg.norm(normal), np.array([0, 1, 1]) / np.sqrt(2), atol=1e-9)
    np.testing.assert_allclose(vertices.mean(axis=0), [0, 0, 1], atol=1e-9)
    assert np.linalg.norm(vertices - [0, 0, 1], axis=1) == pytest.approx(np.sqrt(2) * np.ones(4))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("w.xml", '<mujoco><worldbody><geom type="plane" size="1 3 1" pos="0 0 0.2" euler="0 0 90"/>'
                  "</worldbody></mujoco>"),
        ("w.sdf", """<sdf version="1.6"><model name="m"><static>true</static><link name="l"><collision name="c">
         <pose>0 0 0.2 0 0 1.5707963267948966</pose>
         <geometry><plane><normal>0 0 1</normal><size>2 6</size></plane></geometry></collision></link>
         </model></sdf>"""),
    ],
)  # fmt: skip
def test_an_oblong_plane_is_as_long_and_as_wide_as_its_file_says(tmp_path, name, text):
    vertices, _ = read_world(written(tmp_path, name, text)).triangles()
    np.testing.assert_allclose(np.ptp(vertices, axis=0), [6.0, 2.0, 0.0], atol=1e-6)
    np.testing.assert_allclose(vertices.mean(axis=0), [0.0, 0.0, 0.2], atol=1e-6)


def test_models_and_meshes_in_the_folder_are_included(tmp_path):
    (tmp_path / "step").mkdir()
    trimesh.creation.box((1, 1, 1)).export(tmp_path / "step" / "box.stl")
    model = """<sdf version="1.6"><model name="step"><static>true</static><pose>5 5 5 0 0 0</pose><link name="l">
        <collision name="c"><geometry><mesh><uri>box.stl</uri><scale>0.4 0.6 0.2</scale></mesh></geometry></collision>
        </link></model></sdf>"""
    (tmp_path / "step" / "model.sdf").write_text(model)
    world = """<sdf version="1.6"><world name="w">
        <include><uri>model://step</uri><pose>1 0 0.1 0 0 0</pose></include>
        <include><uri>step</uri></include></world></sdf>"""
    vertices, _ = read_world(written(tmp_path, "w.world", world)).triangles()
    near, far = vertices[vertices[:, 0] < 3], vertices[vertices[:, 0] > 3]
    np.testing.assert_allclose([near.min(0), near.max(0)], [[0.8, -0.3, 0.0], [1.2, 0.3, 0.2]], atol=1e-6)
    np.testing.assert_allclose(far.mean(axis=0), [5, 5, 5], atol=1e-6)  # as the model itself says


def test_shapes_of_mujoco_are_where_it_has_them(tmp_path):
    trimesh.creation.box((0.4, 0.6, 0.2)).export(tmp_path / "box.stl")
    text = """<mujoco><asset><mesh name="box" file="box.stl"/>
        <hfield name="h" nrow="2" ncol="3" size="1 0.5 0.3 0.1" elevation="0 0 0 1 1 1"/></asset>
      <worldbody><geom type="mesh" mesh="box" pos="1 0 0.1"/><geom type="hfield" hfield="h" pos="0 5 0"/>
        <geom type="ellipsoid" size="0.1 0.2 0.3" pos="-3 0 1"/><geom type="capsule" size="0.1 0.5" pos="-6 0 1"/>
        <geom type="sphere" size="0.5" pos="-9 0 1"/></worldbody></mujoco>"""
    world = read_world(written(tmp_path, "w.xml", text))
    boxes = [np.array([vertices.min(0), vertices.max(0)]) for vertices, _ in world.parts]
    expected = [
        [[0.8, -0.3, 0.0], [1.2, 0.3, 0.2]], [[-1, 4.5, 0], [1, 5.5, 0.3]], [[-3.1, -0.2, 0.7], [-2.9, 0.2, 1.3]],
        [[-6.1, -0.1, 0.4], [-5.9, 0.1, 1.6]], [[-9.5, -0.5, 0.5], [-8.5, 0.5, 1.5]],
    ]  # fmt: skip
    assert len(boxes) == len(expected)
    for got, wanted in zip(boxes, expected, strict=True):
        np.testing.assert_allclose(got, wanted, atol=6e-3)


def said(inner):
    return f"<sdf version='1.6'><model name='m'><static>true</static>{inner}</model></sdf>"


COLLISION_OF = "<collision name='c'><geometry>{}</geometry></collision>"
MUCH = "<mujoco><asset>{}</asset></mujoco>"
COLLISION = f"<link name='l'>{COLLISION_OF}</link>"


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("w.xml", "<html/>", r"the root element is <html>, expected <robot>, <sdf> or <mujoco>"),
        ("w.sdf", said("<pose relative_to='x'>0 0 0 0 0 0</pose>"), "a pose relative to 'x' is not read"),
        ("w.sdf", said("<pose>0 0 0</pose>"), r"line 1: m: pose='0 0 0' should be 6 numbers"),
        ("w.sdf", said("<frame name='f'/>"), "<frame> is not read here"),
        ("w.sdf", said(COLLISION.format("<box><size>1 1 -1</size></box>")), "size should be positive"),
        ("w.sdf", said(COLLISION.format("<box/>")), "needs a <size>"),
        ("w.sdf", said(COLLISION.format("<heightmap/>")), "<heightmap> is not read here"),
        ("w.sdf", said(COLLISION.format("<torus/>")), "<torus> is not known"),
        ("w.sdf", said(COLLISION.format("<mesh><uri>no.stl</uri></mesh>")), r"no\.stl: there is no such file"),
        ("w.sdf", said(COLLISION.format("<mesh><uri>../../up.stl</uri></mesh>")), "no such file|outside"),
        ("w.sdf", said("<include><uri>model://cup</uri></include>"), r"is no cup/model\.sdf in the file's folder"),
        ("w.sdf", said("<include><uri>../cup</uri></include>"), "in the file's folder"),
        ("w.sdf", said("").replace("<model", "<model placement_frame='f'"), "line 1: m: placement_frame='f' is not"),
        ("w.sdf", said("<include merge='true'><uri>sun</uri></include>"), "line 1: .*merge='true' is not read here"),
        *(
            ("w.sdf", f"<sdf><world name='w'><{tag}/></world></sdf>", f"line 1: w: <{tag}> is not read here")
            for tag in ("state", "population", "actor", "road")
        ),
        ("w.sdf", said(""), "holds nothing that collides"),
        ("w.sdf", "<!DOCTYPE a><sdf/>", "document type"),
        ("w.xml", "<mujoco><include file='x.xml'/></mujoco>", "line 1: <include> is not allowed"),
        ("w.xml", "<mujoco><asset><mesh file='../x.stl'/></asset></mujoco>", "outside the file's folder"),
        ("w.xml", "<mujoco><compiler meshdir='..'/><asset><mesh file='x.stl'/></asset></mujoco>", "outside the file's"),
        ("w.xml", "<mujoco><asset><texture fileup='../x.png'/></asset></mujoco>", "outside the file's folder"),
        *(
            ("w.xml", f"<mujoco><worldbody><{tag}/></worldbody></mujoco>", f"line 1: <{tag}> is not allowed")
            for tag in ("replicate", "composite", "flexcomp")
        ),
        ("w.xml", MUCH.format("<hfield nrow='10000' ncol='10000'/>"), "line 1: <hfield>: .* more than 67108864 cells"),
        ("w.xml", MUCH.format("<texture builtin='flat' width='3000' height='1'/>" * 2), "more than 67108864 cells"),
        ("w.xml", MUCH.format("<hfield nrow='nan' ncol='2'/>"), "more than 67108864 cells"),
        ("w.xml", MUCH.format("<hfield nrow='many' ncol='2'/>"), "line 1: <hfield>: many is no size"),
        ("w.xml", MUCH.format("<mesh builtin='plate' params='9000 9000'/>"), "a built-in mesh is not read"),
        ("w.xml", MUCH.format("<hfield nrow='-1' ncol='2' name='h' size='1 1 1 1'/>"), "MuJoCo does not take it"),
        ("w.xml", "<mujoco><worldbody><geom type='bax'/></worldbody></mujoco>", "MuJoCo does not take it"),
        ("w.urdf", "<robot name='r'/>", "the robot has no links"),
    ],
)
def test_what_is_not_read_is_refused(tmp_path, name, text, reason):
    with pytest.raises(MeshError, match=reason):
        read_world(written(tmp_path, name, text)).triangles()


def test_pixels_of_images_are_counted_by_their_headers(tmp_path):
    size = (100_000).to_bytes(4) * 2
    (tmp_path / "sky.png").write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + size)
    with pytest.raises(MeshError, match="images of more than 67108864 cells"):
        read_world(written(tmp_path, "w.xml", MUCH.format("<texture name='t' type='2d' file='sky.png'/>")))


def test_a_model_that_includes_itself_ends(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "a").symlink_to(tmp_path / "a")
    (tmp_path / "a" / "model.sdf").write_text(said("<include><uri>a</uri></include>"))
    with pytest.raises(MeshError, match=r"model\.sdf:1: include: a includes itself"):
        read_world(written(tmp_path, "w.sdf", said("<include><uri>a</uri></include>")))
    nested = "<model name='m'>" * 6 + "</model>" * 6
    with pytest.raises(MeshError, match="nested more than 4 deep"):
        read_world(written(tmp_path, "w.sdf", said(nested)))


@pytest.mark.parametrize("name", ["w.sdf", "v.sdf"])
def test_a_file_is_parsed_once_however_often_it_is_included(tmp_path, monkeypatch, name):
    """W includes itself a hundred times; v has a hundred of u, each of them a hundred of t, which holds nothing."""

    def many(uri, count):
        return f"<include><uri>{uri}</uri></include>" * count

    texts = {"w": said(many("w.sdf", 100)), "u": said(many("t.sdf", 100)), "t": said("")}
    texts["v"] = f"<sdf version='1.6'><world name='v'>{many('u.sdf', 101)}</world></sdf>"
    for other, text in texts.items():
        written(tmp_path, f"{other}.sdf", text)
    read, reader = [], "mcplan.scene.detection.sdf.read_bytes"
    monkeypatch.setattr(reader, lambda path: read.append(path.name) or path.read_bytes())
    with pytest.raises(MeshError, match="includes itself" if name == "w.sdf" else "more than 10000 models"):
        read_world(tmp_path / name)
    assert read == ([] if name == "w.sdf" else ["u.sdf", "t.sdf"])


def test_triangles_are_counted_as_they_come(tmp_path, monkeypatch):
    made = []
    monkeypatch.setattr("mcplan.scene.detection.geometry.MAX_TRIANGLES", 100)
    monkeypatch.setattr("mcplan.scene.detection.geometry.tessellate", lambda shape: made.append(1) or tessellate(shape))
    boxes = "<link name='l'>" + COLLISION_OF.format("<box><size>1 1 1</size></box>") * 50 + "</link>"
    with pytest.raises(MeshError, match="more than 100 triangles"):
        read_world(written(tmp_path, "w.sdf", said(boxes)))
    assert len(made) == 100 // 12 + 1
    planes = COLLISION_OF.format("<plane/>") * 51
    with pytest.raises(MeshError, match="more than 100 triangles"):
        read_world(written(tmp_path, "w.sdf", said(f"<link name='l'>{planes}</link>")))


def test_without_mujoco_its_worlds_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("mcplan.scene.detection.mjcf.find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(MeshError, match="pip install mujoco"):
        read_world(written(tmp_path, "room.xml", MJCF))


@pytest.mark.parametrize(
    ("shape", "volume", "half"),
    [
        (Box((1.0, 2.0, 3.0)), 6.0, (0.5, 1.0, 1.5)),
        (Sphere(0.5), 4 / 3 * np.pi * 0.125, (0.5, 0.5, 0.5)),
        (Cylinder(0.2, 1.0), np.pi * 0.04, (0.2, 0.2, 0.5)),
        (Capsule(0.2, 1.0), np.pi * 0.04 + 4 / 3 * np.pi * 0.008, (0.2, 0.2, 0.7)),
    ],
)
def test_shapes_as_triangles_enclose_about_what_they_do(shape, volume, half):
    mesh = trimesh.Trimesh(*tessellate(shape), process=False)
    assert mesh.volume == pytest.approx(volume, rel=0.06)
    np.testing.assert_allclose(mesh.bounds, [np.negative(half), half], atol=0.2 * np.pi**2 / ROUND_SIDES**2)
