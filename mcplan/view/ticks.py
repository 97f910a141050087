"""Clock times of the controller: what a tick took, and which ones took longest."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mcplan.qp_status import NO_QP
from mcplan.sim.run import Run
from mcplan.sim.slowest_tick import PARTS

WORDS = {
    "terms": "kinematics and dynamics",
    "machine": "state machine, with the motions that it looks for",
    "program": "quadratic program",
    "control": "the whole control tick",
    "physics": "physics",
}
"""What the parts of a step are called, in the order in which they are told."""


@dataclass(frozen=True)
class Tick:
    """A tick of the controller: how long it took (s), when (s), in which phase, and what took most of it."""

    time: float
    t: float
    phase: str
    most: str


def steps_of_tick(run: Run) -> int:
    """Return how many steps of the physics a control tick lasts, as the scenario's ``control.rate`` says."""
    control = run.record.scenario.document.get("control")
    rate = control.get("rate") if isinstance(control, Mapping) else None
    if not isinstance(rate, int | float) or not rate > 0.0:
        return 1
    return max(1, round(1.0 / (rate * run.dt)))


def slowest_ticks(run: Run, count: int = 5, apart: float = 0.02) -> list[Tick]:
    """Return the slowest ticks, the slowest first; of those within ``apart`` s only one."""
    times = run.timing.get("control")
    ticks = np.flatnonzero(run.qp_status != NO_QP)
    if times is None or not len(times) or not len(ticks):
        return []
    found: list[Tick] = []
    for i in np.argsort(-times[: len(ticks)], kind="stable")[: 50 * count]:
        k = int(ticks[i])
        t = float(run.t[k] - run.t[0])
        if all(abs(t - other.t) > apart for other in found):
            parts = {name: run.timing[name][i] for name in PARTS if name in run.timing}
            most = max(parts, key=lambda name: float(parts[name]), default="")
            found.append(Tick(float(times[i]), t, run.phases[int(run.phase[k])], most))
        if len(found) == count:
            break
    return found
