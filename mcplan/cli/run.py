"""Command ``mcplan run``."""

from argparse import ArgumentParser, Namespace

from mcplan.cli.execution import add_execution, plan_and_execute
from mcplan.cli.options import scenario_of

HELP = "plan, simulate and verify a scenario, and write its replay"


def declare(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    add_execution(parser)


def run(arguments: Namespace) -> int:
    """Plan, simulate, verify, and write everything."""
    from mcplan.document.file_kind import is_plan
    from mcplan.util.bars import note

    scenario = scenario_of(arguments)
    if is_plan(scenario.document):
        note(f"{arguments.scenario} is a plan and will be planned again; `mcplan simulate` executes it")
    return plan_and_execute(scenario, arguments)
