"""Motions are as slow as speeds, the room of the centre of mass, and what contacts bear ask for, and no slower."""

from dataclasses import replace

import numpy as np
import pytest

from mcplan.core.rigid_body.tree import GRAVITY
from mcplan.motion.spline import PostureSpline, Spline
from mcplan.planning.timing.duration import BALANCE_CHECKS, CONTACT_FORCE_SHARE
from mcplan.planning.transition.body_motion import KNOT_INTERVALS, BodyMotion
from mcplan.planning.transition.finder import TransitionFinder
from mcplan.planning.transition.knots import Knots
from mcplan.planning.transition.transition import Segment
from mcplan.robot.robot_file import load_robot
from mcplan.scene.environment import Environment, Surface
from mcplan.scene.placement import make_contact
from mcplan.settings.control import ControlSettings
from mcplan.settings.margins import with_control_margins
from mcplan.statics.feasibility import exertable_share

SQUARE = np.array([[-2.0, -2.0], [2.0, -2.0], [2.0, 2.0], [-2.0, 2.0]])


@pytest.fixture(scope="module")
def scene():
    """HRP-2 in half sitting on a floor."""
    robot, environment = load_robot("hrp2"), Environment((Surface("floor", np.eye(3), np.zeros(3), SQUARE),))
    soles = [("left_sole", 0.095), ("right_sole", -0.095)]
    contacts = tuple(
        make_contact(robot, environment, {"patch": patch, "surface": "floor", "x": 0.0, "y": y, "yaw": 0.0})
        for patch, y in soles
    )
    return robot, TransitionFinder(robot, environment, ControlSettings()), contacts, robot.posture("half_sitting")


@pytest.fixture(scope="module")
def swerving(scene):
    """Knots on both feet that move the body to the side at once, stay there, and come back, in 1.5 s."""
    _, _, _, q = scene
    aside = (
        0.06 * np.clip(np.minimum(np.arange(KNOT_INTERVALS + 1), np.arange(KNOT_INTERVALS, -1, -1)) / 4, 0.0, 1.0) ** 2
    )
    knots = np.tile(q, (KNOT_INTERVALS + 1, 1))
    knots[:, 1] += aside
    return BodyMotion(np.linspace(0.0, 1.5, KNOT_INTERVALS + 1), Knots(knots, 0.0, 0.0), 2.0, True)


def test_a_motion_is_slowed_until_its_centre_of_pressure_stays_within_the_room_that_contacts_leave(scene, swerving):
    robot, finder, contacts, _ = scene

    def excess(motion):
        com = Spline(motion.times, robot.com(motion.knots.q))
        return max(
            np.linalg.norm(x.acceleration[:2]) * x.value[2] / GRAVITY / finder.durations.cop_distance(contacts, x.value)
            for x in map(com.sample, np.linspace(0.0, motion.duration, 500))
        )

    assert excess(swerving) > 2.0
    slow = finder.motions.slow_down(swerving, contacts)
    assert excess(slow) < 1.1
    assert slow.duration < 1.1 * swerving.duration * np.sqrt(excess(swerving))  # no slower than it must be
    np.testing.assert_array_equal(slow.knots.q, swerving.knots.q)
    assert finder.motions.slow_down(slow, contacts) is slow


