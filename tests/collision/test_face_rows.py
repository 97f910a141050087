"""Corners of links above surfaces: their distances and rates."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mcplan.collision.face_rows import FaceRows
from mcplan.collision.model import CollisionModel
from mcplan.model.robot_file import load_robot
from mcplan.scene.environment import Environment, Surface

ROBOT = load_robot("hrp2")
LINK = "LLEG_LINK5"


def scene(reach):
    tilt = Rotation.from_rotvec([0.03, 0.02, 0.0]).as_matrix()
    polygon = np.array([[-1.0, -1.0], [reach, -1.0], [reach, 1.0], [-1.0, 1.0]])
    surface = Surface("floor", tilt, np.array([0.0, 0.0, -0.02]), polygon)
    model = CollisionModel(ROBOT, Environment(surfaces=(surface,)))
    return model, FaceRows(model, (surface,))


def nearest(model, q):
    found, distance, rows = model.near(q, 0.05)
    for p, d, row in zip(found, distance, rows, strict=True):
        if tuple(model.pairs[p][:2]) == (LINK, "floor"):
            return p, d, row
    raise AssertionError("the foot is not near the floor")


def corners(faces, q, pair, distance):
    _, heights, rates = faces.rows(q, np.array([pair]), np.array([distance]))
    return heights, rates


def test_corners_of_a_foot():
    model, faces = scene(1.0)
    q = ROBOT.posture("half_sitting")
    pair, d, row = nearest(model, q)
    heights, rates = corners(faces, q, pair, d)
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
            ends.append(corners(faces, moved, *nearest(model, moved)[:2])[0])
        assert (ends[0] - ends[1]) / (2 * h) == pytest.approx(rates @ v, abs=1e-6)


def test_corners_beyond_the_edge_do_not_count():
    q = ROBOT.posture("half_sitting")
    ankle = ROBOT.frame_pose(q, "left_sole")[0, 3]
    model, faces = scene(float(ankle))
    heights, _ = corners(faces, q, *nearest(model, q)[:2])
    assert np.count_nonzero(heights < 0.03) == 2  # the heel's; the others are on top of the foot


def test_only_the_face_counts():
    q = ROBOT.posture("half_sitting")
    model, faces = scene(1.0)
    pair, _, _ = nearest(model, q)
    own = next(p for p, names in enumerate(model.pairs) if names[1] != "floor")
    assert not len(corners(faces, q, pair, 0.3)[0])
    assert not len(corners(faces, q, own, 0.0)[0])


def test_each_corner_says_which_pair_it_is_of():
    q = ROBOT.posture("half_sitting")
    model, faces = scene(1.0)
    found, distance, _ = model.near(q, 0.05)
    which, heights, _ = faces.rows(q, found, distance)
    feet = [i for i, p in enumerate(found) if model.pairs[p][1] == "floor"]
    assert which.tolist() == [i for i in feet for _ in range(4)]
    assert heights[::4] == pytest.approx(distance[feet], abs=1e-9)
