"""``mcplan scene new`` writes a scenario that passes, ``show`` a page."""

import pytest
import trimesh

import mcplan as mc
from mcplan.cli import main


@pytest.fixture
def stairs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    parts = []
    for k in range(4):
        part = trimesh.creation.box((0.3, 1.2, 0.1 * (k + 1)))
        part.apply_translation([0.3 * k, 0.0, 0.05 * (k + 1)])
        parts.append(part)
    trimesh.util.concatenate(parts).export(tmp_path / "stairs.stl")
    return tmp_path


@pytest.mark.parametrize("robot", ["hrp2", "g1"])
def test_stairs_become_a_scenario_that_goes_up(stairs, capsys, robot):
    assert main(["scene", "new", "stairs.stl", "-o", "files/up.yaml", "--robot", robot, "--ground"]) == 0
    assert "4 surfaces" not in capsys.readouterr().out  # the floor around them is cut into convex parts
    assert main(["check", "files/up.yaml"]) == 0
    scenario = mc.load_scenario("files/up.yaml")
    assert scenario.robot.name == robot
    top = scenario.environment.support(scenario.goal[0].contacts[0].surface)
    assert top.p[2] == pytest.approx(0.4)
    base = scenario.start.q[:3]
    assert base[0] < 0.0  # before the first step, facing it
    assert abs(scenario.start.q[6]) < 0.1


def test_a_floor_is_laid_where_there_is_no_place_to_stand(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    trimesh.creation.box((0.15, 0.3, 0.1)).export("block.stl")
    assert main(["scene", "new", "block.stl"]) == 0
    assert "a floor is laid" in capsys.readouterr().err
    assert main(["check", "block.yaml"]) == 0


def test_a_goal_may_be_named_and_files_are_kept(stairs, capsys):
    assert main(["scene", "new", "stairs.stl", "--ground", "--goal", "level2"]) == 0
    assert mc.load_scenario("stairs.yaml").goal[0].contacts[0].surface == "level2"
    assert main(["scene", "new", "stairs.stl", "--ground"]) == 2
    assert "stairs.yaml" in capsys.readouterr().err
    assert main(["scene", "new", "stairs.stl", "--force", "--goal", "roof"]) == 2
    assert "there is no surface `roof`" in capsys.readouterr().err
    assert main(["scene", "new", "stairs.step", "-o", "x.yaml"]) == 2
    assert main(["scene", "new", "stairs.stl", "-o", "x.txt"]) == 2


def test_a_mesh_and_a_scenario_are_drawn(stairs, capsys):
    assert main(["scene", "show", "stairs.stl", "-o", "found.html"]) == 0
    assert "4 surfaces, 0 bars" in capsys.readouterr().out
    assert main(["scene", "show", "walk", "-o", "walk.html"]) == 0
    assert "<html" in (stairs / "found.html").read_text()[:200].lower()
    assert "<html" in (stairs / "walk.html").read_text()[:200].lower()
