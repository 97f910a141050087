"""A robot thrown into the air, simulated in roll-pitch-yaw, the unit quaternion and the rotation matrix: one motion.

    python demos/one_motion_in_three_charts.py

The Lagrangian form ``M qdd + N qd = M g + forces + c' lambda`` has 3, 4 or 9 coordinates for the orientation of the
base. A multiplier holds the constraint of the larger charts; it is zero for every force that acts on a body.
"""

import numpy as np

import mcplan as mc
from mcplan.textbook.coordinates import ROLL_PITCH_YAW, ROTATION_MATRIX, UNIT_QUATERNION, Lagrangian


def main() -> None:
    robot = mc.load_robot("hrp2")
    q = robot.posture("half_sitting")
    v = np.zeros(robot.nv)
    v[:6] = 0.2, 0.0, 3.0, 0.2, 0.4, 1.5
    v[6 + robot.joint_names.index("RARM_JOINT0")] = -2.0

    def damped(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return -2.0 * v[6:]

    ends = {}
    for chart in (ROLL_PITCH_YAW, UNIT_QUATERNION, ROTATION_MATRIX):
        dynamics = Lagrangian(robot, chart)
        start = dynamics.coordinates(q)
        motion = dynamics.simulate(start, dynamics.rates(start, v), duration=0.5, dt=2.5e-3, torque=damped)
        drift = max(np.abs(dynamics.constraint(x)).max(initial=0.0) for x in motion.q)
        ends[chart.name] = dynamics.configuration(motion.q[-1])
        torques = dynamics.force(motion.q[-1], damped(0.0, q, v))
        acceleration = dynamics.forward_dynamics(motion.q[-1], motion.q_rate[-1], torques)
        held = dynamics.multiplier(motion.q[-1], motion.q_rate[-1], acceleration, torques)
        print(
            f"{chart.name:32s} {dynamics.size} coordinates, constraint kept to {drift:.1e}, "
            f"multiplier {np.abs(held).max(initial=0.0):.1e}"
        )
    reference = ends[UNIT_QUATERNION.name]
    apart = max(np.abs(robot.difference(reference, end)).max() for end in ends.values())
    print(f"after half a second in the air the three are {apart:.1e} rad or m apart")


if __name__ == "__main__":
    main()
