"""With the centre of mass and the average angular velocity as base velocity, the mass matrix falls into three blocks.

    python demos/average_velocity.py

A humanoid in flight swings its arms: the base wobbles, the average angular velocity does not follow it. If all joints
locked at once, the robot would turn at that velocity.
"""

import numpy as np

import mcplan as mc
from mcplan.textbook.coordinates import average_velocity, equations_of_motion, locked_inertia, to_centroid


def main() -> None:
    robot = mc.load_robot("hrp2")
    q = robot.posture("half_sitting")
    v = np.zeros(robot.nv)
    v[3:6] = 0.0, 0.0, 1.0
    arms = [6 + robot.joint_names.index(name) for name in ("RARM_JOINT0", "LARM_JOINT0")]
    print("arms swing at   base turns at   average angular velocity")
    for swing in (0.0, 3.0, 6.0):
        v[arms] = swing, swing
        print(f"{swing:8.1f} rad/s {v[5]:8.1f} rad/s     {np.round(average_velocity(robot, q, v)[3:], 3)} rad/s")

    change = to_centroid(robot, q, v)
    old = equations_of_motion(robot, q, v)
    new = change.equations(old)
    blocks = np.abs([new.M[:3, 3:].max(), new.M[3:6, 6:].max(), new.M[:3, 3:].min(), new.M[3:6, 6:].min()]).max()
    print(f"mass {new.M[0, 0]:.2f} kg, largest entry between the blocks {blocks:.0e}")
    print(f"inertia about the centre of mass {np.round(np.diag(locked_inertia(robot, q))[3:], 3)} kg m²")
    print(f"gravity {np.round(new.G[:3], 3)} N, and {np.abs(new.G[3:]).max():.0e} elsewhere")
    locked = np.linalg.solve(old.M[:6, :6], old.M[:6] @ v)[3:]
    print(
        f"joints locked at once: {np.round(locked, 3)} rad/s, {np.abs(locked - new.nu[3:6]).max():.0e} from the average"
    )


if __name__ == "__main__":
    main()
