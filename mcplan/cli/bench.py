"""Command ``mcplan bench``."""

import json
import os
import sys
from argparse import ArgumentParser, Namespace

from mcplan.cli.options import add_json

HELP = "measure kernels, the control tick and the closed loop; compare with other libraries"


def declare(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "--peers",
        metavar="DIR",
        help="also measure TSID and Pinocchio, installed in DIR/tsid and DIR/pin, and dynibo and "
        "frax where DIR/dynibo and DIR/frax exist",
    )
    parser.add_argument("--quick", action="store_true", help="a rough measurement: seconds instead of minutes")
    add_json(parser)


def run(arguments: Namespace) -> int:
    """Measure; compare with TSID and Pinocchio if given."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is imported
    from mcplan.bench.measure import measure
    from mcplan.bench.peers import Peers
    from mcplan.bench.report import show
    from mcplan.bench.settings import QUICK, BenchSettings
    from mcplan.util.bars import note

    peers = Peers.find(arguments.peers) if arguments.peers else None
    report = measure(QUICK if arguments.quick else BenchSettings(), peers, note)
    if arguments.json:
        print(json.dumps(report.to_json(), indent=1))
    else:
        show(report)
    for failure in report.failures:
        print(failure, file=sys.stderr)
    return 1 if report.failures else 0
