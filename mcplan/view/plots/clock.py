"""Clock times of the control loop, against the time that a step has."""

import numpy as np
from matplotlib.figure import Figure

from mcplan.qp_status import HOLD, NO_QP, SLACK
from mcplan.sim.run import Run
from mcplan.view.plots.bands import beside, time_axes

ORDER = ("terms", "machine", "program", "control", "physics")
"""Kinematics and dynamics, the state machine with the motions that it looks for, the quadratic program, the whole
controller with these three, and the physics."""


def plot_clock(run: Run) -> Figure:
    """Plot the clock times of each step [µs] on a logarithmic axis; steps whose program was not solved are marked."""
    figure, (axes,) = time_axes(run, ["clock time of a step [µs]"], "clock times", [2.0])
    t = run.t - run.t[0]
    ticks = t[run.qp_status != NO_QP]
    for name in (name for name in ORDER if name in run.timing):
        times = 1e6 * run.timing[name]
        label = f"{name}\nmedian {np.median(times):.0f} µs\n99 % below {np.quantile(times, 0.99):.0f} µs"
        at = t if len(times) == len(t) else ticks
        axes.plot(at[: len(times)], times, ".", label=label, markersize=1.5)
    axes.axhline(1e6 * run.dt, color="black", linestyle="--", linewidth=1, label=f"step of {1e3 * run.dt:g} ms")
    failed = np.isin(run.qp_status, (SLACK, HOLD))
    if failed.any():
        axes.plot(t[failed], np.full(failed.sum(), 1e6 * run.dt), "rx", label=f"{failed.sum()} programs not solved")
    axes.set_yscale("log")
    beside(axes, markerscale=6.0)
    return figure
