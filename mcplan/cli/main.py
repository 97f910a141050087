"""Command line entry point; for a fast start, commands import their modules when they run.

Exit status: 0 done, 1 the job ran and failed (no plan, fell, certificate broken), 2 bad input, 3 internal error.
"""

import argparse
import atexit
import errno
import gc
import os
import re
import sys
import tempfile
import traceback
import warnings
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from mcplan.cli import COMMANDS
from mcplan.errors import McplanError
from mcplan.util.spelling import did_you_mean_or_all
from mcplan.version import __version__

EPILOG = """\
SCENARIO is the name of a bundled scenario (mcplan info lists them) or the path of a file.
exit status: 0 done, 1 the job ran and failed, 2 bad input, 3 internal error

  mcplan run table_hand                     plan, simulate, verify; writes runs/table_hand/report.html
  mcplan run step --set simulation.dt=0.002 any field of the scenario can be set
  mcplan replay runs/table_hand --open      look at it
"""


KERNEL_COMMANDS = ("run", "plan", "simulate", "verify", "bench")
"""Commands that need compiled kernels."""

DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Error numbers of failed writes that name no file: full disk, quota, file size limit."""

GC_THRESHOLD = 1_000_000
"""Threshold of Python's garbage collection. With the default of 700 it scans the objects of imported modules again and
again without effect: 9 % of the time of a first run."""

atexit.register(gc.freeze)  # Python would scan all objects twice at its exit, for 0.3 s


class Parser(argparse.ArgumentParser):
    """Argument parser that suggests the closest choice of a misspelt one."""

    def error(self, message: str) -> NoReturn:
        """Print the usage, and the message with the closest choice; exit with status 2."""
        match = re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message)
        if match:
            word, choices = match[1], re.findall(r"[\w-]+", match[2])
            argument = re.sub(r"^argument (.*?): .*", r"\1", message)
            hint = did_you_mean_or_all(word, choices)
            if argument == "COMMAND" and self._is_scenario_or_file(word):
                hint = f"; to plan and simulate it: mcplan run {word}"
            message = f"{argument}: there is no `{word}`{hint}".replace("COMMAND: there is no", "there is no command")
        super().error(message)

    @staticmethod
    def _is_scenario_or_file(word: str) -> bool:
        """Whether an unknown command is the name of a scenario, or a file."""
        from mcplan.util.bundled import bundled_scenarios

        return word in bundled_scenarios() or Path(word).exists()


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    parser = Parser(
        prog="mcplan",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Plan, simulate, verify and replay multi-contact motions of humanoids.",
    )
    parser.add_argument("--version", action="version", version=f"mcplan {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in COMMANDS:
        command = import_module(f"mcplan.cli.{name}")
        text = command.HELP
        sub = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        sub.add_argument("-q", "--quiet", action="store_true", help="print no progress and no notices")
        command.declare(sub)
        if hasattr(command, "run"):  # commands with actions set the function of each action
            sub.set_defaults(execute=command.run)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit status."""
    parsed = build_parser().parse_args(arguments)
    try:
        return _run(parsed)
    except McplanError as error:
        print(error, file=sys.stderr)
        return error.exit_status
    except BrokenPipeError:  # the reader of a pipe (head, less) has seen enough
        sys.stderr.close()
        return 0
    except OSError as error:  # no permission, no room, a name that is too long
        if error.filename is None and error.errno not in DISK_FULL:
            return _report_internal_error()
        print(f"{error.filename or _full_disk()}: {error.strerror}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except Exception:
        return _report_internal_error()


def _report_internal_error() -> int:
    """Print the traceback of an internal error; return the exit status."""
    traceback.print_exc()
    print("mcplan: internal error; please report it with the lines above", file=sys.stderr)
    return 3


def _full_disk() -> str:
    """Return the location that is full, for an error that names no file.

    Unwritten standard output is dropped: Python would otherwise try again at exit.
    """
    try:
        print(flush=True)  # write a line: flushing an empty buffer would always succeed
    except OSError:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.close(null)
        return "output"
    from mcplan.util.kernel_cache import cache_directory

    temporary = tempfile.tempdir or "temporary files"  # gettempdir() would write a file
    kernels = f"the compiled kernels ({cache_directory()})"
    return f"no room left on the disk of {temporary}, of {kernels}, or of the working directory"


def _run(parsed: argparse.Namespace) -> int:
    """Run the command with progress; restore the terminal at the end."""
    from mcplan.util.bars import BARS, be_quiet, note

    be_quiet(parsed.quiet)
    threshold, *others = gc.get_threshold()
    gc.set_threshold(GC_THRESHOLD, *others)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            printed: set[str] = set()

            def print_once(message: Warning | str, *_: object, **__: object) -> None:
                if str(message) not in printed:  # a file may be read twice
                    printed.add(str(message))
                    note(f"{message} (a warning, not an error)")

            warnings.showwarning = print_once
            if parsed.command in KERNEL_COMMANDS:
                from mcplan.util.compiling import WATCH  # without Numba: a first run is announced at once

                WATCH.announce_first_run(getattr(parsed, "physics", None))
            status = int(parsed.execute(parsed))
        sys.stdout.flush()  # report a failed write here, not at exit
        return status
    finally:
        BARS.close()
        be_quiet(False)
        gc.freeze()
        gc.unfreeze()  # all objects count as old: the lower threshold starts no collection
        gc.set_threshold(threshold, *others)


if __name__ == "__main__":
    sys.exit(main())
