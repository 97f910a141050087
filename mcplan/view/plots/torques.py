"""Joint torques against their limits, one row per limb."""

import numpy as np
from matplotlib.figure import Figure

from mcplan.sim.run import Run
from mcplan.view.plots.bands import time_axes


def plot_torques(run: Run, joints_shown: int = 6) -> Figure:
    """Plot |tau| / limit over time for the joints that come closest to their limit, and the largest of all joints."""
    figure, (largest, chosen) = time_axes(run, ["largest of all", "torque / limit"], "joint torques", [0.7, 1.5])
    t = run.t - run.t[0]
    limit, joints = run.record.robot.limit("torque"), run.record.joints
    ratio = run.tau / limit
    largest.plot(t, np.abs(ratio).max(axis=1), color="black")
    peak = np.abs(ratio).max(axis=0)
    for joint in np.argsort(-peak)[:joints_shown]:
        chosen.plot(t, ratio[:, joint], label=f"{joints[joint]} ({limit[joint]:g} N m)")
    largest.set_ylim(0.0, max(1.05, 1.1 * float(peak.max())))
    largest.axhline(1.0, color="black", linestyle="--", linewidth=1)
    chosen.axhline(0.0, color="grey", linewidth=0.8)
    chosen.legend(loc="upper right", fontsize="x-small", ncols=2)
    return figure
