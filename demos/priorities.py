"""Are least squares with priorities the same as a sequence of programs? Two methods for an arm, torque by torque.

    python demos/priorities.py

First the equation of motion, then the place of the tip, then a posture, then least torques (S1, section 3.10).
"""

import numpy as np

import mcplan as mc
from mcplan.control.textbook import hierarchical_least_squares, sequence_of_programs


def main() -> None:
    robot = mc.load_robot("arm7")
    plan = mc.plan(mc.Scenario(robot, mc.Environment([]), posture="ready"))
    tip = mc.LinkPoseTask("tip", orientation=False, kp=100.0)
    tip.p = np.array([0.45, 0.15, 0.8])
    posture = mc.PostureTask(robot.posture("ready")[7:], 1.0, 25.0)
    hierarchy = mc.TaskHierarchy(robot, plan.stances[0].contacts, [[tip], [posture]])

    q, v, random = plan.stances[0].q.copy(), np.zeros(robot.nv), np.random.default_rng(0)
    terms, worst = mc.Terms(robot, hierarchy.frames), 0.0
    for k in range(1200):
        terms.update(q, v)
        if k % 100 == 0:
            levels = hierarchy.programs(terms)
            x, y = hierarchical_least_squares(levels), sequence_of_programs(levels)
            worst = max(worst, float(np.abs(x - y).max() / np.abs(x).max()))
        tau = hierarchy.torque(1e-3 * k, terms, {}) + random.normal(size=robot.n)
        v = v + 1e-3 * robot.forward_dynamics(q, v, tau)
        q = robot.integrate(q, v, 1e-3)

    missed = np.linalg.norm(robot.frame_pose(q, "tip")[:3, 3] - tip.p)
    bent = np.abs(q[7:] - robot.posture("ready")[7:]).max()
    print(f"the tip, on the second level, misses its place by {1e3 * missed:.1f} mm")
    print(f"the posture, on the third, yields by {bent:.2f} rad")
    print(f"both methods agree to {worst:.1e} of the largest unknown")


if __name__ == "__main__":
    main()
