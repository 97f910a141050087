"""Distances of convex_solid solids: bounds that planes prove, an independent engine, theorems."""

import coal
import numpy as np
import pytest
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from mcplan.certificate.clearance_checks import _object_poses, _with_world
from mcplan.certificate.independent import Mechanism
from mcplan.certificate.separation import GAP, Convex, Placed, plane_bound, signed_distances
from mcplan.certificate.solids import ClearanceMonitor, convex_solid, gather_solids
from mcplan.collision.model import CollisionModel
from mcplan.record.recording import record_robot
from mcplan.robot.description import Box, Capsule, Cylinder, MeshShape, Sphere
from mcplan.scenario.load import load_scenario

COUNT = 600


def shapes(rng):
    """Shapes of every kind, and what coal makes of them."""
    found = []
    for _ in range(3):
        size, r, length = rng.uniform(0.05, 0.5, 3), *rng.uniform(0.03, 0.3, 2)
        points = rng.normal(size=(25, 3)) * 0.15
        points = points[ConvexHull(points).vertices]
        corners = coal.StdVec_Vec3s()
        corners.extend(points)
        found += [
            (Box(tuple(size)), coal.Box(*size)),
            (Sphere(r), coal.Sphere(r)),
            (Capsule(r, length), coal.Capsule(r, length)),
            (Cylinder(r, length), coal.Cylinder(r, length)),
            (MeshShape(points, ConvexHull(points).simplices), coal.Convex.convexHull(corners, True, "Qt")),
        ]
    return found


@pytest.fixture(scope="module")
def pairs():
    rng = np.random.default_rng(0)
    found = shapes(rng)
    which = rng.integers(0, len(found), (2, COUNT))
    R = Rotation.random(2 * COUNT, random_state=1).as_matrix().reshape(2, COUNT, 3, 3)
    p = rng.normal(size=(2, COUNT, 3)) * 0.25
    solids = [convex_solid(shape) for shape, _ in found]
    a, b = (Placed(solids, which[i], R[i], p[i]) for i in (0, 1))
    return a, b, [other for _, other in found]


@pytest.fixture(scope="module")
def apart(pairs):
    return signed_distances(*pairs[:2], np.full(COUNT, np.inf))


def test_distances_agree_with_coal(pairs, apart):
    a, b, others = pairs
    request, poses = coal.DistanceRequest(), []
    for x in (a, b):
        poses.append([coal.Transform3s(R, p) for R, p in zip(x.R, x.p, strict=True)])
    expected = np.array([
        coal.distance(others[i], poses[0][k], others[j], poses[1][k], request, coal.DistanceResult())
        for k, (i, j) in enumerate(zip(a.solid_index, b.solid_index, strict=True))
    ])  # fmt: skip
    separate = expected > 0
    assert 100 < separate.sum() < COUNT - 50
    np.testing.assert_allclose(apart.lower[separate], expected[separate], atol=2e-6)
    assert np.all(apart.upper[~separate] <= 0)
    # of depth coal's cylinders are only bounds: a plane that proves less depth is right
    assert np.all(apart.lower[~separate] >= expected[~separate] - 2e-6)


def test_bounds_meet_and_the_plane_proves_the_lower_one(pairs, apart):
    a, b, _ = pairs
    assert np.all(apart.upper - apart.lower <= 2 * GAP)
    np.testing.assert_allclose(np.linalg.norm(apart.normal, axis=1), 1.0, atol=1e-9)
    np.testing.assert_allclose(plane_bound(a, b, apart.normal), apart.lower, atol=1e-9)


def test_no_plane_proves_more(pairs, apart):
    a, b, _ = pairs
    rng = np.random.default_rng(1)
    for _ in range(20):
        n = rng.normal(size=(COUNT, 3))
        n = apart.normal + 0.3 * n
        n /= np.linalg.norm(n, axis=1)[:, None]
        assert np.all(plane_bound(a, b, n) <= apart.upper + 1e-9)


def test_moving_one_solid_along_the_normal_moves_the_distance_by_as_much(pairs, apart):
    a, b, _ = pairs
    some = np.flatnonzero(apart.lower > 0.01)
    for shift in (0.005, -0.005):
        moved = a._replace(p=a.p + shift * apart.normal).select(some)
        again = signed_distances(moved, b.select(some), np.full(len(some), np.inf))
        assert np.all(again.lower <= apart.lower[some] + abs(shift) + 1e-6)
        bound = plane_bound(moved, b.select(some), apart.normal[some])
        np.testing.assert_allclose(bound, apart.lower[some] + shift, atol=1e-9)


