"""The rows of the posture kernel: derivatives against differences, values against their definitions in numpy."""

import numpy as np
import pytest
from scipy.linalg import logm
from scipy.spatial.transform import Rotation

from mcplan.core.posture.frame import frame_scratch
from mcplan.core.posture.rows import (
    ACROSS_BAR,
    ALONG_BAR,
    ANGLE,
    DISTANCE,
    EDGE_DIRECTION,
    EDGE_ROWS,
    LINE_ROWS,
    POINT_HEIGHT,
    POSE_ROWS,
    POSITION_ROWS,
    RELATIVE_POSE,
    evaluate,
    fill_bounds,
    row_count,
)
from mcplan.core.posture.search import com_cost
from mcplan.core.rigid_body.tree import workspace
from mcplan.planning.posture.freedom import FrameRows, cell_row
from mcplan.planning.posture.task import BaseTarget, PostureSearch

STEP = 1e-6
"""Central differences: the error is of the order of STEP^2, and of rounding over STEP, 1e-9."""


@pytest.fixture(scope="module")
def search(scene):
    return PostureSearch(scene.ROBOT, np.ones(scene.ROBOT.nv), 0.0)


def rows_at(robot, task, q, derivative=True):
    """Values (rows,) and derivatives (rows, nv) of all rows of a task."""
    m, _ = row_count(task)
    value, J, away = np.zeros(m), np.zeros((m, robot.nv)), np.zeros(robot.nv)
    work, s = workspace(robot.tree), frame_scratch(robot.nv)
    evaluate(robot.tree, task, q, derivative, False, work, s, value, J, np.zeros(3), np.zeros((3, robot.nv)), away)
    return value, J


def frame_rows(robot, patch, mode, target, select=None, cell=()):
    body, offset = (0, np.append(np.eye(3).ravel(), np.zeros(3))) if patch == "base" else robot.frame(patch)
    select = np.zeros((0, 6)) if select is None else np.array(select, dtype=float)
    return FrameRows(mode, body, np.concatenate([offset, target]), select, np.array(cell).reshape(-1, 10))


def pose(R, p):
    return np.concatenate([np.asarray(R).ravel(), p])


def agrees(robot, task, q, rng, atol=1e-7):
    value, J = rows_at(robot, task, q)
    assert np.array_equal(value, rows_at(robot, task, q, derivative=False)[0])
    assert len(value) > 0
    for _ in range(4):
        v = rng.normal(size=robot.nv)
        ahead, behind = (rows_at(robot, task, robot.integrate(q, v, s), False)[0] for s in (STEP, -STEP))
        assert np.abs(J @ v).max() > 1e-3
        np.testing.assert_allclose(J @ v, (ahead - behind) / (2 * STEP), atol=atol)


def near(robot, q, patch, rng, turn, shift=0.1):
    """A target pose (R, p) some way from where the patch is."""
    X = np.eye(4) if patch == "base" else robot.frame_pose(q, patch)
    if patch == "base":
        X[:3, :3], X[:3, 3] = Rotation.from_quat(q[[4, 5, 6, 3]]).as_matrix(), q[:3]
    axis = rng.normal(size=3)
    R = X[:3, :3] @ Rotation.from_rotvec(turn * axis / np.linalg.norm(axis)).as_matrix()
    return R, X[:3, 3] + shift * rng.normal(size=3)


ALL_SIX = np.eye(6)
PARTS = {"all": ALL_SIX, "rolls": ALL_SIX[[0, 1, 2, 3, 5]], "place": ALL_SIX[:3], "mixed": None}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("mode", [POSE_ROWS, POSITION_ROWS])
def test_rows_of_a_contact(scene, search, mode, part):
    robot, rng = scene.ROBOT, np.random.default_rng(1)
    select = np.linalg.qr(rng.normal(size=(6, 6)))[0][:4] if PARTS[part] is None else PARTS[part]
    if mode == POSITION_ROWS:
        select = np.hstack([select[:, :3], np.zeros((len(select), 3))])
        select = select[np.linalg.norm(select, axis=1) > 0.1]
    for patch in ("left_sole", "right_hand"):
        q = robot.random_configuration(rng)
        R, p = near(robot, q, patch, rng, 0.3)
        task = search.task([frame_rows(robot, patch, mode, pose(R, p), select)], q)
        X = robot.frame_pose(q, patch)
        T, T_t = np.eye(4), np.eye(4)
        T[:3], T_t[:3, :3], T_t[:3, 3] = X[:3], R, p
        log = np.real(logm(np.linalg.inv(T_t) @ T))
        xi = np.array([*log[:3, 3], log[2, 1], log[0, 2], log[1, 0]])
        if mode == POSITION_ROWS:
            xi = np.append(R.T @ (X[:3, 3] - p), np.zeros(3))
        np.testing.assert_allclose(rows_at(robot, task, q)[0], select @ xi, atol=1e-10)
        # the series of the inverse Jacobian leaves |xi|^6 / 30240 of the pose
        agrees(robot, task, q, rng, 3e-7)


