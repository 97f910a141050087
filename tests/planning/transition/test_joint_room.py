"""Motions keep joints away from their limits where the postures that they lead between do."""

import numpy as np
import pytest

from mcplan.planning.posture.task import PostureSearch
from mcplan.planning.transition.knot_search import (
    FOLD_MARGIN_RAD,
    JOINT_MARGIN_RAD,
    JOINT_MARGIN_SHARE,
    KnotFinder,
    PathJointLimits,
)
from mcplan.robot.robot_file import load_robot
from mcplan.scene.environment import Environment, Surface
from mcplan.scene.placement import contact

COUNT = 12
ELBOW, KNEES, SOLES = "RARM_JOINT3", ("LLEG_JOINT3", "RLEG_JOINT3"), ("left_sole", "right_sole")


@pytest.fixture(scope="module")
def robot():
    return load_robot("hrp2")


@pytest.fixture(scope="module")
def feet(robot):
    floor = Surface("floor", size=(4.0, 4.0))
    places = {patch: robot.frame_pose(robot.posture("half_sitting"), patch)[:2, 3] for patch in SOLES}
    return Environment([floor]), [contact(robot, patch, floor, x=x, y=y) for patch, (x, y) in places.items()]


def bent(robot, amount):
    """Standing, the elbow by ``amount`` before its limit."""
    q, i = robot.posture("half_sitting").copy(), robot.joint_names.index(ELBOW)
    q[7 + i] = robot.limits.lower[i] + amount
    return q


def least_room(robot, feet, ends, middle):
    """Return how near to its limit the elbow comes on a way that is to bring it ``middle`` near in between."""
    environment, contacts = feet
    rise = np.sin(np.linspace(0.0, np.pi, COUNT + 1)) ** 2
    guides = np.array([bent(robot, ends + part * (middle - ends)) for part in rise])
    i = 7 + robot.joint_names.index(ELBOW)
    knots = KnotFinder(robot, environment).find(guides, contacts)
    assert knots.missed == 0.0
    return float(knots.q[:, i].min() - robot.limits.lower[i - 7])


def test_a_path_keeps_the_distance_of_its_ends_from_a_joint_limit(robot, feet):
    assert least_room(robot, feet, 0.4, 0.0) == pytest.approx(JOINT_MARGIN_RAD, abs=5e-3)  # smoothing rounds the curve
    assert least_room(robot, feet, 0.03, 0.0) == pytest.approx(JOINT_MARGIN_SHARE * 0.03, abs=5e-3)


def test_a_path_far_from_the_limits_is_not_changed(robot, feet):
    assert least_room(robot, feet, 0.4, 0.2) == pytest.approx(0.2, abs=5e-3)


def test_bounds_are_never_narrower_than_the_ends_nor_wider_than_the_widest(robot):
    limits, random = robot.limits, np.random.default_rng(3)
    finder_margin = 0.01
    least = np.array([limits.lower + finder_margin, limits.upper - finder_margin])
    room, knees = PathJointLimits(robot, least), np.isin(robot.joint_names, KNEES)
    for _ in range(20):
        ends = random.uniform(least[0], least[1], (2, robot.n))
        lower, upper = room.between(ends, SOLES)
        assert (lower <= ends.min(axis=0)).all()
        assert (ends.max(axis=0) <= upper).all()
        assert (least[0] <= lower).all()
        assert (upper <= least[1]).all()
        assert (lower - limits.lower <= JOINT_MARGIN_RAD + 1e-12)[~knees].all()


def test_limbs_that_touch_stay_bent_about_as_their_ends_are(robot):
    knee = robot.joint_names.index(KNEES[0])
    room = PathJointLimits(robot, np.array([robot.limits.lower, robot.limits.upper]))

    def lowest(one, other, patches=SOLES):
        ends = np.array([robot.posture("half_sitting")[7:]] * 2)
        ends[:, knee] = one, other
        return room.between(ends, patches)[0, knee]

    assert lowest(1.0, 0.5) == pytest.approx(
        JOINT_MARGIN_SHARE * FOLD_MARGIN_RAD, abs=2e-3
    )  # it is straight at 0, to a milliradian
    assert lowest(1.0, 0.1) == pytest.approx(JOINT_MARGIN_SHARE * 0.1, abs=2e-3)
    in_the_air = robot.limits.lower[knee] + JOINT_MARGIN_RAD
    assert lowest(1.0, 0.5, ["left_hand"]) == pytest.approx(in_the_air)
    assert lowest(-0.02, 1.0) < 0.0  # it begins beyond straight: there is a way to the other side


def test_bounds_of_a_joint_with_hardly_any_range_do_not_cross(telescopic):
    """Though the ends are at its limit, beyond the widest bounds."""
    least = PostureSearch(telescopic, np.ones(telescopic.nv), 0.01).limit
    for ends in (telescopic.limits.lower, telescopic.limits.upper):
        lower, upper = PathJointLimits(telescopic, least).between(np.array([ends, ends]), ())
        assert (lower <= upper + 1e-12).all()
