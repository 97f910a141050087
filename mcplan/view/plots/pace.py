"""Plots of the pace of a run (active limits, delay to the plan) and of the clock times of its control loop."""

from textwrap import fill

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mcplan.analysis.pace import PaceOfRun
from mcplan.analysis.slowest_tick import PART_LABELS, format_tick_time, slowest_ticks, steps_per_tick
from mcplan.record.run import Run
from mcplan.util.qp_status import HOLD, SLACK
from mcplan.util.text import escape_mathtext
from mcplan.view.palette import LIMITS
from mcplan.view.plots.bands import add_legend_beside, add_phase_legend, draw_bands, time_axes

MAX_SAMPLES = 1500
"""Maximum number of samples drawn."""


def plot_pace(run: Run) -> Figure:
    """Plot the used margin [-] of the limit that bounds the motion, and the delay to the plan [s].

    At the pace ``slow`` no limit is active: the speeds in ``control`` set the durations.
    """
    pace = PaceOfRun(run)
    labels = (
        ["behind the plan [s]"]
        if not pace.has_active_limits
        else ["part of the margin used [-]", "behind the plan [s]"]
    )
    title = f"pace {pace.name}, {pace.planned_duration:.1f} s planned, {pace.actual_duration:.1f} s taken"
    figure, rows = time_axes(run, labels, title, [1.4, 1.0][-len(labels) :])
    if pace.has_active_limits:
        samples = np.unique(np.linspace(0, len(run) - 1, min(len(run), MAX_SAMPLES)).astype(int))
        bounds, t = pace.active_limits_at(samples), run.t[samples] - run.t[0]
        for kind, colour in LIMITS.items():
            used = np.array([b.share if b is not None and b.kind == kind else np.nan for b in bounds])
            if not np.isnan(used).all():
                rows[0].plot(t, used, ".", markersize=4, color=colour, label=kind, zorder=3)
        rows[0].axhline(1.0, color="black", linestyle="--", linewidth=1)
        rows[0].set_ylim(0.0, 1.15)
        add_legend_beside(rows[0], markerscale=2.5, title="bound by")
    t, delay = pace.delays()
    rows[-1].plot(t, delay, ".-", color="tab:blue", label="at the ends of motions", zorder=3)
    rows[-1].set_ylim(min(0.0, 1.1 * float(delay.min(initial=0.0))), max(0.1, 1.15 * float(delay.max(initial=0.0))))
    add_legend_beside(rows[-1])
    return figure


LEGEND_WIDTH = 28
"""Maximum number of characters of a line of the legend."""

AXIS_HEADROOM = 3.0
"""Upper limit of the axis / longest time, so that the stripe of phases hides no point."""


def plot_clock(run: Run) -> Figure:
    """Plot the clock times of steps [µs], and a histogram of control ticks with the slowest labelled.

    Steps whose quadratic program was not solved are marked.
    """
    figure = Figure(figsize=(11, 8.2), layout="constrained")
    axes, histogram_axes = figure.subplots(2, 1, gridspec_kw={"height_ratios": [1.8, 1.5]})
    figure.suptitle(escape_mathtext(f"{run.scenario.name}: clock times"))
    draw_bands(axes, run)
    add_phase_legend(figure, run)
    t = run.t - run.t[0]
    axes.set(xlabel="time [s]", ylabel="clock time of a step [µs]", xlim=(0.0, max(float(t[-1]), run.dt)))
    axes.grid(alpha=0.3)
    tick = steps_per_tick(run) * run.dt
    for name, words in PART_LABELS.items():
        if name not in run.timing:
            continue
        times = 1e6 * run.timing[name]
        label = f"{fill(words, LEGEND_WIDTH)}\nmedian {np.median(times):.0f} µs\n"
        label += f"99 % below {np.quantile(times, 0.99):.0f} µs"
        tick_times = t if len(times) == len(t) else t[:: steps_per_tick(run)]
        count = min(len(tick_times), len(times))
        axes.plot(tick_times[:count], times[:count], ".", label=label, markersize=1.5)
    axes.axhline(1e6 * tick, color="black", linestyle="--", linewidth=1, label=f"tick of {1e3 * tick:g} ms")
    failed = np.isin(run.qp_status, (SLACK, HOLD))
    if failed.any():
        axes.plot(t[failed], np.full(failed.sum(), 1e6 * tick), "rx", label=f"{failed.sum()} programs not solved")
    axes.set_yscale("log")
    axes.set_ylim(top=AXIS_HEADROOM * axes.get_ylim()[1])
    add_legend_beside(axes, markerscale=6.0)
    _histogram(histogram_axes, run, tick)
    return figure


def _histogram(axes: Axes, run: Run, tick: float) -> None:
    """Draw the histogram of tick durations on logarithmic axes; the period is ``tick`` s."""
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
        part = f",\n{PART_LABELS.get(slow.part, slow.part)}" if slow.part else ""
        text = f"{format_tick_time(slow.time)} at {slow.t:.2f} s: {escape_mathtext(slow.phase)}{part}"
        axes.plot(1e6 * slow.time, 0.75, "v", markersize=6, label=text)
    axes.grid(alpha=0.3)
    add_legend_beside(axes, title="slowest ticks")
