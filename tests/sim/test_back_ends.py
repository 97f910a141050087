"""Every physics back end of the registry can be made, driven, and is held against its own tolerances."""

from typing import get_args

import numpy as np
import pytest

import mcplan as mc
from mcplan.certificate.tolerances import EXACT, PHYSICAL, tolerances_of
from mcplan.errors import InputError
from mcplan.sim import simulate as simulation
from mcplan.sim.physics import Action
from mcplan.util.back_ends import BACK_ENDS, PhysicsName, load_object
from mcplan.util.kernel_cache import declared_kernels


def test_scenarios_know_the_same_names():
    assert get_args(PhysicsName) == tuple(BACK_ENDS)


@pytest.mark.parametrize("name", BACK_ENDS)
def test_a_back_end_has_its_name_and_the_state_of_its_world(name):
    scenario = mc.load_scenario("push", {"simulation.physics": name})
    physics = mc.make_physics(scenario)
    assert type(physics) is load_object(BACK_ENDS[name].made_by)
    assert physics.name == name
    np.testing.assert_array_equal(physics.q, scenario.start.q)
    assert physics.object_q.shape == (len(scenario.environment.objects), 7)
    n = scenario.robot.n
    outcome = physics.step(Action(np.zeros(n), np.zeros(6 + n), {}, {}, ()), 1e-3)
    assert outcome.vd.shape == (6 + n,)
    assert np.isfinite(physics.q).all()


@pytest.mark.parametrize("name", [name for name in BACK_ENDS if BACK_ENDS[name].kernels])
def test_its_kernels_are_there(name):
    for folder in BACK_ENDS[name].kernels:
        assert declared_kernels() - declared_kernels((folder,)), folder


def test_only_the_programs_own_accelerations_are_held_against_the_exact_tolerances():
    assert {name for name in BACK_ENDS if tolerances_of(name) == EXACT} == {"qp"}
    assert tolerances_of("one of my own") == PHYSICAL


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr(simulation, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install mujoco"):
        simulation.find_back_end("mujoco")
