"""Command ``mcplan replay``."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from mcplan.cli.options import check_port, open_in_browser, port_number
from mcplan.cli.report import load_recorded_run
from mcplan.errors import InputError

if TYPE_CHECKING:
    from mcplan.view.page import Page


HELP = "write or serve the replay of a run, of a plan with its search tree, or of a tree alone"


def declare(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    text = "directory of a run, its run.npz, a plan, or NAME.tree.json"
    parser.add_argument("run", metavar="RUN|PLAN|TREE", help=text)
    parser.add_argument("--html", metavar="FILE", help="write one offline HTML file and stop")
    parser.add_argument("--gif", metavar="FILE", help="write a moving picture as GIF and stop")
    text = "write a moving picture as MP4 and stop: needs Chromium or ffmpeg"
    parser.add_argument("--mp4", metavar="FILE", help=text)
    text = "write the picture at time T (s; of a plan: stance) as PNG and stop"
    parser.add_argument("--png", metavar=("T", "FILE"), nargs=2, help=text)
    parser.add_argument("--size", metavar="WxH", default="960x600", help="of pictures, pixels (default 960x600)")
    parser.add_argument("--speed", type=float, default=1.0, metavar="X", help="of moving pictures (default 1)")
    parser.add_argument("--force", action="store_true", help="write over FILE")
    parser.add_argument("--open", action="store_true", help="open the browser")
    parser.add_argument("--port", type=port_number, default=0, help="port on 127.0.0.1 (default: a free one)")


def run(arguments: Namespace) -> int:
    """Write the replay as a page or as pictures, or serve it on loopback until interrupted."""
    from mcplan.cli.name_resolution import PLAN, RUN, TREE, find

    path = find(arguments.run, RUN, PLAN, TREE)  # before slow imports: a misspelt name is answered at once
    from mcplan.cli.replay_files import check_files, output_files, write_files
    from mcplan.util.bars import Working

    files = output_files(arguments)
    check_files(files, arguments.force, arguments.speed)
    if not files:
        check_port(arguments.port)
    with Working("drawing"):
        # pictures show no certificate
        page = _page(path, not files or any(file.kind == "html" for file in files))
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


def _page(path: Path, with_certificate: bool) -> "Page":
    """Return the page of a run, of a plan with its search tree, or of a search tree.

    Parameters
    ----------
    with_certificate : whether the page shows the certificate.
    """
    from mcplan.certificate.verify import verify as certify
    from mcplan.cli.name_resolution import PLAN, TREE, kind_of
    from mcplan.planning.plan_file import load_plan
    from mcplan.planning.search.tree import read_tree, tree_path
    from mcplan.view.plan_replay import search_page, stances_page
    from mcplan.view.replay import run_page

    kind = kind_of(path)
    if kind == TREE:
        return search_page(*read_tree(path))
    if kind == PLAN:
        tree_file, plan, tree = tree_path(path), load_plan(path), None
        if tree_file.is_file():
            _, search_tree, failure = read_tree(tree_file)
            tree = None if failure else search_tree  # a failed search did not lead to this plan
        return stances_page(plan, tree, certify(plan) if with_certificate else None)
    run = load_recorded_run(path)
    return run_page(run, certify(run) if with_certificate else None)
