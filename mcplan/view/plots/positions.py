"""Joint positions against their limits."""

import numpy as np
from matplotlib.figure import Figure

from mcplan.sim.run import Run
from mcplan.sim.unit import recorded_units
from mcplan.view.plots.bands import beside, time_axes
from mcplan.view.written import drawn


def position_share(run: Run) -> np.ndarray:
    """Return where each joint is in its range, (N, n): -1 at the lower limit, 1 at the upper; NaN without a range."""
    lower, upper = run.record.robot.limit("lower"), run.record.robot.limit("upper")
    with np.errstate(invalid="ignore"):
        middle, half = 0.5 * (upper + lower), 0.5 * (upper - lower)
        share = (run.q[:, 7:] - middle) / half
    share[:, ~(np.isfinite(half) & (half > 0.0))] = np.nan
    return share


def plot_positions(run: Run, joints_shown: int = 6) -> Figure:
    """Plot where the joints that come closest to a limit are in their range: -1 lower limit, 1 upper limit."""
    figure, (closest, chosen) = time_axes(
        run, ["nearest to a limit [-]", "place in the range [-]"], "joint positions against limits", [0.7, 1.5]
    )
    t = run.t - run.t[0]
    share, joints = position_share(run), run.record.joints
    lower, upper = run.record.robot.limit("lower"), run.record.robot.limit("upper")
    units = recorded_units(run.record.robot)
    reach = np.nan_to_num(np.abs(share))
    closest.plot(t, reach.max(axis=1, initial=0.0), color="black")
    closest.axhline(1.0, color="tab:red", linestyle="--", linewidth=1)
    closest.set_ylim(0.0, max(1.15, 1.15 * float(reach.max(initial=0.0))))
    for joint in np.argsort(-reach.max(axis=0, initial=0.0))[:joints_shown]:
        label = f"{joints[joint]} ({lower[joint]:.2f} to {upper[joint]:.2f} {units[joint]})"
        chosen.plot(t, share[:, joint], label=drawn(label))
    for limit in (-1.0, 1.0):
        chosen.axhline(limit, color="tab:red", linestyle="--", linewidth=1, label="limit" if limit > 0 else None)
    chosen.set_ylim(-1.15, 1.2)
    beside(chosen)
    return figure
