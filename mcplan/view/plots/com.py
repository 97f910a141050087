"""Plots of the centre of mass (position, planned motion, static limits, speed) and of the centroidal momentum."""

import numpy as np
from matplotlib.figure import Figure

from mcplan.analysis.pace import PlannedReference
from mcplan.analysis.regions import com_limits
from mcplan.record.run import Run
from mcplan.view.plots.bands import add_legend_beside, time_axes

AXIS_MARGIN_M = 0.15
"""Range of the axes beyond the curves (m)."""


def plot_com(run: Run) -> Figure:
    """Plot CoM position [m] with the planned motion and the limits of the support region, and CoM speed [m/s].

    The limits are static, along each axis at the present value of the other coordinate. The speed is computed by finite
    differences of the recorded positions.
    """
    figure, rows = time_axes(run, ["x [m]", "y [m]", "z [m]", "speed [m/s]"], "centre of mass", [1.0, 1.0, 0.8, 0.8])
    t = run.t - run.t[0]
    low, high, _ = com_limits(run)
    reference = PlannedReference(run)
    planned = reference.com() if reference.has_motions else None
    for axis, axes in enumerate(rows[:3]):
        axes.plot(t, run.com[:, axis], color="tab:blue", label="run", zorder=3)
        if planned is not None:
            axes.plot(t, planned[:, axis], color="black", linestyle="--", linewidth=1, label="plan's motion", zorder=4)
        curves = run.com[:, axis] if planned is None else np.concatenate([run.com[:, axis], planned[:, axis]])
        if axis < 2 and np.isfinite(curves).all():
            # shade the area beyond the limits
            bottom, top = float(curves.min()) - AXIS_MARGIN_M, float(curves.max()) + AXIS_MARGIN_M
            outside = {"color": "tab:red", "alpha": 0.16, "linewidth": 0, "step": "post"}
            axes.fill_between(t, np.clip(high[:, axis], bottom, top), top, label="out of the region", **outside)
            axes.fill_between(t, bottom, np.clip(low[:, axis], bottom, top), **outside)
            axes.set_ylim(bottom, top)
    if len(t) > 1:
        speed = np.linalg.norm(np.gradient(run.com, t, axis=0), axis=1)
        rows[3].plot(t, speed, color="tab:purple")
    rows[3].set_ylim(bottom=0.0)
    add_legend_beside(rows[0])
    return figure


def plot_momentum(run: Run) -> Figure:
    """Plot ``h_G = A_G(q) v``: linear [N s] and angular [N m s], world axes, about the centre of mass.

    Masses are those of the physics.
    """
    figure, (linear, angular) = time_axes(run, ["linear [N s]", "angular [N m s]"], "momentum about the CoM")
    t = run.t - run.t[0]
    momentum = np.einsum("kij,kj->ki", run.loaded_robot.centroidal_momentum_matrix(run.q), run.v)
    for axis, name in enumerate("xyz"):
        linear.plot(t, momentum[:, axis], label=name)
        angular.plot(t, momentum[:, 3 + axis], label=name)
    add_legend_beside(linear)
    add_legend_beside(angular)
    return figure
