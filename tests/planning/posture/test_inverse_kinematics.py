from dataclasses import replace

import numpy as np
import pytest

from mcplan.planning.posture import inverse_kinematics
from mcplan.planning.posture.contact_error import contact_error
from mcplan.planning.posture.inverse_kinematics import solve_posture
from mcplan.planning.posture.problem import FreeLimb, PostureProblem
from mcplan.statics.support_region import support_region

MARGIN = 0.03


def limits_kept(robot, q):
    return min((q[7:] - robot.limits.lower).min(), (robot.limits.upper - q[7:]).min()) >= MARGIN - 1e-9


def test_contacts_are_exact_limits_kept_and_the_centre_of_mass_inside(scene):
    robot, rng = scene.ROBOT, np.random.default_rng(0)
    guide = robot.posture("half_sitting")
    for _ in range(12):
        x, y, yaw = rng.uniform(-0.15, 0.25), rng.uniform(0.08, 0.16), rng.uniform(0.0, 0.3)
        left = scene.contact("left_sole", x=0.0, y=0.095, yaw=0.0)
        right = scene.contact("right_sole", x=x, y=-y, yaw=-yaw)
        loaded = (left, right)[: rng.integers(1, 3)]
        region = support_region(loaded, robot.mass)
        problem = PostureProblem(guide, (left, right), region, com_inset=0.02, joint_margin=MARGIN)
        posture = solve_posture(robot, problem)
        assert posture.found, posture.violations
        for contact in (left, right):
            assert np.abs(contact_error(robot, posture.q, contact)[0]).max() < 1e-6
        assert limits_kept(robot, posture.q)
        assert posture.com_inset >= 0.02 - 1e-6
        assert region.depth(robot.com(posture.q)) == pytest.approx(posture.com_inset)


def test_a_posture_that_is_right_already_stays(scene):
    robot = scene.ROBOT
    guide = robot.posture("half_sitting")
    feet = []
    for contact in scene.feet():
        X = robot.frame_pose(guide, contact.patch)
        feet.append(replace(contact, R=X[:3, :3], p=X[:3, 3]))
    posture = solve_posture(robot, PostureProblem(guide, tuple(feet)))
    assert posture.found
    assert np.allclose(posture.q, guide, atol=1e-9)


def test_a_target_of_the_centre_of_mass_is_met(scene):
    robot = scene.ROBOT
    target = np.array([0.04, 0.02, 0.78])
    posture = solve_posture(robot, PostureProblem(robot.posture("half_sitting"), scene.feet(), com=target))
    assert posture.found
    assert np.allclose(robot.com(posture.q), target, atol=1e-6)


def test_a_contact_out_of_reach_is_named_with_its_distance(scene):
    robot = scene.ROBOT
    left, _ = scene.feet()
    distance = []
    for x in (1.3, 1.5):
        far = scene.contact("right_sole", x=x, y=-0.095, yaw=0.0)
        posture = solve_posture(robot, PostureProblem(robot.posture("half_sitting"), (left, far)))
        assert not posture.found
        assert {violation.kind for violation in posture.violations} == {"reach"}
        assert limits_kept(robot, posture.q)
        distance.append(posture.violations[0].amount)
    assert 0.0 < distance[0] < distance[1]


def test_a_free_foot_stays_above_its_plane(scene):
    robot = scene.ROBOT
    left, right = scene.feet()
    planes = np.array([[0.0, 0.0, 1.0, 0.07]])
    free = FreeLimb("right_sole", planes, right.R)
    posture = solve_posture(robot, PostureProblem(robot.posture("half_sitting"), (left,), limbs=(free,)))
    assert posture.found
    X = robot.frame_pose(posture.q, "right_sole")
    height = (X[:3, 3] + robot.patches["right_sole"].points @ X[:3, :3].T)[:, 2]
    assert height.min() == pytest.approx(0.07, abs=1e-6)
    assert height.max() < 0.09


def test_a_search_that_ends_before_it_comes_to_rest_is_settled_on_its_contacts_and_inside_its_region(
    scene, monkeypatch
):
    robot, guide = scene.ROBOT, scene.ROBOT.posture("half_sitting")
    left = scene.contact("left_sole", x=0.0, y=0.095, yaw=0.0)
    right = scene.contact("right_sole", x=0.25, y=-0.15, yaw=-0.3)
    problem = PostureProblem(guide, (left, right), support_region((left,), robot.mass), joint_margin=MARGIN)
    monkeypatch.setattr(inverse_kinematics, "MAX_STEPS", 2)
    search = inverse_kinematics._Search(robot, problem)
    assert not search.nearest(guide.copy()).found
    posture = solve_posture(robot, problem)
    assert posture.found, posture.violations
    for contact in (left, right):
        assert np.abs(contact_error(robot, posture.q, contact)[0]).max() <= inverse_kinematics.TOLERANCE
    assert posture.com_inset >= 0.02 - inverse_kinematics.TOLERANCE
    assert limits_kept(robot, posture.q)
