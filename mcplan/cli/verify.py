"""Command ``mcplan verify``."""

import json
from argparse import ArgumentParser, Namespace

from mcplan.cli.execution import width
from mcplan.cli.options import add_json

HELP = "recompute a run, or the stances and motions of a plan, and print its certificate"


def declare(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("run", metavar="RUN|PLAN", help="directory of a run, its run.npz, or a plan file")
    parser.add_argument(
        "--with",
        dest="engines",
        metavar="ENGINE",
        action="append",
        default=[],
        help="let another engine recompute the run: pinocchio or mujoco (repeatable)",
    )
    add_json(parser)


def run(arguments: Namespace) -> int:
    """Recompute a run and print its certificate."""
    from mcplan.cli.name_resolution import PLAN, RUN, find

    if arguments.engines:
        from mcplan.certificate.engines import engine_class

        for name in arguments.engines:
            engine_class(name)  # report a missing engine before any work
    path = find(arguments.run, RUN, PLAN)
    from mcplan.certificate.verify import verify as certify  # only now: a misspelt name is answered at once
    from mcplan.util.bars import Working

    with Working("verifying"):
        if not arguments.engines:
            report = certify(path)
            content = report.to_json() if arguments.json else {}
        else:
            from mcplan.certificate.reproduction import with_engines

            report, engines = with_engines(str(path), arguments.engines)
            content = report.to_json() | {"engines": engines}
    print(json.dumps(content, indent=1) if arguments.json else report.text(width()))
    return 0 if report.success else 1
