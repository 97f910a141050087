"""Can a scenario ask for more than its plan does? Further tasks: where to look, how hard to press, small torques.

    python demos/look_and_press.py

HRP-2 sways on both feet; its head keeps looking at a point to the left, its left foot carries 350 N while it may.
"""

import numpy as np

import mcplan as mc

TARGET = [1.5, 0.8, 1.3]
TASKS = [
    {"look_at": {"frame": "HEAD_LINK1", "target": TARGET}, "weight": 50, "kp": 400},
    {"contact_force": {"patch": "left_sole", "normal": 350}, "weight": 0.1, "during": ["stand"]},
    {"torque": {"by_limit": True}, "weight": 1e-3},
]


def main() -> None:
    scenario = mc.load_scenario("sway", {"control.tasks": TASKS, "control.avoidance.pairs": 0})
    robot = scenario.robot
    simulation = mc.Simulation(mc.plan(scenario), physics="qp")
    carried = {}
    while simulation.t < 1.5 and simulation.step() is not None:
        name = simulation.controller.machine.state.name
        carried.setdefault(name, []).append(simulation.controller.normal_force("left_sole"))
    X = robot.frame_pose(simulation.physics.q, "HEAD_LINK1")
    line = np.array(TARGET) - X[:3, 3]
    off = np.arccos(X[:3, 0] @ line / np.linalg.norm(line))
    for name, forces in carried.items():
        print(f"{name:6s} the left foot carries {min(forces):.0f} to {max(forces):.0f} N")
    print(f"the head looks past its target by {np.rad2deg(off):.2f} degrees")


if __name__ == "__main__":
    main()
