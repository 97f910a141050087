"""Plans that cases of a sweep share which differ only in how they are carried out: found once, kept while it runs.

Whichever case finds a plan, the rows of all of them say how long that took.
"""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mcplan.document import Document
from mcplan.document.build import Mark
from mcplan.model.robot import Robot
from mcplan.planning import Plan
from mcplan.planning.plan_file import plan_document, plan_of
from mcplan.scene import Scenario
from mcplan.sweep.case import Case
from mcplan.sweep.identity import code_version, digest
from mcplan.sweep.task import Task
from mcplan.whole_file import write_text

CARRIED_OUT = "simulation"
"""The section of a scenario that no planner looks at."""


def _carried_out(name: str) -> bool:
    """Say whether a field matters only when a plan is carried out."""
    return name.partition(".")[0] == CARRIED_OUT


def shares(names: tuple[str, ...]) -> bool:
    """Whether cases that differ in these fields may have one plan."""
    return any(map(_carried_out, names))


def plans_first(cases: Sequence[Case]) -> tuple[Case, ...]:
    """Return cases in such an order that one of each plan comes before the others: workers would find it twice."""
    known: Counter[str] = Counter()
    turns = []
    for case in cases:
        asked = {name: value for name, value in case.overrides.items() if not _carried_out(name)}
        plan = digest([case.scenario, asked, case.seed, case.variant, case.robot])
        turns.append(known[plan])
        known[plan] += 1
    return tuple(case for _, case in sorted(zip(turns, cases, strict=True), key=lambda pair: pair[0]))


class SharedPlan:
    """Where the plan of a case is, or will be.

    Parameters
    ----------
    task : the case; a directory for plans that it does not name, or that is on another machine, holds none.
    seed : of the planner.
    """

    def __init__(self, task: Task, seed: int):
        asked = {key: value for key, value in task.data.items() if key != CARRIED_OUT}
        self._task, self._file = task, None
        if task.plans and Path(task.plans).parent.is_dir():
            name = digest([asked, task.meshes, task.path, task.robot, seed, code_version()])
            self._file = Path(task.plans) / f"{name}.json"

    def read(self, robot: Robot) -> tuple[dict[str, Any], Plan | None] | None:
        """Return what was said of the planning, and the plan if one was found; None where nobody has tried."""
        if self._file is None or not self._file.is_file():
            return None
        kept = json.loads(self._file.read_text(encoding="utf-8"))
        if kept["plan"] is None:
            return kept["row"], None
        own = {key: value for key, value in self._task.data.items() if key == CARRIED_OUT}
        data = {key: value for key, value in kept["plan"].items() if key != CARRIED_OUT} | own
        return kept["row"], plan_of(Scenario.of(Document(self._task.path, data, Mark(None)), robot=robot))

    def write(self, row: dict[str, Any], plan: Plan | None) -> None:
        """Keep what there is to say of the planning, and the plan if one was found."""
        if self._file is not None:
            data = None if plan is None else plan_document(plan, Path(self._task.path).parent)
            write_text(self._file, json.dumps({"row": row, "plan": data}))
