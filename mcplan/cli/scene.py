"""Commands ``mcplan scene new | show``."""

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from mcplan.cli.options import add_output, file_to_write, finite_number, open_in_browser
from mcplan.errors import InputError

if TYPE_CHECKING:
    from mcplan.scenario.schema import EnvironmentSpec
    from mcplan.scene.detection.detect import DetectedScene

HELP = "make a scenario around a mesh, and look at it"


def declare(parser: ArgumentParser) -> None:
    """Declare the actions and their arguments."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    sub = actions.add_parser("new", help="write a scenario with the surfaces, bars and obstacles found in a mesh")
    sub.set_defaults(execute=new)
    formats = "mesh (STL, OBJ, PLY, OFF, DAE, glTF), height map (NPY, CSV, PNG) or world (URDF, SDF, MJCF)"
    sub.add_argument("file", metavar="FILE", help=formats)
    sub.add_argument("--robot", default="hrp2", help="robot of the scenario (default hrp2)")
    sub.add_argument("--start", metavar="SURFACE", help="start surface (default: the lowest)")
    sub.add_argument("--goal", metavar="SURFACE", help="goal surface (default: the highest that steps lead to)")
    sub.add_argument("--name", help="name of the scenario (default: that of the file)")
    add_output(sub, "the scenario (default NAME.yaml)")
    _add_detection_options(sub)
    sub = actions.add_parser("show", help="draw the surfaces found in a mesh, or a scenario at its start")
    sub.set_defaults(execute=show)
    sub.add_argument("file", metavar="FILE|SCENARIO", help="a mesh, a scenario's file, or a bundled name")
    add_output(sub, "the page (default NAME.html)")
    sub.add_argument("--open", action="store_true", help="open the browser")
    _add_detection_options(sub)


def _add_detection_options(parser: ArgumentParser) -> None:
    """Add the options of mesh reading and surface detection."""
    parser.add_argument("--scale", type=finite_number, default=1.0, help="scale of the mesh: 0.001 if it is in mm")
    parser.add_argument("--up", choices=["x", "y", "z"], default="z", help="mesh axis that points up (default z)")
    parser.add_argument("--cell", type=finite_number, metavar="M", help="point spacing of a height map (default 0.05)")
    text = "height of white above black in an image (default 1)"
    parser.add_argument("--height", type=finite_number, metavar="M", help=text)
    parser.add_argument("--slope", type=finite_number, metavar="RAD", help="steepest surface (default 0.53)")
    text = "rectangle that must fit on a surface (default 0.1 0.2)"
    parser.add_argument("--room", type=finite_number, nargs=2, metavar="M", help=text)
    parser.add_argument("--clearance", type=finite_number, metavar="M", help="height above a surface (default 0.3)")
    parser.add_argument("--flat", type=finite_number, metavar="M", help="unevenness of a surface (default 0.01)")
    parser.add_argument("--friction", type=finite_number, help="friction of everything that is found (default 0.7)")
    parser.add_argument("--ground", action="store_true", help="lay a floor below the lowest point")


def new(arguments: Namespace) -> int:
    """Write a scenario around a mesh, and report the parts that were left out."""
    from mcplan.analysis.scene_start import propose_start_and_goal
    from mcplan.analysis.scene_text import scenario_text
    from mcplan.robot.robot_file import load_robot
    from mcplan.scenario.load import load_scenario
    from mcplan.util.arguments import file_name
    from mcplan.util.files import write_text

    source = Path(arguments.file)
    stem = source.stem if arguments.name is None else file_name(arguments.name)
    path = file_to_write(arguments.output or f"{stem}.yaml", arguments.force, ".yaml", ".yml")
    robot = load_robot(arguments.robot)
    scene = _detect(source, arguments, arguments.ground)
    try:
        proposal = propose_start_and_goal(scene, robot, arguments.start, arguments.goal)
    except InputError as reason:
        if arguments.ground or arguments.start is not None:
            raise
        if arguments.goal is not None:  # surfaces have other names with a floor
            hint = "a floor below the lowest point may help: look with `mcplan scene show --ground`, and add `--ground`"
            raise InputError(f"{reason}; {hint} with --goal") from None
        print(f"{reason}; a floor is laid below the lowest point (--ground)", file=sys.stderr)
        scene = _detect(source, arguments, True)
        proposal = propose_start_and_goal(scene, robot)
    write_text(path, scenario_text(scene, proposal, robot, source, path.parent, arguments.name or source.stem))
    load_scenario(path)  # must succeed: the file was written by mcplan
    print(f"{path}: {_count_text(scene)}")
    _print_notices(scene)
    if proposal.notice:
        print(proposal.notice, file=sys.stderr)
    print(f"look at it: mcplan scene show {path} --open")
    return 0


def show(arguments: Namespace) -> int:
    """Write a page with the surfaces of a mesh, or with a scenario at its start."""
    from mcplan.robot.mesh_file import SCENE_SUFFIXES
    from mcplan.scenario.load import load_scenario
    from mcplan.util.files import write_text
    from mcplan.view.sheets import scene_page
    from mcplan.view.show import posture_page

    source = Path(arguments.file)
    path = file_to_write(arguments.output or f"{source.stem}.html", arguments.force)
    if source.suffix.lower() in SCENE_SUFFIXES:
        scene = _detect(source, arguments, arguments.ground)
        text = scene_page(scene, source.stem)
        print(f"{source}: {_count_text(scene)}")
        _print_notices(scene)
    else:
        scenario = load_scenario(arguments.file)
        text = posture_page(
            scenario.robot, scenario.start.q, scenario.environment, scenario.start.contacts, scenario.name
        )
    write_text(path, text)
    print(f"scene: {path}")
    if arguments.open:
        open_in_browser(path)
    return 0


def _detect(source: Path, arguments: Namespace, ground: bool) -> "DetectedScene":
    """Return the surfaces, bars and obstacles of a mesh file."""
    from mcplan.robot.mesh_file import SCENE_SUFFIXES
    from mcplan.scenario.environment_file import find_in_mesh_file

    if not source.is_file():
        raise InputError(f"{source}: there is no such file")
    if source.suffix.lower() not in SCENE_SUFFIXES:
        raise InputError(f"{source}: expected a mesh: {', '.join(SCENE_SUFFIXES)}")
    return find_in_mesh_file(source, _spec(source, arguments, ground))


def _spec(source: Path, arguments: Namespace, ground: bool) -> "EnvironmentSpec":
    """Return the scenario section of the options."""
    from mcplan.document.document import Document
    from mcplan.scenario.schema import EnvironmentSpec

    given = {name: getattr(arguments, name) for name in ("slope", "clearance", "flat", "friction", "room")}
    find = {name: value for name, value in given.items() if value is not None} | {"ground": ground}
    given = {name: getattr(arguments, name) for name in ("scale", "up", "cell", "height")}
    values = {name: value for name, value in given.items() if value is not None} | {"mesh": source.name, "find": find}
    spec, problems = Document.of_values(values).examine(EnvironmentSpec)
    if spec is None or problems:  # a key ends in the name of its option: find.friction, find.room[0]
        options = [p.key.removeprefix("find.").partition("[")[0] for p in problems]
        raise InputError(*(f"--{option}: {p.message}" for option, p in zip(options, problems, strict=True)))
    return spec


def _count_text(scene: "DetectedScene") -> str:
    counts = [(len(scene.surfaces), "surface"), (len(scene.bars), "bar"), (len(scene.obstacles), "obstacle")]
    return ", ".join(f"{count} {kind}{'s' * (count != 1)}" for count, kind in counts)


def _print_notices(scene: "DetectedScene") -> None:
    for notice in scene.notices:
        print(notice, file=sys.stderr)
    for part in scene.rejected:
        print(f"left out: {part}", file=sys.stderr)
