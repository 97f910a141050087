"""Concave meshes of a URDF become convex parts: what lies in a hollow no longer collides."""

import warnings

import coacd
import numpy as np
import pytest
import trimesh

from mcplan.cli.main import main
from mcplan.errors import InputError
from mcplan.robot.description import RobotWarning
from mcplan.robot.link_solids import rest_overlaps
from mcplan.robot.robot_file import load_robot
from mcplan.robot.split import split_collisions

LINK = """
  <link name="{0}">
    <inertial><mass value="1"/><inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>
    {1}
  </link>"""
MESH = '<{0}><origin xyz="0 0 0.1"/><geometry><mesh filename="{1}" scale="{2}"/></geometry></{0}>'
BOX = '<collision><geometry><box size="0.04 0.04 0.04"/></geometry></collision>'
JOINT = """
  <joint name="{0}" type="revolute"><parent link="{1}"/><child link="{2}"/><origin xyz="{3}"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" effort="9" velocity="9"/></joint>"""


def fork():
    """Return a U of 0.3 m, open upwards: walls of 40 mm at both sides of a hollow of 0.22 m."""
    outline = [
        (-0.15, 0.0),
        (0.15, 0.0),
        (0.15, 0.3),
        (0.11, 0.3),
        (0.11, 0.04),
        (-0.11, 0.04),
        (-0.11, 0.3),
        (-0.15, 0.3),
    ]
    floors = [(0, 1, 4), (0, 4, 5), (1, 2, 3), (1, 3, 4), (0, 5, 6), (0, 6, 7)]
    n = len(outline)
    points = [(x, y, z) for y in (-0.05, 0.05) for x, z in outline]
    sides = [(i, (i + 1) % n, n + (i + 1) % n) for i in range(n)] + [(i, n + (i + 1) % n, n + i) for i in range(n)]
    faces = [*floors, *((n + a, n + c, n + b) for a, b, c in floors), *sides]
    mesh = trimesh.Trimesh(points, faces)
    mesh.fix_normals()
    return mesh


def write(directory, scale=1.0, mesh="meshes/fork.stl"):
    """Write a robot of three links in a chain, the last of which, a box, is in the hollow of the first, a fork."""
    (directory / "meshes").mkdir(parents=True, exist_ok=True)
    solid = fork()
    solid.apply_scale(1 / scale)
    solid.export(directory / "meshes" / "fork.stl")
    scales = " ".join([f"{scale:g}"] * 3)
    links = [
        LINK.format("fork", MESH.format("visual", mesh, scales) + MESH.format("collision", mesh, scales)),
        LINK.format("rod", ""),
        LINK.format("peg", BOX),
    ]
    joints = JOINT.format("hip", "fork", "rod", "0 0 0.5") + JOINT.format("knee", "rod", "peg", "0 0 -0.2")
    urdf = directory / "robot.urdf"
    urdf.write_text(f'<robot name="forked"><!-- a comment -->{"".join(links)}{joints}\n</robot>\n')
    return urdf


def overlaps(urdf):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RobotWarning)
        return rest_overlaps(load_robot(urdf))


@pytest.mark.parametrize("scale", [1.0, 0.001], ids=["metres", "millimetres"])
def test_what_is_in_a_hollow_collides_no_more(tmp_path, scale):
    urdf, out = write(tmp_path, scale), tmp_path / "split.urdf"
    assert max(overlaps(urdf).values()) > 0.05
    (found,) = split_collisions(urdf, out)
    assert (found.link, found.mesh) == ("fork", "meshes/fork.stl")
    assert found.before == pytest.approx(0.11, abs=0.01)  # the middle of the hollow, to its walls
    assert found.after < 0.03
    assert 2 <= found.parts <= 8
    assert overlaps(out) == {}


