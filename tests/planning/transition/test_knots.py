"""Ways of the body: on their contacts, balanced, and clear of what the straight way would meet."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from mcplan.collision.model import CollisionModel
from mcplan.core.posture.rows import POSE_ROWS, POSITION_ROWS
from mcplan.motion.limb_path import LimbPath
from mcplan.motion.spline import PostureSpline
from mcplan.planning.posture.task import PostureSettings
from mcplan.planning.transition.knot_search import FIXED_ORIENTATION_M, KnotFinder, KnotSearch, guided_rows
from mcplan.planning.transition.knots import PatchPath, filtered
from mcplan.planning.transition.nearness import (
    CLEARANCE_PER_DISTANCE,
    DESIRED_CLEARANCE_M,
    DESIRED_SELF_CLEARANCE_M,
    GRAZING_ALLOWANCE_M,
    MIN_SEPARATION_M,
    SEPARATION_SHARE,
    SUFFICIENT_CLEARANCE_M,
)
from mcplan.robot.description import Box
from mcplan.robot.robot_file import load_robot
from mcplan.scene.environment import Bar, Environment, Obstacle, Surface
from mcplan.scene.placement import make_contact
from tests.planning.obstacle_step import step_past

KNOTS = 24


@pytest.fixture(scope="module")
def scene():
    """HRP-2 with the right foot on the floor, and the left one before and behind a bar of 8 cm."""
    return step_past((0.04, 2.0, 0.08), [0.2, 0.0, 0.04])


def way(scene, height):
    robot, environment, right, before, after, q0, q1 = scene
    lift = np.array([0.0, 0.0, height])
    path = LimbPath((before.R, before.p), (after.R, after.p), lift, lift)
    straight = PostureSpline.to_rest(q0, q1, path.duration)
    times = np.linspace(0.0, path.duration, KNOTS + 1)
    places = np.array([path.sample(t).p for t in times])
    guides = np.array([straight.sample(t).q for t in times])
    finder = KnotFinder(robot, environment)
    return finder.find(guides, [right], [PatchPath("left_sole", places, (before.R, after.R))], [before, after]), places


@pytest.mark.parametrize("height", [0.14, 0.22])
def test_a_foot_guided_over_a_bar_moves_the_body_on_its_contact_without_collision(scene, height):
    robot, environment, right, _, _, q0, q1 = scene
    knots, places = way(scene, height)
    assert knots.unsmoothed == 0.0
    assert knots.missed <= 3e-3  # smoothing takes a little of what was clear
    np.testing.assert_allclose(knots.q[[0, -1]], (q0, q1), atol=1e-15)
    model = CollisionModel(robot, environment)
    for k in range(1, KNOTS):
        q, place = knots.q[k], places[k]
        X = robot.frame_pose(q, "right_sole")
        np.testing.assert_allclose(X[:3, 3], right.p, atol=3e-3)
        np.testing.assert_allclose(X[:3, :3], right.R, atol=5e-3)
        if 6 <= k <= 18:  # at the ends it is eased in and out, and smoothed over two knots
            np.testing.assert_allclose(robot.frame_pose(q, "left_sole")[:3, 3], place, atol=1.5e-2)
        near = model.distances(q, 0.1)
        bar = [d for pair, d in zip(near.pairs, near.distance, strict=True) if "bar" in pair]
        assert min(bar, default=1.0) >= SUFFICIENT_CLEARANCE_M - knots.missed - 1e-12


def test_a_path_through_the_bar_has_a_deficit_and_its_place(scene):
    knots, places = way(scene, 0.03)
    assert knots.missed > 0.02
    assert set(knots.worst.bodies) == {"LLEG_LINK5", "bar"}
    x = places[round(KNOTS * knots.worst.share), 0]
    assert 0.05 < x < 0.35  # where the foot is over the bar, or its heel or toe is


def test_neighbouring_knots_are_near_each_other(scene):
    robot = scene[0]
    q = way(scene, 0.14)[0].q
    steps = [np.abs(robot.difference(a, b)[6:]).max() for a, b in pairwise(q)]
    assert max(steps) < 0.35


def test_the_room_of_a_centre_of_mass_is_its_distance_to_the_edge_of_the_sole(scene):
    robot, environment, right, *_ = scene
    finder = KnotFinder(robot, environment)
    corners = right.world_points
    x = np.array([corners[:, 0].max() - 0.02, corners[:, 1].mean(), 0.8])
    assert finder.com_inset([right], x) == pytest.approx(0.02, abs=3e-3)
    assert finder.com_inset([right], x + np.array([0.05, 0.0, 0.0])) < 0.0
    assert finder.com_inset([replace(right, max_force=100.0)], x) == -np.inf


@pytest.mark.parametrize(("height", "least"), [(0.05, 0.05), (0.8, 0.1)])
def test_a_foot_is_lifted_by_as_much_as_the_standing_leg_allows(scene, height, least):
    robot, environment, right, before, _, q0, _ = scene
    finder = KnotFinder(robot, environment)
    q = finder.lift_patch(q0, [right], "left_sole", before.p, np.array([0.0, 0.0, height]))
    risen = robot.frame_pose(q, "left_sole")[2, 3] - before.p[2]
    assert least - 1e-3 < risen < height + 1e-3
    np.testing.assert_allclose(robot.frame_pose(q, "right_sole")[:3, 3], right.p, atol=2e-3)
    assert finder.com_inset([right], robot.com(q)) > 0.0
    assert CollisionModel(robot, environment).smallest(q, contacts=[right]).distance > 0.0


def test_a_lift_of_nothing_is_the_posture_itself(scene):
    robot, environment, right, before, _, q0, _ = scene
    q = KnotFinder(robot, environment).lift_patch(q0, [right], "left_sole", before.p, np.zeros(3))
    np.testing.assert_array_equal(q, q0)


@pytest.mark.parametrize("keep_end_clearance", [False, True])
def test_bodies_close_at_both_ends_separate_in_between_unless_end_clearances_are_kept(scene, keep_end_clearance):
    robot, environment, right, before, _, q0, _ = scene
    hand, held = robot.frame_pose(q0, "left_hand")[:3, 3], [right, before]
    for gap in np.arange(0.05, 0.3, 0.002):
        box = Obstacle("box", Box((0.1, 0.1, 0.1)), np.eye(3), hand + np.array([0.0, 0.05 + gap, 0.0]))
        beside = replace(environment, obstacles=(*environment.obstacles, box))
        near = CollisionModel(robot, beside).smallest(q0, contacts=held)
        if near.distance > 0.007:
            break
    assert "box" in near.pair
    knots = KnotFinder(robot, beside).find(
        np.repeat(q0[None], KNOTS + 1, axis=0), held, keep_end_clearance=keep_end_clearance
    )
    moved = np.abs(robot.difference(q0, knots.q[KNOTS // 2])).max()
    assert (moved < 1e-6) == keep_end_clearance


def test_a_path_uses_the_same_share_of_every_limit_as_a_plan():
    """Of 80 N that a rung bears too, and not of friction alone."""
    robot = load_robot("hrp2")
    rung = Bar("rung", np.array([[0.5, -0.5, 1.0], [0.5, 0.5, 1.0]]), 0.02, 0.7)
    floor = Surface("floor", np.eye(3), np.zeros(3), np.array([[-2.0, -2], [2, -2], [2, 2], [-2, 2]]))
    environment = Environment(surfaces=(floor,), bars=(rung,))
    hold = {"patch": "right_grip", "surface": "rung", "along": 0.3, "angle": 0.0, "flip": False, "max_force": 80.0}
    contacts = [
        make_contact(robot, environment, {"patch": "left_sole", "surface": "floor", "x": 0.0, "y": 0.1, "yaw": 0.0}),
        make_contact(robot, environment, hold),
    ]
    room = {}
    for share, given in ((0.9, contacts), (1.0, [contact.with_margin(0.9) for contact in contacts])):
        finder = KnotFinder(robot, environment, PostureSettings(friction_share=share, force_share=share))
        room[share] = [finder.com_inset(given, np.array([x, 0.1, 0.7])) for x in np.linspace(-0.2, 0.4, 7)]
    assert room[0.9] == room[1.0]
    less = [replace(contact, friction=0.9 * contact.friction) for contact in contacts]
    assert room[0.9] != [finder.com_inset(less, np.array([x, 0.1, 0.7])) for x in np.linspace(-0.2, 0.4, 7)]


def test_the_filter_leaves_lines_alone_and_damps_what_jumps_from_knot_to_knot():
    line = np.outer(np.arange(12.0), [0.3, -1.0]) + np.array([2.0, 5.0])
    assert filtered(line, 6) == pytest.approx(line)
    zigzag = np.array([[(-1.0) ** k] for k in range(31)])
    assert np.abs(filtered(zigzag, 6)[8:-8]).max() < 1e-3


@pytest.fixture(scope="module")
def finder(scene):
    return KnotFinder(scene[0], scene[1])


def test_pairs_may_be_as_close_as_at_the_near_end_and_separate_within_a_fifth_of_the_path(finder):
    """What is wanted, less near an end at which it is closer; a pair that touches on purpose opens with its patch."""
    count = len(finder.collisions.pairs)
    ends = np.full(count, 0.001), np.full(count, 0.015)
    own = int(np.flatnonzero(finder.nearness.between_links)[0])
    other = int(np.flatnonzero(~finder.nearness.between_links)[0])
    for share, begin, end in ((0.0, 0.0, 1.0), (0.1, 0.5, 1.0), (0.5, 1.0, 1.0), (0.95, 1.0, 0.25), (1.0, 1.0, 0.0)):
        need = finder.nearness.desired(share, ends, [], {})
        gained = [10.0 * part**3 - 15.0 * part**4 + 6.0 * part**5 for part in (begin, end)]  # it begins gently
        room = min(0.001 + DESIRED_CLEARANCE_M * gained[0], 0.015 + DESIRED_CLEARANCE_M * gained[1])
        assert min(share / SEPARATION_SHARE, 1.0) == pytest.approx(begin)
        assert min((1.0 - share) / SEPARATION_SHARE, 1.0) == pytest.approx(end)
        assert need[other] == pytest.approx(min(DESIRED_CLEARANCE_M, room))
        assert need[own] == pytest.approx(min(DESIRED_SELF_CLEARANCE_M, room))
    passing = [([other], "left_sole")]
    touches, hangs, far = np.zeros(count), np.full(count, 0.01), np.full(count, np.inf)
    for ends, away, room in (
        ((touches, touches), (0.01, 0.3), CLEARANCE_PER_DISTANCE * 0.01),
        ((touches, far), (0.01, 0.3), CLEARANCE_PER_DISTANCE * 0.01),
        ((touches, far), (0.3, 0.01), DESIRED_CLEARANCE_M),
        ((hangs, touches), (0.001, 0.3), 0.01 + CLEARANCE_PER_DISTANCE * 0.001),
        ((hangs, touches), (0.3, 0.001), CLEARANCE_PER_DISTANCE * 0.001),
    ):
        need = finder.nearness.desired(0.5, ends, passing, {"left_sole": away})
        assert need[other] == pytest.approx(min(DESIRED_CLEARANCE_M, room))
    need = finder.nearness.desired(0.5, (far, far), passing, {"left_sole": (0.01, 0.3)})
    assert need[own] == pytest.approx(DESIRED_SELF_CLEARANCE_M)


def test_near_its_place_only_may_a_patch_graze_its_support(scene):
    robot, environment, right, before, after, q0, q1 = scene
    lift, count = np.array([0.0, 0.0, 0.14]), KNOTS + 1
    path = LimbPath((before.R, before.p), (after.R, after.p), lift, lift)
    places = np.array([path.sample(t).p for t in np.linspace(0.0, path.duration, count)])
    straight = PostureSpline.to_rest(q0, q1, path.duration)
    guides = np.array([straight.sample(t).q for t in np.linspace(0.0, path.duration, count)])
    finder = KnotFinder(robot, environment)
    leads, limit = [PatchPath("left_sole", places, (before.R, after.R))], finder.joints.widest
    tasks = KnotSearch(finder, guides, [right], leads, [before, after], False, None, limit).tasks
    pairs = [
        pair for pair in finder.collisions.pairs_of([before]) if finder.nearness.distances(q0)[pair] < MIN_SEPARATION_M
    ]
    desired, sufficient, minimum = (values[:, pairs] for values in (tasks.desired, tasks.sufficient, tasks.minimum))
    near, far = 1, KNOTS // 2
    assert 0.0 < desired[near].min() <= desired[near].max() < finder.nearness.sufficient
    assert sufficient[near] == pytest.approx(desired[near] - GRAZING_ALLOWANCE_M)
    assert minimum[near] == pytest.approx(MIN_SEPARATION_M - GRAZING_ALLOWANCE_M)
    assert sufficient[far] == pytest.approx(finder.nearness.sufficient)
    assert minimum[far] == pytest.approx(MIN_SEPARATION_M)


def test_a_guided_patch_keeps_its_orientation_near_the_ends_only(finder, scene):
    turns = np.diag([1.0, -1.0, -1.0]), np.diag([-1.0, 1.0, -1.0])
    x = np.array([0.0, 0.5 * FIXED_ORIENTATION_M, 0.2, 0.4 - 0.5 * FIXED_ORIENTATION_M, 0.4])
    led = PatchPath("left_sole", np.column_stack([x, np.zeros((5, 2))]), turns)
    assert led.end_distances(1) == pytest.approx((0.5 * FIXED_ORIENTATION_M, 0.4 - 0.5 * FIXED_ORIENTATION_M))
    for k, R in ((0, turns[0]), (1, turns[0]), (3, turns[1]), (4, turns[1])):
        rows = guided_rows(finder.robot, led, k)
        assert rows.mode == POSE_ROWS
        assert rows.frame[12:21] == pytest.approx(R.ravel())
        assert rows.frame[21:] == pytest.approx(led.positions[k])
        assert len(rows.select) == 6
    middle = guided_rows(finder.robot, led, 2)
    assert middle.mode == POSITION_ROWS
    assert middle.frame[21:] == pytest.approx(led.positions[2])
    assert middle.select == pytest.approx(np.eye(6)[:3])