def test_a_motion_through_a_posture_that_its_contacts_do_not_bear_is_not_held(scene, swerving):
    _, finder, contacts, _ = scene
    gentle = finder.motions.slow_down(swerving, contacts)
    knots = swerving.knots.q.copy()
    knots[KNOT_INTERVALS // 2, 0] += 0.3  # out of the feet
    outside = finder.motions.with_timing(Knots(knots, 0.0, 0.0), swerving.times, contacts)
    assert gentle.held
    assert not outside.held
    assert outside.rank > gentle.rank


def test_a_motion_that_is_not_held_has_a_shortfall(scene, swerving):
    """Out of the feet between two of the postures that are looked at first; all else of it holds."""
    robot, finder, contacts, _ = scene
    knots = swerving.knots.q.copy()
    assert finder.durations.overload(segment(robot, contacts, swerving.times, knots, held=False)) is None
    away = KNOT_INTERVALS // BALANCE_CHECKS * (BALANCE_CHECKS // 2) + KNOT_INTERVALS // BALANCE_CHECKS // 2
    knots[away, 0] += 0.3
    assert finder.durations.overload(segment(robot, contacts, swerving.times, knots, held=True)) is None
    lacks = finder.durations.overload(segment(robot, contacts, swerving.times, knots, held=False))
    assert lacks.kind == "com"
    assert lacks.amount > 0.05


def segment(robot, contacts, times, q, held):
    """The motion of knots (k, nq) at times (k,)."""
    return Segment(contacts, times, q, robot.com(q), held=held)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_speeds_of_trunk_and_joints_count_too(scene, sign):
    robot, finder, contacts, q = scene
    turned = np.tile(q, (KNOT_INTERVALS + 1, 1))
    joint = 7 + robot.joint_names.index("RARM_JOINT3")
    times = np.linspace(0.0, 1.0, KNOT_INTERVALS + 1)
    turned[:, joint] += sign * 2.0 * np.sin(0.5 * np.pi * times) ** 2
    posture, com = PostureSpline(times, turned), Spline(times, robot.com(turned))
    fastest = max(abs(posture.sample(t).v[joint - 1]) for t in np.linspace(0.0, 1.0, 200))
    stretch, _ = finder.durations.stretch(com, posture, contacts)
    assert stretch == pytest.approx(fastest / finder.durations.rates[joint - 7], rel=0.01)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_a_straight_path_takes_as_long_as_its_fastest_joint_needs(scene, sign):
    """The head turns by 2 rad in minimum jerk, whose largest speed is 15/8 of the mean one."""
    robot, finder, contacts, q = scene
    turned, joint = q.copy(), robot.joint_names.index("HEAD_JOINT0")
    turned[7 + joint] += sign * 2.0
    assert finder.durations.straight(q, turned, contacts) == pytest.approx(15 / 8 * 2.0 / finder.durations.rates[joint])


@pytest.mark.parametrize("sign", [-1.0, 1.0])
@pytest.mark.parametrize(("axis", "near", "far"), [(0, 0.05, 0.09), (0, 0.07, 0.10), (1, 0.11, 0.15)])
def test_a_shift_takes_as_long_as_its_end_with_the_least_room_asks_for(scene, axis, near, far, sign):
    """There and back, to either side: ``T = sqrt(5.8 D / room) / w``."""
    robot, finder, contacts, q = scene
    ends = np.tile(q, (2, 1))
    middle = np.mean([c.p for c in contacts], axis=0)
    ends[:, axis] += sign * np.array([near, far]) + middle[axis] - robot.com(q)[axis]
    rooms = [finder.durations.cop_distance(contacts, robot.com(end)) for end in ends]
    assert rooms[1] < 0.9 * rooms[0]
    expected = np.sqrt(5.8 * (far - near) / rooms[1] * robot.com(q)[2] / GRAVITY)
    for start, end in (ends, ends[::-1]):
        found = finder.durations.straight(start, end, contacts)
        assert found == pytest.approx(max(expected, finder.settings.timing.min_shift_duration))
    assert expected > finder.settings.timing.min_shift_duration


def test_what_limbs_take_besides_the_weight_counts_too(scene):
    """The trunk turns to and fro over one sole: the centre of mass stays, and friction has to turn the robot."""
    robot, finder, contacts, q = scene
    times, sole = np.linspace(0.0, 0.8, KNOT_INTERVALS + 1), (replace(contacts[0], friction=0.05),)
    q = q.copy()
    q[:2] += contacts[0].p[:2] - robot.com(q)[:2]
    knots = np.tile(q, (KNOT_INTERVALS + 1, 1))
    knots[:, 7 + robot.joint_names.index("CHEST_JOINT0")] += 0.15 * np.sin(np.pi * times / times[-1]) ** 4

    def stretch(slower):
        posture, com = PostureSpline(slower * times, knots), Spline(slower * times, robot.com(knots))
        return finder.durations.stretch(com, posture, sole)[0]

    def least_part(slower):
        samples = [PostureSpline(slower * times, knots).sample(slower * t) for t in np.linspace(0.0, times[-1], 200)]
        q, v, vd = (np.array(column) for column in zip(*samples, strict=True))
        counted = [with_control_margins(contact, finder.settings) for contact in sole]
        parts = []
        for at, force in zip(q, robot.inverse_dynamics(q, v, vd)[:, :6], strict=True):
            arm, weight = at[:3] - robot.com(at), robot.mass * GRAVITY * np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
            wrench = np.append(force[:3], force[3:] + np.cross(arm, force[:3])) - weight
            parts.append(exertable_share(robot.com(at), weight, wrench, counted, robot.mass, 2.0))
        return min(parts)

    slower = stretch(1.0)
    assert slower > 1.2
    assert least_part(1.0) < 0.7
    assert least_part(slower) * CONTACT_FORCE_SHARE == pytest.approx(1.0, rel=0.05)
    assert stretch(slower) == pytest.approx(1.0, abs=0.02)
