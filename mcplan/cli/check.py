"""Command ``mcplan check``."""

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from mcplan.errors import InputError, Problem

HELP = "list all errors in scenario, plan, robot and experiment files"


def declare(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    text = "scenario, plan, robot.yaml, URDF, experiment; or a bundled name"
    parser.add_argument("files", metavar="FILE", nargs="+", help=text)


def plan_problems(path: Path) -> list[Problem]:
    """Return the failed checks of the stances and motions of a plan file."""
    from mcplan.planning.plan_file import load_plan
    from mcplan.util.bars import Working

    try:
        with Working("reading"):  # motions missing in the file are computed
            load_plan(path)
    except InputError as error:
        return list(error.problems)
    return []


def run(arguments: Namespace) -> int:
    """Print every problem of every file."""
    from mcplan.cli.name_resolution import EXPERIMENT, PLAN, ROBOT, SCENARIO, find, kind_of

    error_count = 0
    for file in arguments.files:
        summary, warnings = "", []
        try:
            path = find(file, SCENARIO, PLAN, ROBOT, EXPERIMENT)
        except InputError as error:  # report an unreadable file, go on with the next one
            problems = list(error.problems)
        else:
            if kind_of(path) == EXPERIMENT:
                from mcplan.sweep.command import check_experiment  # slow import

                problems, summary = check_experiment(str(path))
            else:
                from mcplan.scenario.load import check_file, lint_file

                problems, warnings = check_file(path), lint_file(path)
                if not problems and kind_of(path) == PLAN:
                    problems = plan_problems(path)
        error_count += len(problems)
        for problem in problems:
            print(problem, file=sys.stderr)
        for warning in warnings:
            print(f"{warning} (a warning, not an error)", file=sys.stderr)
        if not problems:
            print(f"{file}: ok{summary}")
    return 2 if error_count else 0
