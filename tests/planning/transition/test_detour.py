"""Detours: around what is in the way of the straight motion, on the contacts that stay; none where none is found."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from mcplan.collision.model import CollisionModel
from mcplan.planning.transition import detour
from mcplan.planning.transition.body_motion import Departure
from mcplan.planning.transition.detour import Detour
from mcplan.planning.transition.finder import TransitionFinder
from mcplan.planning.transition.knot_search import KnotFinder
from mcplan.planning.transition.knots import MAX_DEFICIT_M, straight_knots
from mcplan.robot.description import Box
from mcplan.scene.environment import Obstacle
from mcplan.settings.control import ControlSettings
from tests.planning.obstacle_step import step_past

KNOTS = 24


@pytest.fixture(scope="module")
def scene():
    """HRP-2 on both feet, its right hand below and above a board."""
    robot, environment, right, left, _, q, _ = step_past((0.02, 0.02, 0.02), [3.0, 3.0, 0.5])
    finder, held = KnotFinder(robot, environment), [right, left]
    hand = robot.frame_pose(q, "right_hand")[:3, 3]
    below = finder.lift_patch(q, held, "right_hand", hand, np.array([0.15, 0.0, 0.0]))
    hand = robot.frame_pose(below, "right_hand")[:3, 3]
    above = finder.lift_patch(below, held, "right_hand", hand, np.array([0.0, 0.0, 0.35]))
    middle = np.mean([robot.frame_pose(q, "right_hand")[:3, 3] for q in (below, above)], axis=0)
    board = Obstacle("board", Box((0.3, 0.5, 0.02)), np.eye(3), middle)
    return robot, replace(environment, obstacles=(board,)), held, below, above


def clearance(scene, knots):
    """Return the least distance of bodies at knots and between them (m), in steps of a quarter."""
    robot, environment, held, *_ = scene
    model = CollisionModel(robot, environment)
    return min(
        model.smallest(robot.integrate(a, robot.difference(a, b), share), contacts=held).distance
        for a, b in pairwise(knots)
        for share in (0.0, 0.25, 0.5, 0.75)
    )


@pytest.mark.parametrize("up", [True, False])
def test_a_hand_goes_around_a_board(scene, up):
    """Bit by bit from its start to its end, whichever of them the path is found from."""
    robot, environment, held, below, above = scene
    ends = (below, above) if up else (above, below)
    assert clearance(scene, straight_knots(robot, *ends, KNOTS)) < -0.02
    knots = Detour(KnotFinder(robot, environment), *ends, held, []).knots(KNOTS)
    np.testing.assert_allclose(knots[[0, -1]], ends, atol=1e-12)
    assert max(np.abs(robot.difference(a, b)).max() for a, b in pairwise(knots)) < 0.15
    assert clearance(scene, knots) > -0.01  # what smoothing takes is won back about these guides


def test_no_posture_whose_bodies_overlap_counts_as_free(scene):
    """Not even by less than the distance that is asked for."""
    robot, environment, held, below, above = scene
    finder, model = KnotFinder(robot, environment), CollisionModel(robot, environment)
    search = Detour(finder, below, above, held, [])
    way = straight_knots(robot, below, above, 400)
    overlap = np.array([model.smallest(q, contacts=held).distance for q in way])
    assert np.count_nonzero((overlap < 0.0) & (overlap > -0.005)) > 2
    assert not any(search._is_collision_free(q) for q in way[overlap < -2e-4])
    assert search._is_collision_free(below)
    assert search._is_collision_free(above)


def test_the_same_detour_is_found_each_time(scene):
    robot, environment, held, below, above = scene
    finder = KnotFinder(robot, environment)
    first, second = (Detour(finder, below, above, held, []).knots(KNOTS) for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_a_body_motion_in_collision_takes_the_detour_on_its_contacts(scene):
    robot, environment, held, below, above = scene
    finder = TransitionFinder(robot, environment, ControlSettings())
    segment = finder.shift(Departure(below, tuple(held)), above)
    assert segment.missed <= MAX_DEFICIT_M
    times = np.linspace(0.0, segment.duration, 4 * KNOTS)
    postures = np.array([segment.posture.sample(t).q for t in times])
    assert clearance(scene, postures) > 0.0
    for contact in held:
        np.testing.assert_allclose(robot.frame_pose(postures, contact.patch)[:, :3, 3] - contact.p, 0.0, atol=3e-3)


def test_the_search_ends_after_its_steps(scene, monkeypatch):
    monkeypatch.setattr(detour, "MAX_STEPS", 5)
    robot, environment, held, below, above = scene
    search = Detour(KnotFinder(robot, environment), below, above, held, [])
    assert search.knots(KNOTS) is None
    assert search.steps <= 5 + detour.STEPS_PER_SAMPLE + detour.MAX_STEPS
