"""The control tick that took longest: a median of 0.2 ms says nothing of the one in which a motion was looked for.

Clock times of the controller: what a tick took, and which ones took longest.
"""


from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mcplan.record.run import Run
from mcplan.util.qp_status import NO_QP

PARTS = ("terms", "machine", "program")
"""Parts of a tick: kinematics and dynamics, state machine with the motions that it looks for, quadratic program."""


def slowest_tick(run: Run) -> str:
    """Say how long the slowest tick of the controller took, when, in which phase and for which part; "" if unknown."""
    times = run.timing.get("control")
    ticks = np.flatnonzero(run.qp_status != NO_QP)
    if times is None or not len(times) or not len(ticks):  # a custom controller has no program
        return ""
    worst = int(np.argmax(times))
    k = int(ticks[worst])
    parts = {name: run.timing[name][worst] for name in PARTS if name in run.timing}
    most = max(parts, key=lambda name: parts[name], default="")
    share = f", {tick_time(parts[most])} of it {most}" if most else ""
    phase = run.phases[int(run.phase[k])]
    return (
        f"slowest tick: {tick_time(times[worst])} at t = {run.t[k]:.3f} s in {phase}{share} "
        f"(median {tick_time(float(np.median(times)))})"
    )


def tick_time(seconds: float) -> str:
    """Return the clock time of a tick in words: ms, from a second on s."""
    return f"{seconds:.1f} s" if seconds >= 1.0 else f"{1e3 * seconds:.3g} ms"


WORDS = {
    "terms": "kinematics and dynamics",
    "machine": "state machine, with the motions that it looks for",
    "program": "quadratic program",
    "control": "the whole control tick",
    "physics": "physics",
}
"""Names of the parts of a step, in the order of the report."""


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
