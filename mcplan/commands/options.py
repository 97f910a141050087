"""Arguments that several commands share."""

from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path


def whole_number(text: str) -> int:
    """Return an argument as a whole number from 0 on."""
    if not text.isascii() or not text.isdigit():
        raise ArgumentTypeError(f"{text!r} is not a whole number from 0 on")
    return int(text)


def add_output(parser: ArgumentParser, what: str) -> None:
    """Add where the result goes."""
    parser.add_argument("-o", "--output", metavar="PATH", help=what)
    parser.add_argument("--force", action="store_true", help="write over what PATH already holds")


def add_packages(parser: ArgumentParser) -> None:
    """Add where packages of robots are."""
    text = "where package://NAME is found: the package NAME, or what holds it (repeatable)"
    parser.add_argument("--package-dir", metavar="DIR", action="append", default=[], help=text)


def add_physics(parser: ArgumentParser) -> None:
    """Add the physics back end."""
    names = ["qp", "contact", "mujoco"]
    parser.add_argument("--physics", choices=names, help="physics back end (default: the scenario's)")


def add_json(parser: ArgumentParser) -> None:
    """Add the form for programs."""
    parser.add_argument("--json", action="store_true", help="print one JSON document and nothing else")


def open_in_browser(place: Path | str) -> None:
    """Open a file, or an address, in the browser."""
    import webbrowser  # not for every command line that is read

    webbrowser.open(place if isinstance(place, str) else place.resolve().as_uri())
