"""Centre of mass: position and speed over time."""

import numpy as np
from matplotlib.figure import Figure

from mcplan.sim.run import Run
from mcplan.view.plots.bands import beside, time_axes


def plot_com(run: Run) -> Figure:
    """Plot the CoM's three coordinates [m] and its speed [m/s] by finite differences of the recorded positions."""
    figure, (position, height, speed) = time_axes(run, ["x, y [m]", "z [m]", "speed [m/s]"], "centre of mass")
    t = run.t - run.t[0]
    for axis, name in enumerate("xy"):
        position.plot(t, run.com[:, axis], label=name)
    height.plot(t, run.com[:, 2], color="tab:green", label="z")
    if len(t) > 1:
        speed.plot(t, np.linalg.norm(np.gradient(run.com, t, axis=0), axis=1), color="tab:red")
    beside(position)
    return figure
