"""Momentum about the centre of mass over time."""

import numpy as np
from matplotlib.figure import Figure

from mcplan.sim.run import Run
from mcplan.view.plots.bands import beside, time_axes


def plot_momentum(run: Run) -> Figure:
    """Plot ``h_G = A_G(q) v``: linear [N s] and angular [N m s], world axes, about the centre of mass.

    Masses are those that the physics had.
    """
    figure, (linear, angular) = time_axes(run, ["linear [N s]", "angular [N m s]"], "momentum about the CoM")
    t = run.t - run.t[0]
    momentum = np.einsum("kij,kj->ki", run.loaded_robot.centroidal_momentum_matrix(run.q), run.v)
    for axis, name in enumerate("xyz"):
        linear.plot(t, momentum[:, axis], label=name)
        angular.plot(t, momentum[:, 3 + axis], label=name)
    beside(linear)
    beside(angular)
    return figure
