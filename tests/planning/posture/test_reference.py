"""What a posture by its name stands on."""

import numpy as np
from scipy.spatial.transform import Rotation

from mcplan.planning.posture.reference import ground_patches
from mcplan.robot.robot_file import load_robot


def test_a_robot_on_its_feet_stands_on_its_soles_and_upside_down_on_what_is_then_below():
    robot = load_robot("hrp2")
    q = robot.posture("half_sitting").copy()
    assert ground_patches(robot, q) == {"left_sole", "right_sole"}
    q[3:7] = Rotation.from_euler("x", np.pi).as_quat(scalar_first=True)
    assert not ground_patches(robot, q) & {"left_sole", "right_sole"}
