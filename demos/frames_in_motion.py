"""Poses, points of moving bodies, and one velocity in three representations: inertial, body-fixed, mixed.

python demos/frames_in_motion.py
"""

import numpy as np

import mcplan as mc
from mcplan.coordinates import (
    convert_force,
    convert_velocity,
    inverse,
    point_acceleration,
    point_velocity,
    pose,
    transformed,
)


def main() -> None:
    T_AB = pose([[1, 0, 0], [0, 0, -1], [0, 1, 0]], [0, 3, 1])
    print("a point at (0, 1, 1) in B is in A at", transformed(T_AB, [0, 1, 1]), "and back at", end=" ")
    print(transformed(inverse(T_AB), [0, 2, 2]))

    robot = mc.load_robot("hrp2")
    q, rng = robot.posture("half_sitting"), np.random.default_rng(0)
    v = rng.normal(size=robot.nv)
    X, twist = robot.frame_pose(q, "right_hand"), robot.frame_jacobian(q, "right_hand") @ v
    acceleration = robot.frame_bias_acceleration(q, v, "right_hand")
    arm = X[:3, :3] @ [0.0, 0.0, 0.1]  # a tool that the hand holds, 10 cm off
    print("tool: velocity", np.round(point_velocity(twist, arm), 3), end=" m/s, ")
    print("acceleration", np.round(point_acceleration(twist, acceleration, arm), 3), "m/s²")

    wrench = rng.normal(size=6)
    for representation in ("mixed", "body", "inertial"):
        seen = convert_velocity(twist, X, "mixed", representation)
        force = convert_force(wrench, X, "mixed", representation)
        print(f"{representation:9s} velocity {np.round(seen, 3)}  power {seen @ force:.12f} W")


if __name__ == "__main__":
    main()
