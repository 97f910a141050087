"""``environment: {mesh: FILE}`` in a scenario, and obstacles that are hulls."""

import json

import numpy as np
import pytest
import trimesh

import mcplan as mc
from mcplan.document.document import dump_document
from mcplan.errors import ScenarioError

SCENARIO = {
    "mcplan": 1, "name": "steps", "robot": "hrp2",
    "environment": {"mesh": "steps.stl", "find": {"friction": 0.6}},
    "start": {"base": {"xyz": [-0.6, 0, 0.648703]}, "contacts": [{"patch": "feet", "surface": "floor"}]},
    "goal": {"contacts": [{"patch": "feet", "surface": "level1"}]},
}  # fmt: skip


def steps():
    parts = [trimesh.creation.box((4, 3, 0.1)), trimesh.creation.box((0.8, 1, 0.15))]
    parts[0].apply_translation([0, 0, -0.05])
    parts[1].apply_translation([0.4, 0, 0.075])
    return trimesh.util.concatenate(parts)


@pytest.fixture
def folder(tmp_path):
    steps().export(tmp_path / "steps.stl")
    return tmp_path


def written(folder, **environment):
    data = json.loads(json.dumps(SCENARIO))
    data["environment"] = {**data["environment"], **environment}
    (folder / "steps.yaml").write_text(dump_document(data))
    return folder / "steps.yaml"


def names(scenario):
    return [surface.name for surface in scenario.environment.surfaces]


@pytest.mark.parametrize("suffix", ["stl", "obj", "ply", "off", "glb"])
def test_a_mesh_is_the_environment(folder, suffix):
    mesh = steps()
    if suffix == "glb":  # y is up in glTF
        mesh.apply_transform(trimesh.transformations.rotation_matrix(-np.pi / 2, [1, 0, 0]))
    mesh.export(folder / f"steps.{suffix}")
    scenario = mc.load_scenario(written(folder, mesh=f"steps.{suffix}"))
    top = scenario.environment.support("level1")
    assert np.allclose(top.p, [0.4, 0, 0.15], atol=1e-4)
    assert top.thickness == pytest.approx(0.15, abs=1e-4)
    assert top.friction == 0.6
    assert "mesh" not in scenario.document.data["environment"]


def test_what_is_written_by_hand_stands_beside_it_and_replaces_what_has_its_name(folder):
    own = {"name": "level1", "pose": {"xyz": [0.4, 0, 0.2]}, "size": [0.5, 0.9]}
    rail = {"name": "rail", "ends": [[0, 1, 1], [1, 1, 1]], "radius": 0.02}
    scenario = mc.load_scenario(written(folder, surfaces=[own], bars=[rail]))
    assert scenario.environment.support("level1").p[2] == 0.2
    assert names(scenario).count("level1") == 1
    assert any(name.startswith("floor") for name in names(scenario))
    assert [bar.name for bar in scenario.environment.bars] == ["rail"]


def test_scale_axis_and_pose_place_it(folder):
    mesh = steps()
    mesh.apply_transform(trimesh.transformations.rotation_matrix(-np.pi / 2, [1, 0, 0]))
    mesh.apply_scale(1000)
    mesh.export(folder / "steps.stl")
    pose = {"xyz": [0.0, 0.0, 0.0], "rpy": [0, 0, 0]}
    scenario = mc.load_scenario(written(folder, scale=0.001, up="y", pose=pose))
    assert np.allclose(scenario.environment.support("level1").p, [0.4, 0, 0.15], atol=1e-4)
    with pytest.raises(ScenarioError, match=r"4000 m across; is it in mm\? environment: \{scale: 0.001\}"):
        mc.load_scenario(written(folder, up="y"))


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"mesh": "none.stl"}, "none.stl: there is no such file"),
        ({"mesh": "steps.step"}, "the format .step is not one of"),
        ({"mesh": "../steps.stl"}, "there is no such file|outside the model's directory"),
        ({"find": {"slope": 3.0}}, "slope"),
        ({"find": {"slpe": 0.3}}, "slpe"),
    ],
)
def test_what_is_wrong_with_it_is_said_with_its_line(folder, environment, said):
    path = written(folder, **environment)
    with pytest.raises(ScenarioError, match=said) as error:
        mc.load_scenario(path)
    assert all(problem.line for problem in error.value.problems)


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("environment:", "enviroment:", "enviroment"),
        ("find:", "surfaces: [{nme: a, size: [1, 1]}]\n  find:", "environment.surfaces[0].nme"),
        ("find:", "surfaces: 5\n  find:", "environment.surfaces"),
        ("find:", "surfces: [{name: a, size: [1, 1]}]\n  find:", "environment.surfces"),
    ],
)
def test_a_mistake_beside_a_mesh_is_the_only_one_that_is_said(folder, old, new, key):
    path = written(folder)
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(ScenarioError) as error:
        mc.load_scenario(path)
    assert [problem.key for problem in error.value.problems] == [key]


def test_a_scale_without_a_mesh_is_refused():
    with pytest.raises(ScenarioError, match="scale without mesh"):
        mc.load_scenario({**SCENARIO, "environment": {"scale": 2.0}})


def test_a_damaged_file_is_refused(folder):
    (folder / "steps.stl").write_bytes(b"solid " + bytes(range(256)) * 4)
    with pytest.raises(ScenarioError, match=r"steps\.stl"):
        mc.load_scenario(written(folder))


def test_a_hull_is_what_its_corners_span_and_is_written_again():
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [0.2, 0.2, 0.2]]) * 0.5
    wedge = {"name": "wedge", "hull": {"points": corners.tolist()}, "pose": {"xyz": [1.0, 0.0, 0.0]}}
    data = {**SCENARIO, "environment": {"surfaces": [{"name": "floor", "size": [4, 4]},
            {"name": "level1", "size": [1, 1], "pose": {"xyz": [1, 1, 0.3]}}], "obstacles": [wedge]}}  # fmt: skip
    scenario = mc.load_scenario(data)
    (obstacle,) = scenario.environment.obstacles
    assert len(obstacle.shape.vertices) == 4  # the fifth is inside
    again = scenario.replace(environment=scenario.environment)
    assert np.allclose(again.environment.obstacles[0].shape.vertices, obstacle.shape.vertices)
    wedge["hull"] = {"points": [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]]}
    with pytest.raises(ScenarioError, match="the points lie in one plane"):
        mc.load_scenario(data)
