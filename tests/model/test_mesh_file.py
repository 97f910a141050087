"""Which mesh files are opened, and what is said about the others."""

from pathlib import Path

import numpy as np
import pytest
import trimesh

from mcplan.errors import RobotError
from mcplan.model import mesh_file
from mcplan.model.description import RobotWarning
from mcplan.model.geometry import MeshShape
from mcplan.model.urdf import parse_urdf

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
    assert read(folder, "package://bot/box.stl")  # inside the model's own directory
    with pytest.raises(RobotError, match="name its package in package_directories"):
        read(folder, "package://bot/meshes/box.stl")
    assert read(folder, "package://bot/meshes/box.stl", packages=[root / "bot"])
    assert read(folder, "package:///bot/meshes/box.stl", packages=[root / "bot"])
    assert read(folder, "package://bot/meshes/box.stl", packages=[root])
    (folder.parent / "package.xml").write_text("<package/>")
    assert read(folder, "package://bot/meshes/box.stl")


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


def test_a_scale_may_not_flatten(folder):
    with pytest.raises(RobotError, match="flattens"):
        read(folder, "box.stl", scale="1 0 1")


def test_a_mesh_used_twice_is_read_once(folder):
    files = mesh_file.MeshFiles(Path(folder / "r.urdf"))
    assert files.read("box.stl")[0] is files.read("box.stl")[0]
