"""A hand follows a circle while it turns: feedback takes an error away as its gain says, in any chart of the turn.

python demos/follow_a_circle.py
"""

import numpy as np

import mcplan as mc
from mcplan.textbook.coordinates import ROTATION_VECTOR, UNIT_QUATERNION, ZYX, pose
from mcplan.textbook.kinematics import track

SPIN = np.array([0.2, -0.3, 0.25])


def main() -> None:
    robot = mc.load_robot("hrp2")
    q = robot.posture("half_sitting")
    q[7 + robot.joint_names.index("RARM_JOINT3")] = -1.2
    X0 = robot.frame_pose(q, "right_hand")

    def reference(t: float) -> tuple[np.ndarray, np.ndarray]:
        p = X0[:3, 3] + 0.05 * np.array([np.cos(2 * t) - 1.0, 0.0, np.sin(2 * t)])
        v = 0.1 * np.array([-np.sin(2 * t), 0.0, np.cos(2 * t)])
        return pose(ROTATION_VECTOR.rotation(SPIN * t) @ X0[:3, :3], p), np.concatenate([v, SPIN])

    q[7 + robot.joint_names.index("RARM_JOINT0")] += 0.1  # the hand starts beside its path
    print("orientation by      gain   error at the start          after 0.1 s            after 0.5 s")
    for name, chart in {"shortest turn": None, "zyx": ZYX, "unit quaternion": UNIT_QUATERNION}.items():
        for gain in (0.0, 20.0):
            e = 1e3 * track(robot, q, "right_hand", reference, 0.5, 5e-3, gain, rotation=chart).error
            places = "   ".join(f"{e[k, 0]:6.2f} mm {e[k, 1]:6.2f} mrad" for k in (0, 20, 100))
            print(f"{name:18s} {gain:5.0f}   {places}")
    print(f"without feedback {e[0, 0]:.0f} mm stay; with it they fall by exp(-20 * 0.1) = {np.exp(-2):.2f} in 0.1 s")


if __name__ == "__main__":
    main()
