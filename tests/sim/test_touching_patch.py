"""A point in several patches of a link belongs to the one that is meant to touch there."""

import numpy as np
import pytest

from mcplan.model.robot_file import load_robot
from mcplan.scene.environment import Environment, Surface
from mcplan.sim.contact.contact_physics import ContactPhysics
from mcplan.sim.physics import Action

PATCHES = ("left_sole", "left_toe", "right_sole", "right_toe")


@pytest.fixture(scope="module")
def standing():
    robot = load_robot("hrp2")
    square = np.array([[-2, -2], [2, -2], [2, 2], [-2, 2.0]])
    environment = Environment((Surface("floor", np.eye(3), np.zeros(3), square),), (), (), ())
    q = robot.posture("half_sitting").copy()
    q[2] -= min(robot.frame_pose(q, name)[2, 3] for name in PATCHES)
    return robot, environment, q


@pytest.mark.parametrize("active", [PATCHES[::2], ("left_toe", "right_sole"), ()])
def test_soles_and_toes_share_what_the_feet_carry_by_what_is_meant_to_touch(standing, active):
    robot, environment, q = standing
    physics = ContactPhysics(robot, environment, q, PATCHES)
    nothing = np.zeros(robot.n)
    for _ in range(3):
        begun = physics.q
        outcome = physics.step(Action(nothing, np.zeros(robot.nv), {}, {}, active), 1e-3)
    points = outcome.forces
    for name, wrench in outcome.wrenches.items():
        mine = points.patch == PATCHES.index(name)
        p = robot.frame_pose(begun, name)[:3, 3]
        force = points.force[mine]
        np.testing.assert_allclose(wrench[:3], force.sum(axis=0), atol=1e-9)
        np.testing.assert_allclose(wrench[3:], np.cross(points.xyz[mine] - p, force).sum(axis=0), atol=1e-9)
    assert "right_toe" not in outcome.wrenches
    assert ("left_toe" in outcome.wrenches) == ("left_toe" in active)
