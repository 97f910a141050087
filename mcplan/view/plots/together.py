"""Comparison figure of several runs: CoM height, contact force, torque, friction, CoM to the support region's edge."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from mcplan.analysis.readings import Readings
from mcplan.record.run import Run
from mcplan.util.text import escape_mathtext
from mcplan.view.plots.bands import add_legend_beside

ROWS = (
    ("CoM height [m]", "com"),
    ("all contact forces [N]", "force"),
    ("worst torque [% of limit]", "torque"),
    ("worst friction [% of cone]", "cone"),
    ("CoM to the region's edge [cm]", "depth"),
)
"""Label and key of each row."""


def plot_together(runs: Sequence[tuple[str, Run]]) -> Figure:
    """Plot several runs into the same axes, in one colour per run.

    Parameters
    ----------
    runs : pairs of a name and a run.
    """
    figure = Figure(figsize=(11, 1.4 + 1.9 * len(ROWS)), layout="constrained")
    rows = figure.subplots(len(ROWS), 1, sharex=True)
    for number, (name, run) in enumerate(runs):
        readings = Readings(run)
        sample_indices, t = readings.sample_indices, run.t - run.t[0]
        values = {
            "com": run.com[sample_indices, 2],
            "force": readings.total_force[sample_indices],
            "torque": 100 * readings.limit_shares("torque")[0],
            "cone": 100 * readings.worst_in_interval(np.fmax.reduce(readings.cone_share, axis=1)),
            "depth": 100 * readings.com_depth,
        }
        for axes, (_, key) in zip(rows, ROWS, strict=True):
            if len(values[key]):
                axes.plot(
                    t[sample_indices], values[key], color=f"C{number}", linewidth=1.2, label=escape_mathtext(name)
                )
    for axes, (label, key) in zip(rows, ROWS, strict=True):
        axes.set_ylabel(label, fontsize="small")
        axes.grid(alpha=0.3)
        if key in ("torque", "cone"):
            axes.axhline(100.0, color="black", linestyle="--", linewidth=1)
        if key == "depth":
            axes.axhline(0.0, color="black", linestyle="--", linewidth=1)
    rows[-1].set_xlabel("time [s]; dashed: limits")
    rows[-1].set_xlim(left=0.0)
    figure.suptitle(f"{len(runs)} runs")
    add_legend_beside(rows[0])
    return figure
