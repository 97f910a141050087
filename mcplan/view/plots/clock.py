"""Clock times of the control loop, against the time that a tick has: over time, and how often, the slowest named."""

from textwrap import fill

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mcplan.qp_status import HOLD, SLACK
from mcplan.sim.run import Run
from mcplan.sim.slowest_tick import tick_time
from mcplan.view.plots.bands import beside, draw_bands, kinds_below
from mcplan.view.ticks import WORDS, slowest_ticks, steps_of_tick
from mcplan.view.written import drawn

WIDTH = 28
"""Characters of a line of the legend."""

ROOM = 3.0
"""Factor by which the axis of times goes on above the longest, which the stripe of phases would hide."""


def plot_clock(run: Run) -> Figure:
    """Plot the clock times of each step [µs], and how many ticks of the controller took how long; the slowest named.

    Steps whose program was not solved are marked.
    """
    figure = Figure(figsize=(11, 8.2), layout="constrained")
    axes, often = figure.subplots(2, 1, gridspec_kw={"height_ratios": [1.8, 1.5]})
    figure.suptitle(drawn(f"{run.scenario.name}: clock times"))
    draw_bands(axes, run)
    kinds_below(figure, run)
    t = run.t - run.t[0]
    axes.set(xlabel="time [s]", ylabel="clock time of a step [µs]", xlim=(0.0, max(float(t[-1]), run.dt)))
    axes.grid(alpha=0.3)
    tick = steps_of_tick(run) * run.dt
    for name, words in WORDS.items():
        if name not in run.timing:
            continue
        times = 1e6 * run.timing[name]
        label = f"{fill(words, WIDTH)}\nmedian {np.median(times):.0f} µs\n99 % below {np.quantile(times, 0.99):.0f} µs"
        at = t if len(times) == len(t) else t[:: steps_of_tick(run)]
        count = min(len(at), len(times))
        axes.plot(at[:count], times[:count], ".", label=label, markersize=1.5)
    axes.axhline(1e6 * tick, color="black", linestyle="--", linewidth=1, label=f"tick of {1e3 * tick:g} ms")
    failed = np.isin(run.qp_status, (SLACK, HOLD))
    if failed.any():
        axes.plot(t[failed], np.full(failed.sum(), 1e6 * tick), "rx", label=f"{failed.sum()} programs not solved")
    axes.set_yscale("log")
    axes.set_ylim(top=ROOM * axes.get_ylim()[1])
    beside(axes, markerscale=6.0)
    _histogram(often, run, tick)
    return figure


def _histogram(axes: Axes, run: Run, tick: float) -> None:
    """Draw how many ticks took how long, both on logarithmic axes; each has ``tick`` s."""
    times = 1e6 * np.asarray(run.timing.get("control", ()), dtype=float)
    times = times[times > 0.0]
    axes.set(xlabel="clock time of a control tick [µs]", ylabel="ticks [-]")
    if not len(times):
        return
    edges = np.geomspace(times.min() * 0.99, times.max() * 1.01, 61)
    axes.hist(times, bins=edges.tolist(), color="tab:blue")
    axes.set(xscale="log", yscale="log")
    axes.axvline(1e6 * tick, color="black", linestyle="--", linewidth=1, label=f"tick of {1e3 * tick:g} ms")
    for slow in slowest_ticks(run):
        most = f",\n{WORDS.get(slow.most, slow.most)}" if slow.most else ""
        text = f"{tick_time(slow.time)} at {slow.t:.2f} s: {drawn(slow.phase)}{most}"
        axes.plot(1e6 * slow.time, 0.75, "v", markersize=6, label=text)
    axes.grid(alpha=0.3)
    beside(axes, title="slowest ticks")
