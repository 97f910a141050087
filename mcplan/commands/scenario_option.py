"""The scenario that a command line names, with what it overrides."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from mcplan.commands.options import whole_number
from mcplan.errors import InputError

if TYPE_CHECKING:
    from mcplan.scene import Scenario


def add_scenario(parser: ArgumentParser, plans: bool = False) -> None:
    """Add a scenario, and what can be changed in it; with ``plans`` it may be a plan, which has robot and variant."""
    metavar, text, not_of_a_plan = "SCENARIO", "name of a bundled scenario, or the path of a file", ""
    if plans:
        metavar, text, not_of_a_plan = "PLAN|SCENARIO", f"path of a plan; or {text}", " (not with a plan)"
    parser.add_argument("scenario", metavar=metavar, help=text)
    parser.add_argument(
        "--set",
        dest="overrides",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="override a field: environment.friction=0.4, simulation.dt=0.002, ... (repeatable)",
    )
    text = f"another robot than the scenario's: a name, or a robot.yaml{not_of_a_plan}"
    parser.add_argument("--robot", metavar="ROBOT", help=text)
    text = f"the scenario's variant of this seed, from 0 on{not_of_a_plan}"
    parser.add_argument("--variant", type=whole_number, metavar="N", help=text)
    text = "seed: rerolls the search of the planner, draws noise and errors of the simulation (default 0)"
    parser.add_argument("--seed", type=whole_number, default=0, metavar="N", help=text)


def overrides_of(arguments: Namespace) -> dict[str, str]:
    """Return the values of ``--set`` by their keys."""
    overrides = {}
    for item in arguments.overrides:
        key, equals, value = item.partition("=")
        if not equals or not key.strip():
            raise InputError(f"--set {item}: expected KEY=VALUE, for example environment.friction=0.4")
        overrides[key.strip()] = value
    return overrides


def scenario_of(arguments: Namespace) -> "Scenario":
    """Return the scenario, its overrides and its variant in it."""
    from mcplan.bars import note
    from mcplan.commands.recognise import PLAN, SCENARIO, find
    from mcplan.scene.doubts import replaced_friction
    from mcplan.scene.load import load_scenario

    overrides = overrides_of(arguments)
    if arguments.robot is not None:
        # a path is meant from here, and not from the scenario's folder
        is_path = Path(arguments.robot).suffix or len(Path(arguments.robot).parts) > 1
        overrides["robot"] = str(Path(arguments.robot).resolve()) if is_path else arguments.robot
    scenario = load_scenario(find(arguments.scenario, SCENARIO, PLAN), overrides, arguments.variant)
    if "environment.friction" in overrides and (replaced := replaced_friction(scenario.document)):
        note(str(replaced))
    return scenario
