"""Which torques do not move a robot? Those that squeeze its feet together: torques of the null space of its support.

    python demos/internal_forces.py

tau = (N_c' S')^+ N_c' (M vd + h) + (1 - ...) tau_0: the second part changes contact forces alone (S1, eq. 3.100).
"""

import numpy as np

import mcplan as mc
from mcplan.control.textbook import support_torque


def main() -> None:
    robot = mc.load_robot("hrp2")
    q = robot.posture("half_sitting")
    floor = mc.Surface("floor", size=(4, 4))
    soles = [mc.contact(robot, f"{side}_sole", floor, near=q) for side in ("left", "right")]
    rest = np.zeros(robot.nv)
    rows = mc.contact_rows(robot, q, rest, soles)
    known = mc.ConstrainedDynamics(robot, q, rest, rows)

    print("hip torque [N m]   feet squeezed by [N]   acceleration [m/s²]   all torques [N m]")
    for hip in (0.0, 10.0, 20.0, 40.0):
        tau_0 = np.zeros(robot.n)
        for joint, sign in (("RLEG_JOINT1", 1.0), ("LLEG_JOINT1", -1.0)):
            tau_0[robot.joint_names.index(joint)] = sign * hip
        tau, free = support_torque(known, rest, tau_0)
        f = known.contact_force(tau)
        # along the y axes of the soles, which point to the right
        apart = f[rows.owner == 0][1] - f[rows.owner == 1][1]
        moved = np.abs(known.acceleration(tau)).max()
        print(f"{hip:12.0f}   {apart / 2:18.1f}   {moved:18.1e}   {np.linalg.norm(tau):14.1f}")
    print(f"{round(np.trace(free))} directions of torque move nothing; so many internal constraints have two soles")


if __name__ == "__main__":
    main()
