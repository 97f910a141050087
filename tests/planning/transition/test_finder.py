"""Segments: a swing goes off its old support and comes down on its new one, as low as what is between allows."""

from dataclasses import replace

import numpy as np
import pytest

from mcplan.collision.model import CollisionModel
from mcplan.motion.limb_path import LimbPath
from mcplan.planning.feasibility import Feasibility
from mcplan.planning.transition import detour, finder as finder_module
from mcplan.planning.transition.body_motion import ACCEPTED_DEFICIT_M, KNOT_INTERVALS, MIN_LIFT_M, Departure
from mcplan.planning.transition.finder import TransitionFinder, lift_and_approach
from mcplan.planning.transition.knots import MAX_DEFICIT_M, Knots
from mcplan.planning.transition.segments import SwingMotion
from mcplan.robot.robot_file import load_robot
from mcplan.scene.environment import Environment, Surface
from mcplan.scene.placement import make_contact
from mcplan.settings.control import ControlSettings
from tests.planning.obstacle_step import step_past

SOLES = ["left_sole", "right_sole"]
SETTINGS = ControlSettings()


def swing_past(size, centre):
    """HRP-2 stepping past an obstacle: its feasibility and the swing."""
    robot, environment, right, before, after, q0, q1 = step_past(size, centre)
    return Feasibility(robot, environment, q0, SOLES, SETTINGS), SwingMotion((right,), before, (after,), q0, q1)


@pytest.fixture(scope="module")
def over_a_hurdle():
    return swing_past((0.04, 2.0, 0.08), [0.2, 0.0, 0.04])


@pytest.fixture
def past_a_bar(monkeypatch):
    """A thin bar before the left thigh: the leg would have to pass through it. No way around is looked for."""
    monkeypatch.setattr(detour, "MAX_STEPS", 0)
    return swing_past((0.03, 0.3, 0.03), [0.2, 0.2, 0.48])


def test_a_hurdle_is_stepped_over(over_a_hurdle):
    feasibility, swing = over_a_hurdle
    assert feasibility.motions.swing(swing) == ()
    assert feasibility.motions.violations(swing) == ()
    begin = Departure(swing.q0, swing.common, {"left_sole": swing.before})
    segment = feasibility.motions.segments.swing(begin, swing.q1, swing.added)
    (course,) = segment.courses
    assert (course.patch, course.lead, course.target) == ("left_sole", "own", swing.after)
    assert course.lift[2] == pytest.approx(course.approach[2])
    assert course.lift[2] > SETTINGS.avoidance.swing_clearance + 0.03  # the hurdle is 8 cm high
    np.testing.assert_array_equal(segment.q[[0, -1]], (swing.q0, swing.q1))
    model = CollisionModel(feasibility.robot, feasibility.environment)
    near = [model.smallest(q, contacts=(*swing.common, *swing.touching)).distance for q in segment.q]
    assert segment.near.distance == pytest.approx(min(near))
    assert min(near) > 0.0
    assert segment.missed <= ACCEPTED_DEFICIT_M
    # what the search has proven is what a plan gets
    assert feasibility.motions.segments.swing(begin, swing.q1, swing.added) is segment


def test_a_swing_skips_heights_that_a_look_has_found_too_low(over_a_hurdle, monkeypatch):
    feasibility, swing = over_a_hurdle
    begin = Departure(swing.q0, swing.common, {"left_sole": swing.before})
    above = feasibility.motions.segments.probe(begin, swing.q1, swing.added).min_extra_lift
    assert above > 0.01
    tried, clearance = [], SETTINGS.avoidance.swing_clearance
    known = finder_module.lift_and_approach
    monkeypatch.setattr(
        finder_module, "lift_and_approach", lambda *asked: tried.append(asked[3] - clearance) or known(*asked)
    )
    finder = TransitionFinder(feasibility.robot, feasibility.environment, SETTINGS)
    assert finder.swing(begin, swing.q1, swing.added, above).missed <= ACCEPTED_DEFICIT_M
    assert min(tried) >= above
    tried.clear()
    finder.swing(begin, swing.q1, swing.added)
    assert min(tried) < above


def test_knots_in_which_a_patch_drags_count_as_in_collision(over_a_hurdle):
    feasibility, swing = over_a_hurdle
    motions = feasibility.motions.segments.finder.motions
    begin = Departure(swing.q0, swing.common, {"left_sole": swing.before})
    lifted = Knots(feasibility.motions.segments.swing(begin, swing.q1, swing.added).q, 0.0, 0.0)
    assert motions._with_lift_off(lifted, swing.before) is lifted
    dragged = Knots(np.repeat(swing.q0[None], KNOT_INTERVALS + 1, axis=0), 0.0, 0.0)
    assert motions._with_lift_off(dragged, swing.before).missed == pytest.approx(MAX_DEFICIT_M + MIN_LIFT_M, abs=1e-5)
    assert motions._with_lift_off(dragged, None) is dragged


