"""Laws of time: do they take the least time of the declared program, and what do they cost?

    python -m tests.planning.measure_retiming OUT.jsonl [PACE] [SCENARIO ...]

Each scenario (without any: all bundled ones) is planned at a pace (``fast``), and the law of each of its segments is
found again: on one thread, the best of three times. Each is a line of OUT.jsonl; what that has is not measured again.
"""

import json
import os
import sys
import time
import warnings
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is imported

import numpy as np

from mcplan.errors import PlanningFailed
from mcplan.optimize.path_program import law_basis, least_time
from mcplan.planning.planner import plan as make_plan
from mcplan.planning.timing.retiming import Retimer
from mcplan.scenario.load import load_scenario
from mcplan.sweep.case import commit
from mcplan.util.bundled import bundled_scenarios

REPEATS = 3


def seconds(program, x):
    """Return the time that the program minimises, for the squared rates x (m,) at the points of its grid."""
    return float(program.length * law_basis().weights @ x**-0.5)


def difference(retimer, segment, kept=1.0):
    """Return by which part the law of a segment takes longer than that of the program as it is declared."""
    program, (x, _) = retimer.program(segment, kept), retimer.solve(segment, kept)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the last digits of the declared one "may be inaccurate"
        reference, _, _ = least_time(program)
    return seconds(program, x) / reference - 1.0


def cost(retimer, segment):
    """Return how long it takes to find the law of a segment (s)."""
    times = []
    for _ in range(REPEATS):
        begun = time.perf_counter()
        retimer.time_parameterized(segment)
        times.append(time.perf_counter() - begun)
    return min(times)


def measured(name, pace):
    """Plan a scenario, and return what the laws of its segments cost and how far they are from the declared ones."""
    scenario = load_scenario(name, {"control.pace": pace})
    begun = time.perf_counter()
    try:
        plan = make_plan(scenario)
    except PlanningFailed:
        return {"scenario": name, "pace": pace, "transitions": 0, "laws": 0, "commit": commit()}
    planning = time.perf_counter() - begun
    retimer = Retimer(plan.scenario.robot, plan.scenario.transition_settings)
    costs = [1e3 * sum(cost(retimer, segment) for segment in motion.segments) for motion in plan.transitions]
    timed = [segment for segment in plan.segments if segment.law is not None]
    differences = [difference(retimer, segment, segment.law.kept) for segment in timed]
    return {
        "scenario": name, "pace": pace, "transitions": len(costs), "segments": len(plan.segments), "laws": len(timed),
        "median": float(np.median(costs)), "most": max(costs), "part": 1e-3 * sum(costs) / planning,
        "difference": max(map(abs, differences), default=0.0), "commit": commit(),
    }  # fmt: skip


def main(out, pace="fast", *names):
    """Measure what the file does not have."""
    rows = out.read_text().splitlines() if out.exists() else []
    known = {(row["scenario"], row["pace"]) for row in map(json.loads, rows)}
    measured("sway", pace)  # compiles
    for name in names or bundled_scenarios():
        if (name, pace) not in known:
            row = measured(name, pace)
            with out.open("a") as file:
                file.write(json.dumps(row) + "\n")
            told = f"{row['median']:.1f} ms, {row['difference']:.1e}" if row["transitions"] else "no plan"
            print(f"{name}: {told}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
