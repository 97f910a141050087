"""All joints at a glance: heat maps over time of how much of each limit they use, the worst of each named."""

import numpy as np
from matplotlib.figure import Figure

from mcplan.sim.run import Run
from mcplan.view.plots.bands import draw_bands, kinds_below
from mcplan.view.plots.positions import position_share
from mcplan.view.written import drawn

COLUMNS = 800
"""Intervals of time; each shows the largest share within it."""


def plot_joints(run: Run) -> Figure:
    """Plot joints by time: the share of torque, velocity and position limits [%], the worst moment of each marked."""
    robot, joints = run.record.robot, run.record.joints
    shares = {
        "torque": _share(run.tau, robot.limit("torque")),
        "velocity": _share(run.v[:, 6:], robot.limit("velocity")),
    }
    shares["position"] = np.abs(position_share(run))
    count = len(joints)
    height = max(2.2, 0.13 * count)
    figure = Figure(figsize=(11, 1.6 + 3 * (height + 0.35)), layout="constrained")
    rows = figure.subplots(len(shares) + 1, 1, sharex=True, gridspec_kw={"height_ratios": [0.18, *([height] * 3)]})
    draw_bands(rows[0], run, 1.0)
    rows[0].set_yticks([])
    rows[0].set_ylabel("phase", rotation=0, ha="right", va="center", fontsize="small")
    duration = max(float(run.t[-1] - run.t[0]), run.dt)
    edges = np.unique(np.linspace(0, len(run), min(COLUMNS, len(run)) + 1).astype(int))
    for axes, (name, share) in zip(rows[1:], shares.items(), strict=True):
        values = np.nan_to_num(share)
        image = np.maximum.reduceat(values, edges[:-1], axis=0).T if count else np.zeros((1, 1))
        heat = axes.imshow(
            100 * image, aspect="auto", cmap="inferno", vmin=0.0, vmax=100.0, interpolation="nearest",
            extent=(0.0, duration, max(count, 1) - 0.5, -0.5),
        )  # fmt: skip
        axes.set_yticks(range(count), [drawn(joint) for joint in joints], fontsize=5.5)
        axes.set_ylabel("joint")
        if count:
            k, i = np.unravel_index(int(values.argmax()), values.shape)
            t = float(run.t[k] - run.t[0])
            axes.plot(t, i, "o", markersize=9, markerfacecolor="none", markeredgecolor="cyan", markeredgewidth=1.5)
            worst = f"worst (ring): {joints[i]}, {values[k, i]:.0%} at {t:.2f} s"
            axes.set_title(drawn(f"{name}: {worst}"), fontsize="medium", loc="left")
            axes.get_yticklabels()[i].set_fontweight("bold")
        figure.colorbar(heat, ax=axes, label=f"share of the {name} limit [%]", pad=0.01)
    rows[-1].set_xlabel("time [s]")
    rows[-1].set_xlim(0.0, duration)
    figure.suptitle(drawn(f"{run.scenario.name}: joints against limits"))
    kinds_below(figure, run)
    return figure


def _share(values: np.ndarray, limit: np.ndarray) -> np.ndarray:
    return np.divide(np.abs(values), limit, out=np.zeros_like(values), where=(limit > 0.0) & np.isfinite(limit))
