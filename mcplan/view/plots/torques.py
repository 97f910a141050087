"""Joint torques and velocities against their limits."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from mcplan.sim.run import Run
from mcplan.sim.unit import FORCES, recorded_units
from mcplan.view.plots.bands import beside, time_axes
from mcplan.view.written import drawn


def plot_torques(run: Run, joints_shown: int = 6) -> Figure:
    """Plot tau / limit over time for the joints that come closest to their limit, and the largest of all joints."""
    units = [FORCES[unit] for unit in recorded_units(run.record.robot)]
    return _plot_share(run, run.tau, "torque", units, joints_shown)


def plot_velocities(run: Run, joints_shown: int = 6) -> Figure:
    """Plot the same for the joint velocities."""
    units = [f"{unit}/s" for unit in recorded_units(run.record.robot)]
    return _plot_share(run, run.v[:, 6:], "velocity", units, joints_shown)


def _plot_share(run: Run, values: np.ndarray, name: str, units: Sequence[str], joints_shown: int) -> Figure:
    """Plot values (N, n) over the limits of this name, in ``units`` (n,); a joint without limit has the share zero."""
    labels = ["largest share [-]", f"{name} / limit [-]"]
    figure, (largest, chosen) = time_axes(run, labels, f"joint {name} against limits", [0.7, 1.5])
    t = run.t - run.t[0]
    limit, joints = run.record.robot.limit(name), run.record.joints
    ratio = np.divide(values, limit, out=np.zeros_like(values), where=limit > 0.0)
    largest.plot(t, np.abs(ratio).max(axis=1, initial=0.0), color="black")
    peak = np.abs(ratio).max(axis=0)
    for joint in np.argsort(-peak)[:joints_shown]:
        label = f"{joints[joint]} ({limit[joint]:.3g} {units[joint]})"
        chosen.plot(t, ratio[:, joint], label=drawn(label))
    largest.set_ylim(0.0, max(1.15, 1.15 * float(peak.max(initial=0.0))))
    largest.axhline(1.0, color="tab:red", linestyle="--", linewidth=1, label="limit")
    beside(largest)
    chosen.axhline(0.0, color="grey", linewidth=0.8)
    beside(chosen)
    return figure
