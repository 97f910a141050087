"""Cases that differ only in how a plan is carried out share it."""

import pytest

from mcplan.scenario.load import load_scenario
from mcplan.sweep.experiment import load_experiment
from mcplan.sweep.job import plans_first


def test_one_case_of_each_plan_comes_before_the_others(experiment_file):
    cases = load_experiment(
        experiment_file(
            "scenarios: [sway, step]\n"
            "grid: {simulation.physics: [qp, contact, mujoco], control.gains.com_kp: [30, 60]}\n"
            "seeds: {from: 5, count: 2}\n"
        )
    ).cases
    ordered = plans_first(cases)
    assert sorted(case.id for case in ordered) == sorted(case.id for case in cases)
    plans = [(case.scenario, case.overrides["control.gains.com_kp"], case.seed) for case in ordered]
    n = 2 * 2 * 2
    assert len(set(plans[:n])) == n
    assert plans[n : 2 * n] == plans[2 * n :] == plans[:n]
    assert {case.physics for case in ordered[:n]} == {"qp"}


@pytest.mark.parametrize("written", ["qp", "contact"])
def test_the_physics_of_a_case_is_the_one_it_is_simulated_in(written, experiment_file, tmp_path):
    """That of the scenario where the experiment says nothing else."""
    load_scenario("sway", {"simulation.physics": written}).save(tmp_path / "sway.yaml")
    for said, physics in (("", written), ("set: {simulation.physics: mujoco}\n", "mujoco")):
        (case,) = load_experiment(experiment_file(f"scenarios: [sway.yaml]\n{said}")).cases
        assert case.physics == physics
        assert case.document().data["simulation"]["physics"] == physics
