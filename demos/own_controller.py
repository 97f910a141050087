"""What does a custom controller look like? A class with one method, in the place of the whole-body program.

    python demos/own_controller.py

The tip of an arm follows a circle on a spring that only the controller knows; the certificate needs no program.
"""

from collections.abc import Mapping

import numpy as np

import mcplan as mc


class Stir:
    """Moves the tip on a circle by a virtual spring, and damps the joints: torque = g + J' F - D v."""

    frames = ("tip",)

    def __init__(self, robot: mc.Robot, centre: np.ndarray):
        self.weight, self.centre = mc.GravityCompensation(robot, kd=4.0), centre

    def target(self, t: float) -> np.ndarray:
        """Return where the tip should be (3,), m."""
        return self.centre + 0.08 * np.array([0.0, np.sin(2.0 * t), 1.0 - np.cos(2.0 * t)])

    def torque(self, t: float, terms: mc.Terms, wrenches: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the joint torques (n,), N m: this is all that a controller must have."""
        tip = terms.frame("tip")
        pull = 1500.0 * (self.target(t) - tip.p) - 40.0 * tip.velocity[:3]
        return self.weight.torque(t, terms, wrenches) + tip.J[:3, 6:].T @ pull


def main() -> None:
    robot = mc.load_robot("arm7")
    scenario = mc.Scenario(robot, mc.Environment([]), posture="ready", control={"type": "own"}, name="stir")
    plan = mc.plan(scenario)
    stir = Stir(robot, robot.frame_pose(plan.stances[0].q, "tip")[:3, 3])
    run = mc.simulate(plan, physics="contact", controller=stir, duration=4.0)

    tips = robot.frame_pose(run.q, "tip")[:, :3, 3]
    off = np.linalg.norm(tips - [stir.target(t) for t in run.t], axis=1)
    borne = np.linalg.norm(run.wrench[:, run.patches.index("fixed_base"), :3], axis=1)
    print(f"controller {run.record.controller}: {len(run)} steps, certificate holds: {mc.verify(run).success}")
    print(f"the base bears {borne.min():.0f} to {borne.max():.0f} N, the arm weighs {9.81 * robot.mass:.0f} N")
    print(f"the tip stays within {1e3 * off.max():.1f} mm of its target")


if __name__ == "__main__":
    main()
