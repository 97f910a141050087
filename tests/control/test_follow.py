"""Planned motions start from the present references; the initial offset is blended out."""

import numpy as np
import pytest

from mcplan.control.motion import Motion
from mcplan.control.phases import MAX_START_OFFSET, Shift
from mcplan.motion.spline import Spline
from mcplan.planning.transition.body_motion import Departure
from mcplan.planning.transition.finder import TransitionFinder
from mcplan.robot.robot_file import load_robot
from mcplan.scene.environment import Environment, Surface
from mcplan.scene.placement import make_contact
from mcplan.settings.control import ControlSettings

SQUARE = np.array([[-2.0, -2.0], [2.0, -2.0], [2.0, 2.0], [-2.0, 2.0]])
SCENE = Environment((Surface("floor", np.eye(3), np.zeros(3), SQUARE),))
SETTINGS = ControlSettings()
ARM = 7 + 20


@pytest.fixture(scope="module")
def planned():
    """HRP-2 in half sitting on both feet, and the motion to a posture 4 cm lower."""
    robot = load_robot("hrp2")
    soles = tuple(
        make_contact(robot, SCENE, {"patch": patch, "surface": "floor", "x": X[0, 3], "y": X[1, 3], "yaw": 0.0})
        for patch in ("left_sole", "right_sole")
        for X in [robot.frame_pose(robot.posture("half_sitting"), patch)]
    )
    q = robot.posture("half_sitting")
    lower = q.copy()
    for leg in "LR":
        for joint, change in ((2, -0.15), (3, 0.3), (4, -0.15)):
            lower[7 + robot.joint_names.index(f"{leg}LEG_JOINT{joint}")] += change
    lower[2] += soles[0].p[2] - robot.frame_pose(lower, "left_sole")[2, 3]
    return robot, soles, q, TransitionFinder(robot, SCENE, SETTINGS).shift(Departure(q, soles), lower)


def standing(planned, q):
    robot, soles, _, _ = planned
    motion = Motion(robot, SCENE, SETTINGS, q)
    for contact in soles:
        motion.close(contact, -1.0, 0.0)
    return motion


def nowhere(patch):
    raise AssertionError(patch)


def test_from_its_beginning_a_motion_is_followed_to_the_bit_whenever_it_begins(planned):
    _, _, q, segment = planned
    motion = standing(planned, q)
    motion.follow(segment, 3.0, nowhere)
    for t in np.linspace(0.0, segment.duration, 7):
        np.testing.assert_allclose(motion.posture.sample(3.0 + t).q, segment.posture.sample(t).q, atol=1e-12)
        np.testing.assert_allclose(motion.com.sample(3.0 + t).value, segment.centre.sample(t).value, atol=1e-12)
    assert motion.end_time == pytest.approx(3.0 + segment.duration)


def test_what_references_are_off_fades_without_haste(planned):
    robot, _, q, segment = planned
    motion, aside = standing(planned, q), np.array([0.0, 0.04, 0.0])
    motion.com = Spline.to_rest(robot.com(q) + aside, robot.com(q) + aside, 1.0)
    motion.follow(segment, 2.0, nowhere)
    T = segment.duration
    np.testing.assert_allclose(motion.com.sample(2.0).value, robot.com(q) + aside, atol=1e-9)
    np.testing.assert_allclose(motion.com.sample(2.0 + T).value, segment.com[-1], atol=1e-9)
    speeds = [
        np.linalg.norm((motion.com.sample(2.0 + t).velocity - segment.centre.sample(t).velocity)[:2])
        for t in np.linspace(0.0, T, 101)
    ]
    assert max(speeds) < 1.05 * 15 / 8 * 0.04 / T  # that of a minimum-jerk motion


def test_a_motion_is_replanned_when_the_robot_is_far_from_its_start(planned):
    _, _, q, segment = planned
    elsewhere = q.copy()
    elsewhere[ARM] += 0.3

    class Now:
        q = elsewhere
        joint_rates = np.zeros(len(elsewhere) - 7)

    for place, replanned in ((q, False), (elsewhere, True)):
        motion, phase, Now.q = standing(planned, place), Shift(1, segment), place
        before = motion.posture
        phase.replan(motion, 0.0, Now)
        assert motion.posture is before  # replanning starts no reference
        assert (phase.segment is not segment) == replanned
        assert bool(motion.notices) == replanned
        if not replanned:
            continue
        np.testing.assert_allclose(phase.segment.q[0], elsewhere)
        np.testing.assert_allclose(phase.segment.q[-1], segment.q[-1])
        assert motion.distance_to(phase.segment, 0.0) < MAX_START_OFFSET
        (notice,) = motion.notices
        assert "300 mm or 17.2 deg from the plan" in notice.text


def test_a_foot_that_feels_for_its_support_begins_above_and_goes_on_below_where_it_was_planned(planned):
    """The ground may be as far off as the settings say, up or down, and is found all the same."""
    robot, soles, q, _ = planned
    settings = SETTINGS.under("contact")
    assert settings.contact.touch_height > 0.0
    motion = Motion(robot, SCENE, settings, q)
    for contact in soles:
        motion.close(contact, -1.0, 0.0)
    left = soles[0]
    motion.open(left.patch, 0.0)
    motion.follow(motion.finder.swing(motion.departure(0.0), q, [left]), 0.0, nowhere)
    path = motion.limbs[left.patch]
    touch = settings.contact
    for t, height in ((path.path.end_time, touch.touch_height), (path.end_time, -touch.touch_depth)):
        np.testing.assert_allclose(path.sample(t).p, left.p + height * left.normal, atol=1e-9)
