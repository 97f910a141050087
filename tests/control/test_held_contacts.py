"""Constraints of closed contacts: set-points, stiffness, force limits."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mcplan.control.command import Ramp
from mcplan.control.held_contacts import COMPLIANT_MIN_INDEPENDENCE, HeldContacts
from mcplan.control.motion import Motion
from mcplan.robot.robot_file import load_robot
from mcplan.robot.terms import Terms
from mcplan.settings.control import ControlSettings
from mcplan.whole_body.contact import MIN_INDEPENDENCE
from tests.control.places import SCENE, closed, contact_on, objects_of


@pytest.fixture(scope="module")
def robot():
    return load_robot("hrp2")


def held_by(robot, settings, contacts=()):
    return HeldContacts(settings, objects_of(robot, settings, contacts))


def test_a_contact_is_stiff_along_its_support_and_as_set_along_its_normal(robot):
    settings = ControlSettings(gains={"contact_kp": 81.0, "contact_normal_kp": 10.0})
    held = held_by(robot, settings)
    flat = held.close(closed(robot, contact_on(robot, "left_sole", "ramp", x=0.0, y=0.1, yaw=0.5), settings))
    assert flat.kp == pytest.approx([81.0, 81.0, 10.0, 81.0, 81.0, 81.0])  # it is drawn flat from however it touched
    assert flat.kd == pytest.approx(np.full(6, 18.0))  # critical: 2 sqrt(81)
    edge = held.close(closed(robot, contact_on(robot, "left_toe", "floor", x=0.0, y=0.1, yaw=0.5), settings))
    assert edge.kp[3:] == pytest.approx(np.full(3, 81.0))
    grip = held.close(closed(robot, contact_on(robot, "left_grip", "bar", along=0.3, angle=0.0), settings))
    assert sorted(grip.kp[3:]) == pytest.approx([10.0, 10.0, 81.0])
    on_box = contact_on(robot, "left_hand", "face", x=0.0, y=0.0, yaw=0.0)
    moving = held_by(robot, settings, [on_box]).close(closed(robot, on_box, settings))
    assert moving.kp == pytest.approx(np.full(6, 81.0))


def test_of_friction_the_least_that_is_known_counts_and_of_that_a_part(robot):
    settings = ControlSettings(contact={"friction_fraction": 0.9, "friction_faces": 6})
    held = held_by(robot, settings)
    contact = contact_on(robot, "left_sole", "floor", x=0.0, y=0.1, yaw=0.0, friction=0.6)
    assert held.close(closed(robot, contact, settings)).friction == pytest.approx(0.54)
    assert held.close(closed(robot, contact, settings, friction=0.3)).friction == pytest.approx(0.27)
    assert held.close(closed(robot, contact, settings, friction=0.8)).friction == pytest.approx(0.54)
    assert held.close(closed(robot, contact, settings)).shape.faces == 6


def test_a_contact_is_held_where_it_touched(robot):
    settings = ControlSettings()
    held = held_by(robot, settings)
    contact = contact_on(robot, "left_sole", "floor", x=0.0, y=0.1, yaw=0.0)
    place = (contact.R @ Rotation.from_rotvec([0, 0, 0.02]).as_matrix(), contact.p + 0.003)
    constraint = held.close(closed(robot, contact, settings, place=place))
    assert pytest.approx(place[0]) == constraint.R
    assert constraint.p == pytest.approx(place[1])


def test_of_a_contact_that_closes_again_nothing_is_left_of_the_first_time(robot):
    """Its constraint is made once: where and how firmly it was held then belongs to then."""
    settings = ControlSettings()
    held = held_by(robot, settings)
    contact = contact_on(robot, "left_sole", "floor", x=0.0, y=0.1, yaw=0.0)
    new = held_by(robot, settings).close(closed(robot, contact, settings)).values.copy()
    slid = closed(robot, contact, settings, place=(contact.R, contact.p + 0.003), friction=0.3)
    first = held.fill(1.2, slid, None, 1.0)
    held.scale_stiffness(0.0)
    assert not np.array_equal(first.values, new)
    assert held.close(closed(robot, contact, settings)) is first
    np.testing.assert_array_equal(first.values, new)


def test_what_touched_with_a_corner_is_drawn_flat_and_keeps_its_direction(robot):
    settings = ControlSettings()
    held = held_by(robot, settings)
    contact = contact_on(robot, "left_sole", "ramp", x=0.0, y=0.1, yaw=0.3)
    yaw = Rotation.from_rotvec(0.05 * contact.normal).as_matrix() @ contact.R
    along = contact.axes[:, 0]
    tilted = Rotation.from_rotvec(0.04 * along).as_matrix() @ yaw
    constraint = held.close(closed(robot, contact, settings, place=(tilted, contact.p)))
    np.testing.assert_allclose(constraint.R, yaw, atol=1e-12)


def test_a_sole_on_a_bar_is_drawn_flat_along_it_and_rolls_about_it(robot):
    settings = ControlSettings(gains={"contact_kp": 90.0, "contact_normal_kp": 7.0})
    held = held_by(robot, settings)
    contact = contact_on(robot, "left_sole", "bar", along=0.3, angle=0.4, offset=0.02)
    bar = contact.points[1] - contact.points[0]
    bar /= np.linalg.norm(bar)
    across = np.cross(contact.normal, contact.R @ bar)
    tilted = Rotation.from_rotvec(0.04 * across).as_matrix() @ contact.R
    constraint = held.close(closed(robot, contact, settings, place=(tilted, contact.p)))
    np.testing.assert_allclose(constraint.R, contact.R, atol=1e-12)
    stiffness = np.diag(constraint.kp[3:])
    assert bar @ stiffness @ bar == pytest.approx(7.0)
    assert (contact.R.T @ across) @ stiffness @ (contact.R.T @ across) == pytest.approx(90.0)


def test_limits_of_force_and_moment_rise_together(robot):
    settings = ControlSettings(contact={"force_fraction": 0.8})
    held = held_by(robot, settings)
    grip = contact_on(robot, "left_grip", "bar", along=0.3, angle=0.0)
    loaded = closed(robot, grip, settings)
    full = 0.8 * grip.max_force
    for t, force in ((1.0, 30.0), (1.2, 0.5 * (30.0 + full)), (1.4, full)):
        constraint = held.fill(t, loaded, None, 0.8)
        assert constraint.max_force == pytest.approx(force)
        assert constraint.max_moment == pytest.approx(0.8 * grip.max_moment * force / full)
    relied = held.fill(1.4, loaded, None, 0.6)
    assert relied.max_force == pytest.approx(0.6 * grip.max_force)
    assert relied.max_moment == pytest.approx(0.6 * grip.max_moment)


@pytest.mark.parametrize(
    ("contacts", "along"), [("rigid", MIN_INDEPENDENCE), ("compliant", COMPLIANT_MIN_INDEPENDENCE)]
)
def test_along_supports_that_give_more_rows_count_as_following_from_others(robot, contacts, along):
    held = held_by(robot, ControlSettings(contact={"model": contacts}))
    settings = held.settings
    sole = closed(robot, contact_on(robot, "left_sole", "floor", x=0.0, y=0.1, yaw=0.4), settings)
    expected = [along, along, *[MIN_INDEPENDENCE] * 4]
    np.testing.assert_allclose(held.close(sole).min_independence, expected, rtol=1e-9)


def test_what_a_grip_holds_does_not_give(robot):
    held = held_by(robot, ControlSettings(contact={"model": "compliant"}))
    grip = closed(robot, contact_on(robot, "left_grip", "bar", along=0.3, angle=0.0), held.settings)
    assert (held.close(grip).min_independence == MIN_INDEPENDENCE).all()


def test_a_contact_bears_its_preload_as_far_as_the_motion_keeps_its_reserve(robot):
    settings = ControlSettings(contact={"preload_force": 12.0, "model": "compliant"})
    held = held_by(robot, settings)
    contact = contact_on(robot, "left_sole", "floor", x=0.0, y=0.1, yaw=0.0)
    loaded = closed(robot, contact, settings)
    for share, expected in ((1.0, 12.0), (0.25, 3.0), (0.0, 0.0)):
        held.preload_share = share
        assert held.fill(2.0, loaded, None, 1.0).preload == pytest.approx(expected)
    held.preload_share = 1.0
    loaded.limit = Ramp(8.0, 0.0, 2.0, 1.0)
    assert held.fill(2.0, loaded, None, 1.0).preload == pytest.approx(7.2)
    assert held.fill(3.0, loaded, None, 1.0).preload == 0.0
    grip = contact_on(robot, "left_grip", "bar", along=0.3, angle=0.0)
    assert held.fill(2.0, closed(robot, grip, settings), None, 1.0).preload == 0.0
    rigid = held_by(robot, ControlSettings(contact={"preload_force": 12.0}))
    rigid.preload_share = 1.0
    assert rigid.fill(2.0, closed(robot, contact, settings), None, 1.0).preload == 0.0


def test_contacts_are_settled_once_their_limits_are_final(robot):
    settings, patches = ControlSettings(), ("left_sole", "right_toe")
    held, motion = held_by(robot, settings), Motion(robot, SCENE, settings, robot.posture("half_sitting"))
    terms = Terms(robot, patches)
    terms.update(robot.posture("half_sitting"), np.zeros(robot.nv))
    for patch, y in zip(patches, (0.1, -0.1), strict=True):
        contact = contact_on(robot, patch, "floor", x=0.0, y=y, yaw=0.3)
        motion.close(contact, 1.0, 0.4, 30.0)
        terms.frame(patch).R[:], terms.frame(patch).p[:] = contact.R, contact.p

    def settled(t):
        held.fill_all(t, motion, terms, 1.0)
        return held.is_settled

    assert not settled(1.1)
    assert settled(2.0)
    free, poses, index = held.free_bounds  # the sole is held in all directions, an edge may turn about itself
    assert index.tolist() == [1]
    np.testing.assert_array_equal(poses[0], np.append(contact.R, contact.p))
    np.testing.assert_array_equal(free[0], contact.free)
    turned = Rotation.from_rotvec([0.0, 0.1, 0.0]).as_matrix() @ terms.frame("right_toe").R
    terms.frame("right_toe").R[:] = turned
    assert settled(2.1)
    assert held.free_bounds[1] is poses  # in place, for those who keep it
    assert np.abs(poses[0, :9].reshape(3, 3) - contact.R).max() > 0.01
    motion.unload("left_sole", 2.2, 0.4, 300.0)
    assert not settled(2.3)
    assert held.fill_all(2.3, motion, terms, 1.0)[0].max_force < 300.0
    assert settled(2.7)
    motion.contacts["left_sole"] = replace(motion.contacts["left_sole"], is_lifted=True)
    assert not settled(2.8)
