"""Where the guide begins and ends, where patches are along it, and what a place of the base costs."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mcplan.collision.model import CollisionModel
from mcplan.planning.goal.item import Goal
from mcplan.planning.guide.guide_search import _fit_base_position, _fit_heading, direct_path
from mcplan.planning.guide.passage import CORE_MARGIN_M, MAX_REACH_SHARE, BasePose, Traversability
from mcplan.planning.guide.path import (
    MAX_HEIGHT_OFFSET_M,
    MAX_TRACK_DISTANCE_M,
    GuidePath,
    poses_along,
    turns_over_surface,
)
from mcplan.planning.posture.limbs import nominal_offsets
from mcplan.robot.anatomy import limbs_of
from mcplan.robot.description import Box
from mcplan.scenario.schema import GoalItem
from mcplan.scene.environment import Environment, Obstacle, Surface
from mcplan.scene.polygon import max_excess
from mcplan.scene.spec import ContactSpec
from mcplan.settings.planner import PlannerSettings

SQUARE = np.array([[-1.0, -1], [1, -1], [1, 1], [-1, 1]])
SOLES = ("left_sole", "right_sole")


def turn(yaw):
    return Rotation.from_euler("z", yaw).as_matrix()


def test_the_base_is_where_patches_are_in_their_nominal_places():
    rng = np.random.default_rng(0)
    for yaw in (0.4, -2.5):
        base, offsets = rng.normal(size=3), rng.normal(size=(3, 3))
        places = [(base + turn(yaw) @ offset, offset) for offset in offsets]
        assert _fit_base_position(places, yaw) == pytest.approx(base)
        assert _fit_heading(places) == pytest.approx(yaw)
    assert _fit_heading(places[:1]) is None
    assert _fit_heading([(0.01 * p, d) for p, d in places]) is None  # too close together to tell


@pytest.fixture(scope="module")
def walker(scene):
    robot, q = scene.ROBOT, scene.ROBOT.posture("half_sitting")
    limbs = limbs_of(robot, q, SOLES)
    return robot, q, limbs, nominal_offsets(robot, q, scene.feet(0.0), limbs)


def goal_at(x, y, heading, **given):
    specs = []
    for patch, side in zip(SOLES, (0.095, -0.095), strict=True):
        px, py, _ = np.array([x, y, 0.0]) + turn(heading) @ [0.0, side, 0.0]
        specs.append(ContactSpec(patch=patch, surface="floor", x=float(px), y=float(py), **given))
    return Goal.of(GoalItem(contacts=tuple(specs)))


@pytest.mark.parametrize("given", [{"yaw": 0.9}, {}])
def test_the_direct_path_leads_from_the_stance_to_the_goal_with_its_heading(scene, walker, given):
    robot, q, _, offsets = walker
    path = direct_path(robot, scene.ENVIRONMENT, scene.feet(0.0), q, goal_at(1.0, 0.3, 0.9, **given), offsets)
    assert path.points[0] == pytest.approx(q[:3], abs=0.02)
    assert path.yaw == pytest.approx([0.0, 0.9], abs=1e-6)
    forward = path.points[-1] - np.array([1.0, 0.3, 0.0])
    # in front of the feet by as much as at the start
    assert forward == pytest.approx(turn(0.9) @ (path.points[0] - [0.0, 0.0, 0.0]), abs=1e-6)


def test_key_poses_are_gone_through_in_their_order(scene, walker):
    robot, q, _, offsets = walker
    settings = PlannerSettings.model_validate(
        {"guide": [{"xyz": [0.3, 0.5, 0.7], "rpy": [0, 0, 3.0]}, {"xyz": [0.8, 0.5, 0.7], "rpy": [0, 0, -3.0]}]}
    )
    goal = goal_at(1.0, 0.3, 0.0, yaw=0.0)
    path = direct_path(robot, scene.ENVIRONMENT, scene.feet(0.0), q, goal, offsets, settings.guide)
    assert path.points[1:3] == pytest.approx(np.array([[0.3, 0.5, 0.7], [0.8, 0.5, 0.7]]))
    assert path.yaw == pytest.approx([0.0, 3.0, 2 * np.pi - 3.0, 2 * np.pi])  # the short way round each time


@pytest.mark.parametrize(
    ("given", "end", "expected"),
    [
        ([None, None], 0.0, [0.0, 0.0]),
        ([None, None], 0.9, [0.3, 0.6]),
        ([None, 1.0, None], 0.0, [0.5, 1.0, 0.5]),
    ],
)
@pytest.mark.parametrize("key", ["rpy", "quat_wxyz"])
@pytest.mark.parametrize("heading", [0.0, 2.5])
def test_key_poses_without_an_orientation_leave_the_heading_to_those_before_and_after(
    scene, walker, given, end, expected, key, heading
):
    robot, q, _, offsets = walker
    turned, feet = Rotation.from_euler("z", heading), scene.feet(0.0)
    feet = [replace(foot, R=turned.as_matrix() @ foot.R, p=turned.as_matrix() @ foot.p) for foot in feet]
    q = np.concatenate([q[:3], turned.as_quat(scalar_first=True), q[7:]])
    poses = [{"xyz": [0.3 * k, 0.5, 0.7]} for k in range(len(given))]
    for pose, yaw in zip(poses, given, strict=True):
        if yaw is not None:
            R = Rotation.from_euler("z", heading + yaw)
            pose[key] = (R.as_euler("xyz") if key == "rpy" else R.as_quat(scalar_first=True)).tolist()
    guide = PlannerSettings.model_validate({"guide": poses}).guide
    goal = goal_at(1.0, 0.3, heading + end, yaw=heading + end)
    path = direct_path(robot, scene.ENVIRONMENT, feet, q, goal, offsets, guide)
    assert path.yaw[1:-1] == pytest.approx(heading + np.array(expected), abs=1e-6)


# -- places along a guide that turns --------------------------------------------------------------------------------

PATCH = np.array([[-0.1, -0.05], [0.1, -0.05], [0.1, 0.05], [-0.1, 0.05]])
BEND = GuidePath(np.array([[-0.6, -0.4, 0.7], [0.4, -0.4, 0.7], [0.4, 0.6, 0.7]]), np.array([0.0, 0.8, np.pi / 2]))
OFFSET = np.array([0.05, 0.1, -0.7])


@pytest.mark.parametrize("R", [np.eye(3), Rotation.from_euler("zx", [0.7, 0.2]).as_matrix()])
def test_places_along_a_guide_lie_beside_its_track_with_its_heading_and_on_the_surface(R):
    floor = Surface("floor", R, np.zeros(3), SQUARE)
    found = list(poses_along(BEND, floor, PATCH, OFFSET, 0.3, 0.1))
    assert len(found) > 50
    for x, y, yaw in found:
        c, n = np.cos(yaw), np.sin(yaw)
        corners = np.array([x, y]) + PATCH @ np.array([[c, n], [n, -c]]).T
        assert max_excess(corners, floor.polygon) < 2e-4
        place = floor.p + floor.R[:, :2] @ [x, y]
        (s,), _ = BEND.progress(place[None] * [1, 1, 0], OFFSET)
        ahead = floor.R.T @ [*turn(BEND.at(float(s))[1])[:2, 0], 0.0]
        off = yaw - np.arctan2(ahead[1], ahead[0]) - 0.3
        assert abs((off + np.pi) % (2 * np.pi) - np.pi) < 0.25  # lines beside a bend belong to headings around it
        track = BEND.track(OFFSET)[1]
        assert np.linalg.norm(track[:, :2] - place[:2], axis=1).min() < MAX_TRACK_DISTANCE_M + 0.1


def test_a_surface_whose_border_the_guide_ends_on_has_places_on_both_sides_and_behind_its_end():
    end = BEND.track(OFFSET)[1][-1]
    # the patch, turned as the guide ends, reaches 0.1 back: nominally it lies 3 mm over the border
    landing = Surface("landing", np.eye(3), np.array([end[0], end[1] - 0.097, 0.0]), SQUARE * [0.6, 1.0] + [0.0, 1.0])
    places = np.array(list(poses_along(BEND, landing, PATCH, OFFSET, 0.0, 0.1)))
    ahead = places[np.abs(places[:, 2] - np.pi / 2) < 1e-3]
    for aside in (-0.2, -0.1, 0.0, 0.1, 0.2):
        line = ahead[np.abs(ahead[:, 0] - aside) < 1e-3]
        # moved onto the border by no more than rounding has room for, then grid by grid behind the end
        assert sorted(line[:, 1]) == pytest.approx([0.1001, 0.197, 0.297], abs=1e-4)
    for x, y, yaw in places:
        c, n = np.cos(yaw), np.sin(yaw)
        assert max_excess(np.array([x, y]) + PATCH @ np.array([[c, n], [-n, c]]), landing.polygon) < 1e-9


def test_surfaces_too_far_above_or_below_have_no_places():
    near, far = MAX_HEIGHT_OFFSET_M - 0.02, MAX_HEIGHT_OFFSET_M + 0.02
    for height, some in ((near, True), (far, False), (-near, True), (-far, False)):
        floor = Surface("floor", np.eye(3), np.array([0.0, 0.0, height]), SQUARE)
        assert bool(list(poses_along(BEND, floor, PATCH, OFFSET, 0.0, 0.1))) == some


def test_a_guide_turns_on_a_surface_only_where_it_is_over_it():
    before = Surface("before", np.eye(3), np.array([-0.6, -0.3, 0.0]), SQUARE * [0.05, 0.5])
    assert not turns_over_surface(BEND, before, OFFSET)
    assert turns_over_surface(BEND, Surface("floor", np.eye(3), np.zeros(3), SQUARE), OFFSET)
    straight = GuidePath(BEND.points, np.zeros(3))
    assert not turns_over_surface(straight, Surface("floor", np.eye(3), np.zeros(3), SQUARE), OFFSET)


# -- where the base can pass ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def passage(scene, walker):
    robot, q, limbs, offsets = walker

    def made(surfaces, obstacles=()):
        environment = Environment(tuple(surfaces), (), tuple(obstacles))
        collisions = CollisionModel(robot, environment)
        return Traversability(robot, environment, collisions, q, scene.feet(0.0), limbs, offsets)

    return made


def plate(name, x, z=0.0, half=0.5):
    return Surface(name, np.eye(3), np.array([x, 0.0, z]), half * SQUARE)


def test_the_base_stands_as_high_above_what_carries_it_as_at_the_start(passage, walker):
    _, q, limbs, _ = walker
    steps = passage([plate("low", 0.0), plate("high", 1.0, 0.15)])
    assert steps.support(0.0, 0.0, 0.0, q[2]).height == pytest.approx(q[2], abs=1e-6)
    assert steps.support(1.0, 0.0, 0.0, q[2] + 0.1).height == pytest.approx(q[2] + 0.15, abs=1e-6)
    reach = MAX_REACH_SHARE * min(limb.length for limb in limbs.values())
    gone = steps.support(-0.5 - reach - 0.2, 0.0, 0.0, q[2])
    assert np.isnan(gone.height)
    assert gone.limb in limbs
    assert gone.stretch == pytest.approx(0.2, abs=0.06)  # m: of its own reach, the feet are not under the base
    near = steps.support(-0.5 - 0.5 * reach, 0.0, 0.0, q[2])
    assert not near.limb
    assert 0.3 < near.stretch < 0.7


@pytest.mark.parametrize("yaw", [0.7, -2.0, np.pi / 2])
def test_supports_are_found_alike_whichever_way_the_robot_heads(passage, walker, yaw):
    """The plate turns along with it: the same foot finds as much of it, or misses it by as much."""
    _, q, limbs, _ = walker
    R, reach = turn(yaw), MAX_REACH_SHARE * min(limb.length for limb in limbs.values())
    ahead, turned = (passage([Surface("plate", A, np.zeros(3), 0.5 * SQUARE)]) for A in (np.eye(3), R))
    missing = set()
    for place in ([0.5 + 0.5 * reach, 0.2], [0.3, -0.5], [0.3, 0.5], [0.0, 0.5 + reach], [0.0, -0.5 - reach]):
        expected = ahead.support(*place, 0.0, q[2])
        found = turned.support(*(R[:2, :2] @ place), yaw, q[2])
        assert found.limb == expected.limb
        assert found.stretch == pytest.approx(expected.stretch, abs=1e-9)
        assert found.height == pytest.approx(expected.height, abs=1e-9, nan_ok=True)
        assert expected.stretch > 0.0
        missing.add(found.limb)
    assert missing == {"", "left_leg", "right_leg"}


def test_what_stands_in_the_way_costs_by_its_distance_and_bars_where_it_overlaps(passage, walker):
    _, q, *_ = walker
    clear = passage([plate("floor", 0.0, half=3.0)])
    here = BasePose(0.0, 0.0, float(q[2]), 0.0)
    assert clear.cost(here) == pytest.approx(1.0)
    post = Obstacle("post", Box((0.1, 0.1, 1.0)), np.eye(3), np.array([1.0, 0.0, 0.9]))
    crowded = passage([plate("floor", 0.0, half=3.0)], [post])
    prices = []
    for x in (0.2, 0.62, 0.67, 0.72, 0.8):
        place = here._replace(x=x)
        obstruction = crowded.obstruction(place)
        assert np.isinf(crowded.cost(place)) == (obstruction is not None)
        prices.append(crowded.cost(place))
    assert prices[0] == pytest.approx(1.0)
    assert np.all(np.diff(prices[:4]) > 0.0)
    inside = crowded.obstruction(here._replace(x=1.0))
    assert "inside post" in inside.reason
    assert inside.amount > 0.05
    assert CORE_MARGIN_M > 0.0
    turned = replace(post, p=np.array([0.0, 1.0, 0.9]))
    beside = passage([plate("floor", 0.0, half=3.0)], [turned])
    # the same post ahead of a base that was turned towards it costs the same
    assert beside.cost(BasePose(0.0, 0.67, here.z, np.pi / 2)) == pytest.approx(prices[2], rel=1e-6)
