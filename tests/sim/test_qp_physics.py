"""Physics ``qp``: robot and objects move as the accelerations say that they are given."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mcplan.robot.description import Box
from mcplan.robot.robot_file import load_robot
from mcplan.scene.environment import FreeObject
from mcplan.sim.physics import Action
from mcplan.sim.qp_physics import QpPhysics

STEPS, DT = 200, 0.001
FIRST = Rotation.from_rotvec([0.4, -0.2, 0.7])


@pytest.fixture(scope="module")
def robot():
    return load_robot("hrp2")


def executed(robot, object_vd):
    """Return the physics after constant accelerations of two boxes; the robot is at rest."""
    boxes = [FreeObject(name, Box((0.1,) * 3), FIRST.as_matrix(), np.ones(3), 1.0, 0.5) for name in ("a", "b")]
    physics = QpPhysics(robot, robot.posture("half_sitting"), objects=boxes)
    for _ in range(STEPS):
        physics.step(Action(np.zeros(robot.n), np.zeros(robot.nv), {}, {}, (), object_vd=object_vd), DT)
    return physics


def test_objects_gain_speed_with_time_and_go_as_far_as_that_takes_them(robot):
    """Semi-implicit Euler: after n steps v = n dt a, displacement n (n + 1) / 2 dt² a; about an axis as along one."""
    a = np.array([[0.5, -1.0, 0.25, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.6, 0.3, -0.2]])
    physics = executed(robot, a)
    np.testing.assert_allclose(physics.object_v, STEPS * DT * a, atol=1e-12)
    shift = STEPS * (STEPS + 1) / 2 * DT**2 * a
    np.testing.assert_allclose(physics.object_q[:, :3], 1.0 + shift[:, :3], atol=1e-12)
    for q, turn in zip(physics.object_q, shift[:, 3:], strict=True):
        found = Rotation.from_quat(q[3:], scalar_first=True)
        np.testing.assert_allclose((found * FIRST.inv()).as_rotvec(), turn, atol=1e-12)


def test_objects_that_the_program_does_not_know_stay(robot):
    physics = executed(robot, None)
    np.testing.assert_array_equal(physics.object_v, np.zeros((2, 6)))
    np.testing.assert_allclose(physics.object_q[:, :3], np.ones((2, 3)))
