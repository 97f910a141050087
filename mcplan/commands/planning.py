"""Planning on the command line: with its progress, and judged by the plan's own certificate."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mcplan.errors import PlanningFailed

if TYPE_CHECKING:
    from mcplan.planning import Plan
    from mcplan.scene import Scenario


def plan_of(scenario: "Scenario", seed: int = 0) -> "Plan":
    """Return the plan of a scenario; how it goes is shown meanwhile.

    Raises
    ------
    PlanningFailed
        With the scenario's name, and the search tree.
    """
    from mcplan.bars import note
    from mcplan.compiling import WATCH
    from mcplan.planning import plan as make_plan
    from mcplan.progress import PlanningProgress

    WATCH.watch()
    note(f"planning {scenario.name} ...")
    try:
        with PlanningProgress() as progress:
            made = make_plan(scenario, seed=seed, progress=progress.update)
        for notice in made.notices:
            note(notice)
        return made
    except PlanningFailed as failure:
        said = PlanningFailed(f"{scenario.name}: no plan\n{failure}")
        said.tree = failure.tree
        raise said from failure


def plan_at(path: Path) -> "Plan":
    """Return the plan in a file, or that of the scenario in it."""
    from mcplan.planning import is_plan_file, read_plan
    from mcplan.progress import Working
    from mcplan.scene.load import load_scenario

    if not is_plan_file(path):
        return plan_of(load_scenario(path))
    with Working("reading"):  # motions that are left out of the file are found anew
        return read_plan(path)


def proven_plan(plan: "Plan") -> bool:
    """Whether a plan's certificate holds, its goal included; what does not hold is printed."""
    from mcplan.certificate.verify import verify as certify

    report = certify(plan)
    broken = report.failures or [str(item) for item in plan.goals if not item.met]
    for failure in broken:
        print(f"plan: {failure}", file=sys.stderr)
    return not broken
