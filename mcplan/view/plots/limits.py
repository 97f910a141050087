"""Plots of joint positions, velocities and torques against their limits, and heat maps of all joints over time."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from mcplan.record.records import EFFORT_UNITS, recorded_units
from mcplan.record.run import Run
from mcplan.util.text import escape_mathtext
from mcplan.view.plots.bands import add_legend_beside, add_phase_legend, draw_bands, time_axes


def position_share(run: Run) -> np.ndarray:
    """Return the normalized joint positions (N, n): -1 at the lower limit, 1 at the upper; NaN without limits."""
    lower, upper = run.record.robot.limit("lower"), run.record.robot.limit("upper")
    with np.errstate(invalid="ignore"):
        middle, half = 0.5 * (upper + lower), 0.5 * (upper - lower)
        share = (run.q[:, 7:] - middle) / half
    share[:, ~(np.isfinite(half) & (half > 0.0))] = np.nan
    return share


def plot_positions(run: Run, joints_shown: int = 6) -> Figure:
    """Plot the normalized positions of the joints closest to a limit: -1 lower limit, 1 upper limit."""
    figure, (closest, chosen) = time_axes(
        run, ["nearest to a limit [-]", "place in the range [-]"], "joint positions against limits", [0.7, 1.5]
    )
    t = run.t - run.t[0]
    share, joints = position_share(run), run.record.joints
    lower, upper = run.record.robot.limit("lower"), run.record.robot.limit("upper")
    units = recorded_units(run.record.robot)
    distance_share = np.nan_to_num(np.abs(share))
    closest.plot(t, distance_share.max(axis=1, initial=0.0), color="black")
    closest.axhline(1.0, color="tab:red", linestyle="--", linewidth=1)
    closest.set_ylim(0.0, max(1.15, 1.15 * float(distance_share.max(initial=0.0))))
    for joint in np.argsort(-distance_share.max(axis=0, initial=0.0))[:joints_shown]:
        label = f"{joints[joint]} ({lower[joint]:.2f} to {upper[joint]:.2f} {units[joint]})"
        chosen.plot(t, share[:, joint], label=escape_mathtext(label))
    for limit in (-1.0, 1.0):
        chosen.axhline(limit, color="tab:red", linestyle="--", linewidth=1, label="limit" if limit > 0 else None)
    chosen.set_ylim(-1.15, 1.2)
    add_legend_beside(chosen)
    return figure


MAX_TIME_INTERVALS = 800
"""Maximum number of time intervals of the heat maps; each shows the largest share within it."""


def plot_joints(run: Run) -> Figure:
    """Plot heat maps of joints over time: share of torque, velocity and position limits [%], the worst marked."""
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
    edges = np.unique(np.linspace(0, len(run), min(MAX_TIME_INTERVALS, len(run)) + 1).astype(int))
    for axes, (name, share) in zip(rows[1:], shares.items(), strict=True):
        values = np.nan_to_num(share)
        image = np.maximum.reduceat(values, edges[:-1], axis=0).T if count else np.zeros((1, 1))
        heat = axes.imshow(
            100 * image, aspect="auto", cmap="inferno", vmin=0.0, vmax=100.0, interpolation="nearest",
            extent=(0.0, duration, max(count, 1) - 0.5, -0.5),
        )  # fmt: skip
        axes.set_yticks(range(count), [escape_mathtext(joint) for joint in joints], fontsize=5.5)
        axes.set_ylabel("joint")
        if count:
            k, i = np.unravel_index(int(values.argmax()), values.shape)
            t = float(run.t[k] - run.t[0])
            axes.plot(t, i, "o", markersize=9, markerfacecolor="none", markeredgecolor="cyan", markeredgewidth=1.5)
            worst = f"worst (ring): {joints[i]}, {values[k, i]:.0%} at {t:.2f} s"
            axes.set_title(escape_mathtext(f"{name}: {worst}"), fontsize="medium", loc="left")
            axes.get_yticklabels()[i].set_fontweight("bold")
        figure.colorbar(heat, ax=axes, label=f"share of the {name} limit [%]", pad=0.01)
    rows[-1].set_xlabel("time [s]")
    rows[-1].set_xlim(0.0, duration)
    figure.suptitle(escape_mathtext(f"{run.scenario.name}: joints against limits"))
    add_phase_legend(figure, run)
    return figure


def _share(values: np.ndarray, limit: np.ndarray) -> np.ndarray:
    """Return ``|values| / limit`` (N, n), zero without a limit."""
    return np.divide(np.abs(values), limit, out=np.zeros_like(values), where=(limit > 0.0) & np.isfinite(limit))


def plot_torques(run: Run, joints_shown: int = 6) -> Figure:
    """Plot torque / limit over time for the joints closest to their limit, and the maximum over all joints."""
    units = [EFFORT_UNITS[unit] for unit in recorded_units(run.record.robot)]
    return _plot_share(run, run.tau, "torque", units, joints_shown)


def plot_velocities(run: Run, joints_shown: int = 6) -> Figure:
    """Plot velocity / limit over time for the joints closest to their limit, and the maximum over all joints."""
    units = [f"{unit}/s" for unit in recorded_units(run.record.robot)]
    return _plot_share(run, run.v[:, 6:], "velocity", units, joints_shown)


def _plot_share(run: Run, values: np.ndarray, name: str, units: Sequence[str], joints_shown: int) -> Figure:
    """Plot values (N, n) / the limit ``name``, in ``units`` (n,); joints without a limit have the share zero."""
    labels = ["largest share [-]", f"{name} / limit [-]"]
    figure, (largest, chosen) = time_axes(run, labels, f"joint {name} against limits", [0.7, 1.5])
    t = run.t - run.t[0]
    limit, joints = run.record.robot.limit(name), run.record.joints
    ratio = np.divide(values, limit, out=np.zeros_like(values), where=limit > 0.0)
    largest.plot(t, np.abs(ratio).max(axis=1, initial=0.0), color="black")
    peak = np.abs(ratio).max(axis=0)
    for joint in np.argsort(-peak)[:joints_shown]:
        label = f"{joints[joint]} ({limit[joint]:.3g} {units[joint]})"
        chosen.plot(t, ratio[:, joint], label=escape_mathtext(label))
    largest.set_ylim(0.0, max(1.15, 1.15 * float(peak.max(initial=0.0))))
    largest.axhline(1.0, color="tab:red", linestyle="--", linewidth=1, label="limit")
    add_legend_beside(largest)
    chosen.axhline(0.0, color="grey", linewidth=0.8)
    add_legend_beside(chosen)
    return figure
