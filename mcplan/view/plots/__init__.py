"""Plots of a run: one file per figure, all with the phases of the motion as coloured bands behind the curves."""

from collections.abc import Callable
from pathlib import Path

from matplotlib.figure import Figure

from mcplan.sim.run import Run
from mcplan.view.plots.com import plot_com
from mcplan.view.plots.forces import plot_forces
from mcplan.view.plots.torques import plot_torques

FIGURES: dict[str, Callable[[Run], Figure]] = {"com": plot_com, "forces": plot_forces, "torques": plot_torques}
"""File name (without suffix) and function of each figure."""


def save_plots(run: Run, directory: str | Path) -> list[Path]:
    """Write every figure of ``FIGURES`` as PNG into ``directory`` (made if it is not there); return the paths."""
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, plot in FIGURES.items():
        paths.append(directory / f"{name}.png")
        plot(run).savefig(paths[-1], dpi=130)
    return paths
