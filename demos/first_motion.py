"""From a scenario to a replay, in five calls: HRP-2 shifts its weight from one foot to the other.

    python demos/first_motion.py

Writes first_motion.html into the present folder.
"""

import mcplan as mc


def main() -> None:
    scenario = mc.load_scenario("sway")
    print(f"{scenario.name}: {scenario.description}")

    # a posture for each stance, with its forces and margins
    plan = mc.plan(scenario)
    print(plan.summary())

    # one whole-body quadratic program per millisecond
    run = mc.simulate(plan)
    print(f"{len(run)} samples, {run.t[-1]:.2f} s")

    # everything that the run claims, computed again by another path
    report = mc.verify(run)
    print(report)

    path = mc.save_html(run, "first_motion.html")
    print(f"certificate holds: {report.success}; replay: {path}")


if __name__ == "__main__":
    main()
