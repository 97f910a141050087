"""``mcplan run``."""

from argparse import ArgumentParser, Namespace

from mcplan.commands.execution import add_execution, plan_and_execute
from mcplan.commands.scenario_option import scenario_of

HELP = "plan, simulate and verify a scenario, and write its replay"


def declare(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    add_execution(parser)


def carry_out(arguments: Namespace) -> int:
    """Plan, simulate, verify, and write everything."""
    from mcplan.bars import note
    from mcplan.planning.plan_file import is_plan

    scenario = scenario_of(arguments)
    if is_plan(scenario.document):
        note(f"{arguments.scenario} is a plan and planned anew; `mcplan simulate` carries it out")
    return plan_and_execute(scenario, arguments)
