"""What is drawn besides bodies: stiles of ladders, regions on their supports, next postures, layers, true meshes."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mcplan.robot.description import Geometry, MeshShape
from mcplan.robot.robot_file import load_robot
from mcplan.scenario.load import load_scenario
from mcplan.scene.environment import Bar, Environment, Surface
from mcplan.view.drawing import Drawing
from mcplan.view.environment import STILE_OVERHANG, draw_environment, stiles
from mcplan.view.page import layers
from mcplan.view.robot import draw_collision, ghost_data, robot_to_draw
from mcplan.view.support import draw_support, height_on, part_above
from tests.statics.contacts import surface_contact
from tests.view.tracks import Scene

SINGLE = 2e-6  # pages hold single precision


def rungs(count, lean=0.2, width=0.6):
    return [
        Bar(f"r{k}", np.array([[lean * k, -width / 2, 0.3 * k], [lean * k, width / 2, 0.3 * k]]), 0.015)
        for k in range(count)
    ]


def test_stiles_go_through_the_ends_of_a_ladders_rungs():
    found = stiles(rungs(5))
    assert len(found) == 2
    along = np.array([0.2, 0.0, 0.3]) / np.linalg.norm([0.2, 0.0, 0.3])
    for begin, end in found:
        assert abs(begin[1]) == pytest.approx(0.3)
        ends = sorted([begin, end], key=lambda point: point[2])
        assert ends[0] == pytest.approx([0, begin[1], 0] - STILE_OVERHANG * along)
        assert ends[1] == pytest.approx([0.8, begin[1], 1.2] + STILE_OVERHANG * along)


def test_rails_and_lonely_bars_have_no_stiles():
    assert stiles(rungs(2)) == []
    rail = [Bar(f"b{k}", np.array([[k, 0.5, 0.9], [k + 0.8, 0.5, 0.9]]), 0.02) for k in range(4)]
    assert stiles(rail) == []
    scattered = [Bar(f"s{k}", np.array([[x, -0.3, k], [x, 0.3, k]]), 0.02) for k, x in enumerate((0.0, 0.5, 0.1, 0.9))]
    assert stiles(scattered) == []


def test_the_ladder_of_the_scenario_has_its_two_stiles_as_a_layer_of_their_own():
    drawing = Drawing()
    draw_environment(drawing, load_scenario("ladder").environment)
    (layer,) = layers(drawing)
    assert layer["nodes"] == ["stiles"]
    assert sum(path.startswith("stiles/") for path in drawing.paths) == 2


def test_a_region_is_drawn_on_the_supports_that_carry_and_nowhere_beyond_them():
    square = np.array([[-0.2, -0.2], [0.2, -0.2], [0.2, 0.2], [-0.2, 0.2]])
    low = Surface("low", np.eye(3), np.array([0.0, 0.0, 0.0]), square)
    tilt = Rotation.from_euler("y", -0.2).as_matrix()
    high = Surface("high", tilt, np.array([0.6, 0.0, 0.3]), square)
    feet = [
        replace(surface_contact("left", [0.0, 0.0, 0.0], [0, 0, 1.0], half=(0.1, 0.1)), support="low"),
        replace(surface_contact("right", [0.6, 0.0, 0.3], tilt[:, 2], half=(0.1, 0.1)), support="high"),
    ]
    drawing = Drawing(np.arange(2.0))
    draw_support(drawing, [tuple(feet)] * 2, np.zeros(2), 50.0, Environment((low, high)))
    scene = Scene(drawing)
    assert "support/1" not in scene.object
    for number, surface in enumerate((low, high)):
        points = (scene.vertices(f"support/1/on{number}") - surface.p) @ surface.R
        assert np.abs(points[:, :2]).max() <= 0.2 + 2e-3
        assert points[:, 2].min() > 0.0  # it lies on it, not in it
        assert points[:, 2].max() < 0.01


def test_heights_and_pieces_lie_in_the_plane_of_the_surface():
    R = Rotation.from_euler("xyz", [0.2, -0.3, 0.5]).as_matrix()
    surface = Surface("s", R, np.array([1.0, 2.0, 0.5]), np.array([[-1.0, -1], [1, -1], [1, 1], [-1, 1]]))
    inside = surface.p + np.array([[0.3, -0.2, 0.0], [-0.5, 0.4, 0.0]]) @ R.T
    assert height_on(surface, inside[:, :2]) == pytest.approx(inside[:, 2])
    piece = part_above(inside[:, :2].mean(axis=0) + 0.01 * np.array([[-1.0, -1], [1, -1], [1, 1], [-1, 1]]), surface)
    assert len(piece) == 4
    assert len(part_above(np.array([[9.0, 9], [9.1, 9], [9, 9.1]]), surface)) == 0


def test_next_postures_have_the_poses_of_the_links():
    robot = load_robot("hrp2")
    q = robot.random_configuration(3)
    data = ghost_data(robot, [q], [(0.0, 1.0, 0)])
    for node, pose in zip(data["links"], data["poses"][0], strict=True):
        X = robot.frame_pose(q, node.removeprefix("n:"))
        assert pose[:3] == pytest.approx(X[:3, 3], abs=1e-5)
        assert Rotation.from_quat(pose[3:]).as_matrix() == pytest.approx(X[:3, :3], abs=1e-5)


def test_collision_bodies_are_drawn_where_they_differ_from_what_is_seen():
    def mesh(scale):
        return MeshShape(scale * np.eye(3), np.array([[0, 1, 2]]))

    body = {"R": np.eye(3), "p": np.zeros(3)}
    geometry = {
        "same": (Geometry(mesh(1.0), role="visual", **body), Geometry(mesh(1.0), role="collision", **body)),
        "other": (Geometry(mesh(1.0), role="visual", **body), Geometry(mesh(2.0), role="collision", **body)),
        "alone": (Geometry(mesh(1.0), role="collision", **body),),
    }
    drawing = Drawing()
    draw_collision(drawing, SimpleNamespace(geometry=geometry))
    assert drawing.paths == ["robot/n:other/collision1"]


def test_a_run_that_was_read_is_drawn_with_the_meshes_of_the_same_robot():
    robot = load_robot("hrp2")
    kept = SimpleNamespace(name="kept")

    def run(digest, name="hrp2", meshes=True):
        record = SimpleNamespace(
            robot=SimpleNamespace(meshes={"a": 1} if meshes else {}, digest=digest),
            scenario=SimpleNamespace(document={"robot": name}),
        )
        return SimpleNamespace(live_plan=None, record=record, loaded_robot=kept)

    seen = robot_to_draw(run(robot.digest))
    assert seen.name == "kept"  # what it does is asked of the robot of the run
    assert seen.geometry.keys() == robot.geometry.keys()
    for other in (run("0" * 64), run(robot.digest, "nobody"), run(robot.digest, None), run(robot.digest, meshes=False)):
        assert robot_to_draw(other) is kept
