"""The posture at the end of an item: what the goal asks to touch is leant on."""

import numpy as np
import pytest

from mcplan.planning.feasibility import MIN_LOAD_N, Feasibility
from mcplan.planning.goal.ending import GoalPosture, GoalPostureSolver
from mcplan.planning.posture.generator import PostureGenerator
from mcplan.scenario.load import load_scenario


@pytest.fixture(scope="module")
def standing():
    """An ending, and HRP-2 on its right foot, the left one beside it."""
    scenario = load_scenario("walk")
    robot, contacts = scenario.robot, scenario.start.contacts
    feasibility = Feasibility(
        robot, scenario.environment, scenario.start.q, [c.patch for c in contacts], scenario.transition_settings
    )
    generator = PostureGenerator(robot, scenario.environment)
    (right,) = (contact for contact in contacts if contact.patch == "right_sole")
    leaning = generator.generate(contacts, ["right_sole"], scenario.start.q, com=right.p[:2] - [0.0, 0.045])
    assert leaning.found
    return scenario, GoalPostureSolver(feasibility, scenario.start.q), leaning


def load(result, patch="left_sole"):
    return np.linalg.norm(result.forces.wrenches[patch][:3])


def test_what_the_goal_asks_to_touch_bears_something_at_the_end(standing):
    scenario, ending, leaning = standing
    assert load(leaning) <= MIN_LOAD_N
    end = ending._with_more_load(scenario.goal[0], leaning.q, GoalPosture(leaning, ""))
    assert end.found
    assert load(end.result) > MIN_LOAD_N
    for before, after in zip(leaning.contacts, end.result.contacts, strict=True):
        np.testing.assert_allclose(after.p, before.p, atol=1e-6)


def test_a_contact_that_the_goal_does_not_ask_for_is_left_as_it_is(standing):
    scenario, ending, leaning = standing
    item = scenario.goal[0].model_copy(update={"contacts": scenario.goal[0].contacts[1:]})
    assert [spec.patch for spec in item.contacts] == ["right_sole"]
    before = GoalPosture(leaning, "")
    assert ending._with_more_load(item, leaning.q, before) is before
