"""HRP-2 stands on four contacts, both soles and both hands on a table, under the controller: how far does it drift?

python -m tests.sim.contact.standing [SECONDS] [PHYSICS...]
"""

import sys
from dataclasses import dataclass, replace

import numpy as np

from mcplan.planning.plan import Plan
from mcplan.planning.planner import plan
from mcplan.record.run import Run
from mcplan.scenario.load import load_scenario
from mcplan.sim.simulate import simulate


@dataclass(frozen=True)
class Drift:
    """Largest distance of a contact from its place when all had come to rest, and of the centre of mass (m).

    ``trend`` is how much further contacts were in the last tenth than in the one before it: no walk-off, no trend.
    """

    contacts: float
    com: float
    trend: float


def four_contacts(seconds: float, dt: float = 0.001) -> Plan:
    """Return a plan that stays in the stance of ``table`` in which both hands carry."""
    scenario = load_scenario("table", overrides={"simulation.dt": dt, "control.timing.start_time": seconds})
    stances = plan(scenario).stances
    stance = next(stance for stance in stances if len(stance.contacts) == 4)
    return Plan(scenario, (replace(stance, change="start", moved=None),))


def drift(run: Run, rest: float = 1.0) -> Drift:
    """Measure a run; what happens in the first ``rest`` seconds does not count."""
    robot, first = run.live_plan.scenario.robot, round(rest / run.dt)
    q = run.q[first:]
    moved = np.zeros(len(q))
    for patch in run.patches:
        p = robot.frame_pose(q, patch)[:, :3, 3]
        moved = np.maximum(moved, np.linalg.norm(p - p[0], axis=1))
    com = np.linalg.norm(run.com[first:] - run.com[first], axis=1)
    tenth = len(q) // 10
    return Drift(float(moved.max()), float(com.max()), float(moved[-tenth:].max() - moved[-2 * tenth : -tenth].max()))


def main() -> None:
    """Print the drift in each physics."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    for physics in sys.argv[2:] or ("qp", "contact"):
        found = drift(simulate(four_contacts(seconds), physics))
        print(
            f"{physics}: {seconds:g} s on four contacts: contacts {1e3 * found.contacts:.4f} mm, "
            f"centre of mass {1e3 * found.com:.4f} mm, trend {1e3 * found.trend:.5f} mm"
        )


if __name__ == "__main__":
    main()
