"""Contact forces: the normal force of each patch, and how much friction is left at the worst of its points."""

import numpy as np
from matplotlib.figure import Figure

from mcplan.sim.run import Run
from mcplan.view.plots.bands import beside, time_axes
from mcplan.view.readings import LOADED, cone_used


def plot_forces(run: Run) -> Figure:
    """Plot per patch the force's size [N], and how much of what it may carry is used.

    That is |f_t| / (mu f_n) at the worst point (1 = sliding); for a grasp, which has no cone, |f| / its largest force.
    """
    labels = ["force [N]", "of cone or grip used"]
    figure, (force, friction) = time_axes(run, labels, "contact forces", [1.3, 1.0])
    t = run.t - run.t[0]
    for column, name in enumerate(run.patches):
        size = np.linalg.norm(run.wrench[:, column, :3], axis=1)
        if not np.any(size > LOADED):
            continue
        (line,) = force.plot(t, np.where(run.active[:, column], size, np.nan), label=name)
        used = cone_used(run, column)
        if not np.all(np.isnan(used)):
            friction.plot(t, used, color=line.get_color(), label=name)
    friction.axhline(1.0, color="black", linestyle="--", linewidth=1)
    friction.text(t[-1], 1.0, "limit ", ha="right", va="bottom", fontsize="small")
    friction.set_ylim(0.0, 1.15)
    force.set_ylim(bottom=0.0)
    beside(force)
    return figure
