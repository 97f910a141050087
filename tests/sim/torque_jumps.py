"""How far torques and contact forces go from one tick to the next, where nothing touches.

    python -m tests.sim.torque_jumps OUT.jsonl [PACE]

The plans of `SCENARIOS` at a pace (``fast``) in each back end, a line of OUT.jsonl each; what it has is not carried
out again. Torques are those that the joints get, forces those that the physics has.
"""

import json
import sys
from pathlib import Path

import numpy as np

from mcplan.certificate.verify import verify
from mcplan.planning.planner import plan as make_plan
from mcplan.scenario.load import load_scenario
from mcplan.sim.simulate import simulate
from mcplan.sweep.case import commit
from mcplan.util.back_ends import BACK_ENDS

SCENARIOS = ("walk", "stairs", "ladder")
AFTER = 0.05
"""s after a patch has touched, or has begun to bear something again, in which its impact is felt; and after the start,
in which supports take up the weight."""


def jumps(wrench, active, tau, dt):
    """Return by how much a torque (N m) and the force of a contact (N) change at most in a tick where nothing touches.

    Parameters
    ----------
    wrench, active, tau : (N, P, 6), (N, P), (N, n), as a run has them.

    Returns
    -------
    tick, torque, force : the tick is that of the torque.
    """
    begins = [np.diff(what.astype(int), axis=0) > 0 for what in (active, np.any(wrench[:, :, :3] != 0.0, axis=2))]
    calm = np.ones(len(tau) - 1)
    for k in (0, *np.flatnonzero(np.any(begins, axis=(0, 2)))):
        calm[k : k + round(AFTER / dt)] = 0.0
    torque = calm * np.abs(np.diff(tau, axis=0)).max(axis=1)
    force = calm * np.linalg.norm(np.diff(wrench[:, :, :3], axis=0), axis=2).max(axis=1)
    return int(np.argmax(torque)) + 1, float(torque.max()), float(force.max())


def main(out, pace="fast"):
    """Simulate the runs that the file does not have."""
    rows = out.read_text().splitlines() if out.exists() else []
    known = {(row["scenario"], row["pace"], row["physics"]) for row in map(json.loads, rows)}
    for name in SCENARIOS:
        todo = [physics for physics in BACK_ENDS if (name, pace, physics) not in known]
        plan = make_plan(load_scenario(name, {"control.pace": pace})) if todo else None
        for physics in todo:
            run = simulate(plan, physics)
            tick, torque, force = jumps(run.wrench, run.active, run.tau, run.dt)
            row = {"scenario": name, "pace": pace, "physics": physics, "torque": torque, "force": force}
            row |= {"phase": run.phases[run.phase[tick]], "t": float(run.t[tick])}
            row |= {"holds": verify(run).success, "commit": commit()}
            with out.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(row, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
