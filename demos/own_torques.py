"""How stiff is an arm under joint impedance? Custom torques, step by step, against two physics.

    python demos/own_torques.py

The measured stiffness of each joint is the push over its displacement; the controller asks for 150 N m/rad.
"""

import importlib.util

import numpy as np

import mcplan as mc

STIFFNESS, PUSH = 150.0, 4.0


def yields(scenario: mc.Scenario, physics: str) -> np.ndarray:
    """Return how far each joint turns under a torque of PUSH."""
    robot = scenario.robot
    world = mc.make_physics(scenario, physics)
    rest = world.q[7:].copy()
    control = mc.ImpedanceControl(robot, rest, kp=STIFFNESS, kd=30.0)
    terms = mc.Terms(robot)
    for k in range(2500):
        terms.update(world.q, world.v)
        # what a hand that pushes does is a torque more, of which the controller knows nothing
        world.step(control.torque(1e-3 * k, terms, {}) + PUSH)
    return world.q[7:] - rest


def main() -> None:
    robot = mc.load_robot("arm7")
    scenario = mc.Scenario(robot, mc.Environment([]), posture="ready")
    print("physics    stiffness of each joint [N m/rad]")
    worst = 0.0
    for physics in ("contact", "mujoco"):
        if physics == "mujoco" and importlib.util.find_spec("mujoco") is None:
            continue
        measured = PUSH / yields(scenario, physics)
        worst = max(worst, float(np.abs(measured / STIFFNESS - 1.0).max()))
        print(f"{physics:8s}   " + "  ".join(f"{value:6.1f}" for value in measured))
    print(f"asked for {STIFFNESS:g} N m/rad; measured within {worst:.2%}")


if __name__ == "__main__":
    main()
