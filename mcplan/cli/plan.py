"""``mcplan plan``."""

import sys
from argparse import ArgumentParser, Namespace

from mcplan.cli.execution import plan_of, proven_plan
from mcplan.cli.options import add_output, add_scenario, file_to_write, scenario_of
from mcplan.errors import PlanningFailed

HELP = "find stances, postures and the motions between them, and write the plan"


def declare(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    add_scenario(parser)
    add_output(parser, "the plan file (default NAME.plan.yaml)")


def run(arguments: Namespace) -> int:
    """Plan a scenario and write the plan file."""
    from mcplan.planning.plan_file import save_plan
    from mcplan.planning.search.tree import tree_path, write_tree
    from mcplan.sim.progress_bar import Working
    from mcplan.util.arguments import file_name

    scenario = scenario_of(arguments)
    path = file_to_write(arguments.output or f"{file_name(scenario.name)}.plan.yaml", arguments.force, ".yaml", ".yml")
    try:
        result = plan_of(scenario, arguments.seed)
    except PlanningFailed as failure:
        place = tree_path(path)
        if failure.tree is not None and failure.tree.nodes:
            write_tree(failure.tree, scenario, place, str(failure))
            print(f"search: {place}", file=sys.stderr)
        elif place.is_file():
            place.unlink()
            print(f"search: it looked at nothing; {place}, of a search before, is removed", file=sys.stderr)
        if path.is_file():
            print(f"plan: {path} is the one that was there before", file=sys.stderr)
        raise
    save_plan(result, path)
    if result.tree is not None:
        write_tree(result.tree, scenario, tree_path(path))
    else:
        tree_path(path).unlink(missing_ok=True)  # of another plan, which was here before
    print(result.summary())
    print(f"plan: {path}")
    with Working("checking"):
        return 0 if proven_plan(result) else 1
