"""Contact forces: the normal force of each patch, and how much friction is left at the worst of its points."""

import numpy as np
from matplotlib.figure import Figure

from mcplan.sim.run import Run
from mcplan.view.plots.bands import beside, time_axes

LOADED = 1.0
"""Friction is judged at points with more normal force than this, N (the rule of the certificate)."""


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
        used = friction_used(run, column)
        grip = _largest_force(run, name)
        if grip is not None:
            used = np.where(run.active[:, column], size / grip, np.nan)
        if not np.all(np.isnan(used)):
            friction.plot(t, used, color=line.get_color(), label=name)
    friction.axhline(1.0, color="black", linestyle="--", linewidth=1)
    friction.text(t[-1], 1.0, "limit ", ha="right", va="bottom", fontsize="small")
    friction.set_ylim(0.0, 1.15)
    force.set_ylim(bottom=0.0)
    beside(force)
    return figure


def _largest_force(run: Run, patch: str) -> float | None:
    """Return the largest force that the grasps of a patch may carry (N), None where it grasps nothing, or has none."""
    found = [stance.contact(patch) for stance in run.record.plan.stances]
    limits = [c.max_force for c in found if c is not None and c.kind == "grasp" and c.max_force is not None]
    return min(limits, default=None)


def friction_used(run: Run, column: int) -> np.ndarray:
    """Return per sample |f_t| / (mu f_n) at the worst loaded point of a patch; NaN where none is loaded.

    mu is that of the planned contact which the sample's phase leads to, or comes from.
    """
    used = np.full(len(run.t), np.nan)
    mu = run.patch_friction(run.patches[column])
    sample = run.point_sample()
    normal = np.einsum("ij,ij->i", run.point_force, run.point_normal)
    mine = (run.point_patch == column) & (normal > LOADED) & ~np.isnan(mu[sample])
    tangential = np.linalg.norm(run.point_force - normal[:, None] * run.point_normal, axis=1)
    ratio = tangential[mine] / (mu[sample[mine]] * normal[mine])
    used[sample[mine]] = 0.0
    np.maximum.at(used, sample[mine], ratio)
    return used