def test_rows_of_a_patch_on_a_bar(scene, search):
    robot, rng = scene.ROBOT, np.random.default_rng(2)
    for patch in ("left_sole", "right_hand"):
        q = robot.random_configuration(rng)
        e, d = rng.normal(size=3), rng.normal(size=3)
        d /= np.linalg.norm(d)
        cell = [cell_row(np.zeros(3), np.zeros(3), -1.0, 1.0, kind) for kind in (ACROSS_BAR, ALONG_BAR)]
        target = np.concatenate([e, d, [0.02], np.zeros(5)])
        task = search.task([frame_rows(robot, patch, LINE_ROWS, target, np.zeros((3, 6)), cell)], q)
        X = robot.frame_pose(q, patch)
        (x, _, z), p = X[:3, :3].T, X[:3, 3]
        expected = [d @ x, d @ z, z @ (e - p) - 0.02, x @ (e - p), d @ (p - e)]
        np.testing.assert_allclose(rows_at(robot, task, q)[0], expected, atol=1e-12)
        agrees(robot, task, q, rng)


def test_rows_of_an_edge(scene, search):
    robot, rng = scene.ROBOT, np.random.default_rng(3)
    q = robot.random_configuration(rng)
    R, p = near(robot, q, "left_toe", rng, 0.8)
    u, m = np.array([0.6, 0.8, 0.0]), np.array([0.8, -0.6, 0.0])
    select = [[0.0, 0.0, 1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, *u]]
    cell = [cell_row(m, u, -0.5, 0.5, EDGE_DIRECTION)]
    task = search.task([frame_rows(robot, "left_toe", EDGE_ROWS, pose(R, p), select, cell)], q)
    X = robot.frame_pose(q, "left_toe")
    turn = R.T @ X[:3, :3]
    expected = [R[:, 2] @ (X[:3, 3] - p), turn[2] @ u, m @ turn @ u]
    np.testing.assert_allclose(rows_at(robot, task, q)[0], expected, atol=1e-12)
    agrees(robot, task, q, rng)


@pytest.mark.parametrize("turn", [0.0, 0.4, 2.5])
@pytest.mark.parametrize("patch", ["base", "right_hand"])
def test_rows_of_a_pose_its_lengths_and_its_points(scene, search, patch, turn):
    robot, rng = scene.ROBOT, np.random.default_rng(4)
    for _ in range(3):
        q = robot.random_configuration(rng)
        R, p = near(robot, q, patch, rng, turn)
        a, b, n, x = rng.normal(size=(4, 3))
        nothing = np.zeros(3)
        cell = [
            cell_row(a, b, -1.0, 1.0, RELATIVE_POSE),
            cell_row(nothing, nothing, -np.inf, 0.1, DISTANCE),
            cell_row(n, x, 0.0, np.inf, POINT_HEIGHT),
        ]
        if turn:  # the length of a turn has no derivative where it is none
            cell.append(cell_row(nothing, nothing, -np.inf, 0.1, ANGLE))
        task = search.task([frame_rows(robot, patch, POSITION_ROWS, pose(R, p), cell=cell)], q)
        here, there = near(robot, q, patch, rng, 0.0, 0.0)
        w = Rotation.from_matrix(R.T @ here).as_rotvec()
        expected = [a @ R.T @ (there - p) + b @ w, np.linalg.norm(there - p), n @ (there + here @ x), turn]
        np.testing.assert_allclose(rows_at(robot, task, q)[0], expected[: len(cell)], atol=1e-9)
        agrees(robot, task, q, rng)


