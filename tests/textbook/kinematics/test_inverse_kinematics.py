"""Inverse kinematics: ways of S1's examples 2.9.7 and 2.9.8, SciPy's least squares, HRP-2's arms and legs."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import least_squares
from scipy.spatial.transform import Rotation

import mcplan as mc
from mcplan.errors import InputError
from mcplan.textbook.coordinates import ROTATION_VECTOR, XYZ, ZYX
from mcplan.textbook.kinematics import inverse_kinematics, rotation_error
from tests.textbook.kinematics.arms import at, planar_arm, wrist

START, GOAL = [-0.7, 0.0, 1.5], [0.7, 1.5, -0.5]
"""Of example 2.9.7, as angles about z, y, x."""

GAIN = 0.005
"""The document's own program takes 0.001; each step follows the linearisation."""


@pytest.fixture(scope="module")
def robots(tmp_path_factory):
    folder = tmp_path_factory.mktemp("arms")
    return {"wrist": wrist(folder), "planar": planar_arm(folder), "hrp2": mc.load_robot("hrp2")}


CHARTS = (None, ZYX, XYZ, ROTATION_VECTOR)


@pytest.fixture(scope="module")
def ways(robots):
    """The rotations on the ways of examples 2.9.7 and 2.9.8, every twenty steps, until the error is below 0.01."""
    robot, goal = robots["wrist"], Rotation.from_euler("ZYX", GOAL).as_matrix()
    options = {"method": "pseudo_inverse", "gain": GAIN, "limits": False, "fixed_base": True, "tolerance": 0.01}
    found = {}
    for chart in CHARTS:
        answer = inverse_kinematics(
            robot, {"tool": goal}, at(robot, START), rotation=chart, max_iterations=2000, attempts=1, **options
        )
        assert answer.reached, answer.message
        found[chart] = [Rotation.from_euler("ZYX", q[7:]).as_matrix() for q in answer.path[::20]]
    return found


@pytest.mark.parametrize("chart", [ZYX, XYZ, ROTATION_VECTOR], ids=lambda chart: chart.name)
def test_the_way_is_straight_in_the_chart_that_measures_the_error(ways, chart):
    """Example 2.9.7: Euler angles zyx, xyz, rotation vector. ``d theta = k (theta* - theta)`` is a straight line, so
    that step i is ``theta* - (1 - k)^i (theta* - theta_0)`` up to the linearisation of a step."""
    read = {
        ZYX: lambda r: r.as_euler("ZYX"),
        XYZ: lambda r: r.as_euler("XYZ"),
        ROTATION_VECTOR: lambda r: r.as_rotvec(),
    }
    first, last = (read[chart](Rotation.from_euler("ZYX", angles)) for angles in (START, GOAL))
    for i, R in enumerate(ways[chart]):
        expected = last - (1 - GAIN) ** (20 * i) * (last - first)
        np.testing.assert_allclose(
            read[chart](Rotation.from_matrix(R)), expected, atol=2 * GAIN
        )  # a step follows the tangent


def test_the_shortest_way(ways):
    """Example 2.9.8: the rotation vector from here to there is kept in direction, so that the way is one turn."""
    first, last = (Rotation.from_euler("ZYX", angles) for angles in (START, GOAL))
    whole = (last * first.inv()).as_rotvec()
    for i, R in enumerate(ways[None]):
        done = (Rotation.from_matrix(R) * first.inv()).as_rotvec()
        np.testing.assert_allclose(done, (1 - (1 - GAIN) ** (20 * i)) * whole, atol=2 * GAIN)


def test_only_the_right_error_takes_the_shortest_way(ways):
    def length(way):
        return sum(np.linalg.norm(rotation_error(b, a)) for a, b in pairwise(way))

    lengths = {chart: length(ways[chart]) for chart in CHARTS}
    turn = np.linalg.norm(rotation_error(*(Rotation.from_euler("ZYX", a).as_matrix() for a in (GOAL, START))))
    assert lengths[None] == pytest.approx(turn, abs=0.02)
    assert all(lengths[chart] > lengths[None] + 0.05 for chart in (ZYX, XYZ, ROTATION_VECTOR))


def test_the_rotation_error_is_not_a_difference_of_vectors():
    """Eq. 2.236 against SciPy, and its defining property."""
    R, target = Rotation.random(2, random_state=1)
    error = rotation_error(target.as_matrix(), R.as_matrix())
    np.testing.assert_allclose(Rotation.from_rotvec(error).as_matrix() @ R.as_matrix(), target.as_matrix(), atol=1e-14)
    assert np.linalg.norm(error - (target.as_rotvec() - R.as_rotvec())) > 0.1


