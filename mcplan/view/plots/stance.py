"""The regions of a stance seen from above: contacts, where centre of mass and ZMP may be, where the former is."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from mcplan.scene.contact import Contact
from mcplan.statics.support_region import SupportRegion
from mcplan.view.plots.region import plot_region


def save_stance(
    path: Path, title: str, contacts: Sequence[Contact], com: np.ndarray, regions: Mapping[str, SupportRegion]
) -> None:
    """Draw regions by name, contacts and the centre of mass (3,) into a file: .svg, .png or .pdf."""
    axes = Figure(figsize=(6.5, 5.5), layout="constrained").add_subplot()
    for name, region in regions.items():
        plot_region(region, axes, label=name)
    for contact in contacts:
        corners = contact.world_points[:, :2]
        closed = np.vstack([corners, corners[:1]])
        axes.plot(closed[:, 0], closed[:, 1], "k-" if len(corners) > 1 else "ks", lw=1.0, ms=4)
        axes.annotate(contact.patch, corners.mean(axis=0), fontsize=8, ha="center")
    axes.plot(com[0], com[1], "k+", ms=12, mew=2, label="centre of mass")
    axes.set(xlabel="x (m)", ylabel="y (m)", title=title, aspect="equal")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    figure = axes.get_figure()
    assert figure is not None
    figure.savefig(path)  # type: ignore[union-attr]
