"""Which mesh files are opened, and what is said about the others."""

import json
from pathlib import Path

import numpy as np
import pytest
import trimesh

from mcplan.errors import RobotError
from mcplan.robot import mesh_file
from mcplan.robot.description import MeshShape, RobotWarning
from mcplan.robot.mesh_count import collada_counts, gltf_counts
from mcplan.robot.urdf import parse_urdf
from mcplan.robot.xml_reader import read_xml

URDF = """<robot name="r"><link name="l">
<{role}><geometry><mesh filename="{name}" scale="{scale}"/></geometry></{role}></link></robot>"""


@pytest.fixture
def folder(tmp_path):
    """Return a package ``bot`` with its URDF in ``bot/urdf`` and meshes beside and above it."""
    urdf = tmp_path / "bot" / "urdf"
    for directory in (urdf, tmp_path / "bot" / "meshes", tmp_path / "elsewhere"):
        directory.mkdir(parents=True)
        trimesh.creation.box((1, 2, 3)).export(directory / "box.stl")
    return urdf


def read(folder, name, role="collision", scale="1 1 1", packages=()):
    model = parse_urdf(URDF.format(name=name, role=role, scale=scale).encode(), folder / "r.urdf", False, packages)
    geometry = model.links["l"].geometry
    return geometry[0].shape if geometry else None


@pytest.mark.parametrize("suffix", ["stl", "obj", "ply", "off", "dae"])
def test_formats(folder, suffix):
    trimesh.creation.box((1, 2, 3)).export(folder / f"b.{suffix}")
    shape = read(folder, f"b.{suffix}", scale="2 1 1")
    assert isinstance(shape, MeshShape)
    # a COLLADA file of trimesh says that y points up
    np.testing.assert_allclose(np.ptp(shape.vertices, axis=0), [2, 3, 2] if suffix == "dae" else [2, 2, 3])
    assert len(shape.faces) == 12
    assert not shape.vertices.flags.writeable


def test_a_mirrored_mesh_stays_the_right_way_out(folder):
    shape = read(folder, "box.stl", scale="-1 1 1")
    assert trimesh.Trimesh(shape.vertices, shape.faces, process=True).volume == pytest.approx(6)


MESHLAB = "<authoring_tool>VCGLib | MeshLab</authoring_tool>"


@pytest.mark.parametrize(
    ("asset", "size"),
    [
        ("", [0.01, 0.02, 0.03]),
        ("<up_axis>Z_UP</up_axis>", [0.01, 0.02, 0.03]),
        ("<up_axis>Y_UP</up_axis>", [0.01, 0.03, 0.02]),
        ("<up_axis>X_UP</up_axis>", [0.02, 0.03, 0.01]),
        # MeshLab says so of every file that it writes
        (f"<contributor>{MESHLAB}</contributor><up_axis>Y_UP</up_axis>", [0.01, 0.02, 0.03]),
    ],
)
def test_a_collada_file_counts_in_its_unit_and_its_upward_axis(folder, asset, size):
    file = folder / "b.dae"
    trimesh.creation.box((1, 2, 3)).export(file)
    text = file.read_text()
    assert text.count("<asset>") == 1
    head, tail = text.split("<asset>")
    tail = tail[tail.index("</asset>") :]
    file.write_text(
        head + f'<asset>{asset}<unit name="centimeter" meter="0.01"/></asset>' + tail.removeprefix("</asset>")
    )
    shape = read(folder, "b.dae")
    np.testing.assert_allclose(np.ptp(shape.vertices, axis=0), size, atol=1e-12)
    # a turn, and no mirror
    assert trimesh.Trimesh(shape.vertices, shape.faces, process=True).volume == pytest.approx(6e-6)


def test_an_unknown_upward_axis_is_refused(folder):
    (folder / "b.dae").write_text("<COLLADA><asset><up_axis>up</up_axis></asset></COLLADA>")
    with pytest.raises(RobotError, match="an up_axis of 'up', expected one of X_UP, Y_UP, Z_UP"):
        read(folder, "b.dae")


@pytest.mark.parametrize("declared", ['<!DOCTYPE c [<!ENTITY a "a">]>', '<!DOCTYPE c SYSTEM "file:///etc/passwd">'])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_collada_file_declares_nothing(folder, declared, encoding):
    file = folder / "b.dae"
    trimesh.creation.box((1, 2, 3)).export(file)
    text = file.read_text()
    file.write_text(declared + text[text.index("<COLLADA") :], encoding)
    with pytest.raises(RobotError, match=r"a document type .* is not allowed here"):
        read(folder, "b.dae")


@pytest.mark.parametrize("unit", ["0", "-1", "nan", "1e999", "--", ""])
def test_a_unit_is_a_length(folder, unit):
    (folder / "b.dae").write_text(f'<COLLADA><asset><unit meter="{unit}"/></asset></COLLADA>')
    with pytest.raises(RobotError, match="cannot be read: a unit of"):
        read(folder, "b.dae")


