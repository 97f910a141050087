"""Poses, points of moving bodies, and one velocity in three representations: inertial, body-fixed, mixed.

python demos/frames_in_motion.py
"""

import numpy as np

import mcplan as mc
from mcplan.textbook.coordinates import (
    CYLINDRICAL,
    SPHERICAL,
    convert_acceleration,
    convert_force,
    convert_velocity,
    force_transform,
    inverse,
    point_acceleration,
    point_velocity,
    pose,
    transformed,
    velocity_from_moving_axes,
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

    for chart in (CYLINDRICAL, SPHERICAL):
        chi = chart.parameters(X[:3, 3])
        rates = chart.E_inverse(chi) @ twist[:3]
        print(f"hand in {chart.name} coordinates {np.round(chi, 3)}, rates {np.round(rates, 3)}")
    R, p = X[:3, :3], X[:3, 3]
    still = velocity_from_moving_axes(R, twist[3:], R.T @ p, -R.T @ np.cross(twist[3:], p))
    print(f"a point at rest, seen from the turning hand, moves; its velocity is {np.abs(still).max():.0e} all the same")

    wrench = rng.normal(size=6)
    for representation in ("mixed", "body", "inertial"):
        seen = convert_velocity(twist, X, "mixed", representation)
        rate = convert_acceleration(acceleration, twist, X, "mixed", representation)
        force = convert_force(wrench, X, "mixed", representation)
        print(
            f"{representation:9s} velocity {np.round(seen, 3)} its rate {np.round(rate, 2)} power {seen @ force:.9f} W"
        )
    moved = force_transform(X) @ convert_force(wrench, X, "mixed", "body")
    print(f"the force in the world's frame is the inertial one to {np.abs(moved - force).max():.0e}")


if __name__ == "__main__":
    main()
