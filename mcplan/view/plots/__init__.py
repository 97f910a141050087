"""Plots of a run: one file per figure, with the phases of the motion in the colours of the replay."""

from collections.abc import Callable, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from mcplan.analysis.pace import PlannedReference
from mcplan.errors import InputError
from mcplan.record.run import Run
from mcplan.util.arguments import check_instance, file_path, unknown_message
from mcplan.util.files import atomic_write, check_writable
from mcplan.util.progress import report_progress
from mcplan.view import FIGURE_KINDS
from mcplan.view.plots.com import plot_com, plot_momentum
from mcplan.view.plots.contact import plot_forces
from mcplan.view.plots.limits import plot_joints, plot_positions, plot_torques, plot_velocities
from mcplan.view.plots.pace import plot_clock, plot_pace
from mcplan.view.plots.tasks import plot_tasks
from mcplan.view.plots.together import plot_together

FIGURES: dict[str, Callable[[Run], Figure]] = {
    "com": plot_com,
    "momentum": plot_momentum,
    "forces": plot_forces,
    "torques": plot_torques,
    "velocities": plot_velocities,
    "positions": plot_positions,
    "joints": plot_joints,
    "tasks": plot_tasks,
    "pace": plot_pace,
    "clock": plot_clock,
}
"""File name (without suffix) and function of each figure."""


def save_plots(run: Run, directory: str | Path, kind: str = "png") -> list[Path]:
    """Write the figures of a run listed in ``FIGURES`` (centre of mass, forces, torques, ...); return the paths.

    A run without clock times has no figure ``clock``; without a planned reference it has no figure ``pace``.

    Parameters
    ----------
    run : the run.
    directory : directory of the files; created if missing; existing files of the same names are replaced.
    kind : ``png``, ``pdf`` or ``svg``.

    Raises
    ------
    InputError
        ``run`` is not a Run, ``directory`` is not a directory, or ``kind`` is unknown.
    """
    check_instance("save_plots", "run", run, Run)
    directory = file_path("save_plots", directory)
    check_writable(directory, force=True, folder=True)
    if kind not in FIGURE_KINDS:
        raise InputError(unknown_message("kind of figure", str(kind), FIGURE_KINDS))
    is_omitted = {"clock": not run.timing, "pace": not PlannedReference(run).has_motions}
    paths = {name: directory / f"{name}.{kind}" for name in FIGURES if not is_omitted.get(name)}
    for k, (name, path) in enumerate(paths.items(), 1):
        report_progress(name, k, len(paths))
        _write(FIGURES[name](run), path)
    return list(paths.values())


def save_together(runs: Sequence[tuple[str, Run]], path: Path) -> None:
    """Write a figure of several runs, in the format of the suffix."""
    _write(plot_together(runs), path)


def _write(figure: Figure, path: Path) -> None:
    with atomic_write(path) as partial:
        figure.savefig(partial, format=path.suffix.removeprefix("."), dpi=130)
