"""The command line: thin, and quick to start (a command's code is imported when it runs).

Exit status: 0 done, 1 the job ran and failed (no plan, fell, certificate broken), 2 bad input, 3 internal error.
"""

import argparse
import difflib
import re
import sys
import traceback
import warnings
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from mcplan.errors import McplanError
from mcplan.version import __version__

EPILOG = """\
SCENARIO is the name of a bundled scenario (mcplan info lists them) or the path of a file.
exit status: 0 done, 1 the job ran and failed, 2 bad input, 3 internal error

  mcplan run table_hand                     plan, simulate, verify; writes runs/table_hand/report.html
  mcplan run step --set simulation.dt=0.002 any field of the scenario can be set
  mcplan replay runs/table_hand --open      look at it
"""


WORK = ("run", "plan", "simulate", "verify", "bench")
"""Commands that need compiled kernels from their beginning on."""


class Parser(argparse.ArgumentParser):
    """An argument parser that says what was meant."""

    def error(self, message: str) -> NoReturn:
        """Print the usage, and the message with the closest choice; exit with status 2."""
        found = re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message)
        if found:
            word, choices = found[1], re.findall(r"[\w-]+", found[2])
            near = difflib.get_close_matches(word, choices, n=1)
            what = re.sub(r"^argument (.*?): .*", r"\1", message)
            hint = f"did you mean `{near[0]}`?" if near else f"there are: {', '.join(choices)}"
            if what == "COMMAND" and self._names_something(word):
                hint = f"to plan and simulate it: mcplan run {word}"
            message = f"{what}: there is no `{word}`; {hint}".replace("COMMAND: there is no", "there is no command")
        super().error(message)

    @staticmethod
    def _names_something(word: str) -> bool:
        """Whether a word that is no command is a scenario, or a file."""
        from mcplan.scene.load import bundled_scenarios

        return word in bundled_scenarios() or Path(word).exists()


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    parser = Parser(
        prog="mcplan",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Plan, simulate, verify and replay multi-contact motions of humanoids.",
    )
    parser.add_argument("--version", action="version", version=f"mcplan {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def whole_number(text: str) -> int:
        if not text.isascii() or not text.isdigit():
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 on")
        return int(text)

    def command(name: str, text: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        sub.add_argument("-q", "--quiet", action="store_true", help="show no progress and say no notices")
        return sub

    def output(sub: argparse.ArgumentParser, what: str) -> None:
        sub.add_argument("-o", "--output", metavar="PATH", help=what)
        sub.add_argument("--force", action="store_true", help="write over what PATH already holds")

    def packages(sub: argparse.ArgumentParser) -> None:
        text = "where package://NAME is found: the package NAME, or what holds it (repeatable)"
        sub.add_argument("--package-dir", metavar="DIR", action="append", default=[], help=text)

    def scenario(sub: argparse.ArgumentParser) -> None:
        sub.add_argument("scenario", metavar="SCENARIO", help="name of a bundled scenario, or the path of a file")
        sub.add_argument(
            "--set",
            dest="overrides",
            metavar="KEY=VALUE",
            action="append",
            default=[],
            help="override a field: environment.friction=0.4, simulation.dt=0.002, ... (repeatable)",
        )
        sub.add_argument("--robot", metavar="ROBOT", help="another robot than the scenario's: a name, or a robot.yaml")
        sub.add_argument("--variant", type=int, metavar="N", help="the scenario's variant of this seed, from 0 on")
        text = "seed: rerolls the search of the planner, draws noise and errors of the simulation (default 0)"
        sub.add_argument("--seed", type=whole_number, default=0, metavar="N", help=text)

    def physics(sub: argparse.ArgumentParser) -> None:
        names = ["qp", "contact", "mujoco"]
        sub.add_argument("--physics", choices=names, help="physics back end (default: the scenario's)")

    def live(sub: argparse.ArgumentParser) -> None:
        sub.add_argument("--live", action="store_true", help="show the motion while it is simulated, on 127.0.0.1")
        sub.add_argument("--port", type=whole_number, default=0, help="port of --live (default: a free one)")

    sub = command("run", "plan, simulate and verify a scenario, and write its replay")
    scenario(sub)
    physics(sub)
    live(sub)
    output(sub, "directory of the results (default runs/NAME, runs/NAME-2, ...)")
    sub.add_argument("--open", action="store_true", help="open the replay (with --live also that) in the browser")

    sub = command("plan", "find a posture for each stance of a scenario and write the plan")
    scenario(sub)
    output(sub, "the plan file (default NAME.plan.yaml)")

    sub = command("simulate", "simulate a plan file (a scenario is planned first)")
    scenario(sub)
    physics(sub)
    live(sub)
    output(sub, "directory of the results (default runs/NAME, runs/NAME-2, ...)")
    sub.add_argument("--open", action="store_true", help="open the replay (with --live also that) in the browser")

    sub = command("verify", "recompute a run, or the stances and motions of a plan, and print its certificate")
    sub.add_argument("run", metavar="RUN|PLAN", help="directory of a run, its run.npz, or a plan file")
    sub.add_argument(
        "--with",
        dest="engines",
        metavar="ENGINE",
        action="append",
        default=[],
        help="let another engine recompute the run: pinocchio or mujoco (repeatable)",
    )
    sub.add_argument("--json", action="store_true", help="print one JSON document and nothing else")

    sub = command("replay", "write or serve the replay of a run, of a plan with its search tree, or of a tree alone")
    sub.add_argument("run", metavar="RUN|PLAN|TREE", help="directory of a run, its run.npz, a plan, or NAME.tree.json")
    sub.add_argument("--html", metavar="FILE", help="write one offline HTML file and stop")
    sub.add_argument("--gif", metavar="FILE", help="write a moving picture as GIF and stop")
    sub.add_argument("--mp4", metavar="FILE", help="write a moving picture as MP4 and stop: takes Chromium or ffmpeg")
    text = "write the picture at time T (s; of a plan: stance) as PNG and stop"
    sub.add_argument("--png", metavar=("T", "FILE"), nargs=2, help=text)
    sub.add_argument("--size", metavar="WxH", default="960x600", help="of pictures, pixels (default 960x600)")
    sub.add_argument("--speed", type=float, default=1.0, metavar="X", help="of moving pictures (default 1)")
    sub.add_argument("--force", action="store_true", help="write over FILE")
    sub.add_argument("--open", action="store_true", help="open the browser")
    sub.add_argument("--port", type=whole_number, default=0, help="port on 127.0.0.1 (default: a free one)")

    sub = command("report", "write the report of a run: what happened, the closest calls, certificate, charts, replay")
    sub.add_argument("run", metavar="RUN", help="directory of a run, or its run.npz")
    output(sub, "the HTML file (default RUN/report.html)")
    sub.add_argument("--open", action="store_true", help="open it in the browser")

    text = "plot centre of mass, momentum, forces, torques, velocities, positions, task errors and clock times of runs"
    sub = command("plot", text)
    sub.add_argument("runs", metavar="RUN", nargs="+", help="directory of a run, or its run.npz")
    sub.add_argument("-o", "--output", metavar="DIR", help="where the figures go (default: RUN/plots)")
    sub.add_argument("--format", choices=["png", "pdf", "svg"], default="png", help="of the figures (default png)")
    sub.add_argument("--together", metavar="FILE", help="one figure (.png, .pdf or .svg) that compares the runs, alone")
    sub.add_argument("--force", action="store_true", help="write over figures that are there")

    sub = command("export", "write a run in the format of another program")
    sub.add_argument("run", metavar="RUN", help="directory of a run, or its run.npz")
    kinds = {
        "csv": "tables", "mujoco": "keyframes (MJCF)", "mcap": "a log", "reference": "rows of base and joints",
        "motion": "a folder of poses and velocities", "npz": "the same as arrays", "trajectory": "a ROS 2 message",
    }  # fmt: skip
    text = "; ".join(f"{kind}: {what}" for kind, what in kinds.items())
    sub.add_argument("--to", choices=list(kinds), required=True, help=text)
    sub.add_argument("-o", "--output", metavar="FILE", required=True, help="the file")
    sub.add_argument("--force", action="store_true", help="write over FILE")
    sub.add_argument("--rate", type=float, metavar="HZ", help="samples per second (default: all, 20 or 50)")

    sub = command("sweep", "run an experiment: what its store does not have yet, in parallel")
    sub.add_argument("experiment", metavar="EXPERIMENT", help="the experiment's file")
    sub.add_argument("-o", "--output", metavar="DIR", help="where store and results are (default runs/sweeps/NAME)")
    sub.add_argument("--workers", type=int, metavar="N", help="processes on this machine (default: one per core)")
    sub.add_argument("--scheduler", metavar="ADDRESS", help="a running Dask scheduler instead: tcp://host:port")
    text = "these seeds instead of the file's: 4711:10, ten of them, or 4711, as many"
    sub.add_argument("--seeds", metavar="FROM[:COUNT]", help=text)
    sub.add_argument("--only", metavar="EXPR", default="", help="only these cases: 'scenario == \"walk\" and seed < 3'")
    sub.add_argument("--dry-run", action="store_true", help="say what would be run, and run nothing")
    sub.add_argument("--retry-failed", action="store_true", help="run cases again that crashed or went over a limit")
    sub.add_argument("--max-cases", type=int, metavar="N", help="confirm an experiment of up to N cases")
    sub.add_argument("--against", metavar="DIR", help="compare with the results of another sweep, before this one")

    sub = command("check", "say everything that is wrong with scenario, robot and experiment files")
    sub.add_argument(
        "files", metavar="FILE", nargs="+", help="scenario, robot.yaml, URDF, experiment; or a bundled name"
    )

    sub = command("info", "describe a robot, scenario or plan; without a name, list what is bundled")
    sub.add_argument("name", metavar="NAME", nargs="?", help="robot or scenario: a bundled name or a path")
    sub.add_argument("--json", action="store_true", help="print one JSON document and nothing else")
    sub.add_argument("--fsm", action="store_true", help="print the state machine of a scenario (it is planned) or plan")
    text = "print what the contacts of a stance can do: constraints, regions of the centre of mass, ZMP, wrench cones"
    sub.add_argument("--stance", metavar="K", type=int, help=text)
    physics(sub)
    output(sub, "with --fsm or --stance: draw it (.svg, .png or .pdf; a machine also .dot)")
    packages(sub)

    robot = command("robot", "propose, check and look at a robot file").add_subparsers(
        dest="action", metavar="ACTION", required=True
    )
    sub = robot.add_parser("new", help="propose a robot.yaml for a URDF")
    sub.add_argument("urdf", metavar="URDF", help="the URDF; an SRDF beside it is read too")
    sub.add_argument("--name", help="of the robot (default: that of the URDF)")
    output(sub, "the robot file (default NAME.yaml)")
    packages(sub)
    sub = robot.add_parser("check", help="say what is doubtful in a robot file")
    sub.add_argument("robot", metavar="ROBOT", help="robot.yaml, URDF, or a bundled name")
    packages(sub)
    sub = robot.add_parser("show", help="draw the robot with its patches, frames and collision bodies")
    sub.add_argument("robot", metavar="ROBOT", help="robot.yaml, URDF, or a bundled name")
    sub.add_argument("--posture", metavar="NAME", help="this posture only (default: all, one a second)")
    output(sub, "the page (default NAME.html)")
    sub.add_argument("--open", action="store_true", help="open the browser")
    packages(sub)

    scenes = command("scene", "make a scenario around a mesh, and look at it").add_subparsers(
        dest="action", metavar="ACTION", required=True
    )

    def mesh(sub: argparse.ArgumentParser) -> None:
        sub.add_argument("--scale", type=float, default=1.0, help="of the mesh: 0.001 where it is in mm")
        sub.add_argument("--up", choices=["x", "y", "z"], default="z", help="which of its axes points up (default z)")
        sub.add_argument("--cell", type=float, metavar="M", help="of a height map: between its points (default 0.05)")
        sub.add_argument("--height", type=float, metavar="M", help="of an image: white over black (default 1)")
        sub.add_argument("--slope", type=float, metavar="RAD", help="steepest surface (default 0.53)")
        sub.add_argument("--room", type=float, nargs=2, metavar="M", help="rectangle that must fit (default 0.1 0.2)")
        sub.add_argument("--clearance", type=float, metavar="M", help="free height above a surface (default 0.3)")
        sub.add_argument("--flat", type=float, metavar="M", help="unevenness of a surface (default 0.01)")
        sub.add_argument("--friction", type=float, help="of all that is found (default 0.7)")
        sub.add_argument("--ground", action="store_true", help="lay a floor below the lowest point")

    sub = scenes.add_parser("new", help="write a scenario with the surfaces, bars and obstacles found in a mesh")
    sub.add_argument("file", metavar="FILE", help="mesh (STL, OBJ, PLY, OFF, DAE, glTF) or height map (NPY, CSV, PNG)")
    sub.add_argument("--robot", default="hrp2", help="who is to go there (default hrp2)")
    sub.add_argument("--start", metavar="SURFACE", help="where the robot starts (default: on the lowest)")
    sub.add_argument("--goal", metavar="SURFACE", help="where it is to go (default: the highest that steps lead to)")
    sub.add_argument("--name", help="of the scenario (default: that of the file)")
    output(sub, "the scenario (default NAME.yaml)")
    mesh(sub)
    sub = scenes.add_parser("show", help="draw what is found in a mesh, or a scenario at its start")
    sub.add_argument("file", metavar="FILE|SCENARIO", help="a mesh, a scenario's file, or a bundled name")
    output(sub, "the page (default NAME.html)")
    sub.add_argument("--open", action="store_true", help="open the browser")
    mesh(sub)

    sub = command("bench", "measure kernels, the control tick and the closed loop, beside the peers if given")
    sub.add_argument("--peers", metavar="DIR", help="measure TSID and Pinocchio too: DIR/tsid and DIR/pin")
    sub.add_argument("--quick", action="store_true", help="a look in seconds instead of a measurement in minutes")
    sub.add_argument("--json", action="store_true", help="print one JSON document and nothing else")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit status."""
    parsed = build_parser().parse_args(arguments)
    try:
        return _carry_out(parsed)
    except McplanError as error:
        print(error, file=sys.stderr)
        return error.exit_status
    except BrokenPipeError:  # the reader of a pipe (head, less) has seen enough
        sys.stderr.close()
        return 0
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except Exception:
        traceback.print_exc()
        print("mcplan: internal error; please report it with the lines above", file=sys.stderr)
        return 3


def _carry_out(parsed: argparse.Namespace) -> int:
    """Run the command with its progress shown; at the end the terminal is as it was."""
    from mcplan.bars import BARS, be_quiet, note

    be_quiet(parsed.quiet)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = lambda message, *_: note(f"{message} (a doubt, not a mistake)")
            if parsed.command in WORK:
                from mcplan.compiling import WATCH  # imports neither NumPy nor Numba: a first run says so at once

                WATCH.expect(getattr(parsed, "physics", None))
            return getattr(import_module("mcplan.commands"), parsed.command)(parsed)
    finally:
        BARS.close()
        be_quiet(False)


if __name__ == "__main__":
    sys.exit(main())
