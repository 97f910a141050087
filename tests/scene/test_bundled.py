"""The bundled scenarios: sound as they stand and in 20 variants each, and with a start that the robot can take."""

import numpy as np
import pytest

from mcplan.planning.linking import Linker
from mcplan.scenario.load import check_file, load_scenario
from mcplan.scene.placement import make_contact
from mcplan.util.bundled import bundled_scenarios
from tests.contact_error import contact_error

WITH_GOAL = [
    "carry", "crawl", "handstand", "handstand_entry", "kneel", "ladder", "ladder_vertical", "lean", "lift", "plate",
    "push", "rubble", "stairs", "stairs_rail", "step_over", "table", "table_lean", "tilted_step", "turn", "walk",
    "wedge",
]  # fmt: skip
"""Scenarios with a goal."""

WRITTEN = {"carry", "handstand", "handstand_entry", "lift", "push"}
"""Those whose sequence is written by hand; the planner is to find the others'."""

FOOT_STARTS = {
    "kneel", "ladder", "ladder_vertical", "lean", "push", "stairs", "step_over", "tilted_step", "turn", "walk",
}  # fmt: skip
"""These begin as `stairs_rail` does."""


def test_all_are_there():
    assert set(WITH_GOAL) <= set(bundled_scenarios())


@pytest.mark.parametrize("name", WITH_GOAL)
def test_each_is_sound_with_its_variants(name):
    assert check_file(name) == []
    scenario = load_scenario(name)
    assert scenario.name == name
    assert scenario.description
    assert scenario.goal
    assert bool(scenario.stances) == (name in WRITTEN)
    used = {contact.patch for contact in scenario.start.contacts}
    used |= {contact.patch for item in scenario.goal for contact in item.contacts}
    assert used <= set(scenario.planner.patches)
    digests = {scenario.variant(seed).digest for seed in range(20)}
    assert len(digests) == 20


def test_variants_stay_within_what_the_robot_can_do():
    for seed in range(20):
        table = load_scenario("table", variant=seed)
        assert 0.30 <= table.environment.support("seat").p[2] <= 0.35
        ladder = load_scenario("ladder", variant=seed)
        rungs = [ladder.environment.support(f"rung{k}").ends[0] for k in (1, 2)]
        assert np.linalg.norm(rungs[1] - rungs[0]) == pytest.approx(0.27, rel=0.05)
        for scenario in (table, ladder):
            assert 0.5 <= scenario.environment.support("floor").friction <= 0.9


def test_parameters_keep_a_stair_a_stair():
    scenario = load_scenario(
        "stairs_rail", {"parameters.riser": 0.18, "parameters.tread": 0.28, "parameters.rail": 0.85}
    )
    steps = [scenario.environment.support(f"step{k}") for k in range(1, 7)]
    assert np.allclose(np.diff([step.p for step in steps], axis=0), [0.28, 0, 0.18])
    rail = scenario.environment.support("left_rail")
    nosings = np.array([step.p for step in steps])
    along = (nosings[:, 0] - rail.ends[0, 0]) / (rail.ends[1, 0] - rail.ends[0, 0])
    assert np.allclose(rail.ends[0, 2] + along * (rail.ends[1, 2] - rail.ends[0, 2]) - nosings[:, 2], 0.85)


def test_a_rung_may_hold_more_than_the_grip():
    grasp = {"patch": "left_grip", "surface": "rung4", "along": 0.5, "angle": 0.0}
    for name, force in (("ladder", 200), ("ladder_vertical", 300)):
        scenario = load_scenario(name)
        assert make_contact(scenario.robot, scenario.environment, grasp).max_force == force
        assert make_contact(scenario.robot, scenario.environment, grasp | {"max_force": 50}).max_force == 50


@pytest.mark.parametrize("name", sorted(set(WITH_GOAL) - FOOT_STARTS))
@pytest.mark.parametrize("variant", [None, 1])
def test_the_start_is_a_posture_in_equilibrium(name, variant):
    scenario = load_scenario(name, variant=variant)
    contacts = scenario.start.contacts
    settled = Linker(scenario.robot, scenario.environment, scenario.start.q).start(contacts)
    for contact in contacts:
        assert np.abs(contact_error(scenario.robot, settled.q, contact)).max() < 1e-6
    assert settled.margins["equilibrium"] > 0