def test_a_swing_through_an_obstacle_is_in_collision(past_a_bar):
    feasibility, swing = past_a_bar
    (violation,) = feasibility.motions.violations(swing)
    assert violation.kind == "passage"
    assert violation.thing.startswith("LLEG_")
    assert violation.thing.endswith(" and bar")
    assert violation.amount > 0.015
    assert "along the path LLEG_" in str(violation)


def test_after_a_collision_similar_motions_are_checked_in_full(past_a_bar):
    known, swing = past_a_bar
    feasibility = Feasibility(known.robot, known.environment, swing.q0, SOLES, SETTINGS)
    assert feasibility.motions.swing(swing) == ()
    assert feasibility.motions.violations(swing)
    assert feasibility.motions.swing(swing) == feasibility.motions.violations(swing)


@pytest.mark.slow
def test_a_leg_goes_around_what_it_would_pass_through():
    feasibility, swing = swing_past((0.02, 0.3, 0.02), [0.2, 0.2, 0.48])
    assert feasibility.motions.violations(swing) == ()


def test_a_new_finder_finds_the_swing_that_the_search_has_proven(over_a_hurdle):
    feasibility, swing = over_a_hurdle
    finder = TransitionFinder(feasibility.robot, feasibility.environment, SETTINGS)
    begin = Departure(swing.q0, swing.common, {"left_sole": swing.before})
    found = finder.swing(begin, swing.q1, swing.added)
    np.testing.assert_array_equal(found.q, feasibility.motions.segments.swing(begin, swing.q1, swing.added).q)


# -- how high a patch goes --------------------------------------------------------------------------------------------

UP = np.array([0.0, 0.0, 1.0])


@pytest.fixture(scope="module")
def contacts(over_a_hurdle):
    """The left sole where it swings from and to: contacts to be put elsewhere."""
    swing = over_a_hurdle[1]
    return swing.before, swing.after


def placed(contact, p, normal=UP):
    axes = np.column_stack([np.cross(contact.axes[:, 1], normal), contact.axes[:, 1], normal])
    return replace(contact, p=np.array(p, float), axes=axes)


def path_of(old, new):
    lift, approach = lift_and_approach(old.p, new, old, 0.05)
    path = LimbPath((old.R, old.p), (new.R, new.p), lift, approach)
    return np.array([path.sample(t).p for t in np.linspace(0.0, path.duration, 200)])


@pytest.mark.parametrize("rise", [0.0, 0.2, -0.2])
def test_a_foot_goes_off_and_comes_down_along_the_normals_as_high_as_the_higher_place_asks(contacts, rise):
    places = path_of(placed(contacts[0], [0, 0, 0]), placed(contacts[1], [0.4, 0, rise]))
    assert places[[0, -1]] == pytest.approx(np.array([[0, 0, 0], [0.4, 0, rise]]), abs=1e-12)
    assert places[:, 2].max() == pytest.approx(max(0.0, rise) + 0.05, abs=2e-3)
    off, down = places[places[:, 0] == 0.0], places[np.isclose(places[:, 0], 0.4)]
    assert off[:, 2].max() > 0.01
    assert np.all(np.diff(off[:, 2]) >= 0.0)
    assert down[:, 2].max() > rise + 0.01
    assert np.all(np.diff(down[:, 2]) <= 0.0)


def test_from_a_floor_to_a_wall_it_comes_along_the_normal_of_the_wall(contacts):
    places = path_of(placed(contacts[0], [0, 0, 0]), placed(contacts[1], [0.5, 0, 0.6], np.array([-1.0, 0.0, 0.0])))
    assert places[:, 0].max() <= 0.5 + 1e-12
    last = places[places[:, 0] > 0.5 - 0.01]
    assert last[:, 2] == pytest.approx(np.full(len(last), 0.6), abs=1e-3)


# -- the body --------------------------------------------------------------------------------------------------------


def test_the_body_goes_straight_where_limbs_alone_can_do_what_is_asked():
    """A hand that reaches for a wall: neither base nor feet move for it."""
    robot = load_robot("hrp2")
    square = np.array([[-2.0, -2.0], [2.0, -2.0], [2.0, 2.0], [-2.0, 2.0]])
    floor = Surface("floor", np.eye(3), np.zeros(3), square)
    scene = Environment((floor,))
    soles = tuple(
        make_contact(robot, scene, {"patch": patch, "surface": "floor", "x": X[0, 3], "y": X[1, 3], "yaw": 0.0})
        for patch in ("left_sole", "right_sole")
        for X in [robot.frame_pose(robot.posture("half_sitting"), patch)]
    )
    q0 = robot.posture("half_sitting")
    q1 = q0.copy()
    q1[7 + robot.joint_names.index("RARM_JOINT3")] -= 0.4
    segment = TransitionFinder(robot, scene, SETTINGS).shift(Departure(q0, soles), q1)
    assert segment.missed <= MAX_DEFICIT_M
    assert segment.held
    assert len(segment.q) == KNOT_INTERVALS + 1
    assert np.linalg.norm(segment.q[:, :3] - q0[:3], axis=1).max() < 0.01
    np.testing.assert_allclose(segment.com, robot.com(segment.q))
