"""``mcplan simulate``."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from mcplan.commands.execution import add_execution, execute, plan_and_execute, refuse_early
from mcplan.commands.scenario_option import overrides_of, scenario_of
from mcplan.errors import InputError
from mcplan.whole_file import check_writable

HELP = "simulate a plan file (a scenario is planned first)"


def declare(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    add_execution(parser, plans=True)


def carry_out(arguments: Namespace) -> int:
    """Simulate a plan file, or plan a scenario first."""
    from mcplan.commands.recognise import PLAN, SCENARIO, find
    from mcplan.planning import is_plan_file, read_plan
    from mcplan.progress import Working

    path = find(arguments.scenario, SCENARIO, PLAN)
    if not is_plan_file(path):
        return plan_and_execute(scenario_of(arguments), arguments)
    for option in ("variant", "robot"):
        if (value := getattr(arguments, option)) is not None:
            raise InputError(f"--{option} {value}: {path} is a plan; give its scenario")
    if arguments.output:
        check_writable(Path(arguments.output), arguments.force, folder=True)
    with Working("reading"):  # motions that no longer fit what was set are found anew
        plan = read_plan(path, overrides=overrides_of(arguments))
    refuse_early(plan.scenario, arguments)
    return execute(plan, arguments)