def test_packages(folder):
    root = folder.parent.parent
    (root / "elsewhere" / "box.stl").rename(root / "elsewhere" / "far.stl")
    assert read(folder, "package://bot/box.stl")  # inside the model's own directory
    assert read(folder, "package://bot/meshes/box.stl")  # below an ancestor that has the package's name
    assert read(folder, "../meshes/box.stl")
    with pytest.raises(RobotError, match=r"name its package in package_directories \(--package-dir"):
        read(folder, "package://elsewhere/far.stl")
    assert read(folder, "package://elsewhere/far.stl", packages=[root / "elsewhere"])
    assert read(folder, "package:///elsewhere/far.stl", packages=[root / "elsewhere"])
    assert read(folder, "package://elsewhere/far.stl", packages=[root])


def test_missing_meshes_are_one_problem_with_their_count(folder):
    shapes = "".join(
        f'<collision><geometry><mesh filename="package://gone/{k}.stl"/></geometry></collision>\n' for k in range(3)
    )
    with pytest.raises(RobotError) as caught:
        parse_urdf(f'<robot name="r"><link name="l">\n{shapes}</link></robot>'.encode(), folder / "r.urdf")
    (problem,) = caught.value.problems
    assert (problem.line, problem.key) == (2, "l")
    assert "0.stl" in problem.message
    assert "and 2 more" in problem.message


@pytest.mark.parametrize("installed", [False, True])
def test_links_lead_out_of_named_and_installed_packages(folder, installed, monkeypatch):
    """As those of ``colcon build --symlink-install`` do."""
    share = folder.parent.parent / "install" / "share" / "linked"
    share.mkdir(parents=True)
    (share / "box.stl").symlink_to(folder.parent.parent / "elsewhere" / "box.stl")
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(share.parent.parent) if installed else "")
    assert read(folder, "package://linked/box.stl", packages=() if installed else [share])
    with pytest.raises(RobotError, match="not found"):
        read(folder, "package://linked/../../../elsewhere/box.stl", packages=() if installed else [share])


@pytest.mark.parametrize(
    "name", ["../../elsewhere/box.stl", "{root}/elsewhere/box.stl", "file://{root}/elsewhere/box.stl"]
)
def test_nothing_outside_is_opened(folder, name):
    root = folder.parent.parent
    name = name.format(root=root)
    with pytest.raises(RobotError, match="outside the model's directory"):
        read(folder, name)
    assert read(folder, name, packages=[root / "elsewhere"])


def test_a_link_does_not_lead_out(folder):
    (folder / "way_out.stl").symlink_to(folder.parent.parent / "elsewhere" / "box.stl")
    with pytest.raises(RobotError, match="outside the model's directory"):
        read(folder, "way_out.stl")
    with pytest.raises(RobotError, match="not found"):
        read(folder, "package://bot/../../elsewhere/box.stl")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a.fbx", "is not one of"),
        ("a.glb", "not one of .stl"),
        ("absent.stl", "there is no such file"),
        ("http://example.org/a.stl", "http:// is not read"),
        ("x" * 5000 + ".stl", "looked up|no such file"),
        ("file://[a.stl", "looked up|no such file"),
    ],
)
def test_problems_of_meshes(folder, name, words):
    with pytest.raises(RobotError, match=words):
        read(folder, name)
    with pytest.warns(RobotWarning, match=words):
        assert read(folder, name, role="visual") is None


@pytest.mark.parametrize("suffix", ["stl", "obj", "ply", "off", "dae"])
@pytest.mark.parametrize("content", [b"", b"OFF\n1 1 0\n", b"nonsense", b"v 1 2\nf 1 2 3\n", bytes(200)])
def test_damaged_meshes(folder, suffix, content):
    (folder / f"bad.{suffix}").write_bytes(content)
    with pytest.raises(RobotError, match=r"cannot be read|holds"):
        read(folder, f"bad.{suffix}")


def test_caps(folder, monkeypatch):
    monkeypatch.setattr(mesh_file, "MAX_TRIANGLES", 10)
    with pytest.raises(RobotError, match="12 triangles, at most 10"):
        read(folder, "box.stl")
    monkeypatch.setattr(mesh_file, "MAX_MESH_BYTES", 10)
    with pytest.raises(RobotError, match="bytes, at most 10"):
        read(folder, "box.stl")


DOUBLED = '<node id="n{}"><instance_node url="#n{}"/><instance_node url="#n{}"/></node>'


def nested(folder, file, nodes):
    """Write a box in COLLADA whose scene has ``#n0`` in place of the box, and library nodes beside that of the box."""
    text = trimesh.creation.box((1, 2, 3)).export(file_type="dae").decode()
    url = text.partition('instance_geometry url="')[2].partition('"')[0]
    box = f'<node id="box"><instance_geometry url="{url}"/></node>'
    head, _, rest = text.partition("<library_visual_scenes>")
    scene = '<visual_scene id="scene"><node><instance_node url="#n0"/></node></visual_scene>'
    rest = rest[rest.index("</library_visual_scenes>") :]
    library = f"<library_nodes>{box}{nodes}</library_nodes>"
    (folder / file).write_text(f"{head}{library}<library_visual_scenes>{scene}{rest}")


