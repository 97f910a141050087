import pytest

from mcplan.planning import plan
from mcplan.planning.transition.retiming import Retimer
from mcplan.scene import load_scenario


@pytest.fixture(scope="session")
def step():
    """HRP-2 lifts a foot and sets it down elsewhere, swiftly."""
    return plan(load_scenario("step").replace(control={"pace": "swift"}))


@pytest.fixture(scope="session")
def retimer(step):
    return Retimer(step.scenario.robot, step.scenario.transition_settings)
