"""Command ``mcplan plan``."""

import sys
from argparse import ArgumentParser, Namespace

from mcplan.cli.execution import certify_plan, plan_of
from mcplan.cli.options import add_output, add_scenario, file_to_write, scenario_of
from mcplan.errors import PlanningFailed

HELP = "find stances, postures and the motions between them, and write the plan"


def declare(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    add_scenario(parser)
    add_output(parser, "the plan file (default NAME.plan.yaml)")


def run(arguments: Namespace) -> int:
    """Plan a scenario and write the plan file."""
    scenario = scenario_of(arguments)
    from mcplan.planning.plan_file import save_plan  # only now: mistakes in a scenario are answered at once
    from mcplan.planning.search.tree import tree_path, write_tree
    from mcplan.util.arguments import file_name
    from mcplan.util.bars import Working

    path = file_to_write(arguments.output or f"{file_name(scenario.name)}.plan.yaml", arguments.force, ".yaml", ".yml")
    try:
        result = plan_of(scenario, arguments.seed)
    except PlanningFailed as failure:
        tree_file = tree_path(path)
        if failure.tree is not None and failure.tree.nodes:
            write_tree(failure.tree, scenario, tree_file, str(failure))
            print(f"search: {tree_file}", file=sys.stderr)
        elif tree_file.is_file():
            tree_file.unlink()
            print(f"search: no stance was examined; {tree_file}, of an earlier search, is removed", file=sys.stderr)
        if path.is_file():
            print(f"plan: {path} is the one that was there before", file=sys.stderr)
        raise
    save_plan(result, path)
    if result.tree is not None:
        write_tree(result.tree, scenario, tree_path(path))
    else:
        tree_path(path).unlink(missing_ok=True)  # it belongs to an earlier plan
    print(result.summary())
    print(f"plan: {path}")
    with Working("checking"):
        return 0 if certify_plan(result) else 1
