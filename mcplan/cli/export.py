"""Command ``mcplan export``."""

from argparse import ArgumentParser, Namespace

from mcplan.cli.options import file_to_write
from mcplan.util.exports import EXPORTS

HELP = "write a run in the format of another program"


def declare(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("run", metavar="RUN", help="directory of a run, or its run.npz")
    text = "; ".join(f"{kind}: {export.content}" for kind, export in EXPORTS.items())
    parser.add_argument("--to", choices=list(EXPORTS), required=True, help=text)
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="the file")
    parser.add_argument("--force", action="store_true", help="write over FILE")
    parser.add_argument("--rate", type=float, metavar="HZ", help="samples per second (default: all, 20 or 50)")


def run(arguments: Namespace) -> int:
    """Write a run in the format of another program."""
    from mcplan.cli.name_resolution import RUN, find
    from mcplan.export import export_run, export_writer
    from mcplan.export.tables import points_file
    from mcplan.record.run import load_run

    path = file_to_write(arguments.output, arguments.force)
    if arguments.to == "csv":
        file_to_write(points_file(path), arguments.force)
    export_writer(arguments.to, arguments.rate)
    for file in export_run(load_run(find(arguments.run, RUN)), arguments.to, path, arguments.rate):
        print(file)
    return 0
