"""Several runs in one figure: what each of them used, and how far each was from what it may."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from mcplan.record.run import Run
from mcplan.util.text import escape_mathtext
from mcplan.view.plots.bands import beside
from mcplan.view.readings import Readings

ROWS = (
    ("CoM height [m]", "com"),
    ("all contact forces [N]", "force"),
    ("worst torque [% of limit]", "torque"),
    ("worst friction [% of cone]", "cone"),
    ("CoM to the region's edge [cm]", "depth"),
)


def plot_together(runs: Sequence[tuple[str, Run]]) -> Figure:
    """Plot runs over each other, one colour each.

    Parameters
    ----------
    runs : name and run of each.
    """
    figure = Figure(figsize=(11, 1.4 + 1.9 * len(ROWS)), layout="constrained")
    rows = figure.subplots(len(ROWS), 1, sharex=True)
    for number, (name, run) in enumerate(runs):
        readings = Readings(run)
        middle, t = readings.middle, run.t - run.t[0]
        charts = readings.to_data()["charts"]
        values = {
            "com": run.com[middle, 2],
            "force": readings.total[middle],
            "torque": _floats(charts[1]["curves"][0]["values"]),
            "cone": _floats(charts[1]["curves"][2]["values"]),
            "depth": _floats(charts[2]["curves"][0]["values"]),
        }
        for axes, (_, key) in zip(rows, ROWS, strict=True):
            if len(values[key]):
                axes.plot(t[middle], values[key], color=f"C{number}", linewidth=1.2, label=escape_mathtext(name))
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
    beside(rows[0])
    return figure


def _floats(values: Sequence[float | None]) -> np.ndarray:
    return np.array([np.nan if value is None else value for value in values], dtype=float)