def test_a_collada_file_is_counted_before_it_is_built(folder, monkeypatch):
    nested(folder, "small.dae", DOUBLED.format(0, "ox", "ox").replace("#nox", "#box"))
    assert len(read(folder, "small.dae").faces) == 24
    monkeypatch.setattr(trimesh, "load", None)  # from here on nothing is built
    chain = "".join(DOUBLED.format(k, k + 1, k + 1) for k in range(29)) + DOUBLED.format(29, "", "")
    nested(folder, "bomb.dae", chain.replace('url="#n"', 'url="#box"'))
    with pytest.raises(RobotError, match=r"holds \d{10} nodes, at most 500000 are taken"):
        read(folder, "bomb.dae")
    monkeypatch.setattr(mesh_file, "MAX_TRIANGLES", 20)
    with pytest.raises(RobotError, match="holds 24 triangles, at most 20 are taken"):
        read(folder, "small.dae")
    nested(folder, "round.dae", DOUBLED.format(0, 0, 0))
    with pytest.raises(RobotError, match="the node 'n0' holds itself"):
        read(folder, "round.dae")
    nested(folder, "deep.dae", "".join(f'<node id="n{k}"><instance_node url="#n{k + 1}"/></node>' for k in range(200)))
    with pytest.raises(RobotError, match="nested more than 100 deep"):
        read(folder, "deep.dae")


@pytest.mark.parametrize(
    ("text", "triangles"),
    [
        ("<triangles><input offset='0'/><input offset='1'/><p>{}</p></triangles>".format("7 " * 12), 2),
        ("<polylist><input offset='0'/><vcount>4 3</vcount><p>0 1 2 3 4 5 6</p></polylist>", 3),
        ("<polygons><input offset='0'/><p>0 1 2 3</p><p>4 5 6</p></polygons>", 3),
        ("<lines><input offset='0'/><p>0 1 2 3</p></lines>", 0),
        ("<c:triangles><c:input offset='0'/><c:p>{}</c:p></c:triangles>".format("12345 " * 30_000), 10_000),
    ],
)
def test_triangles_of_a_collada_file_are_those_of_its_indices(text, triangles):
    geometry = f"<geometry id='g'><mesh>{text}</mesh></geometry>"
    scene = "<visual_scene><node><instance_geometry url='#g'/></node></visual_scene>"
    root = read_xml(f"<COLLADA xmlns:c='c'>{geometry}{scene}</COLLADA>".encode(), "x.dae")
    assert collada_counts(root) == (3, triangles)


def gltf(**changes):
    whole = {
        "asset": {"version": "2.0"},
        "accessors": [{"bufferView": 0, "count": 36}, {"bufferView": 1, "count": 8}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 1}, "indices": 0}]}],
        "nodes": [{"children": [1, 2]}, {"mesh": 0}, {"mesh": 0}],
        "scenes": [{"nodes": [0]}],
    }
    return json.dumps(whole | changes).encode()


def test_a_gltf_file_is_counted_before_it_is_built(folder, monkeypatch):
    box = trimesh.creation.box((1, 2, 3))
    binary = trimesh.Scene([box, box.copy()]).export(file_type="glb")
    assert gltf_counts(binary, True) == (36 + 8, 24)
    assert gltf_counts(gltf(), False) == (44, 24)
    monkeypatch.setattr(trimesh, "load", None)
    for changes, words in (
        ({"accessors": [{"count": 10**12}]}, r"accessors\[0\] has no bufferView"),
        ({"accessors": [{"bufferView": 0, "count": 10**12}] * 2}, "holds 2000000000000 items of accessors, at most"),
        ({"accessors": [{"bufferView": 0, "count": -1}] * 2}, r"accessors\[0\]\.count is not a whole number"),
        ({"nodes": [{"children": [1] * 50_000}, {"mesh": 0}]}, "holds 600000 triangles, at most 500000"),
        ({"meshes": [{"primitives": [{"attributes": {"POSITION": 1}}] * 300_000}]}, "triangles, at most 500000"),
        ({"nodes": 3}, "cannot be read: TypeError"),
    ):
        (folder / "b.gltf").write_bytes(gltf(**changes))
        with pytest.raises(mesh_file.MeshError, match=words):
            mesh_file.read_mesh(folder / "b.gltf")


def test_a_scale_may_not_flatten(folder):
    with pytest.raises(RobotError, match="flattens"):
        read(folder, "box.stl", scale="1 0 1")


def test_a_mesh_used_twice_is_read_once(folder):
    files = mesh_file.MeshFiles(Path(folder / "r.urdf"))
    assert files.read("box.stl")[0] is files.read("box.stl")[0]
