"""Where the shapes of a URDF leave a patch open, it is seen as a plate or a ball."""

import warnings

import numpy as np
import pytest
from scipy.spatial import ConvexHull

from mcplan.collision.model import CollisionModel
from mcplan.robot.description import RobotWarning, Sphere
from mcplan.robot.robot_check import patch_distances
from mcplan.robot.robot_file import load_robot
from mcplan.scene.environment import Environment, Surface

SQUARE = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
INERTIAL = '<inertial><mass value="1"/><inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>'
URDF = """<robot name="legged">
  <link name="trunk">{inertial}</link>
  <link name="foot">{inertial}{own}</link>
  <link name="sole">{fixed}</link>
  <joint name="hip" type="revolute"><parent link="trunk"/><child link="foot"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" effort="9" velocity="9"/></joint>
  <joint name="weld" type="fixed"><parent link="foot"/><child link="sole"/></joint>
</robot>
"""
TRIANGLE = "[[0, -0.05], [0.2, -0.05], [0.2, 0.05]]"
SOLE = f"{{link: foot, pose: {{xyz: [0.05, 0, -0.1], rpy: [3.1415926536, 0, 0]}}, polygon: {TRIANGLE}}}"
BALL = "{link: foot, kind: ball, radius: 0.03, pose: {xyz: [0, 0, -0.1], rpy: [3.14159265, 0, 0]}}"
EDGE = "{link: foot, pose: {xyz: [0, 0, -0.1]}, polygon: [[0, -0.05], [0.2, -0.05]]}"
SHAPE = '<collision><origin xyz="{}"/><geometry>{}</geometry></collision>'
BOX = SHAPE.format("0.15 0 -0.05", '<box size="0.22 0.12 0.1"/>')
SHORT = SHAPE.format("0.1 0 -0.05", '<box size="0.2 0.12 0.1"/>')
BALLS = "".join(
    SHAPE.format(f"{x} {y} -0.095", '<sphere radius="0.005"/>') for x, y in ((0.05, -0.05), (0.25, -0.05), (0.25, 0.05))
)


def loaded(directory, patch, own="", fixed=""):
    (directory / "legged.urdf").write_text(URDF.format(inertial=INERTIAL, own=own, fixed=fixed))
    (directory / "legged.yaml").write_text(f"mcplan: 1\nurdf: legged.urdf\npatches:\n  toe: {patch}\n")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RobotWarning)
        return load_robot(directory / "legged.yaml")


def test_a_plate_lies_behind_the_patch_and_ends_in_its_plane(tmp_path):
    robot = loaded(tmp_path, SOLE)
    (geometry,) = robot.geometry["foot"]
    patch = robot.patches["toe"]
    assert geometry.role == "collision"
    corners = geometry.shape.vertices
    assert {tuple(corner) for corner in corners[corners[:, 2] == 0.0][:, :2]} == {tuple(c) for c in patch.polygon}
    assert corners[:, 2].min() == pytest.approx(-0.02)
    triangles = corners[geometry.shape.faces]
    out = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    volume = np.einsum("ki,ki->k", triangles[:, 0], out).sum() / 6.0  # of a closed surface that looks out
    assert volume == pytest.approx(ConvexHull(corners).volume)
    assert ((triangles.mean(axis=1) - corners.mean(axis=0)) * out).sum(axis=1).min() > 0.0


def test_it_is_apart_from_a_step_or_not(tmp_path):
    """The foot's lowest plane is 0.1 m below the hip: a step that high is just touched."""
    robot = loaded(tmp_path, SOLE)
    step = Surface("step", np.eye(3), np.zeros(3), 0.3 * SQUARE)
    model, q = CollisionModel(robot, Environment((step,))), robot.neutral()
    for height, gap in ((0.15, 0.05), (0.11, 0.01), (0.095, -0.005)):
        q[2] = height
        (near,) = model.distances(q)
        assert near.distance == pytest.approx(gap, abs=1e-6)


def test_a_ball_is_a_ball_and_an_edge_is_nothing(tmp_path):
    (geometry,) = loaded(tmp_path, BALL).geometry["foot"]
    assert geometry.shape == Sphere(0.03)
    assert geometry.p == pytest.approx([0.0, 0.0, -0.1])
    assert loaded(tmp_path, EDGE).geometry["foot"] == ()


@pytest.mark.parametrize("where", ["own", "fixed"])
def test_a_shape_that_covers_the_patch_stands_for_it(tmp_path, where):
    robot = loaded(tmp_path, SOLE, **{where: BOX})
    assert sum(len(shapes) for shapes in robot.geometry.values()) == 1


def test_a_ball_wider_than_its_foot_is_seen_and_one_that_its_foot_fills_is_not_twice(tmp_path):
    """Physics lets the whole ball touch, beside a narrow foot too."""
    narrow = SHAPE.format("0 0 -0.08", '<box size="0.06 0.02 0.1"/>')
    assert [geometry.patch for geometry in loaded(tmp_path, BALL, narrow).geometry["foot"]] == ["", "toe"]
    round_one = SHAPE.format("0 0 -0.1", '<sphere radius="0.03"/>')
    assert len(loaded(tmp_path, BALL, round_one).geometry["foot"]) == 1


@pytest.mark.parametrize("own", [SHORT, BALLS], ids=["ends before the toe", "balls at the corners"])
def test_shapes_that_leave_a_part_of_the_patch_open_get_its_plate(tmp_path, own):
    robot = loaded(tmp_path, SOLE, own)
    assert [geometry.patch for geometry in robot.geometry["foot"] if geometry.patch] == ["toe"]


def test_a_patch_off_its_link_as_a_whole_is_wrong_and_gets_no_plate(tmp_path):
    """``robot check`` says so: a plate there would hide it."""
    high = BOX.replace('-0.05"', '-0.02"')
    robot = loaded(tmp_path, SOLE, high)
    assert len(robot.geometry["foot"]) == 1
    assert patch_distances(robot)["toe"] == pytest.approx(0.03, abs=1e-6)


def test_plates_are_not_what_patches_are_held_against(tmp_path):
    """A patch lies in the plane of its own plate: only shapes of the file say where the link's surface is."""
    high = SHORT.replace('-0.05"', '-0.04"')
    robot = loaded(tmp_path, SOLE, high)
    assert len(robot.geometry["foot"]) == 2
    assert patch_distances(robot)["toe"] == pytest.approx(0.01, abs=1e-6)
