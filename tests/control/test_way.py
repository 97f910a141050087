"""Ways continue the references that hold when they begin."""

import numpy as np
import pytest
from mcplan.control.way import GOOD, KNOTS, Start, Way, WayFinder

from mcplan.core.rigid_body.tree import GRAVITY
from mcplan.model.robot_file import load_robot
from mcplan.motion.limb_path import LimbPath
from mcplan.motion.posture import PostureTrajectory
from mcplan.motion.quintic import Quintic
from mcplan.motion.spline import PostureSpline, Spline
from mcplan.planning.transition.knots import TransitFinder
from mcplan.scene.environment import Environment, Surface
from mcplan.scene.place import make_contact
from mcplan.scene.settings import ControlSettings

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
    return robot, environment, contacts, robot.posture("half_sitting")


def test_a_centre_of_mass_that_was_left_beside_its_posture_comes_back_without_haste(scene):
    robot, environment, contacts, q = scene
    aside, duration = np.array([0.0, 0.08, 0.0]), 2.0
    start = Start(Quintic(robot.com(q) + aside, robot.com(q) + aside, 1.0).sample(1.0),
                  PostureTrajectory(q, q, 1.0).sample(1.0), q)  # fmt: skip
    finder = WayFinder(robot, ControlSettings(), TransitFinder(robot, environment))
    way = finder.find(start, 0.0, duration, contacts)
    np.testing.assert_allclose(way.com.sample(0.0).value, robot.com(q) + aside, atol=1e-9)
    np.testing.assert_allclose(way.com.sample(duration).value, robot.com(q), atol=1e-9)
    speeds = [np.linalg.norm(way.com.sample(t).velocity) for t in np.linspace(0.0, duration, 101)]
    assert max(speeds) < 1.05 * 15 / 8 * 0.08 / duration  # that of a minimum-jerk motion
    assert way.stretch == 1.0


@pytest.fixture(scope="module")
def swerving(scene):
    """A way on both feet that moves the body to the side at once, stays there, and comes back."""
    robot, environment, _, q = scene
    finder = WayFinder(robot, ControlSettings(), TransitFinder(robot, environment))
    start = Start(Quintic(robot.com(q), robot.com(q), 1.0).sample(1.0), PostureTrajectory(q, q, 1.0).sample(1.0), q)
    aside = 0.06 * np.clip(np.minimum(np.arange(KNOTS + 1), np.arange(KNOTS, -1, -1)) / 4, 0.0, 1.0) ** 2
    knots = np.tile(q, (KNOTS + 1, 1))
    knots[:, 1] += aside
    times = np.linspace(0.0, 1.5, KNOTS + 1)
    com = Spline(times, robot.com(knots))
    return finder, start, Way(com, PostureSpline(times, knots), 0.0, 0.0, 2.0)


def test_a_way_is_slowed_until_its_centre_of_pressure_stays_within_the_room_that_the_contacts_leave(scene, swerving):
    _, _, contacts, _ = scene
    finder, start, fast = swerving

    def excess(way):
        times = np.linspace(way.begin, way.begin + way.duration, 500)
        return max(
            np.linalg.norm(x.acceleration[:2]) * x.value[2] / GRAVITY / finder.room(contacts, x.value)
            for x in map(way.com.sample, times)
        )

    assert excess(fast) > 2.0
    slow = finder.slowed(start, fast, contacts)
    assert excess(slow) < 1.1
    # no slower than it must be
    assert slow.duration < 1.1 * fast.duration * np.sqrt(excess(fast))
    np.testing.assert_array_equal(slow.posture.knots, fast.posture.knots)
    assert finder.slowed(start, slow, contacts) is slow


def test_a_way_through_a_posture_that_its_contacts_do_not_bear_is_not_held(scene, swerving):
    robot, _, contacts, _ = scene
    finder, start, way = swerving
    gentle = finder.slowed(start, way, contacts)
    knots = way.posture.knots.copy()
    knots[KNOTS // 2, 0] += 0.3  # out of the feet
    times = np.linspace(0.0, 1.5, KNOTS + 1)
    outside = way._replace(posture=PostureSpline(times, knots), com=Spline(times, robot.com(knots)))
    assert gentle.held
    assert not finder.slowed(start, outside, contacts).held
    assert outside._replace(held=False).rank > gentle.rank


def test_the_body_goes_straight_where_limbs_alone_can_do_what_is_asked(scene):
    robot, environment, contacts, q = scene
    finder = WayFinder(robot, ControlSettings(), TransitFinder(robot, environment))
    start = Start(Quintic(robot.com(q), robot.com(q), 1.0).sample(1.0), PostureTrajectory(q, q, 1.0).sample(1.0), q)
    X = robot.frame_pose(q, "right_grip")
    pose = X[:3, :3], X[:3, 3]
    path = LimbPath(pose, pose, *2 * [np.array([0.25, 0.0, 0.2])], None, 0.0, 6.0)
    way = finder.find(start, 0.0, 6.0, contacts, (), {"right_grip": path})
    assert way.missed <= GOOD
    assert way.held
    assert np.linalg.norm(way.posture.knots[:, :3] - q[:3], axis=1).max() < 0.01
    middle = robot.frame_pose(way.posture.knots[KNOTS // 2], "right_grip")[:3, 3]
    np.testing.assert_allclose(middle, path.sample(3.0).p, atol=0.01)
