"""Contact forces: the force on each patch, their total, and how much friction is left at the worst point of each."""

import numpy as np
from matplotlib.figure import Figure

from mcplan.core.rigid_body.tree import GRAVITY
from mcplan.sim.run import Run
from mcplan.view.palette import PATCHES
from mcplan.view.plots.bands import beside, time_axes
from mcplan.view.readings import LOADED, cone_used
from mcplan.view.written import drawn


def plot_forces(run: Run) -> Figure:
    """Plot the size of the force on each patch and of their sum [N], and how much of what each may carry is used.

    That is |f_t| / (mu f_n) at the worst point (1 = sliding); for a grasp, which has no cone, |f| / its largest force.
    """
    labels = ["force [N]", "share of cone or grip [-]"]
    figure, (force, friction) = time_axes(run, labels, "contact forces", [1.4, 1.0])
    t = run.t - run.t[0]
    for column, name in enumerate(run.patches):
        size = np.linalg.norm(run.wrench[:, column, :3], axis=1)
        if not np.any(size > LOADED):
            continue
        colour = PATCHES[column % len(PATCHES)]
        force.plot(t, np.where(run.active[:, column], size, np.nan), label=drawn(name), color=colour)
        used = cone_used(run, column)
        if not np.all(np.isnan(used)):
            friction.plot(t, used, color=colour, label=drawn(name), linewidth=1)
    total = np.linalg.norm(run.wrench[:, :, :3].sum(axis=1), axis=1)
    force.plot(t, total, color="black", linewidth=1, label="all together", zorder=1.5)
    weight = run.loaded_robot.mass * GRAVITY
    force.axhline(weight, color="grey", linestyle=":", linewidth=1, label="weight of the robot")
    friction.axhline(1.0, color="tab:red", linestyle="--", linewidth=1, label="limit")
    friction.set_ylim(0.0, 1.18)
    force.set_ylim(bottom=0.0)
    beside(force)
    beside(friction)
    return figure
