"""Command ``mcplan report``."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from mcplan.cli.options import add_output, file_to_write, open_in_browser

if TYPE_CHECKING:
    import numpy as np

    from mcplan.record.run import Run

HELP = "write the report of a run: events, smallest margins, certificate, charts, replay"


def declare(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("run", metavar="RUN", help="directory of a run, or its run.npz")
    add_output(parser, "the HTML file (default RUN/report.html)")
    parser.add_argument("--open", action="store_true", help="open it in the browser")


def run(arguments: Namespace) -> int:
    """Write the report of an existing run."""
    from mcplan.cli.name_resolution import RUN, find

    run = find(arguments.run, RUN)
    directory = run if run.is_dir() else run.parent
    path = file_to_write(arguments.output or directory / "report.html", arguments.force)
    from mcplan.api import save_report  # only now: a misspelt name is answered at once
    from mcplan.util.bars import Working

    with Working("verifying"):
        save_report(load_recorded_run(run), path)
    print(f"report: {path}")
    if arguments.open:
        open_in_browser(path)
    return 0


def load_recorded_run(path: Path) -> "Run":
    """Return a run with its clock times, if their file exists and belongs to it."""
    from dataclasses import replace

    from mcplan.record.run import load_run
    from mcplan.record.run_file import load_timing

    run, timing = load_run(path), load_timing(path)
    return replace(run, timing=timing) if _timing_matches(timing, run) else run


def _timing_matches(timing: "dict[str, np.ndarray]", run: "Run") -> bool:
    """Whether the number of clock times equals that of steps or of control ticks; otherwise they are of an older run.

    A controller without a QP leaves no record of its ticks; then any number below that of the steps is accepted.
    """
    from mcplan.util.qp_status import NO_QP

    steps, ticks = len(run), int((run.qp_status != NO_QP).sum())
    return all(
        times.ndim == 1 and (len(times) in (steps, ticks) or (not ticks and len(times) < steps))
        for times in timing.values()
    )
