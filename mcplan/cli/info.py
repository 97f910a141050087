"""Command ``mcplan info``."""

import json
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from mcplan.cli.execution import plan_at
from mcplan.cli.options import add_json, add_output, add_packages, add_physics, file_to_write
from mcplan.errors import InputError
from mcplan.util.bundled import bundled_robots, bundled_scenarios, description_of

HELP = "describe a robot, scenario or plan; without a name, list the bundled ones"


def declare(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("name", metavar="NAME", nargs="?", help="robot or scenario: a bundled name or a path")
    add_json(parser)
    text = "print the state machine of a scenario (it is planned) or plan"
    parser.add_argument("--fsm", action="store_true", help=text)
    text = "print what the contacts of a stance can do: constraints, regions of the centre of mass, ZMP, wrench cones"
    parser.add_argument("--stance", metavar="K", type=int, help=text)
    add_physics(parser)
    add_output(parser, "with --fsm or --stance: draw it (.svg, .png or .pdf; a machine also .dot)")
    add_packages(parser)


def run(arguments: Namespace) -> int:
    """Describe a robot or a scenario, or list the bundled ones."""
    if arguments.fsm:
        return _run_state_machine(arguments)
    if arguments.stance is not None:
        return _run_stance(arguments)
    if arguments.output or arguments.physics:
        raise InputError("-o and --physics are about a state machine or a stance: add --fsm or --stance K")
    if arguments.name:
        from mcplan.cli.description import describe

        lines, values = describe(arguments.name, arguments.package_dir)
    else:
        lines, values = bundled()
    print(json.dumps(values, indent=1) if arguments.json else "\n".join(lines))
    return 0


def bundled() -> tuple[list[str], dict[str, Any]]:
    """Return the bundled robots and scenarios: lines, and plain values."""
    robots = list(bundled_robots())
    scenarios = {name: description_of(path) for name, path in bundled_scenarios().items()}
    width = max(len(name) for name in [*robots, *scenarios])
    lines = ["robots", *(f"  {name}" for name in robots), "scenarios"]
    lines += [f"  {name:{width}s}  {text}" for name, text in scenarios.items()]
    return lines, {"robots": robots, "scenarios": scenarios}


def _run_state_machine(arguments: Namespace) -> int:
    """Print the state machine of a scenario or plan, and draw it."""
    from mcplan.cli.name_resolution import PLAN, SCENARIO, find
    from mcplan.control.program import entries_of, listing, machine_of

    if not arguments.name:
        raise InputError("--fsm needs the name of a scenario or a plan")
    if arguments.output:
        from mcplan.view.machine import SUFFIXES

        file_to_write(arguments.output, arguments.force, *SUFFIXES)
    path = find(arguments.name, SCENARIO, PLAN)
    plan = plan_at(path)
    if plan.scenario.control.type != "whole_body":
        raise InputError(f"--fsm: {plan.scenario.name} is driven by {plan.scenario.control.type}, which has no states")
    scenario, states = plan.scenario, machine_of(plan)
    settings = scenario.control_in(arguments.physics or scenario.simulation.physics)
    if arguments.json:
        print(json.dumps({"states": entries_of(states, settings)}, indent=1))
    else:
        print(listing(states, settings))
    if arguments.output:
        from mcplan.view.machine import save_machine

        path = Path(arguments.output)
        save_machine(states, settings, path, scenario.name)
        print(f"drawn: {path}", file=sys.stderr)
    return 0


def _run_stance(arguments: Namespace) -> int:
    """Print the statics of a stance of a plan or scenario, and draw its regions."""
    from mcplan.analysis.stance_statics import stance_lines, stance_statics, stance_values
    from mcplan.cli.name_resolution import PLAN, SCENARIO, find

    if not arguments.name:
        raise InputError("--stance needs the name of a plan or a scenario")
    if arguments.physics:
        raise InputError("--physics is about a state machine: add --fsm")
    if arguments.output:
        file_to_write(arguments.output, arguments.force, ".svg", ".png", ".pdf")
    path = find(arguments.name, SCENARIO, PLAN)
    plan = plan_at(path)
    statics = stance_statics(plan, arguments.stance)
    if arguments.json:
        print(json.dumps(stance_values(statics, arguments.stance), indent=1))
    else:
        print("\n".join(stance_lines(statics, arguments.stance)))
    if arguments.output:
        from mcplan.view.plots.contact import save_stance

        regions = {"region": statics.region, "within torque limits": statics.torque_region}
        regions |= {} if statics.zmp is None else {"ZMP": statics.zmp}
        title = f"{plan.scenario.name}, stance {arguments.stance}: {statics.name}"
        save_stance(Path(arguments.output), title, statics.contacts, statics.com, regions)
        print(f"drawn: {arguments.output}", file=sys.stderr)
    return 0
