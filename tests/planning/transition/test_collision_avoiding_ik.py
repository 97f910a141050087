"""Postures whose bodies keep apart: what the kernel does in a round is what its parts do one after the other."""

import numpy as np
import pytest

from mcplan.collision.model import CollisionModel
from mcplan.core.posture import collision_free as core, knots as knots_core
from mcplan.planning.posture.freedom import contact_rows
from mcplan.planning.posture.task import PostureSearch, PostureSettings, coordinate_weights
from mcplan.planning.transition import knot_search as apart_module
from mcplan.planning.transition.knot_search import (
    CONTACT_TOLERANCE_M,
    FIT_TOLERANCE_M,
    IK_STEPS,
    MAX_IDLE_ROUNDS,
    MAX_PUSH_M,
    MAX_ROUNDS,
    ROW_TOLERANCE,
    STEP_TOLERANCE,
    TRUST_RADIUS,
    CollisionAvoidingIK,
)
from mcplan.planning.transition.nearness import DISTANCE_RATE_FACTOR, SUFFICIENT_CLEARANCE_M, DesiredClearance, Nearness
from tests.planning.obstacle_step import step_past


@pytest.fixture(scope="module")
def near():
    """HRP-2 on its right foot, its left one at a bar; what searches of postures there need."""
    robot, environment, right, _, _, q0, q1 = step_past((0.04, 2.0, 0.08), [0.2, 0.0, 0.04])
    nearness = Nearness(robot, CollisionModel(robot, environment))
    search = PostureSearch(robot, coordinate_weights(robot, PostureSettings().weights), 0.0)
    middle = robot.integrate(q0, robot.difference(q0, q1), 0.7)  # the left leg is in the bar there
    task = search.task([contact_rows(robot, environment, right, None)], middle)
    return nearness, search, task, middle, nearness.watched([right])


def wish(nearness, desired, minimum=-1.0):
    every = np.full(len(nearness.collisions.pairs), 1.0)
    return DesiredClearance(desired * every, 0.5 * desired * every, minimum * every)


def test_a_round_is_a_search_with_the_distances_as_rows(near):
    nearness, search, task, q, watched = near
    asked = wish(nearness, 0.02)
    pairs, distance, J = nearness.near(q, watched)
    assert distance.min() < 0.0
    rows = np.column_stack([J, np.minimum(asked.desired[pairs] - distance, MAX_PUSH_M)])
    expected = search.run(
        task._replace(linear=rows, linear_q=q), q, IK_STEPS, ROW_TOLERANCE, STEP_TOLERANCE, TRUST_RADIUS
    )
    moved, measures = q.copy(), np.zeros(core.MEASURE_COUNT)
    tree, around = nearness.robot.tree, nearness.surroundings
    count = core.find_near(tree, around, moved, watched)
    rule = search.rule(IK_STEPS, ROW_TOLERANCE, STEP_TOLERANCE, TRUST_RADIUS)
    count = core.search_with_distance_rows(
        tree, around, count, task, rule, moved, asked.desired, asked.sufficient, watched, MAX_PUSH_M,
        search.scratch_for(task, len(watched)), search.report, measures,
    )  # fmt: skip
    np.testing.assert_allclose(moved, expected.q, atol=1e-12)
    pairs, distance, _ = nearness.near(expected.q, watched)
    assert count == len(pairs)
    assert measures[core.TASK_VIOLATION] == pytest.approx(expected.missed[: len(task.select)].max(), abs=1e-12)
    assert measures[core.MAX_DEFICIT] == pytest.approx(max((asked.sufficient[pairs] - distance).max(), 0.0), abs=1e-12)
    assert measures[core.MIN_SURPLUS] == pytest.approx(min((distance - asked.desired[pairs]).min(), 0.0), abs=1e-12)


def test_it_settles_on_its_contact_and_apart_and_then_fits(near):
    nearness, search, task, q, watched = near
    asked, apart = wish(nearness, 0.005), CollisionAvoidingIK(nearness, search)
    assert not apart.is_feasible(task, q, asked, watched)
    found, missed = apart.solve(task, q, asked, watched)
    assert missed <= 0.0
    assert apart.is_feasible(task, found, asked, watched)
    assert search.run(task, found, 0, ROW_TOLERANCE, STEP_TOLERANCE).worst <= CONTACT_TOLERANCE_M
    pairs, distance, _ = nearness.near(found, watched)
    assert (distance - asked.desired[pairs]).min() >= -FIT_TOLERANCE_M
    np.testing.assert_array_equal(q, near[3])


