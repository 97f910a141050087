"""Command ``mcplan sweep``."""

from argparse import ArgumentParser, Namespace

HELP = "run the cases of an experiment that its store does not have yet, in parallel"


def declare(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("experiment", metavar="EXPERIMENT", help="the experiment's file")
    parser.add_argument("-o", "--output", metavar="DIR", help="directory of the results (default runs/sweeps/NAME)")
    parser.add_argument("--workers", type=int, metavar="N", help="processes on this machine (default: one per core)")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="a running Dask scheduler instead: tcp://host:port")
    text = "seeds instead of the file's: 4711:10 (ten seeds), or 4711 (as many as in the file)"
    parser.add_argument("--seeds", metavar="FROM[:COUNT]", help=text)
    text = "only these cases: 'scenario == \"walk\" and seed < 3'"
    parser.add_argument("--only", metavar="EXPR", default="", help=text)
    parser.add_argument("--dry-run", action="store_true", help="print the cases to run, and run nothing")
    parser.add_argument("--retry-failed", action="store_true", help="run cases again that crashed or went over a limit")
    parser.add_argument("--max-cases", type=int, metavar="N", help="confirm an experiment of up to N cases")
    parser.add_argument("--against", metavar="DIR", help="compare with the results of another sweep, before this one")


def run(arguments: Namespace) -> int:
    """Run an experiment and write its results."""
    from mcplan.cli.name_resolution import EXPERIMENT, find

    path = find(arguments.experiment, EXPERIMENT)
    from mcplan.sweep.command import run_experiment  # only now: a misspelt name is answered at once

    return run_experiment(path, arguments)
