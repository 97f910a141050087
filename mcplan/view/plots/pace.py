"""The pace of a run: what bounds its motions, and how far it fell behind its plan."""

import numpy as np
from matplotlib.figure import Figure

from mcplan.sim.run import Run
from mcplan.view.pace import PaceOfRun
from mcplan.view.palette import LIMITS
from mcplan.view.plots.bands import beside, time_axes

SAMPLES = 1500
"""Samples of a run that are drawn at most."""


def plot_pace(run: Run) -> Figure:
    """Plot which limit bounds the motion and what of its margin it uses [-], and the delay to the plan [s].

    At the pace ``slow`` no limit does: the speeds in ``control`` are what motions go by.
    """
    pace = PaceOfRun(run)
    labels = ["behind the plan [s]"] if not pace.bounded else ["part of the margin used [-]", "behind the plan [s]"]
    title = f"pace {pace.name}, {pace.planned:.1f} s planned, {pace.took:.1f} s taken"
    figure, rows = time_axes(run, labels, title, [1.4, 1.0][-len(labels) :])
    if pace.bounded:
        samples = np.unique(np.linspace(0, len(run) - 1, min(len(run), SAMPLES)).astype(int))
        at, t = pace.bound_at(samples), run.t[samples] - run.t[0]
        for kind, colour in LIMITS.items():
            used = np.array([b.used if b is not None and b.kind == kind else np.nan for b in at])
            if not np.isnan(used).all():
                rows[0].plot(t, used, ".", markersize=4, color=colour, label=kind, zorder=3)
        rows[0].axhline(1.0, color="black", linestyle="--", linewidth=1)
        rows[0].set_ylim(0.0, 1.15)
        beside(rows[0], markerscale=2.5, title="bound by")
    t, late = pace.behind()
    rows[-1].plot(t, late, ".-", color="tab:blue", label="at the ends of motions", zorder=3)
    rows[-1].set_ylim(min(0.0, 1.1 * float(late.min(initial=0.0))), max(0.1, 1.15 * float(late.max(initial=0.0))))
    beside(rows[-1])
    return figure
