"""The equations of motion with a foot as the base: the same motion, and the foot's contact force in closed form.

    python demos/stand_on_another_base.py

Any link can be the base of the equations: velocity, forces and matrices change by one linear map. With the base on the
ground the robot is a manipulator, and the force that holds it there needs no solver.
"""

import numpy as np

import mcplan as mc
from mcplan.textbook.coordinates import (
    configuration_from,
    configuration_in,
    equations_of_motion,
    fixed_base,
    to_com,
    to_frame,
    to_mixed_frame,
)


def main() -> None:
    robot = mc.load_robot("hrp2")
    rng = np.random.default_rng(1)
    q, v, tau = robot.posture("half_sitting"), rng.normal(size=robot.nv), rng.normal(size=robot.n)
    force = np.concatenate([np.zeros(6), tau])
    own = equations_of_motion(robot, q, v)
    foot = configuration_in(robot, q, "left_sole")
    back = configuration_from(robot, foot, "left_sole")
    print(f"left foot at {np.round(foot[:3], 3)} m; from there the waist is found to {np.abs(back - q).max():.0e} m")
    print(f"waist as base: kinetic energy {own.kinetic_energy:.9f} J")
    changes = {
        "left foot": to_frame(robot, q, v, "left_sole"),
        "place of the hand, turn of the foot": to_mixed_frame(robot, q, v, "right_hand", "left_sole"),
        "centre of mass, turn of the waist": to_com(robot, q, v),
    }
    for name, change in changes.items():
        new = change.equations(own)
        back = change.inverse.acceleration(new.nu, new.acceleration(change.force(force)))
        skew = new.M_rate - 2 * new.C
        apart = np.abs(back - own.acceleration(force)).max() / np.abs(back).max()
        print(
            f"{name} as base: kinetic energy {new.kinetic_energy:.9f} J, motion the same to {apart:.0e}, "
            f"M_rate - 2 C skew to {np.abs(skew + skew.T).max():.0e}"
        )

    print("left foot held by the ground, both arms and the other leg in the air:")
    held = fixed_base(robot, q, np.zeros(robot.n), "left_sole")
    torque = held.G  # what holds the posture
    wrench = held.contact_wrench(torque)
    print(f"  joints accelerate by {np.abs(held.acceleration(torque)).max():.0e} rad/s² under their gravity torques")
    print(f"  the ground carries {wrench[2]:.3f} N of {9.81 * robot.mass:.3f} N")


if __name__ == "__main__":
    main()
