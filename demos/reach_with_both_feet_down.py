"""Where do all joints go when a hand reaches out and both feet stay where they are? Inverse kinematics of a humanoid.

    python demos/reach_with_both_feet_down.py

What cannot be reached is missed by as little as the priorities allow, and the answer says by how much.
"""

import numpy as np

import mcplan as mc


def main() -> None:
    robot = mc.load_robot("hrp2")
    q = robot.posture("half_sitting")
    soles = {name: robot.frame_pose(q, name) for name in ("left_sole", "right_sole")}
    print("right hand at   base moves   posture   answer")
    for x in (0.3, 0.6, 0.9, 2.0):
        targets = soles | {"right_hand": np.array([x, -0.2, 0.8])}
        answer = mc.inverse_kinematics(
            robot, targets, start=q, priorities={"right_hand": 1}, posture=q, attempts=1, max_iterations=100
        )
        moved = np.linalg.norm(answer.q[:3] - q[:3])
        bent = np.linalg.norm(answer.q[7:] - q[7:])
        print(f"{x:9.1f} m {100 * moved:9.1f} cm {bent:7.2f} rad   {answer.message.partition(';')[0]}")
    foot = max(max(answer.errors[name]) for name in soles)
    print(f"even then the feet are {1000 * foot:.3f} mm and mrad at most from where they stood")


if __name__ == "__main__":
    main()
