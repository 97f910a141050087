"""``mcplan replay``.

Files that the replay command writes: pages and pictures, refused before any work where they could not be.
"""


from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mcplan.cli.options import file_to_write, open_in_browser, port_number, refuse_port
from mcplan.cli.report import recorded
from mcplan.errors import InputError
from mcplan.util.files import write_text
from mcplan.view.moving.film_maker import LARGEST, SMALLEST, check_output, save_moving, save_picture
from mcplan.view.page import Page

if TYPE_CHECKING:
    from mcplan.view.page import Page


@dataclass(frozen=True)
class WantedFile:
    """A file to write.

    Attributes
    ----------
    kind : ``html``, ``gif``, ``mp4`` or ``png``.
    path : where.
    size : (width, height) of a picture, pixels.
    t : time of a single picture, s (of a plan: number of the stance).
    """

    kind: str
    path: Path
    size: tuple[int, int]
    t: float = 0.0


def wanted_files(arguments: Namespace) -> list[WantedFile]:
    """Return the files that the command line asks for.

    Raises
    ------
    InputError
        A size or a time that is none.
    """
    size = _size(arguments.size)
    files = [
        WantedFile(kind, Path(getattr(arguments, kind)), size)
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
        files.append(WantedFile("png", Path(arguments.png[1]), size, t))
    return files


def refuse_files(files: Sequence[WantedFile], force: bool, speed: float) -> None:
    """Refuse what could not be written, before any work is done for it."""
    for file in files:
        endings = () if file.kind == "html" else (f".{file.kind}",)
        file_to_write(file.path, force, *endings, option=f"--{file.kind}")
        check_output(file.kind, speed=speed)
    paths = [file.path.absolute() for file in files]
    if len(set(paths)) < len(paths):
        raise InputError("two outputs have the same name")


def write_files(page: Page, files: Sequence[WantedFile], speed: float) -> None:
    """Write them; those that the motion does not allow are refused before the first."""
    for file in files:
        if file.kind == "png":  # its time is one of the time line, which counts the stances of a plan
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
    if not all(SMALLEST <= side <= LARGEST for side in (width, height)):
        raise InputError(f"--size {text}: expected sides from {SMALLEST} to {LARGEST} pixels")
    return width, height


HELP = "write or serve the replay of a run, of a plan with its search tree, or of a tree alone"


def declare(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    text = "directory of a run, its run.npz, a plan, or NAME.tree.json"
    parser.add_argument("run", metavar="RUN|PLAN|TREE", help=text)
    parser.add_argument("--html", metavar="FILE", help="write one offline HTML file and stop")
    parser.add_argument("--gif", metavar="FILE", help="write a moving picture as GIF and stop")
    text = "write a moving picture as MP4 and stop: takes Chromium or ffmpeg"
    parser.add_argument("--mp4", metavar="FILE", help=text)
    text = "write the picture at time T (s; of a plan: stance) as PNG and stop"
    parser.add_argument("--png", metavar=("T", "FILE"), nargs=2, help=text)
    parser.add_argument("--size", metavar="WxH", default="960x600", help="of pictures, pixels (default 960x600)")
    parser.add_argument("--speed", type=float, default=1.0, metavar="X", help="of moving pictures (default 1)")
    parser.add_argument("--force", action="store_true", help="write over FILE")
    parser.add_argument("--open", action="store_true", help="open the browser")
    parser.add_argument("--port", type=port_number, default=0, help="port on 127.0.0.1 (default: a free one)")


def carry_out(arguments: Namespace) -> int:
    """Write the replay as a page or as pictures, or serve it on loopback until interrupted."""
    pass
    from mcplan.sim.progress_bar import Working

    files = wanted_files(arguments)
    refuse_files(files, arguments.force, arguments.speed)
    if not files:
        refuse_port(arguments.port)
    with Working("drawing"):
        # pictures show no certificate
        page = _page(arguments.run, not files or any(file.kind == "html" for file in files))
    if files:
        with Working("drawing"):
            write_files(page, files, arguments.speed)
        for file in files:
            print(f"replay: {file.path}")
        if arguments.open:
            open_in_browser(files[0].path)
        return 0
    from mcplan.view.server import PageServer, address_text

    try:
        server = PageServer(page.text(), arguments.port)
    except (OSError, OverflowError) as error:
        raise InputError(f"port {arguments.port} of 127.0.0.1 cannot be used: {error}") from error
    with server:
        print(f"replay: {address_text(server.url)}\nstop with Ctrl-C", flush=True)
        if arguments.open:
            open_in_browser(server.url)
        server.wait()
    return 0


def _page(name: str, judged: bool) -> "Page":
    """Return the page of a run, of a plan with the search tree beside it that led to it, or of a search tree.

    Parameters
    ----------
    judged : whether the page says what the certificate says.
    """
    from mcplan.certificate.verify import verify as certify
    from mcplan.cli.recognise import PLAN, RUN, TREE, find, kind_of
    from mcplan.planning.plan_file import read_plan
    from mcplan.planning.search.tree import read_tree, tree_path
    from mcplan.view.plan_replay import search_page, stances_page
    from mcplan.view.replay import run_page

    path = find(name, RUN, PLAN, TREE)
    kind = kind_of(path)
    if kind == TREE:
        return search_page(*read_tree(path))
    if kind == PLAN:
        beside, plan, tree = tree_path(path), read_plan(path), None
        if beside.is_file():
            _, found, failure = read_tree(beside)
            tree = None if failure else found  # a search that has failed since led to no plan
        return stances_page(plan, tree, certify(plan) if judged else None)
    run = recorded(path)
    return run_page(run, certify(run) if judged else None)
