import pytest

from mcplan.planning.timing.retiming import Retimer
from tests import shared


@pytest.fixture(scope="session")
def step():
    """HRP-2 lifts a foot and sets it down elsewhere."""
    return shared.planned("step", control__pace="fast")


@pytest.fixture(scope="session")
def retimer(step):
    return Retimer(step.scenario.robot, step.scenario.transition_settings)
