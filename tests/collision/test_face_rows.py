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
    return CollisionModel(ROBOT, Environment(surfaces=(surface,))), FaceRows(ROBOT, {"floor": surface})


def nearest(model, q):
    found, distance, rows = model.near(q, 0.05)
    for p, d, row in zip(found, distance, rows, strict=True):
        if tuple(model.pairs[p][:2]) == (LINK, "floor"):
            return float(d), row
    raise AssertionError("the foot is not near the floor")


def test_corners_of_a_foot():
    model, faces = scene(1.0)
    q = ROBOT.posture("half_sitting")
    d, row = nearest(model, q)
    heights, rates = faces.rows(q, LINK, "floor", d)
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
            ends.append(faces.rows(moved, LINK, "floor", nearest(model, moved)[0])[0])
        assert (ends[0] - ends[1]) / (2 * h) == pytest.approx(rates @ v, abs=1e-6)


def test_corners_beyond_the_edge_do_not_count():
    q = ROBOT.posture("half_sitting")
    ankle = ROBOT.frame_pose(q, "left_sole")[0, 3]
    model, faces = scene(float(ankle))
    heights, _ = faces.rows(q, LINK, "floor", nearest(model, q)[0])
    assert np.count_nonzero(heights < 0.03) == 2  # the heel's; the others are on top of the foot


def test_only_the_face_counts():
    q = ROBOT.posture("half_sitting")
    _, faces = scene(1.0)
    assert faces.rows(q, LINK, "floor", 0.3) is None
    assert faces.rows(q, LINK, "no surface", 0.0) is None
