"""Planner entry point: from a scenario to a plan."""

from collections.abc import Mapping
from os import PathLike
from typing import Any

from mcplan.errors import ScenarioError
from mcplan.planning.plan import Plan
from mcplan.planning.pushing import moves_objects, push
from mcplan.planning.sequence import complete_sequence
from mcplan.planning.stance_planner import find_plan
from mcplan.scenario.load import load_scenario
from mcplan.scenario.scenario import Scenario
from mcplan.util.arguments import check_integer, describe
from mcplan.util.progress import ProgressCallback


def plan(
    scenario: Scenario | str | PathLike[str] | Mapping[str, Any],
    seed: int = 0,
    progress: ProgressCallback | None = None,
) -> Plan:
    """Return a plan for a scenario: its hand-written sequence completed, or one found from start and goal.

    For a robot with a fixed base no contacts are searched: without ``stances`` its plan is the start alone.

    Parameters
    ----------
    scenario : a Scenario, or an argument of `mcplan.load_scenario`: a bundled name, a path, or a dictionary.
    seed : seed of the search. 0 means no random numbers; others vary the order of candidates of nearly equal cost. The
        same seed gives the same plan. It does not affect a hand-written sequence.
    progress : called with the numbers of nodes and of posture generator calls, and the smallest potential so far.

    Raises
    ------
    ScenarioError
        When the scenario has neither ``stances:`` nor ``goal:``.
    PlanningFailed
        When no plan is found, with the reason; its ``tree`` has the record of the search.
    """
    if not isinstance(scenario, Scenario | str | PathLike | Mapping):
        expected = "a Scenario, the name of a bundled one, the path of a file, or a dictionary"
        raise ScenarioError(f"plan: expected {expected}, not {describe(scenario)}")
    check_integer("plan", "seed", seed)
    scenario = scenario if isinstance(scenario, Scenario) else load_scenario(scenario)
    if scenario.stances or (scenario.robot.fixed and not scenario.goal):
        return _with_walking(complete_sequence(scenario))
    if scenario.robot.fixed:
        name = scenario.robot.name
        raise ScenarioError(f"{scenario.path}: no contacts are sought for {name}, whose base is fixed; give `stances:`")
    if not scenario.goal:
        raise ScenarioError(f"{scenario.path}: neither `goal:` nor `stances:`; there is nothing to plan")
    if moves_objects(scenario):
        return push(scenario)
    return _with_walking(find_plan(scenario, seed, progress))


def _with_walking(plan: Plan) -> Plan:
    if plan.scenario.transition_settings.walking == "static":
        return plan
    from mcplan.planning.walking.walk import with_walks  # imports CVXPY: half a second, for walking only

    return with_walks(plan)
