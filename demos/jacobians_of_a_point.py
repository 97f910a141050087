"""Jacobians of one point of the hand: in the world, relative to the base, in coordinates, and how they are related.

python demos/jacobians_of_a_point.py
"""

import numpy as np

import mcplan as mc
from mcplan.textbook.coordinates import (
    SPHERICAL,
    UNIT_QUATERNION,
    ZYX,
    Lagrangian,
    analytic_jacobian,
    geometric_jacobian,
    point_jacobian,
    relative_jacobian,
    transported,
)


def main() -> None:
    robot = mc.load_robot("hrp2")
    q = robot.random_configuration(3)
    tip = np.array([0.05, 0.0, -0.1])  # in the frame of the hand

    geometric = point_jacobian(robot, q, "right_hand", tip)
    R = robot.frame_pose(q, "right_hand")[:3, :3]
    moved = transported(robot.frame_jacobian(q, "right_hand"), R @ tip)
    print(f"transport from the hand's origin to the tip:      {np.abs(moved - geometric).max():.0e}")

    R0 = robot.frame_pose(q, "BODY")[:3, :3]
    hat = relative_jacobian(robot, q, "right_hand", tip)
    joints = np.vstack([R0 @ hat[:3], R0 @ hat[3:]])
    print(f"joint columns from the Jacobian seen by the base: {np.abs(joints - geometric[:, 6:]).max():.0e}")

    form = Lagrangian(robot, UNIT_QUATERNION)
    x = form.coordinates(q)
    apart = form.jacobian(x, "right_hand", tip) - geometric @ form.velocity_map(x)
    print(f"by the quaternion's rates, J E:                   {np.abs(apart).max():.0e}")

    hand = robot.frame_jacobian(q, "right_hand")
    J_A = analytic_jacobian(robot, q, "right_hand", SPHERICAL, ZYX)
    back = geometric_jacobian(J_A, robot.frame_pose(q, "right_hand"), SPHERICAL, ZYX)
    print(f"by spherical coordinates and Euler angles, E J_A: {np.abs(back - hand).max():.0e}")
    shoulder = 6 + robot.joint_names.index("RARM_JOINT0")
    print("the shoulder at 1 rad/s moves the hand's distance, azimuth, polar angle and its Euler angles z, y, x by")
    print(np.round(J_A[:, shoulder], 3), "m/s and rad/s")


if __name__ == "__main__":
    main()
