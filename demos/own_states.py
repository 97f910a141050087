"""Custom states in the state machine: HRP-2 leans to the left until its right foot is light, nods, and comes back.

    python demos/own_states.py

A state says what to do, on which criterion it ends, and what follows each of them; `mcplan info --fsm` prints them all.
"""

import numpy as np

import mcplan as mc

LIGHT = 150.0  # N

STATES = [
    {
        "state": "lean",
        "after": "stand",
        "do": {"com": [0.015, 0.09, 0.80], "over": 2.5},
        "until": {"any": [{"force": "right_sole", "below": LIGHT, "label": "light"}, {"timeout": 1.0}]},
        "next": {"light": "nod", "timeout": "fail"},  # heavy after all this: the run ends here, and says why
    },
    {
        "state": "nod",  # neither `after` nor `before`: only a transition leads here
        "do": {"posture": {"joints": {"HEAD_JOINT1": 0.4}}, "over": 0.6},
        "until": {"finished": 0.1, "label": "nodded"},
        "next": {"nodded": {"state": "shift", "stance": 1}},
    },
    {"state": "shift", "gains": {"com_kp": 40.0}},  # one of the plan's own: softer than the others
]


def main() -> None:
    plan = mc.plan(mc.load_scenario("sway", {"control.states": STATES}))
    run = mc.simulate(plan, physics="contact")  # torques alone, and forces that are measured

    foot = run.patches.index("right_sole")
    for number, phase in enumerate(run.record.phases):
        last = np.flatnonzero(run.phase == number)[-1]
        print(
            f"{run.t[last]:6.2f} s  {phase.name:8s} ended by {phase.ended_by}: "
            f"CoM at y = {run.com[last, 1]:+.3f} m, right foot carries {run.wrench[last, foot, 2]:.0f} N"
        )

    lean = next(number for number, phase in enumerate(run.record.phases) if phase.name == "lean")
    last = np.flatnonzero(run.phase == lean)[-1]
    holds = mc.verify(run).success
    print(f"light with the CoM {100 * run.com[last, 1]:.1f} cm to the left; certificate holds: {holds}")


if __name__ == "__main__":
    main()
