"""Plots of contacts: forces and friction use over time, support regions, and the regions of a stance from above."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from mcplan.analysis.readings import LOADED_N, cone_share
from mcplan.core.rigid_body.tree import GRAVITY
from mcplan.record.run import Run
from mcplan.scene.contact import Contact
from mcplan.statics.com_region import ComPolyhedron
from mcplan.statics.support_region import SupportRegion
from mcplan.util.text import escape_mathtext
from mcplan.view.palette import PATCHES
from mcplan.view.plots.bands import add_legend_beside, time_axes

if TYPE_CHECKING:
    from mcplan.statics.support_region import SupportRegion


def plot_forces(run: Run) -> Figure:
    """Plot the magnitude of the force on each patch and of their sum [N], and the used share of cone or grip.

    The share is |f_t| / (mu f_n) at the worst point (1 = sliding); for a grasp, which has no cone, |f| / maximum force.
    """
    labels = ["force [N]", "share of cone or grip [-]"]
    figure, (force, friction) = time_axes(run, labels, "contact forces", [1.4, 1.0])
    t = run.t - run.t[0]
    for column, name in enumerate(run.patches):
        size = np.linalg.norm(run.wrench[:, column, :3], axis=1)
        if not np.any(size > LOADED_N):
            continue
        colour = PATCHES[column % len(PATCHES)]
        force.plot(t, np.where(run.active[:, column], size, np.nan), label=escape_mathtext(name), color=colour)
        used = cone_share(run, column)
        if not np.all(np.isnan(used)):
            friction.plot(t, used, color=colour, label=escape_mathtext(name), linewidth=1)
    total = np.linalg.norm(run.wrench[:, :, :3].sum(axis=1), axis=1)
    force.plot(t, total, color="black", linewidth=1, label="all together", zorder=1.5)
    weight = run.loaded_robot.mass * GRAVITY
    force.axhline(weight, color="grey", linestyle=":", linewidth=1, label="weight of the robot")
    friction.axhline(1.0, color="tab:red", linestyle="--", linewidth=1, label="limit")
    friction.set_ylim(0.0, 1.18)
    force.set_ylim(bottom=0.0)
    add_legend_beside(force)
    add_legend_beside(friction)
    return figure


def plot_region(
    region: SupportRegion | ComPolyhedron, axes: Any = None, heights: Sequence[float] = (), **style: Any
) -> Any:
    """Draw a region of the centre of mass from above into matplotlib axes and return them.

    An unbounded region is cut far away; its label or title ends in ``(cut)``.

    Parameters
    ----------
    axes : axes to draw into; new ones by default.
    heights : heights (m) of the sections of a polyhedron; not used for a support region.
    style : style of the outline, as for ``Axes.plot``.
    """
    if isinstance(region, ComPolyhedron):
        for height in heights:
            axes = plot_region(region.section(height), axes, label=f"{height:g} m", **style)
        return axes
    cut = "" if region.bounded else " (cut)"
    if axes is None:
        from matplotlib.figure import Figure

        axes = Figure(figsize=(4.5, 4.0), layout="constrained").add_subplot()
        axes.set(xlabel="x (m)", ylabel="y (m)", title=f"support region of the centre of mass{cut}", aspect="equal")
        axes.grid(alpha=0.3)
    corners = region.vertices
    if len(corners):
        closed = np.vstack([corners, corners[:1]])
        axes.fill(closed[:, 0], closed[:, 1], alpha=0.15)
        label = {"label": f"{style['label']}{cut}"} if "label" in style else {}
        axes.plot(closed[:, 0], closed[:, 1], **({"lw": 1.5} | style | label))
    return axes


VIEW_MARGIN_M = 0.25
"""Margin around contacts and centre of mass (m). Larger regions are cut at the extent of the contacts."""


def save_stance(
    path: Path, title: str, contacts: Sequence[Contact], com: np.ndarray, regions: Mapping[str, SupportRegion]
) -> None:
    """Draw regions by name, contacts and the centre of mass (3,) into a file: .svg, .png or .pdf."""
    plot_stance(title, contacts, com, regions).savefig(path)


def plot_stance(
    title: str, contacts: Sequence[Contact], com: np.ndarray, regions: Mapping[str, SupportRegion]
) -> Figure:
    """Plot regions by name, contacts and the centre of mass (3,) from above; large regions only points the contacts."""
    figure = Figure(figsize=(6.5, 5.5), layout="constrained")
    axes = figure.add_subplot()
    for name, region in regions.items():
        plot_region(region, axes, label=name)
    for contact in contacts:
        corners = contact.world_points[:, :2]
        closed = np.vstack([corners, corners[:1]])
        axes.plot(closed[:, 0], closed[:, 1], "k-" if len(corners) > 1 else "ks", lw=1.0, ms=4)
        axes.annotate(escape_mathtext(contact.patch), corners.mean(axis=0), fontsize=8, ha="center")
    axes.plot(com[0], com[1], "k+", ms=12, mew=2, label="centre of mass")
    axes.set(xlabel="x (m)", ylabel="y (m)", title=escape_mathtext(title), aspect="equal")
    axes.grid(alpha=0.3)
    figure.legend(fontsize=8, loc="outside lower center", ncols=4)
    points = np.vstack([com[None, :2], *(contact.world_points[:, :2] for contact in contacts)])
    cut_distance = max(VIEW_MARGIN_M, float(np.ptp(points, axis=0).max()))
    vertices = [region.vertices for region in regions.values()]
    extent = np.vstack([points - VIEW_MARGIN_M, points + VIEW_MARGIN_M, *vertices])
    low = np.maximum(extent.min(axis=0), points.min(axis=0) - cut_distance)
    high = np.minimum(extent.max(axis=0), points.max(axis=0) + cut_distance)
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    return figure
