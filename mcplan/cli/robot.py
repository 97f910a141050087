"""Commands ``mcplan robot new | check | show | split``."""

import sys
import warnings
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from mcplan.cli.options import add_output, add_packages, file_to_write, open_in_browser
from mcplan.errors import InputError

if TYPE_CHECKING:
    from mcplan.robot.robot import Robot

HELP = "propose, check and look at a robot file; split its concave meshes"


def declare(parser: ArgumentParser) -> None:
    """Declare the actions and their arguments."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    sub = actions.add_parser("new", help="propose a robot.yaml for a URDF")
    sub.set_defaults(execute=new)
    sub.add_argument("urdf", metavar="URDF", help="the URDF, or package://NAME/PATH; an SRDF beside it is read too")
    sub.add_argument("--name", help="name of the robot (default: that of the URDF)")
    add_output(sub, "the robot file (default NAME.yaml)")
    add_packages(sub)
    sub = actions.add_parser("check", help="check a robot file for doubtful entries")
    sub.set_defaults(execute=check)
    sub.add_argument("robot", metavar="ROBOT", help="robot.yaml, URDF, or a bundled name")
    add_packages(sub)
    sub = actions.add_parser("show", help="draw the robot with its patches, frames and collision bodies")
    sub.set_defaults(execute=show)
    sub.add_argument("robot", metavar="ROBOT", help="robot.yaml, URDF, or a bundled name")
    sub.add_argument("--posture", metavar="NAME", help="this posture only (default: all, one a second)")
    add_output(sub, "the page (default NAME.html)")
    sub.add_argument("--open", action="store_true", help="open the browser")
    add_packages(sub)
    sub = actions.add_parser("split", help="write a URDF whose concave collision meshes are in convex parts")
    sub.set_defaults(execute=split)
    sub.add_argument("urdf", metavar="URDF", help="the URDF, or package://NAME/PATH")
    sub.add_argument("--link", metavar="NAME", action="append", default=[], help="only of this link (repeatable)")
    text = "a mesh stays whole where its convex hull stands off it by no more (default: %(default)s)"
    sub.add_argument("--within", metavar="M", type=float, default=0.03, help=text)
    add_output(sub, "the new URDF (default NAME_split.urdf); its parts go into a directory beside it")
    add_packages(sub)


def new(arguments: Namespace) -> int:
    """Propose a robot.yaml for a URDF, with warnings of doubtful entries."""
    from mcplan.cli.name_resolution import check_is_urdf
    from mcplan.robot.proposal.write import propose
    from mcplan.util.files import write_text

    check_is_urdf(arguments.urdf)
    name = arguments.name or Path(arguments.urdf).stem
    path = file_to_write(arguments.output or f"{name}.yaml", arguments.force, ".yaml", ".yml")
    write_text(path, propose(arguments.urdf, path.parent, arguments.name, arguments.package_dir))
    robot = _load(str(path), arguments)
    print(f"{path}: {robot!r}: {', '.join(robot.patches) or 'no patches found'}")
    _print_findings(robot)
    print(f"look at it: mcplan robot show {path} --open")
    return 0


def check(arguments: Namespace) -> int:
    """Print the doubtful values of a robot file."""
    from mcplan.robot.description import RobotWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RobotWarning)
        robot = _load(arguments.robot, arguments)
    for warning in caught:
        print(warning.message, file=sys.stderr)
    findings = _print_findings(robot)
    if not findings:
        print(f"{arguments.robot}: {'ok' if not caught else 'usable'}")
    return 1 if findings else 0


def show(arguments: Namespace) -> int:
    """Write a page with the robot's postures, patches, frames and collision shapes."""
    from mcplan.util.arguments import file_name
    from mcplan.util.files import write_text
    from mcplan.view.sheets import robot_page

    robot = _load(arguments.robot, arguments)
    path = file_to_write(arguments.output or f"{file_name(robot.name)}.html", arguments.force)
    if arguments.posture is not None:
        robot.posture(arguments.posture)  # refuse an unknown name before drawing
    write_text(path, robot_page(robot, () if arguments.posture is None else (arguments.posture,)))
    print(f"robot: {path}")
    if arguments.open:
        open_in_browser(path)
    return 0


def split(arguments: Namespace) -> int:
    """Write a URDF with convex parts instead of concave collision meshes."""
    from mcplan.cli.name_resolution import check_is_urdf
    from mcplan.robot.split import split_collisions

    check_is_urdf(arguments.urdf)
    path = file_to_write(arguments.output or f"{Path(arguments.urdf).stem}_split.urdf", arguments.force, ".urdf")
    if not 0.001 <= arguments.within <= 1.0:
        raise InputError(f"--within {arguments.within:g}: expected 0.001 to 1 m")

    def report(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    split_meshes = split_collisions(
        arguments.urdf, path, arguments.link, arguments.within, arguments.package_dir, progress=report
    )
    for mesh in split_meshes:
        print(
            f"{mesh.link}: {mesh.parts} parts, up to {1000 * mesh.after:.0f} mm off the mesh "
            f"(its hull: {1000 * mesh.before:.0f} mm)"
        )
    if not split_meshes:
        print(f"nothing is written: no hull stands off its mesh by more than {1000 * arguments.within:g} mm")
        return 0
    print(f"{path}: name it in the robot file, `urdf: {path.name}`, or let one be proposed: mcplan robot new {path}")
    return 0


def _load(name: str, arguments: Namespace) -> "Robot":
    from mcplan.robot.robot_file import load_robot

    return load_robot(name, package_directories=arguments.package_dir)


def _print_findings(robot: "Robot") -> list[str]:
    from mcplan.robot.robot_check import findings
    from mcplan.scenario.load import lint_file

    found = [*findings(robot), *map(str, lint_file(robot.path) if robot.path else ())]
    for text in found:
        print(text, file=sys.stderr)
    return found
