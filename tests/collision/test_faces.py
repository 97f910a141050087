"""Corners of links above surfaces: their distances and rates."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mcplan.collision.model import CollisionModel, faces_of
from mcplan.core.distance.many import write_shape_poses
from mcplan.core.distance.pair import PAIR_SIZE
from mcplan.core.whole_body.corner_rows import MAX_CORNERS, add_corner_rows
from mcplan.robot.link_solids import new_scratch
from mcplan.robot.robot_file import load_robot
from mcplan.scene.environment import Environment, Surface

ROBOT = load_robot("hrp2")
LINK = "LLEG_LINK5"


def scene(reach):
    tilt = Rotation.from_rotvec([0.03, 0.02, 0.0]).as_matrix()
    polygon = np.array([[-1.0, -1.0], [reach, -1.0], [reach, 1.0], [-1.0, 1.0]])
    surface = Surface("floor", tilt, np.array([0.0, 0.0, -0.02]), polygon)
    model = CollisionModel(ROBOT, Environment(surfaces=(surface,)))
    return model, faces_of(model, (surface,))


def nearest(model, q):
    found, distance, rows = model.near_pairs(q, 0.05)
    for p, d, row in zip(found, distance, rows, strict=True):
        if tuple(model.pairs[p][:2]) == (LINK, "floor"):
            return p, d, row
    raise AssertionError("the foot is not near the floor")


def corners(model, faces, q, pair, distance):
    robot = model.robot
    heights, rates, scratch = (
        np.zeros(MAX_CORNERS),
        np.zeros((MAX_CORNERS, robot.nv)),
        new_scratch(robot, len(model.shapes.index), 2),
    )
    write_shape_poses(robot.tree, model.shapes, q, scratch)
    count = add_corner_rows(
        robot.tree, model.shapes, faces, *model.indices[pair], q, scratch, distance, 0, heights, rates,
        np.zeros(PAIR_SIZE), np.zeros(MAX_CORNERS, np.int64),
    )  # fmt: skip
    return heights[:count], rates[:count]


def test_corners_of_a_foot():
    model, faces = scene(1.0)
    q = ROBOT.posture("half_sitting")
    pair, d, row = nearest(model, q)
    heights, rates = corners(model, faces, q, pair, d)
    assert len(heights) == 4
    assert np.all(np.diff(heights) >= 0.0)
    assert heights[0] == pytest.approx(d, abs=1e-9)  # by another way: the distance of the two solids
    assert rates[0] == pytest.approx(row, abs=1e-9)
    rng, h = np.random.default_rng(0), 1e-6
    for _ in range(5):
        v = rng.normal(size=ROBOT.nv)
        ends = []
        for sign in (1.0, -1.0):
            moved = ROBOT.integrate(q, v, sign * h)
            ends.append(corners(model, faces, moved, *nearest(model, moved)[:2])[0])
        assert (ends[0] - ends[1]) / (2 * h) == pytest.approx(rates @ v, abs=1e-6)


def test_corners_beyond_the_edge_do_not_count():
    q = ROBOT.posture("half_sitting")
    ankle = ROBOT.frame_pose(q, "left_sole")[0, 3]
    model, faces = scene(float(ankle))
    heights, _ = corners(model, faces, q, *nearest(model, q)[:2])
    assert np.count_nonzero(heights < 0.03) == 2  # the heel's; the others are on top of the foot


def test_only_the_face_counts():
    q = ROBOT.posture("half_sitting")
    model, faces = scene(1.0)
    pair, _, _ = nearest(model, q)
    own = next(p for p, names in enumerate(model.pairs) if names[1] != "floor")
    assert not len(corners(model, faces, q, pair, 0.3)[0])
    assert not len(corners(model, faces, q, own, 0.0)[0])


def test_the_ends_of_a_capsule_are_as_high_as_its_surface(tmp_path):
    """Not as its axis: by its radius less."""
    inertial = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    (tmp_path / "rod.urdf").write_text(
        f'<robot name="rod"><link name="rod">{inertial}<collision><geometry><capsule radius="0.03" length="0.2"/>'
        f'</geometry></collision></link><link name="hook">{inertial}</link><joint name="hinge" type="continuous">'
        '<parent link="rod"/><child link="hook"/><axis xyz="0 0 1"/></joint></robot>'
    )
    robot = load_robot(tmp_path / "rod.urdf")
    floor = Surface("floor", size=(2, 2))
    model = CollisionModel(robot, Environment(surfaces=(floor,)))
    lying = Rotation.from_euler("y", np.pi / 2 - 0.1)
    q = np.concatenate([[0.1, 0.2, 0.06], lying.as_quat(scalar_first=True), [0.0]])
    (pair,), (distance,), _ = model.near_pairs(q, 0.05)
    ends = 0.06 + 0.1 * lying.as_matrix()[2, 2] * np.array([-1.0, 1.0])
    heights, _ = corners(model, faces_of(model, (floor,)), q, pair, distance)
    np.testing.assert_allclose(heights, ends - 0.03, atol=1e-9)
    assert heights[0] == pytest.approx(distance, abs=1e-9)
