"""The control tick that took longest: a median of 0.2 ms says nothing of the one in which a motion was looked for."""

import numpy as np

from mcplan.qp_status import NO_QP
from mcplan.sim.run import Run

PARTS = ("terms", "machine", "program")
"""Parts of a tick: kinematics and dynamics, state machine with the motions that it looks for, quadratic program."""


def slowest_tick(run: Run) -> str:
    """Say how long the slowest tick of the controller took, when, in which phase and for which part; "" if unknown."""
    times = run.timing.get("control")
    ticks = np.flatnonzero(run.qp_status != NO_QP)
    if times is None or not len(times) or not len(ticks):  # a controller of one's own has no program
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
