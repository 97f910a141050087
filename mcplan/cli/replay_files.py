"""Output files of the replay command: pages and pictures, checked before any work."""

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mcplan.cli.options import file_to_write
from mcplan.errors import InputError
from mcplan.util.files import write_text
from mcplan.view.moving.film_maker import MAX_SIDE, MIN_SIDE, check_output, save_moving, save_picture
from mcplan.view.page import Page


@dataclass(frozen=True)
class OutputFile:
    """An output file.

    Attributes
    ----------
    kind : ``html``, ``gif``, ``mp4`` or ``png``.
    path : path of the file.
    size : (width, height) of a picture, pixels.
    t : time of a single picture, s; in the replay of a plan the number of the stance.
    """

    kind: str
    path: Path
    size: tuple[int, int]
    t: float = 0.0


def output_files(arguments: Namespace) -> list[OutputFile]:
    """Return the output files of the command line.

    Raises
    ------
    InputError
        The size or the time is invalid.
    """
    size = _size(arguments.size)
    files = [
        OutputFile(kind, Path(getattr(arguments, kind)), size)
        for kind in ("html", "gif", "mp4")
        if getattr(arguments, kind)
    ]
    if arguments.png:
        try:
            t = float(arguments.png[0])
        except ValueError:
            raise InputError(
                f"--png {arguments.png[0]}: expected a time (s) and a file, as in --png 3.5 FILE"
            ) from None
        files.append(OutputFile("png", Path(arguments.png[1]), size, t))
    return files


def check_files(files: Sequence[OutputFile], force: bool, speed: float) -> None:
    """Check before any work that the files can be written."""
    for file in files:
        endings = () if file.kind == "html" else (f".{file.kind}",)
        file_to_write(file.path, force, *endings, option=f"--{file.kind}")
        check_output(file.kind, speed=speed)
    paths = [file.path.absolute() for file in files]
    if len(set(paths)) < len(paths):
        raise InputError("two outputs have the same name")


def write_files(page: Page, files: Sequence[OutputFile], speed: float) -> None:
    """Check all files against the motion, then write them."""
    for file in files:
        if file.kind == "png":  # its time is limited by the time line, which counts the stances of a plan
            check_output(file.kind, page.duration, t=file.t)
        else:
            check_output(file.kind, page.length, speed, size=file.size)
    for file in files:
        if file.kind == "html":
            write_text(file.path, page.text())
        elif file.kind == "png":
            save_picture(page, file.path, file.t, file.size)
        else:
            save_moving(page, file.path, file.kind, file.size, speed)


def _size(text: str) -> tuple[int, int]:
    parts = text.lower().split("x")
    if len(parts) != 2 or not all(part.isascii() and part.isdigit() for part in parts):
        raise InputError(f"--size {text}: expected WIDTHxHEIGHT in pixels, as in 960x600")
    width, height = map(int, parts)
    if not all(MIN_SIDE <= side <= MAX_SIDE for side in (width, height)):
        raise InputError(f"--size {text}: expected sides from {MIN_SIDE} to {MAX_SIDE} pixels")
    return width, height
