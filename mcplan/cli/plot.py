"""Command ``mcplan plot``."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from mcplan.cli.options import file_to_write
from mcplan.cli.report import load_recorded_run
from mcplan.errors import InputError
from mcplan.view import FIGURE_KINDS

HELP = "plot centre of mass, momentum, forces, torques, velocities, positions, task errors and clock times of runs"


def declare(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("runs", metavar="RUN", nargs="+", help="directory of a run, or its run.npz")
    parser.add_argument("-o", "--output", metavar="DIR", help="where the figures go (default: RUN/plots)")
    parser.add_argument("--format", choices=FIGURE_KINDS, default="png", help="of the figures (default png)")
    text = "one figure (.png, .pdf or .svg) that compares the runs, alone"
    parser.add_argument("--together", metavar="FILE", help=text)
    parser.add_argument("--force", action="store_true", help="write over figures that are there")


def run(arguments: Namespace) -> int:
    """Plot runs."""
    from mcplan.cli.name_resolution import RUN, find

    if arguments.together:
        return _plot_comparison(arguments)
    paths = [find(name, RUN) for name in arguments.runs]
    from mcplan.util.bars import Working  # only now: a misspelt name is answered at once
    from mcplan.view.plots import FIGURES, save_plots

    outputs: list[tuple[Path, Path]] = []
    for path in paths:
        run_directory = path if path.is_dir() else path.parent
        directory = Path(arguments.output) if arguments.output else run_directory / "plots"
        if arguments.output and len(arguments.runs) > 1:
            directory = directory / run_name(path)
        for title in FIGURES:
            file_to_write(directory / f"{title}.{arguments.format}", arguments.force)
        if directory in [other for _, other in outputs]:
            raise InputError(f"two runs are called {run_name(path)}: plot them into separate directories")
        outputs.append((path, directory))
    for path, directory in outputs:
        with Working("drawing"):
            figures = save_plots(load_recorded_run(path), directory, arguments.format)
        for figure in figures:
            print(figure)
    return 0


def run_name(run: Path) -> str:
    """Return the name of a run: that of its directory, also for ``.``."""
    return (run if run.is_dir() else run.parent).resolve().name


def _plot_comparison(arguments: Namespace) -> int:
    """Plot several runs into one figure."""
    from mcplan.cli.name_resolution import RUN, find
    from mcplan.util.bars import Working
    from mcplan.view.plots import save_together

    endings = [f".{kind}" for kind in FIGURE_KINDS]
    path = file_to_write(arguments.together, arguments.force, *endings, option="--together")
    paths = [find(name, RUN) for name in arguments.runs]
    names = [run_name(run) for run in paths]
    if len(set(names)) < len(names):  # names are not unique: use paths
        names = [str(run) for run in paths]
    with Working("drawing"):
        save_together([(name, load_recorded_run(run)) for name, run in zip(names, paths, strict=True)], path)
    print(path)
    return 0