def test_what_is_enough_ends_the_search_and_is_proven(pairs, apart):
    a, b, _ = pairs
    found = signed_distances(a, b, np.full(COUNT, 0.05))
    far = apart.lower > 0.05 + GAP
    assert np.all(found.lower[far] >= 0.05)
    near = apart.upper < 0.05 - GAP
    np.testing.assert_allclose(found.lower[near], apart.lower[near], atol=2e-6)
    shallow = signed_distances(a, b, np.full(COUNT, 0.0), compute_depth=False)
    assert np.array_equal(shallow.lower > 0, apart.lower > GAP)


@pytest.mark.parametrize("depth", [-0.01, -8e-6, 0.0, 3e-6, 0.02])
def test_boxes_face_to_face_by_exact_amounts(depth):
    box = convex_solid(Box((0.2, 0.3, 0.4)))
    R = np.eye(3)[None]
    a = Placed([box], np.zeros(1, int), R, np.array([[0.0, 0.0, 0.4 + depth]]))
    b = Placed([box], np.zeros(1, int), R, np.array([[0.05, 0.1, 0.0]]))
    assert signed_distances(a, b, np.full(1, np.inf)).lower[0] == pytest.approx(depth, abs=1e-9)


def test_solids_turn_with_their_frames():
    R, p = Rotation.from_euler("xyz", [0.3, -1.1, 2.0]).as_matrix(), np.array([0.1, 0.2, -0.3])
    for shape in (Box((0.2, 0.3, 0.4)), Cylinder(0.1, 0.5), Capsule(0.1, 0.5), Sphere(0.2)):
        solid = convex_solid(shape)
        n = np.random.default_rng(3).normal(size=(50, 3))
        n /= np.linalg.norm(n, axis=1)[:, None]
        height = np.sum(n * solid.at(R, p).support(n), axis=1)
        np.testing.assert_allclose(height, np.sum(n @ R * solid.support(n @ R), axis=1) + n @ p, atol=1e-12)
        middle, radius = solid.bounds
        assert np.all(np.sum(n * solid.support(n), axis=1) + solid.ball <= n @ middle + radius + 1e-12)
        assert solid.reach >= np.linalg.norm(solid.support(n), axis=1).max() + solid.ball - 1e-12


def test_flat_solids_have_a_depth_too():
    plate = Convex(np.array([[x, y, 0.0] for x in (-1, 1) for y in (-1, 1)]))
    other = plate.at(np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]]), np.zeros(3))
    one = np.eye(3)[None], np.zeros((1, 3))
    found = signed_distances(
        Placed([plate], np.zeros(1, int), *one), Placed([other], np.zeros(1, int), *one), np.full(1, np.inf)
    )
    assert found.lower[0] <= 0


@pytest.mark.parametrize("name", ["table_hand", "ladder", "push"])
def test_pairs_and_distances_are_those_of_planner_and_controller(name):
    """Two paths that share no code beyond the reading of files; the least distance at random postures is the same."""
    scenario = load_scenario(name)
    robot, record = scenario.robot, record_robot(scenario.robot)
    solids, model = gather_solids(robot, record, scenario.environment), CollisionModel(robot, scenario.environment)
    mine = {frozenset((solids.names[i], solids.names[j])) for i, j in solids.pairs}
    assert mine == {frozenset((pair.a, pair.b)) for pair in model.pairs}
    assert len(solids.pairs) == len(model.pairs)
    rng = np.random.default_rng(2)
    q = np.array([robot.random_configuration(rng) for _ in range(10)])
    poses = _with_world(
        *Mechanism(record).poses(q), *(np.array([x] * 10) for x in _object_poses(scenario.environment, {}))
    )
    for k in range(10):
        watch = ClearanceMonitor(solids, 0.0)
        nothing = np.zeros((1, len(solids.pairs)))
        watch.check_all(poses[0][k : k + 1], poses[1][k : k + 1], nothing, nothing, np.array([k]))
        expected = model.smallest(q[k])
        assert (watch.min_distance > 0) == (expected.distance > 0)
        if expected.distance > 0:
            assert watch.min_distance == pytest.approx(expected.distance, abs=1e-5)