@pytest.mark.parametrize("method", ["damped", "pseudo_inverse", "transpose"])
def test_every_method_reaches_a_point_of_the_planar_arm(robots, method):
    robot = robots["planar"]
    target = [1.2, 0.0, 1.5]
    answer = inverse_kinematics(
        robot, {"tool": target}, at(robot, [0.3, 0.4, 0.5]), fixed_base=True, method=method, max_iterations=2000
    )
    assert answer.reached, answer.message
    a, b, c = np.cumsum(answer.q[7:])
    np.testing.assert_allclose([np.sin(a) + np.sin(b) + np.sin(c), np.cos(a) + np.cos(b) + np.cos(c)], [1.2, 1.5],
                               atol=2e-6)  # fmt: skip
    np.testing.assert_array_equal(answer.q[:7], at(robot, np.zeros(3))[:7])


def test_a_point_out_of_reach_is_missed_by_what_it_must_be(robots):
    """Four metres away with three metres of arm; SciPy's least squares comes no nearer."""
    robot = robots["planar"]

    def off(joints):
        a = np.cumsum(joints)
        return np.array([np.sin(a).sum() - 4.0, np.cos(a).sum()])

    answer = inverse_kinematics(robot, {"tool": [4.0, 0.0, 0.0]}, at(robot, [1.0, 0.2, 0.3]), fixed_base=True)
    assert not answer.reached
    assert answer.message.startswith("missed after")
    best = np.linalg.norm(least_squares(off, [1.0, 0.2, 0.3]).fun)
    assert answer.errors["tool"][0] == pytest.approx(best, abs=1e-4)


def test_of_attempts_that_all_miss_the_nearest_is_the_answer(robots):
    """More attempts from the same seed are never worse: those before are among them."""
    robot, target = robots["hrp2"], {"left_hand": [0.9, 0.9, 1.4]}
    missed = [
        inverse_kinematics(robot, target, fixed_base=True, attempts=count, max_iterations=8).errors["left_hand"][0]
        for count in range(1, 8)
    ]
    assert np.all(np.diff(missed) <= 0.0)
    assert missed[-1] < missed[0]


def limits_kept(robot, answer):
    joints = answer.path[:, 7:]
    return bool(np.all(joints >= robot.limits.lower) and np.all(joints <= robot.limits.upper))


@pytest.mark.parametrize("method", ["damped", "pseudo_inverse"])
def test_random_poses_of_hand_and_foot(robots, method):
    """Poses that exist are found from the standing posture, with all joints within their limits on the way."""
    robot, found = robots["hrp2"], 0
    for seed in range(12):
        goal = robot.random_configuration(seed)
        targets = {frame: robot.frame_pose(goal, frame) for frame in ("left_hand", "right_sole")}
        start = robot.posture("half_sitting")
        start[:7] = goal[:7]
        answer = inverse_kinematics(robot, targets, start, fixed_base=True, method=method, attempts=10, seed=seed)
        assert limits_kept(robot, answer)
        found += answer.reached
        for frame, X in targets.items():
            if answer.reached:
                np.testing.assert_allclose(robot.frame_pose(answer.q, frame), X, atol=2e-6)
    assert found == 12


def standing(robot):
    q = robot.posture("half_sitting")
    return q, {frame: robot.frame_pose(q, frame) for frame in ("left_sole", "right_sole")}


def test_a_reach_with_both_feet_on_the_floor(robots):
    robot = robots["hrp2"]
    q, soles = standing(robot)
    answer = mc.inverse_kinematics(robot, soles | {"right_hand": [0.45, -0.2, 0.8]}, start=q)
    assert answer.reached, answer.message
    assert limits_kept(robot, answer)
    for frame, X in soles.items():
        np.testing.assert_allclose(robot.frame_pose(answer.q, frame), X, atol=2e-6)
    np.testing.assert_allclose(robot.frame_pose(answer.q, "right_hand")[:3, 3], [0.45, -0.2, 0.8], atol=1e-6)
    assert np.linalg.norm(answer.q[:3] - q[:3]) > 1e-3  # the base took part


def test_a_posture_is_kept_in_the_null_space(robots):
    robot = robots["hrp2"]
    q, soles = standing(robot)
    targets = soles | {"right_hand": [0.45, -0.2, 0.8]}
    away = q.copy()
    away[7:] += 0.15 * np.random.default_rng(0).normal(size=robot.n)
    away[7:] = np.clip(away[7:], robot.limits.lower, robot.limits.upper)
    free = inverse_kinematics(robot, targets, away)
    near = inverse_kinematics(robot, targets, away, posture=q)
    assert free.reached
    assert near.reached
    assert np.linalg.norm(near.q[7:] - q[7:]) < 0.9 * np.linalg.norm(free.q[7:] - q[7:])


