"""The regions of a stance seen from above: contacts, where centre of mass and ZMP may be, where the former is."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from mcplan.scene.contact import Contact
from mcplan.statics.support_region import SupportRegion
from mcplan.view.plots.region import plot_region
from mcplan.view.written import drawn

ROOM = 0.25
"""m around the contacts and the centre of mass that is shown at least; of larger regions as much as these extend."""


def save_stance(
    path: Path, title: str, contacts: Sequence[Contact], com: np.ndarray, regions: Mapping[str, SupportRegion]
) -> None:
    """Draw regions by name, contacts and the centre of mass (3,) into a file: .svg, .png or .pdf."""
    plot_stance(title, contacts, com, regions).savefig(path)


def plot_stance(
    title: str, contacts: Sequence[Contact], com: np.ndarray, regions: Mapping[str, SupportRegion]
) -> Figure:
    """Return the same as a figure; of regions that are large, or without bounds, it shows what is near the contacts."""
    figure = Figure(figsize=(6.5, 5.5), layout="constrained")
    axes = figure.add_subplot()
    for name, region in regions.items():
        plot_region(region, axes, label=name)
    for contact in contacts:
        corners = contact.world_points[:, :2]
        closed = np.vstack([corners, corners[:1]])
        axes.plot(closed[:, 0], closed[:, 1], "k-" if len(corners) > 1 else "ks", lw=1.0, ms=4)
        axes.annotate(drawn(contact.patch), corners.mean(axis=0), fontsize=8, ha="center")
    axes.plot(com[0], com[1], "k+", ms=12, mew=2, label="centre of mass")
    axes.set(xlabel="x (m)", ylabel="y (m)", title=drawn(title), aspect="equal")
    axes.grid(alpha=0.3)
    figure.legend(fontsize=8, loc="outside lower center", ncols=4)
    near = np.vstack([com[None, :2], *(contact.world_points[:, :2] for contact in contacts)])
    room = max(ROOM, float(np.ptp(near, axis=0).max()))
    all_of_it = np.vstack([near - ROOM, near + ROOM, *(region.vertices for region in regions.values())])
    low = np.maximum(all_of_it.min(axis=0), near.min(axis=0) - room)
    high = np.minimum(all_of_it.max(axis=0), near.max(axis=0) + room)
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    return figure