def test_the_parts_are_where_the_mesh_is_and_the_rest_stays(tmp_path):
    urdf, out = write(tmp_path, 0.001), tmp_path / "split.urdf"
    split_collisions(urdf, out)
    old, new = load_robot_quietly(urdf), load_robot_quietly(out)
    shapes = [geometry for geometry in new.geometry["fork"] if geometry.role == "collision"]
    assert len(shapes) == len(list((tmp_path / "split_parts").iterdir()))
    corners = np.vstack([g.shape.vertices @ g.R.T + g.p for g in shapes])
    assert corners.min(axis=0) == pytest.approx([-0.15, -0.05, 0.1], abs=0.002)
    assert corners.max(axis=0) == pytest.approx([0.15, 0.05, 0.4], abs=0.002)
    assert [g.role for g in new.geometry["fork"]].count("visual") == 1
    assert "<!-- a comment -->" in out.read_text()
    q = old.random_configuration(1)
    assert np.array_equal(old.mass_matrix(q), new.mass_matrix(q))


def load_robot_quietly(urdf):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RobotWarning)
        return load_robot(urdf)


def test_the_same_mesh_gives_the_same_parts(tmp_path, monkeypatch):
    """In whatever order the threads of CoACD are done with them."""
    contents, run = [], coacd.run_coacd
    for name, order in (("first", 1), ("second", -1)):
        monkeypatch.setattr(coacd, "run_coacd", lambda *a, order=order, **k: run(*a, **k)[::order])
        split_collisions(write(tmp_path / name), tmp_path / name / "split.urdf")
        contents.append([file.read_bytes() for file in sorted((tmp_path / name / "split_parts").iterdir())])
    assert contents[0] == contents[1]


def test_a_mesh_that_its_hull_fits_stays_whole(tmp_path):
    urdf, out = write(tmp_path), tmp_path / "split.urdf"
    assert split_collisions(urdf, out, within=0.2) == []
    assert split_collisions(urdf, out, ["peg"]) == []
    assert not out.exists()
    assert not (tmp_path / "split_parts").exists()


def test_what_cannot_be_done_is_said(tmp_path):
    urdf = write(tmp_path / "robot")
    with pytest.raises(InputError, match=r"robot\.urdf: there is no link 'forc'; did you mean `fork`\?"):
        split_collisions(urdf, tmp_path / "robot" / "split.urdf", ["forc"])
    with pytest.raises(InputError, match=r"fork\.stl would lie outside of its directory; write it to"):
        split_collisions(urdf, tmp_path / "elsewhere" / "split.urdf")
    assert not (tmp_path / "elsewhere").exists()


def test_a_namespace_of_the_file_changes_nothing(tmp_path):
    urdf, out = write(tmp_path), tmp_path / "split.urdf"
    spaces = 'xmlns="http://www.ros.org" xmlns:drake="http://drake.mit.edu"'
    text = urdf.read_text().replace("<robot ", f"<robot {spaces} ")
    urdf.write_text(text.replace("</geometry></collision>", "</geometry><drake:rigid/></collision>"))
    (found,) = split_collisions(urdf, out)
    assert found.link == "fork"
    assert overlaps(out) == {}
    assert "http://drake.mit.edu" in out.read_text()


def test_a_prefix_that_is_not_declared_is_named_in_its_line(tmp_path):
    urdf = write(tmp_path)
    urdf.write_text(urdf.read_text().replace("\n</robot>", "\n<drake:gripper/></robot>"))
    line = urdf.read_text().count("\n")
    with pytest.raises(InputError, match=rf"robot\.urdf:{line}: unbound prefix.*xmlns:drake="):
        split_collisions(urdf, tmp_path / "split.urdf")


def test_the_command_says_what_became_of_each_mesh(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path)
    assert main(["robot", "split", "robot.urdf", "--within", "9"]) == 2
    assert "--within 9: expected 0.001 to 1 m" in capsys.readouterr().err
    assert main(["robot", "split", "robot.urdf"]) == 0
    said = capsys.readouterr()
    assert "fork: fork.stl, whose hull is up to 11" in said.err
    assert "parts, up to" in said.out
    assert "mcplan robot new robot_split.urdf" in said.out
    assert main(["robot", "split", "robot.urdf"]) == 2
    assert "exists and is kept" in capsys.readouterr().err
    assert main(["robot", "split", "robot.urdf", "--link", "peg", "-o", "other.urdf"]) == 0
    assert "nothing is written: no hull stands off its mesh by more than 30 mm" in capsys.readouterr().out
