"""``mcplan report``."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from mcplan.commands.options import add_output, file_to_write, open_in_browser

if TYPE_CHECKING:
    from mcplan.sim.run import Run

HELP = "write the report of a run: what happened, the closest calls, certificate, charts, replay"


def declare(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("run", metavar="RUN", help="directory of a run, or its run.npz")
    add_output(parser, "the HTML file (default RUN/report.html)")
    parser.add_argument("--open", action="store_true", help="open it in the browser")


def carry_out(arguments: Namespace) -> int:
    """Write the report of a run that is there."""
    from mcplan.commands.recognise import RUN, find
    from mcplan.progress import Working
    from mcplan.run_directory import save_report

    run = find(arguments.run, RUN)
    home = run if run.is_dir() else run.parent
    path = file_to_write(arguments.output or home / "report.html", arguments.force)
    with Working("verifying"):
        save_report(recorded(run), path)
    print(f"report: {path}")
    if arguments.open:
        open_in_browser(path)
    return 0


def recorded(path: Path) -> "Run":
    """Return a run with its clock times, where they are beside it."""
    from dataclasses import replace

    from mcplan.sim.run_file import load_run, load_timing

    return replace(load_run(path), timing=load_timing(path))
