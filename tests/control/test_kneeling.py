"""Down on both knees: knee and toes of a leg come down together, and the body that moves along keeps its balance."""

from dataclasses import replace

import numpy as np
import pytest

from mcplan.collision.model import CollisionModel
from mcplan.planning.planner import plan
from mcplan.scenario.load import load_scenario
from mcplan.sim.simulate import Simulation

KNEES = {"left_knee", "right_knee"}


@pytest.fixture(scope="module")
def motion():
    """Samples (time, status, q, distance of the CoM from its reference) down to both knees, and the robot's model."""
    whole = plan(load_scenario("kneel"), seed=0)
    down = next(k for k, stance in enumerate(whole.stances) if set(stance.patches) >= KNEES)
    simulation = Simulation(replace(whole, stances=whole.stances[: down + 1]), "qp")
    controller, samples = simulation.controller, []
    while (sample := simulation.step()) is not None:
        away = controller.terms.com - controller.motion.com.sample(sample.t).value
        samples.append((sample.t, sample.status, sample.q.copy(), float(np.linalg.norm(away))))
    return samples, CollisionModel(whole.scenario.robot, whole.scenario.environment)


@pytest.mark.slow
def test_the_program_always_has_a_solution(motion):
    assert not any(status for _, status, _, _ in motion[0])


def test_lifting_a_limb_and_leading_two_patches_of_it_leave_the_centre_of_mass_where_it_should_be(motion):
    assert max(away for _, _, _, away in motion[0]) < 5e-3


def test_nothing_goes_through_anything(motion):
    samples, model = motion
    floor = [(link, "floor") for side in "LR" for link in (f"{side}LEG_LINK3", f"{side}LEG_LINK5")]
    for _, _, q, _ in samples[::50]:
        assert model.smallest(q, contacts=floor).distance >= -1e-6
