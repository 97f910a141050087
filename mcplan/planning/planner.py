"""The way from a scenario to a plan."""

from mcplan.errors import ScenarioError
from mcplan.planning.plan import Plan
from mcplan.planning.sequence import complete
from mcplan.scene.scenario import Scenario


def plan(scenario: Scenario, seed: int = 0) -> Plan:
    """Return a plan for a scenario.

    Parameters
    ----------
    seed : of the random choices; a hand-written sequence leaves none.

    Raises
    ------
    ScenarioError
        When the scenario has no ``stances:``.
    PlanningFailed
        When no plan is found, with what stopped it.
    """
    if not scenario.stances:
        raise ScenarioError(
            f"{scenario.path}: no `stances:`; a sequence of contacts has to be written by hand, "
            "finding one is not possible yet"
        )
    return complete(scenario)
