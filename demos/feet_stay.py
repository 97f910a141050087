"""How far can a hand reach while the feet stay? Inverse kinematics on a support, and what contacts determine.

    python demos/feet_stay.py

Contacts come first: the hand moves in the remaining freedom (S1, sections 2.10.4 and 2.10.5).
"""

import numpy as np

import mcplan as mc


def main() -> None:
    robot = mc.load_robot("hrp2")
    q = robot.posture("half_sitting")
    floor = mc.Surface("floor", size=(4, 4))
    left, right = (mc.contact(robot, f"{side}_sole", floor, near=q) for side in ("left", "right"))
    toe = mc.contact(robot, "left_sole", floor, near=q, kind="point")
    for name, contacts in (("a point", [toe]), ("a sole", [left]), ("two soles", [left, right])):
        print(f"{name:10s} {mc.stance_rank(robot, q, contacts)}")

    hand = robot.frame_pose(q, "right_hand")[:3, 3]
    com = robot.com(q)
    reached = 0.0
    for forward in np.arange(0.1, 0.9, 0.1):
        goal = hand + np.array([forward, 0.0, 0.1])
        found = mc.support_inverse_kinematics(robot, q, [left, right], {"right_hand": goal, "com": com}, 1e-5)
        print(
            f"hand {forward:.1f} m forward: missed by {1e3 * found.error:6.2f} mm, feet moved {1e3 * found.slip:.4f} mm"
        )
        if found.error > 1e-3:
            break
        reached = forward
    print(f"with the centre of mass where it was, the hand reaches {reached:.1f} m forward")


if __name__ == "__main__":
    main()