def test_priorities_and_weights_decide_between_what_contradicts(robots):
    """The hand is asked two metres ahead: by priority the feet stay, by weight the error goes where it is cheap."""
    robot = robots["hrp2"]
    q, soles = standing(robot)
    targets = soles | {"right_hand": [2.0, -0.2, 0.8]}
    options = {"start": q, "attempts": 1, "max_iterations": 100}
    ranked = inverse_kinematics(robot, targets, priorities={"right_hand": 1}, **options)
    assert not ranked.reached
    assert max(max(ranked.errors[sole]) for sole in soles) < 1e-6
    assert ranked.errors["right_hand"][0] > 0.1
    light = inverse_kinematics(robot, targets, weights={"right_hand": 0.01}, **options)
    heavy = inverse_kinematics(robot, targets, weights={"right_hand": 100.0}, **options)
    assert heavy.errors["right_hand"][0] < light.errors["right_hand"][0]
    assert max(light.errors["left_sole"]) < max(heavy.errors["left_sole"])


@pytest.mark.parametrize("method", ["pseudo_inverse", "transpose"])
def test_the_weight_of_a_single_target_does_not_matter(robots, method):
    robot, q = robots["planar"], at(robots["planar"], [-2.0, 1.0, 2.0])
    options = {"start": q, "fixed_base": True, "method": method, "attempts": 1, "max_iterations": 30}
    one, light, heavy = (
        inverse_kinematics(robot, {"tool": [1.2, 0.0, 0.8]}, weights={"tool": weight}, **options).path
        for weight in (1.0, 0.01, 25.0)
    )
    assert np.abs(one[-1] - one[0]).max() > 0.1
    for path in (light, heavy):
        np.testing.assert_allclose(path, one, atol=1e-6)


def test_the_same_call_gives_the_same_answer(robots):
    robot = robots["hrp2"]
    goal = robot.random_configuration(5)
    targets = {"left_hand": robot.frame_pose(goal, "left_hand")}
    one, two = (inverse_kinematics(robot, targets, robot.neutral(), fixed_base=True, seed=3).q for _ in range(2))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"targets": {}}, "no targets"),
        ({"targets": {"tol": [0, 0, 0]}}, "no link or patch 'tol'"),
        ({"targets": {"tool": [0, 0]}}, r"an array \(2,\); expected pose \(4, 4\)"),
        ({"targets": {"tool": 2 * np.eye(3)}}, "is not a rotation"),
        ({"targets": {"tool": np.diag([1.0, 1.0, -1.0])}}, "is not a rotation"),
        ({"targets": {"tool": np.diag([-1.0, -1.0, -1.0, 1.0])}}, "is not a rotation"),
        ({"targets": {"tool": [0, 0, 1]}, "gain": 2.0}, "expected 0 < gain <= 1"),
        ({"targets": {"tool": [0, 0, 1]}, "method": "newton"}, "expected damped, pseudo_inverse or transpose"),
        ({"targets": {"tool": [0, 0, 1]}, "weights": {"base": 1.0}}, "weights of 'base', which is no target"),
        ({"targets": {"tool": [0, 0, 1]}, "weights": {"tool": -1.0}}, "tool = -1.0; expected positive"),
        ({"targets": {"tool": [0, 0, 1]}, "weights": {"tool": "much"}}, "weight of 'tool' = 'much'; expected an array"),
        ({"targets": {"tool": [0, 0, 1]}, "gain": "high"}, "gain and tolerance = .* expected an array"),
        ({"targets": {"tool": [0, 0, 1]}, "start": np.zeros(10)}, "has the length 0; expected 1"),
        ({"targets": {"tool": [0, 0, 1]}, "method": "transpose", "posture": np.eye(10)[3]}, "has no priorities"),
    ],
)
def test_what_cannot_be_used_is_refused(robots, arguments, message):
    with pytest.raises(InputError, match=message):
        inverse_kinematics(robots["planar"], **arguments)


def test_of_several_attempts_the_first_priority_decides(robots):
    """What comes second is out of reach; no start may better it at the cost of what comes first."""
    robot = robots["planar"]
    targets = {"link1": [0.6, 0.0, 0.8], "tool": [4.0, 0.0, 0.0]}
    answer = inverse_kinematics(
        robot, targets, at(robot, [-2.0, 1.0, 2.0]), fixed_base=True, priorities={"tool": 1}, attempts=4
    )
    assert not answer.reached
    assert answer.errors["link1"][0] < 1e-6
    # link1's origin is the end of the first link; the two others then point at the target
    best = np.linalg.norm([4.0 - 0.6, -0.8]) - 2.0
    assert answer.errors["tool"][0] == pytest.approx(best, abs=1e-3)