def test_rows_of_the_centre_of_mass_and_linear_ones(scene, search):
    robot, rng = scene.ROBOT, np.random.default_rng(5)
    q, q0 = robot.random_configuration(rng), robot.random_configuration(rng)
    q0[:7] = robot.integrate(q, 0.3 * rng.normal(size=robot.nv), 1.0)[:7]
    centre, region = rng.normal(size=(3, 4)), rng.normal(size=(2, 4))
    linear = rng.normal(size=(2, robot.nv + 1))
    feet = [frame_rows(robot, "left_sole", POSE_ROWS, pose(*near(robot, q, "left_sole", rng, 0.1)), ALL_SIX)]
    task = search.task(feet, q, region, linear=linear, linear_q=q0, centre=centre)
    value, J = rows_at(robot, task, q)
    c, J_c = robot.com(q), robot.com_jacobian(q)
    np.testing.assert_allclose(value[6:9], centre[:, :3] @ c, atol=1e-12)
    np.testing.assert_allclose(value[9:11], region[:, :2] @ c[:2], atol=1e-12)
    np.testing.assert_allclose(value[11:], linear[:, :-1] @ robot.difference(q0, q), atol=1e-12)
    np.testing.assert_allclose(J[6:9], centre[:, :3] @ J_c, atol=1e-12)
    np.testing.assert_allclose(J[9:11], region[:, :2] @ J_c[:2], atol=1e-12)
    np.testing.assert_allclose(J[11:], linear[:, :-1])


def test_leaving_the_comfortable_part_costs_the_squares_of_how_far_it_is_left(scene, search):
    q = scene.ROBOT.posture("half_sitting")
    region = np.array([[1.0, 0.0, 0.3, 0.2], [0.6, 0.8, 0.3, 0.2], [-1.0, 0.0, 0.3, 0.2]])
    task = search.task([], q, region, np.array([0.1, -0.2, 30.0, 400.0]))

    def expected(c):
        beyond = np.maximum(0.0, region[:, :2] @ c - region[:, 3])
        return 15.0 * np.sum((c - [0.1, -0.2]) ** 2) + 200.0 * np.sum(beyond**2)

    for c in np.array([[0.5, 0.4], [0.25, 0.0], [0.0, 0.1], [-0.4, 0.9]]):
        cost, gx, gy, xx, xy, yy = com_cost(task, np.append(c, 0.7))
        assert cost == pytest.approx(expected(c))
        slope = [(expected(c + step) - expected(c - step)) / 2e-4 for step in 1e-4 * np.eye(2)]
        assert [gx, gy] == pytest.approx(slope, abs=1e-6)
        there = np.array([c[0] + 1e-3, c[1] + 2e-3, 0.7])
        assert com_cost(task, there)[1:3] == pytest.approx((gx + 1e-3 * xx + 2e-3 * xy, gy + 1e-3 * xy + 2e-3 * yy))


def test_equalities_come_first_and_bounds_are_those_of_the_task(scene, search):
    robot, q = scene.ROBOT, scene.ROBOT.posture("half_sitting")
    cell = [cell_row(np.ones(3), np.zeros(3), -0.2, 0.3, RELATIVE_POSE)]
    rows = [frame_rows(robot, "left_sole", POSE_ROWS, pose(np.eye(3), np.zeros(3)), ALL_SIX[:2], cell)]
    centre, region = np.array([[1.0, 0.0, 0.0, 0.7]]), np.array([[0.0, 1.0, 0.4, 0.3]])
    task = search.task(rows, q, region, linear=np.full((1, robot.nv + 1), 0.5), linear_q=q, centre=centre)
    m, equal = row_count(task)
    low, high = np.zeros(m), np.zeros(m)
    fill_bounds(task, low, high)
    assert (m, equal) == (6, 3)
    assert low.tolist() == [0.0, 0.0, 0.7, -0.2, -np.inf, 0.5]
    assert high.tolist() == [0.0, 0.0, 0.7, 0.3, 0.4, np.inf]


@pytest.mark.parametrize(("tolerance", "angle"), [(0.05, 0.1), (1e-3, 0.02), (1e-5, 1e-5)])
def test_a_base_is_brought_within_its_tolerances_and_no_farther(scene, search, tolerance, angle):
    robot, rng = scene.ROBOT, np.random.default_rng(6)
    guide = robot.posture("half_sitting")
    for _ in range(4):
        R, p = near(robot, guide, "base", rng, 0.5, 0.15)
        target = BaseTarget(p, tolerance, R, angle)
        task = search.task([target.rows()], guide)
        found = search.run(task, guide, 30, 1e-7, 0.02)
        assert found.found
        away = np.linalg.norm(found.q[:3] - p)
        turn = Rotation.from_matrix(R.T @ Rotation.from_quat(found.q[[4, 5, 6, 3]]).as_matrix()).magnitude()
        # the nearest posture to the guide lies on the edge of what is allowed
        assert tolerance - 2e-6 <= away <= tolerance
        assert angle - 2e-6 <= turn <= angle
