"""What does a foot cost that lands? Impulse, change of velocity and energy loss of an impact without rebound.

    python demos/impact.py

HRP-2 stands on its left foot and sets the right one down with a speed; the harder and the stiffer, the more is lost.
"""

import numpy as np

import mcplan as mc


def main() -> None:
    robot = mc.load_robot("hrp2")
    q = robot.posture("half_sitting")
    floor = mc.Surface("floor", size=(4, 4))
    left, right = (mc.contact(robot, f"{side}_sole", floor, near=q) for side in ("left", "right"))
    rest = np.zeros(robot.nv)

    # a motion of the right sole, straight down, that the left one allows
    down = np.zeros(6)
    down[2] = -1.0
    one = mc.contact_rows(robot, q, rest, [left])
    N = mc.ConstrainedDynamics(robot, q, rest, one).null_space
    v = N @ np.linalg.pinv(robot.frame_jacobian(q, "right_sole") @ N) @ down

    print("speed [m/s]   impulse [N s]   loss [J]   left of the kinetic energy")
    M = robot.mass_matrix(q)
    for speed in (0.05, 0.1, 0.2, 0.5):
        u = speed * v
        both = mc.contact_rows(robot, q, u, [left, right])
        hit = mc.ConstrainedDynamics(robot, q, u, both).impact()
        impulse = np.linalg.norm(hit.impulse[both.owner == 1][:3])
        kept = (hit.v @ M @ hit.v) / (u @ M @ u)
        print(f"{speed:8.2f}   {impulse:12.2f}   {hit.loss:10.3f}   {kept:12.0%}")
    known = mc.ConstrainedDynamics(robot, q, u, both)
    still = np.abs(both.J @ known.impact().v).max()
    print(f"after it both soles move at {still:.0e} m/s; the foot weighs as much as {known.inertia[8, 8]:.0f} kg")


if __name__ == "__main__":
    main()
