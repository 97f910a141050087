"""The first cell of a notebook: a scene from Python values, a posture, a region (the rest: `test_notebooks.py`)."""

import numpy as np
import pytest

import mcplan as mc
from mcplan.errors import InputError


@pytest.fixture(scope="module")
def scene():
    robot = mc.load_robot("hrp2")
    floor = mc.Surface("floor", size=(4, 4))
    table = mc.Surface("table", xyz=(0.6, 0, 0.9), size=(0.4, 1.2))
    env = mc.Environment([floor, table])
    soles = [
        mc.contact(robot, "left_sole", floor, x=0.01, y=0.095),
        mc.contact(robot, "right_sole", floor, x=0.01, y=-0.095),
    ]
    return robot, env, soles, mc.contact(robot, "left_hand", table, x=0.05, y=0.28)


def test_a_posture_is_found_and_says_so(scene):
    robot, env, soles, hand = scene
    posture = mc.solve_posture(robot, env, [*soles, hand], near=robot.posture("half_sitting"))
    assert posture.found, posture
    assert str(posture).startswith("posture on left_sole, right_sole, left_hand: ")
    for contact in (*soles, hand):
        X = robot.frame_pose(posture.q, contact.patch)
        np.testing.assert_allclose(X[:3, 3], contact.p, atol=1e-5)
        np.testing.assert_allclose(X[:3, 2], contact.R[:, 2], atol=1e-5)
    region = mc.support_region(robot, posture.q, [*soles, hand])
    assert region.depth(robot.com(posture.q)) > 0.0
    assert np.all(np.abs(posture.tau) < robot.limits.torque)


def test_a_posture_that_is_not_says_what_is_missed(scene):
    robot, env, soles, _ = scene
    far = mc.contact(robot, "left_hand", env.support("table"), x=0.05, y=-0.5)
    posture = mc.solve_posture(robot, env, [*soles, far], com=[0.4, 0.0])
    assert not posture.found
    assert "no posture on left_sole, right_sole, left_hand: " in str(posture)
    assert posture.violations[0].amount > 0.0
    with pytest.raises(InputError, match="different patches"):
        mc.solve_posture(robot, env, [*soles, soles[0]])
    with pytest.raises(InputError, match="q of hrp2"):
        mc.solve_posture(robot, env, soles, near=np.zeros(3))