def test_rounds_that_gain_nothing_are_the_last(near, monkeypatch):
    """A distance that no posture has is not pushed for ten times."""
    nearness, search, task, q, watched = near
    rounds, found = [], []
    kernel = knots_core.search_with_distance_rows
    monkeypatch.setattr(knots_core, "search_with_distance_rows", lambda *given: rounds.append(None) or kernel(*given))
    monkeypatch.setattr(knots_core, "search_in_rounds", knots_core.search_in_rounds.py_func)
    for idle in (MAX_IDLE_ROUNDS, MAX_ROUNDS):
        monkeypatch.setattr(apart_module, "MAX_IDLE_ROUNDS", idle)
        rounds.clear()
        _, missed = CollisionAvoidingIK(nearness, search).solve(task, q, wish(nearness, 0.3), watched)
        found.append((len(rounds), missed))
    (few, missed), (all_of_them, least) = found
    assert few < all_of_them == MAX_ROUNDS
    assert missed <= least + 0.02


def test_it_does_not_fit_beyond_a_joint_limit_off_its_contact_or_too_near(near):
    nearness, search, task, q, watched = near
    asked, apart = wish(nearness, 0.005), CollisionAvoidingIK(nearness, search)
    found, _ = apart.solve(task, q, asked, watched)
    beyond, off = found.copy(), found.copy()
    beyond[-1] = task.limit[1, -1] + 1e-9
    off[0] += 2.0 * FIT_TOLERANCE_M
    _, distance, _ = nearness.near(found, watched)
    assert not apart.is_feasible(task, beyond, asked, watched)
    assert not apart.is_feasible(task, off, asked, watched)
    assert not apart.is_feasible(task, found, wish(nearness, distance.min() + 2.0 * FIT_TOLERANCE_M), watched)


@pytest.mark.parametrize("minimum", [-1.0, 0.01])
def test_the_deficit_is_of_the_worst_pair_and_around_it_includes_the_rates(near, minimum):
    nearness, _, _, q, watched = near
    asked, step = wish(nearness, 0.02, minimum), np.linspace(-0.1, 0.1, nearness.robot.nv)
    pairs, distance, J = nearness.near(q, watched)
    short, under = asked.sufficient[pairs] - distance, asked.minimum[pairs] - distance
    around = float((short + DISTANCE_RATE_FACTOR * np.abs(J @ step)).max())
    short = np.where(under > 0.0, np.maximum(short, SUFFICIENT_CLEARANCE_M + under), short)
    pair = nearness.collisions.pairs[pairs[short.argmax()]]
    found = nearness.deficit(q, asked, watched, step)
    assert found.bodies == (pair.a, pair.b)
    np.testing.assert_allclose([found.amount, found.around], [short.max(), around], atol=1e-12)


def test_a_search_that_ends_in_no_number_says_so(near):
    nearness, search, task, q, watched = near
    asked, measures = wish(nearness, 0.02), np.zeros(core.MEASURE_COUNT)
    nowhere = task._replace(guide=np.full_like(q, np.nan))
    tree, around = nearness.robot.tree, nearness.surroundings
    wrong = q.copy()
    wrong[7] = np.nan
    rule = search.rule(IK_STEPS, ROW_TOLERANCE, STEP_TOLERANCE, TRUST_RADIUS)
    count = core.search_with_distance_rows(
        tree, around, 0, nowhere, rule, wrong, asked.desired, asked.sufficient, watched, MAX_PUSH_M,
        search.scratch_for(task, len(watched)), search.report, measures,
    )  # fmt: skip
    assert count == core.NOT_FINITE


def test_the_missed_rows_are_those_of_the_posture_itself(near):
    """Beyond the joint limits of its task, too: the way between two knots may leave those of the knots."""
    _, search, task, q, _ = near
    low, high = task.limit
    narrow = task._replace(limit=np.array([low + 0.4 * (high - low), high - 0.4 * (high - low)]))
    X = search.robot.frame_pose(q, "right_sole")
    off = np.abs(X[:3, 3] - task.frame[0, -3:])
    missed = search.missed(narrow, q)
    np.testing.assert_allclose(missed, search.missed(task, q))
    assert missed.max() == pytest.approx(search.run(task, q, 0, ROW_TOLERANCE, STEP_TOLERANCE).missed.max(), abs=1e-12)
    assert missed[: len(task.select)].max() >= off.max() - 1e-9
    assert (
        search.run(narrow, q, 0, ROW_TOLERANCE, STEP_TOLERANCE).missed.max() > 0.1
    )  # of the posture within these limits
