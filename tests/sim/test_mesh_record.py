"""A run keeps the meshes of its robot and scene: it comes back where their files are not."""

import numpy as np
import pytest
import trimesh
from pydantic import ValidationError
from scipy.spatial import ConvexHull

from mcplan.record import recording
from mcplan.record.recording import record_meshes, record_robot, scene_meshes
from mcplan.record.records import MeshRecord
from mcplan.record.replica import unpack_robot, unpack_scene
from mcplan.robot.description import Geometry, MeshShape
from mcplan.robot.robot_file import load_robot
from mcplan.scene.environment import Environment, Obstacle

URDF = """\
<robot name="mesh &amp; all">
  <link name="base">
    <inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>
    <visual><geometry><mesh filename="package://parts/shell &amp; cover.stl" scale="2 2 2"/></geometry></visual>
    <collision><geometry><mesh filename='meshes/ball.stl' scale="1 1 -1"/></geometry></collision>
  </link>
</robot>
"""


@pytest.fixture
def robot(tmp_path):
    home = tmp_path / "model"
    (home / "parts").mkdir(parents=True)
    (home / "meshes").mkdir()
    trimesh.creation.torus(0.2, 0.05).export(home / "parts" / "shell & cover.stl")
    trimesh.creation.icosphere(2, 0.1).export(home / "meshes" / "ball.stl")
    (home / "robot.urdf").write_text(URDF)
    return load_robot(home / "robot.urdf")


def solids(robot) -> list[Geometry]:
    return [geometry for geometry in robot.geometry["base"] if isinstance(geometry.shape, MeshShape)]


def corners(shape):
    return np.sort(shape.vertices[shape.faces].reshape(-1, 9), axis=0)


def test_a_robot_comes_back_with_its_meshes_when_their_files_are_gone(robot, tmp_path):
    record = record_robot(robot)
    record = type(record).model_validate_json(record.model_dump_json())
    for file in robot.urdf_path.parent.rglob("*.stl"):
        file.unlink()
    again = load_robot(unpack_robot(record, tmp_path))
    assert len(solids(again)) == len(solids(robot)) == 2
    for old, new in zip(solids(robot), solids(again), strict=True):
        assert (new.role, len(new.shape.faces)) == (old.role, len(old.shape.faces))
        assert np.allclose(corners(new.shape), corners(old.shape), atol=1e-9)


def test_what_goes_beyond_the_budget_is_kept_as_its_convex_hull(monkeypatch):
    torus, ball = trimesh.creation.torus(0.2, 0.05), trimesh.creation.icosphere(1, 0.1)
    monkeypatch.setattr(recording, "MAX_TRIANGLES", len(ball.faces) + 10)
    kept = record_meshes({name: (np.array(m.vertices), np.array(m.faces)) for name, m in (("t", torus), ("b", ball))})
    assert kept["b"].faces == ball.faces.tolist()
    hull = trimesh.Trimesh(kept["t"].vertices, kept["t"].faces)
    assert hull.is_watertight
    # a positive volume: every face looks outward
    assert hull.volume == pytest.approx(ConvexHull(torus.vertices).volume, rel=1e-9)


@pytest.mark.parametrize("fit", [0, 1, 2, 3])
def test_as_many_meshes_are_kept_complete_as_the_budget_holds_together(fit, monkeypatch):
    torus = trimesh.creation.torus(0.2, 0.05, major_sections=8, minor_sections=5)
    monkeypatch.setattr(recording, "MAX_TRIANGLES", fit * len(torus.faces) + 1)
    kept = record_meshes({name: (np.array(torus.vertices), np.array(torus.faces)) for name in "abc"})
    assert [len(mesh.faces) == len(torus.faces) for mesh in kept.values()] == [k < fit for k in range(3)]


def test_a_flat_mesh_beyond_the_budget_becomes_a_thin_box(monkeypatch):
    monkeypatch.setattr(recording, "MAX_TRIANGLES", 0)
    square = np.array([[0.0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]])
    kept = record_meshes({"flat": (square, np.array([[0, 1, 2], [0, 2, 3]]))})["flat"]
    assert np.ptp(np.array(kept.vertices), axis=0) == pytest.approx([1.0, 1.0, 1e-4])


def test_obstacles_come_back_scaled(tmp_path):
    ball = trimesh.creation.icosphere(1, 0.3)
    shape = MeshShape(np.array(ball.vertices), np.array(ball.faces))
    environment = Environment(obstacles=(Obstacle("rock", shape, np.eye(3), np.zeros(3)),))
    document = {"environment": {"obstacles": [{"name": "rock", "mesh": {"file": "gone.stl", "scale": 3.0}}]}}
    unpacked = unpack_scene(document, record_meshes(scene_meshes(environment)), tmp_path)
    (item,) = unpacked["environment"]["obstacles"]
    assert "scale" not in item["mesh"]
    loaded = trimesh.load(tmp_path / item["mesh"]["file"], force="mesh")
    assert loaded.volume == pytest.approx(ball.volume)
    assert document["environment"]["obstacles"][0]["mesh"]["file"] == "gone.stl"


def test_faces_that_point_nowhere_are_refused():
    with pytest.raises(ValidationError, match="vertex 3 of 3"):
        MeshRecord(vertices=[[0, 0, 0], [1, 0, 0], [0, 1, 0]], faces=[[0, 1, 3]])
