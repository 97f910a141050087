"""``mcplan scene new`` writes a scenario that passes, ``show`` a page."""

import numpy as np
import pytest
import trimesh

import mcplan as mc
from mcplan.analysis.scene_start import is_one_step
from mcplan.cli.main import main
from mcplan.collision.model import CollisionModel


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


def test_at_the_start_nothing_hangs_over_the_feet(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    treads = [trimesh.creation.box((0.3, 1.0, 0.08)) for _ in range(4)]  # open: toes fit in between
    for k, tread in enumerate(treads):
        tread.apply_translation([0.3 * k, 0.0, 0.1 * k])
    trimesh.util.concatenate(treads).export("open.stl")
    assert main(["scene", "new", "open.stl", "--robot", "g1"]) == 0
    scenario = mc.load_scenario("open.yaml")
    assert {contact.support for contact in scenario.start.contacts} == {"floor"}  # the lowest tread
    raised = scenario.start.q.copy()
    raised[2] += 0.03
    collisions = CollisionModel(scenario.robot, scenario.environment)
    links = set(scenario.robot.link_names)
    margins = np.where([pair.b in links for pair in collisions.pairs], -np.inf, 0.0)
    assert collisions.least(raised, margins) is None


@pytest.mark.parametrize("turn", [0.0, np.pi])
def test_the_robot_faces_the_next_surface_however_near_it_stands(tmp_path, monkeypatch, turn):
    monkeypatch.chdir(tmp_path)
    parts = []
    for at, depth, height in ((-1.5, 3.0, 0.05), (0.09, 0.15, 0.15), (0.42, 0.5, 0.25)):
        part = trimesh.creation.box((depth, 0.8, height))
        part.apply_translation([at, 0.0, height / 2])
        parts.append(part)
    mesh = trimesh.util.concatenate(parts)
    mesh.apply_transform(trimesh.transformations.rotation_matrix(turn, [0, 0, 1]))
    mesh.export("turned.stl")
    assert main(["scene", "new", "turned.stl", "--robot", "g1"]) == 0
    q = mc.load_scenario("turned.yaml").start.q
    assert np.cos(2.0 * np.arctan2(q[6], q[3]) - turn) > 0.99


def test_surfaces_are_linked_where_neither_height_nor_gap_is_larger_than_a_step():
    """A slope reaches from its lowest to its highest corner, and up is as high as down."""
    floor, slope = mc.Surface("floor", size=(1, 1)), mc.Surface("slope", size=(1, 1), xyz=(1, 0, 0.4), rpy=(0, -0.3, 0))
    low, high = slope.corners[:, 2].min(), slope.corners[:, 2].max()
    for height in (0.0, low - 0.19, low - 0.21, high + 0.19, high + 0.21, 2.0, -2.0):
        other = mc.Surface("other", size=(1, 1), xyz=(0, 0, height))
        for one, of_one in ((floor, (0.0, 0.0)), (slope, (low, high))):
            near = of_one[0] - 0.2 <= height <= of_one[1] + 0.2
            assert is_one_step(one, other, 0.2, 0.1) is is_one_step(other, one, 0.2, 0.1) is bool(near)
    beside = mc.Surface("beside", size=(1, 1), xyz=(0, 1.2, 0))
    assert [is_one_step(floor, beside, 0.2, gap) for gap in (0.19, 0.21)] == [False, True]


def test_a_floor_is_laid_where_there_is_no_place_to_stand(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    trimesh.creation.box((0.15, 0.3, 0.1)).export("block.stl")
    assert main(["scene", "new", "block.stl"]) == 0
    assert "a floor is laid" in capsys.readouterr().err
    assert main(["check", "block.yaml"]) == 0
    # what is found with a floor has other names than without: a goal is not taken for another surface
    assert main(["scene", "new", "block.stl", "--force", "--goal", "floor"]) == 2
    assert "add `--ground` with --goal" in capsys.readouterr().err
    assert main(["scene", "new", "block.stl", "--force", "--goal", "floor", "--ground"]) == 0


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


def test_the_file_has_the_name_that_is_given(stairs, capsys):
    assert main(["scene", "new", "stairs.stl", "--ground", "--name", "way up/2"]) == 0
    assert mc.load_scenario(stairs / "way up_2.yaml").name == "way up/2"
    assert not (stairs / "stairs.yaml").exists()
    assert main(["scene", "new", "stairs.stl", "--ground", "--name", "up\nrobot: nobody", "-o", "x.yaml"]) == 0
    assert mc.load_scenario("x.yaml").name == "up\nrobot: nobody"
    capsys.readouterr()
