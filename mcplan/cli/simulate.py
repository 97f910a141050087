"""Command ``mcplan simulate``."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from mcplan.cli.execution import add_execution, check_before_work, execute, plan_and_execute
from mcplan.cli.options import overrides_of, scenario_of
from mcplan.errors import InputError
from mcplan.util.files import check_writable

HELP = "simulate a plan file (a scenario is planned first)"


def declare(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    add_execution(parser, plans=True)


def run(arguments: Namespace) -> int:
    """Simulate a plan file, or plan a scenario first."""
    from mcplan.cli.name_resolution import PLAN, SCENARIO, find, kind_of

    path = find(arguments.scenario, SCENARIO, PLAN)
    if kind_of(path) == SCENARIO:
        return plan_and_execute(scenario_of(arguments), arguments)
    for option in ("variant", "robot"):
        if (value := getattr(arguments, option)) is not None:
            raise InputError(f"--{option} {value}: {path} is a plan; give its scenario")
    if arguments.output:
        check_writable(Path(arguments.output), arguments.force, folder=True)
    from mcplan.planning.plan_file import load_plan
    from mcplan.util.bars import Working

    with Working("reading"):  # motions that no longer fit the settings are computed again
        plan = load_plan(path, overrides=overrides_of(arguments))
    check_before_work(plan.scenario, arguments)
    return execute(plan, arguments)
