"""Robot and object as one system: HRP-2 lifts a box of 5 kg, and the hands exert exactly what moves it.

    python demos/lift_a_box.py

In the air the box has its own equation of motion in the whole-body program, ``m (a - g) = f`` and its moments;
the forces on it are minus those that the hands feel, and friction on the two faces bears its weight.
"""

import numpy as np

import mcplan as mc


def main() -> None:
    plan = mc.plan("lift")
    for k, stance in enumerate(plan.stances):
        carriers = {c.carrier.name: c.carrier for c in stance.contacts if c.carrier is not None}
        for name, carrier in carriers.items():
            rests = "in the air" if carrier.rest is None else f"on {carrier.rest.support}"
            print(f"stance {k}, {stance.change:6s}: {name} {rests}")

    # from when the hands are on the box until it lies on the other shelf
    run = mc.simulate(mc.Plan(plan.scenario, plan.stances[2:6]), physics="qp")
    hands = [run.patches.index(name) for name in ("left_hand", "right_hand")]
    on_box = -run.wrench[:-1, hands, :3].sum(axis=1)
    needed = 5.0 * (np.diff(run.object_v[:, 0, :3], axis=0) / run.dt + [0.0, 0.0, 9.81])
    carrying = [i for i, phase in enumerate(run.record.phases) if phase.name == "carry box"]
    air = np.isin(run.phase[:-1], carrying)
    press = np.abs(run.wrench[:-1, hands, 1]).sum(axis=1)[air] / 2
    print(f"in the air for {air.sum() * run.dt:.1f} s: each hand presses with up to {press.max():.0f} N")
    print(f"forces of the hands and m (a - g) of the box differ by {np.abs(on_box - needed)[air].max():.1e} N at most")


if __name__ == "__main__":
    main()
