"""Two tasks that contradict each other: alone, side by side, weighted, damped, and in order of priority.

    python demos/tasks_in_order.py

The planar arm of ETH's lecture notes (example 2.9.1): its tip should move at (1, 1) m/s, its first two joints should
stand still.
"""

import numpy as np

from mcplan.textbook.kinematics import (
    VelocityTask,
    damped_inverse,
    null_space,
    prioritised,
    pseudo_inverse,
    stacked,
    weighted_inverse,
    with_null_space,
)


def main() -> None:
    angles = np.cumsum([np.pi / 6, np.pi / 3, np.pi / 3])  # of the three links of 1 m from the vertical
    links = np.vstack([np.cos(angles), -np.sin(angles)])
    J = np.cumsum(links[:, ::-1], axis=1)[:, ::-1]  # a joint moves all links after it
    tip = VelocityTask(J, np.array([1.0, 1.0]))
    still = VelocityTask(np.eye(3)[:2], np.zeros(2))

    methods = {
        "the tip alone": pseudo_inverse(tip.J) @ tip.w,
        "damped": damped_inverse(tip.J, 0.5) @ tip.w,
        "side by side": stacked([tip, still]),
        "the tip weighs ten times": stacked([tip, still], weights=[10.0, 1.0]),
        "its height ten times, its path once": weighted_inverse(np.vstack([J, still.J]), [1, 10, 1, 1]) @ [1, 1, 0, 0],
        "first the tip": prioritised([tip, still]),
        "first the joints": prioritised([still, tip]),
        "the tip, then -1 rad/s of the last": with_null_space(tip, [0.0, 0.0, -1.0]),
    }
    print("                                         joint rates, rad/s       squared error: tip, joints")
    for name, rate in methods.items():
        errors = [float(task.error(rate) @ task.error(rate)) for task in (tip, still)]
        print(f"{name:38s} {rate[0]:7.3f} {rate[1]:7.3f} {rate[2]:7.3f}    {errors[0]:12.4f} {errors[1]:10.4f}")
    print(f"what does not move the tip: {np.linalg.matrix_rank(null_space(tip.J))} direction of the three joints")
    print("the notes print -0.169, -0.085, -1.070 for the tip first and the joints second")


if __name__ == "__main__":
    main()
