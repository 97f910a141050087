"""Arguments common to several commands."""

import math
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from mcplan.errors import InputError, either
from mcplan.util.back_ends import BACK_ENDS
from mcplan.util.files import check_writable

if TYPE_CHECKING:
    from mcplan.scenario.scenario import Scenario


def whole_number(text: str) -> int:
    """Parse a non-negative integer."""
    if not text.isascii() or not text.isdigit():
        raise ArgumentTypeError(f"{text!r} is not a whole number from 0 on")
    return int(text)


def finite_number(text: str) -> float:
    """Parse a finite number."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ArgumentTypeError(f"{text!r} is not a finite number")
    return number


def port_number(text: str) -> int:
    """Parse a port; 0 means any free port."""
    port = whole_number(text)
    if port > 65535:
        raise ArgumentTypeError(f"{text}: expected a port from 0 (any free one) to 65535")
    return port


def check_port(port: int) -> None:
    """Check, before any work, that a local port is free."""
    import socket

    try:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
    except OSError as error:
        raise InputError(f"port {port} of 127.0.0.1 cannot be used: {error.strerror}") from error


def add_output(parser: ArgumentParser, help_text: str) -> None:
    """Add ``--output`` and ``--force``."""
    parser.add_argument("-o", "--output", metavar="PATH", help=help_text)
    parser.add_argument("--force", action="store_true", help="overwrite PATH if it exists")


def file_to_write(name: str | Path, force: bool, *endings: str, option: str = "-o") -> Path:
    """Return the path of an output file; check before any work that it can be written.

    Parameters
    ----------
    force : whether an existing file may be overwritten.
    endings : allowed file name extensions; without them, any.
    """
    path = Path(name)
    if endings and path.suffix.lower() not in endings:
        raise InputError(f"{option} {path}: expected a name that ends in {either(endings)}")
    check_writable(path, force)
    return path


def add_packages(parser: ArgumentParser) -> None:
    """Add ``--package-dir``."""
    text = "resolves package://NAME: the directory of the package NAME, or its parent (repeatable)"
    parser.add_argument("--package-dir", metavar="DIR", action="append", default=[], help=text)


def add_physics(parser: ArgumentParser) -> None:
    """Add ``--physics``."""
    parser.add_argument("--physics", choices=list(BACK_ENDS), help="physics back end (default: the scenario's)")


def add_json(parser: ArgumentParser) -> None:
    """Add ``--json``."""
    parser.add_argument("--json", action="store_true", help="print one JSON document and nothing else")


def open_in_browser(location: Path | str) -> None:
    """Open a file, or an address, in the browser."""
    import webbrowser  # only when needed: the import is slow

    webbrowser.open(location if isinstance(location, str) else location.resolve().as_uri())


def add_scenario(parser: ArgumentParser, plans: bool = False) -> None:
    """Add a scenario and its overrides; with ``plans`` also a plan, whose robot and variant are fixed."""
    metavar, text, restriction = "SCENARIO", "name of a bundled scenario, or the path of a file", ""
    if plans:
        metavar, text, restriction = "PLAN|SCENARIO", f"path of a plan; or {text}", " (not with a plan)"
    parser.add_argument("scenario", metavar=metavar, help=text)
    parser.add_argument(
        "--set",
        dest="overrides",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="override a field: environment.friction=0.4, simulation.dt=0.002, ... (repeatable)",
    )
    text = f"robot to use instead of the scenario's: a name, or a robot.yaml{restriction}"
    parser.add_argument("--robot", metavar="ROBOT", help=text)
    text = f"seed of the scenario's variant, from 0 on{restriction}"
    parser.add_argument("--variant", type=whole_number, metavar="N", help=text)
    text = "seed of the planner's search, and of noise and model errors in the simulation (default 0)"
    parser.add_argument("--seed", type=whole_number, default=0, metavar="N", help=text)


def overrides_of(arguments: Namespace) -> dict[str, str]:
    """Return the values of ``--set`` by key."""
    overrides = {}
    for item in arguments.overrides:
        key, equals, value = item.partition("=")
        if not equals or not key.strip():
            raise InputError(f"--set {item}: expected KEY=VALUE, for example environment.friction=0.4")
        overrides[key.strip()] = value
    return overrides


def scenario_of(arguments: Namespace) -> "Scenario":
    """Load the scenario with its overrides and variant."""
    from mcplan.cli.name_resolution import PLAN, SCENARIO, find
    from mcplan.util.bars import note

    overrides = overrides_of(arguments)
    if arguments.robot is not None:
        # relative to the working directory, not to the scenario's folder
        is_path = Path(arguments.robot).suffix or len(Path(arguments.robot).parts) > 1
        overrides["robot"] = str(Path(arguments.robot).resolve()) if is_path else arguments.robot
    path = find(arguments.scenario, SCENARIO, PLAN)
    from mcplan.scenario.lint import overridden_friction  # only now: a misspelt name is answered at once
    from mcplan.scenario.load import load_scenario

    scenario = load_scenario(path, overrides, arguments.variant)
    if "environment.friction" in overrides and (replaced := overridden_friction(scenario.document)):
        note(str(replaced))
    return scenario
