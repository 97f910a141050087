"""Can a humanoid stand without a model of its dynamics? Virtual springs at its centre of mass, base and joints.

    python demos/virtual_model.py

Forces of springs that are not there are borne by the feet (S1, section 3.11): no mass matrix, no program, no plan.
"""

import numpy as np

import mcplan as mc


def main() -> None:
    robot = mc.load_robot("hrp2")
    q = robot.posture("half_sitting")
    floor = mc.Surface("floor", size=(4, 4))
    soles = [mc.contact(robot, f"{side}_sole", floor, near=q) for side in ("left", "right")]
    push = {"link": "BODY", "force": [0.0, 60.0, 0.0], "start": 1.0, "duration": 0.2}
    stand = mc.Scenario(
        robot,
        mc.Environment([floor]),
        soles,
        stances=[{"contacts": [sole.to_data() for sole in soles]}],
        control={"type": "virtual_model", "duration": 2.2},
        simulation={"pushes": [push], "time_limit": 10},
        name="springs",
    )
    run = mc.simulate(mc.plan(stand), physics="contact")
    away = np.abs(run.com - run.com[0])[:, 1]
    for t in (0.9, 1.2, 1.5, 2.1):
        print(f"t = {t:.1f} s: centre of mass {1e3 * away[round(t / 1e-3)]:5.1f} mm aside")
    loads = run.wrench[..., 2].sum(axis=1)
    print(f"the feet bear {loads.min():.0f} to {loads.max():.0f} N; weight {9.81 * robot.mass:.0f} N")
    print(f"pushed with 60 N it yields by {1e3 * away.max():.0f} mm and stands: {mc.verify(run).success}")


if __name__ == "__main__":
    main()
