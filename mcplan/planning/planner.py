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
from mcplan.util.bars import PlanningProgress
from mcplan.util.progress import ProgressCallback


def plan(
    scenario: Scenario | str | PathLike[str] | Mapping[str, Any],
    seed: int = 0,
    progress: bool | ProgressCallback = False,
) -> Plan:
    """Plan a scenario: complete its contact sequence, or search one from start and goal.

    For a robot with a fixed base no contacts are searched: without ``stances`` its plan is the start alone.

    >>> import mcplan as mc
    >>> mc.plan("sway")
    Plan('sway', hrp2, 5 stances)

    Parameters
    ----------
    scenario : a Scenario; or an argument of `mcplan.load_scenario`: a bundled name, a path, a dictionary.
    seed : of the search. 0 keeps the order of candidates, other seeds permute nearly equal ones; the same seed gives
        the same plan. Without effect if the scenario has a contact sequence.
    progress : True shows nodes, postures, distance to the goal and time; or a function that is called with nodes, calls
        of the posture generator, and the smallest potential so far (approximately the number of remaining moves).

    Raises
    ------
    ScenarioError
        The scenario is invalid, or has neither ``stances`` nor ``goal``.
    PlanningFailed
        No plan is found; the message has the reason, and ``tree`` the search tree.
    """
    if progress is True:
        with PlanningProgress() as display:
            return plan(scenario, seed, display.update)
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
    return _with_walking(find_plan(scenario, seed, progress or None))


def _with_walking(plan: Plan) -> Plan:
    if plan.scenario.transition_settings.walking == "static":
        return plan
    from mcplan.planning.walking.walk import with_walks  # imports CVXPY: half a second, for walking only

    return with_walks(plan)
