"""Clock times of the controller: slowest ticks with time, phase and dominant part.

The median of the clock times does not show the single tick in which a motion was replanned.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mcplan.record.run import Run
from mcplan.util.qp_status import NO_QP

PARTS = ("terms", "machine", "program")
"""Parts of a tick: kinematics and dynamics, state machine with replanning, quadratic program."""


def format_tick_time(seconds: float) -> str:
    """Format the clock time of a tick: ms, or s from 1 s."""
    return f"{seconds:.1f} s" if seconds >= 1.0 else f"{1e3 * seconds:.3g} ms"


PART_LABELS = {
    "terms": "kinematics and dynamics",
    "machine": "state machine, including replanning",
    "program": "quadratic program",
    "control": "the whole control tick",
    "physics": "physics",
}
"""Label of each part of a step, in the order of the report."""


@dataclass(frozen=True)
class SlowTick:
    """A slow tick of the controller.

    Parameters
    ----------
    time : clock time (s).
    t : simulated time (s from the start of the run).
    phase : name of the phase.
    part, part_time : the part (of `PARTS`) with the largest clock time, and that time (s); "" if unknown.
    """

    time: float
    t: float
    phase: str
    part: str
    part_time: float


def describe_slowest_tick(run: Run) -> str:
    """Return the slowest tick of a run in a sentence; "" without clock times."""
    if not (ticks := slowest_ticks(run, count=1)):
        return ""
    tick = ticks[0]
    share = f", {format_tick_time(tick.part_time)} of it {tick.part}" if tick.part else ""
    return (
        f"slowest tick: {format_tick_time(tick.time)} at t = {tick.t + run.t[0]:.3f} s in {tick.phase}{share} "
        f"(median {format_tick_time(float(np.median(run.timing['control'])))})"
    )


def slowest_ticks(run: Run, count: int = 5, min_spacing: float = 0.02) -> list[SlowTick]:
    """Return the slowest ticks, the slowest first, at least ``min_spacing`` (s) from each other."""
    times = run.timing.get("control")
    ticks = np.flatnonzero(run.qp_status != NO_QP)
    if times is None or not len(times) or not len(ticks):
        return []
    found: list[SlowTick] = []
    for i in np.argsort(-times[: len(ticks)], kind="stable")[: 50 * count]:  # slow ticks come in groups
        k = int(ticks[i])
        t = float(run.t[k] - run.t[0])
        if all(abs(t - other.t) > min_spacing for other in found):
            parts = {name: run.timing[name][i] for name in PARTS if name in run.timing}
            part = max(parts, key=lambda name: float(parts[name]), default="")
            phase = run.phases[int(run.phase[k])]
            found.append(SlowTick(float(times[i]), t, phase, part, float(parts.get(part, 0.0))))
        if len(found) == count:
            break
    return found


def steps_per_tick(run: Run) -> int:
    """Return the number of physics steps per control tick, from the scenario's ``control.rate``."""
    control = run.record.scenario.document.get("control")
    rate = control.get("rate") if isinstance(control, Mapping) else None
    if not isinstance(rate, int | float) or not rate > 0.0:
        return 1
    return max(1, round(1.0 / (rate * run.dt)))
