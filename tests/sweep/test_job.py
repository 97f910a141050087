"""What a case says of itself: the same as planning, simulating and verifying by hand."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import trimesh
import yaml

from mcplan.certificate.verify import verify
from mcplan.errors import InputError, SimulationFailed
from mcplan.planning.plan_file import load_plan
from mcplan.planning.planner import plan as make_plan
from mcplan.robot.robot_file import load_robot
from mcplan.scenario.load import find_scenario, load_scenario
from mcplan.sim.simulate import simulate
from mcplan.sweep import job
from mcplan.sweep.columns import COLUMNS
from mcplan.sweep.experiment import load_experiment
from mcplan.sweep.job import _plan_values, _run_values, run_case
from mcplan.sweep.store import DONE, FAILED
from mcplan.sweep.sweep import job_of
from tests.sim.other_robots import humanoid
from tests.sim.waving_box import waving_run


def outcomes(experiment, keep=()):
    return [run_case(job_of(case, keep)) for case in experiment.cases]


def test_a_row_is_what_plan_simulate_and_verify_say(experiment_file):
    overrides = {"simulation.dt": 0.004}
    (outcome,) = outcomes(
        load_experiment(experiment_file("scenarios: [sway]\nset: {simulation.dt: 0.004}\n")), ("plan", "report", "run")
    )
    assert outcome.status == DONE
    row = outcome.result
    plan = make_plan(load_scenario("sway", overrides))
    report = verify(simulate(plan)).to_json()
    assert row["success"] == report["success"]
    assert row["upright"] is True
    assert row["worst_friction_margin"] == report["friction_margin"]
    assert row["worst_torque_ratio"] == report["torque_ratio"]
    assert row["stances"] == len(plan.stances)
    assert row["plan_duration"] == sum(transition.duration for transition in plan.transitions)
    assert row["plan_equilibrium"] == min(stance.margins["equilibrium"] for stance in plan.stances)
    assert row["plan_torque"] == max(stance.margins["torque"] for stance in plan.stances)
    assert set(row) <= set(COLUMNS)
    assert set(outcome.files) == {"plan.yaml", "report.json", "run.npz"}


def test_what_cannot_be_planned_is_a_verdict_and_says_why(experiment_file):
    text = "scenarios: [walk]\nsteps: plan\nset: {planner.max_calls: 1, parameters.distance: 1.0}\n"
    (outcome,) = outcomes(load_experiment(experiment_file(text)), ("plan",))
    assert outcome.status == DONE
    row = outcome.result
    assert (row["success"], row["planned"], row["stage"], row["cause"]) == (False, False, "plan", "no plan")
    assert "no plan within the budget" in row["failure"]
    assert row["posture_calls"] >= 1
    assert outcome.files == {}


def test_a_fall_is_a_verdict_with_its_cause(experiment_file):
    push = "[{link: BODY, force: [0, 900, 0], start: 0.2, duration: 0.3}]"
    settings = f"simulation.physics: contact, control.recovery.max_steps: 0, simulation.pushes: {push}"
    (outcome,) = outcomes(load_experiment(experiment_file(f"scenarios: [sway]\nset: {{{settings}}}\n")))
    row = outcome.result
    assert (outcome.status, row["success"], row["stage"]) == (DONE, False, "simulation")
    assert row["cause"].startswith("fell in "), row["failure"]
    assert row["failure"].startswith("fell: the centre of mass is ")


def test_a_run_that_had_to_stop_is_no_success_though_all_that_it_has_is_certified(experiment_file, monkeypatch):
    def stopping(plan, seed=0):
        failure = SimulationFailed("the state of physics contact is not finite at t = 1 s", "not a number")
        failure.run = simulate(plan, seed=seed)
        raise failure

    monkeypatch.setattr(job, "simulate", stopping)
    text = "scenarios: [sway]\nset: {simulation.dt: 0.004}\n"
    (outcome,) = outcomes(load_experiment(experiment_file(text)))
    row = outcome.result
    assert (row["success"], row["finished"], row["stage"]) == (False, False, "simulation")
    assert row["cause"].startswith("not a number")


@pytest.mark.slow
def test_what_differs_only_in_how_it_is_carried_out_has_one_plan(experiment_file, tmp_path, monkeypatch):
    """The run is that of a plan of its own; the row says how long the one planning took."""
    text = "scenarios: [sway]\nset: {simulation.dt: 0.004}\ngrid: {simulation.physics: [qp, contact]}\n"
    cases = load_experiment(experiment_file(text)).cases
    alone = [run_case(job_of(case, ("plan",))) for case in cases]
    planned, plans = [], tmp_path / "plans"

    def counted(scenario, seed=0):
        planned.append(scenario.name)
        return make_plan(scenario, seed=seed)

    monkeypatch.setattr(job, "make_plan", counted)
    together = [run_case(job_of(case, ("plan",), str(plans))) for case in cases]
    assert len(planned) == 1
    assert together[0].result["plan_time"] == together[1].result["plan_time"]
    clocks = {"plan_time", "verify_time", "run_time", "control_time", "control_time_99"}
    for one, other in zip(alone, together, strict=True):
        assert one.result.keys() == other.result.keys()
        for name in one.result.keys() - clocks:
            mine, theirs = one.result[name], other.result[name]
            assert mine == (pytest.approx(theirs, rel=1e-6, abs=1e-9) if isinstance(theirs, float) else theirs), name
        assert yaml.safe_load(one.files["plan.yaml"])["stances"] == yaml.safe_load(other.files["plan.yaml"])["stances"]
    (elsewhere,) = (run_case(job_of(case, (), str(tmp_path / "no" / "plans"))) for case in cases[:1])
    assert elsewhere.result["success"]
    assert len(planned) == 2


def test_what_cannot_be_planned_is_tried_once(experiment_file, tmp_path, monkeypatch):
    settings = "{planner.max_calls: 1, parameters.distance: 1.0}"
    text = f"scenarios: [walk]\nset: {settings}\ngrid: {{simulation.physics: [qp, contact]}}\n"
    first, second = load_experiment(experiment_file(text)).cases
    failed = run_case(job_of(first, (), str(tmp_path / "plans")))
    monkeypatch.setattr(job, "make_plan", None)
    assert run_case(job_of(second, (), str(tmp_path / "plans"))).result == failed.result
    assert failed.result["cause"] == "no plan"


def test_a_robot_that_is_another_one_is_no_verdict(experiment_file):
    (case,) = load_experiment(experiment_file("scenarios: [sway]\nsteps: plan\n")).cases
    task = job_of(case, ())
    outcome = run_case(type(task)(**{**vars(task), "robot": "0" * 64}))
    assert outcome.status == FAILED
    assert "not those of the machine that sweeps" in outcome.result["failure"]


def test_a_mesh_around_the_robot_that_is_another_one_is_no_verdict(experiment_file, tmp_path):
    rock = "environment:\n  obstacles: [{name: rock, mesh: {file: rock.stl}, pose: {xyz: [3, 0, 0]}}]\n"
    (tmp_path / "mine.yaml").write_text(find_scenario("sway").read_text().replace("environment:\n", rock))
    trimesh.creation.box((0.2, 0.2, 0.2)).export(tmp_path / "rock.stl")
    (case,) = load_experiment(experiment_file("scenarios: [mine.yaml]\nsteps: plan\n")).cases
    task = job_of(case, ())
    trimesh.creation.box((0.2, 0.2, 0.3)).export(tmp_path / "rock.stl")
    outcome = run_case(task)
    assert outcome.status == FAILED
    assert "mine.yaml: its mesh files here are not those" in outcome.result["failure"]


def test_a_plan_that_is_kept_names_its_robot_from_where_it_is_kept(experiment_file, tmp_path):
    text = "scenarios: [walk]\nsteps: plan\nset: {parameters.distance: 0.3}\n"
    text += f"cases: {json.dumps([{'robot': str(humanoid(tmp_path)), 'start.posture': 'ready'}])}\n"
    (case,) = load_experiment(experiment_file(text)).cases
    kept = tmp_path / "store" / "artefacts" / "ab"
    kept.mkdir(parents=True)
    file = kept / "plan.yaml"
    file.write_bytes(run_case(job_of(case, ("plan",), output_directory=kept)).files["plan.yaml"])
    assert not yaml.safe_load(file.read_text())["robot"].startswith("/")
    assert load_plan(file).scenario.robot.digest == load_robot(case.fields["robot"]).digest


def test_robots_of_a_sweep_are_each_their_own(experiment_file, tmp_path):
    small = {"robot": str(humanoid(tmp_path)), "start.posture": "ready"}
    text = "scenarios: [walk]\nsteps: plan\nset: {parameters.distance: 0.3}\n"
    text += f"cases: {json.dumps([small, {'robot': 'hrp2'}])}\n"
    cases = load_experiment(experiment_file(text)).cases
    assert [case.robot for case in cases] == [load_robot(name).digest for name in (small["robot"], "hrp2")]
    hrp2, other = (run_case(job_of(case, ())).result for case in reversed(cases))
    assert hrp2["success"]
    assert other["success"]
    margins = make_plan(load_scenario("walk", {"parameters.distance": 0.3} | small)).stances[0].margins
    assert other["plan_torque"] >= margins["torque"] > 0
    assert other["plan_torque"] != hrp2["plan_torque"]


def test_the_sender_refuses_what_it_cannot_resolve(experiment_file):
    with pytest.raises(InputError):
        load_experiment(experiment_file("scenarios: [walk]\nset: {parameters.distance: =nonsense}\n"))


def test_each_margin_of_a_plan_is_that_of_its_worst_stance():
    """Distances to what ends it are worst where least, shares of a limit where largest; a stance may have none."""
    rng = np.random.default_rng(0)
    least = ("equilibrium", "equilibrium_torque", "friction", "clearance", "position")
    largest = ("friction_ratio", "torque")
    margins = [{name: float(rng.uniform(0.1, 1.0)) for name in (*least, *largest)} for _ in range(5)]
    margins[2] = dict.fromkeys(margins[2])
    motions = [SimpleNamespace(duration=duration) for duration in (1.5, 2.0, 0.25)]
    row = _plan_values(
        SimpleNamespace(stances=[SimpleNamespace(margins=each) for each in margins], transitions=motions)
    )
    assert row["plan_duration"] == 3.75
    known = [each for each in margins if each["torque"] is not None]
    for name in least:
        assert row[f"plan_{name}"] == min(each[name] for each in known), name
    for name in largest:
        assert row[f"plan_{name}"] == max(each[name] for each in known), name
    assert row["stances"] == 5
    nothing = _plan_values(SimpleNamespace(stances=[SimpleNamespace(margins={})], transitions=[]))
    assert {nothing[f"plan_{name}"] for name in (*least, *largest)} == {None}


def test_times_of_control_are_in_the_unit_that_the_column_says():
    run = waving_run(40, touch=20)
    run = replace(run, timing={"control": np.linspace(1e-3, 2e-3, 101)})
    row = _run_values(run, verify(run))
    assert COLUMNS["control_time"].unit == COLUMNS["control_time_99"].unit == "ms"
    assert (row["control_time"], row["control_time_99"]) == pytest.approx((1.5, 1.99))
