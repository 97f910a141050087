"""One recogniser of files: the same name means the same for all commands."""

from dataclasses import replace
from pathlib import Path

import pytest

import mcplan as mc
from mcplan.cli.main import main
from mcplan.cli.name_resolution import EXPERIMENT, PLAN, ROBOT, RUN, SCENARIO, TREE, find, kind_of
from mcplan.cli.plot import run_name
from mcplan.errors import InputError
from mcplan.scenario.load import check_file
from mcplan.util.bundled import bundled_scenarios
from tests import shared

TEN = """\
mcplan: 1
name: ten
robot: hrp3
environment:
  surfaces:
    - {name: floor, sise: [4, 2]}
    - {name: table, size: [0.4, -1]}
start:
  posture: half_siting
  contacts:
    - {patch: left_sol, surface: floor, x: 0, y: 0.1}
    - {patch: right_sole, surface: flor, x: 0, y: -0.1}
goal:
  contacts: [{patch: left_hand, surface: tabel}]
planner: {patches: [left_sole, rigth_sole]}
simulation: {dt: -0.001, physics: mujco}
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plan = shared.planned("sway", simulation__dt=0.005)
    mc.save_plan(plan, "mine.plan.yaml")
    shared.swaying().save("runs/first")
    mc.save_plan(plan, "runs/first/plan.yaml")
    (tmp_path / "mine.tree.json").write_text("{}")
    return tmp_path


def test_a_name_is_found_with_and_without_what_may_be_left_out(home):
    for name in ("mine.plan.yaml", "mine.plan", "mine", "./mine.plan"):
        assert find(name, RUN, PLAN).name == "mine.plan.yaml", name
    for name in ("first", "runs/first", "runs/first/run.npz"):
        assert kind_of(find(name, RUN, PLAN)) == RUN, name
    assert find("runs/first", SCENARIO, PLAN).name == "plan.yaml", "what a run was made of can be simulated again"
    assert find("step", SCENARIO, PLAN) == bundled_scenarios()["step"]
    assert kind_of(find("hrp2", ROBOT, SCENARIO)) == ROBOT
    assert find("mine.tree", TREE).name == "mine.tree.json"
    mc.save_plan(mc.load_plan("mine.plan.yaml"), "step.plan.yaml")
    assert find("step", SCENARIO, PLAN) == bundled_scenarios()["step"], "a plan beside it does not hide a scenario"
    assert find("step", RUN, PLAN).name == "step.plan.yaml"


@pytest.mark.parametrize(
    ("name", "wanted", "said"),
    [
        ("mine.plan", [RUN], "is a plan, expected a run: `mcplan simulate mine.plan` makes a run of it"),
        ("walk", [RUN, PLAN], "is a scenario, expected a run or plan: `mcplan run walk`"),
        ("runs/first", [EXPERIMENT], "is a run, expected an experiment"),
        ("firts", [RUN, PLAN], "no run or plan `firts`; did you mean `first`"),
        ("runs/firts", [RUN], "no such file; expected a run; did you mean `runs/first`"),
        ("mine.yaml", [PLAN], "no such file; expected a plan; did you mean `mine.plan.yaml`"),
    ],
)
def test_what_it_is_instead_is_said(name, wanted, said, home):
    with pytest.raises(InputError, match=said.replace("(", r"\(")):
        find(name, *wanted)


def test_check_goes_on_past_a_wrong_robot_and_key(tmp_path):
    file = tmp_path / "ten.yaml"
    file.write_text(TEN)
    found = {(problem.line, problem.key) for problem in check_file(file)}
    assert found == {
        (3, "robot"), (6, "environment.surfaces[0].sise"), (7, "environment.surfaces[1].size[1]"),
        (9, "start.posture"), (11, "start.contacts[0].patch"), (12, "start.contacts[1].surface"),
        (14, "goal.contacts[0].surface"), (15, "planner.patches[1]"), (16, "simulation.dt"), (16, "simulation.physics"),
    }  # fmt: skip


def test_a_friction_of_all_surfaces_says_what_it_replaces(home, capsys):
    assert main(["plan", "table_hand", "--set", "environment.friction=0.9", "-o", "a.plan.yaml"]) == 0
    said = capsys.readouterr().err
    assert "0.9 replaces the friction of every surface and bar, also that of `floor` 0.7, `table` 0.6" in said


@pytest.mark.slow
def test_plots_come_as_asked_for_and_are_not_written_over(home, capsys):
    assert main(["plot", "first", "--format", "svg"]) == 0
    files = sorted((home / "runs" / "first" / "plots").iterdir())
    assert files
    assert {file.suffix for file in files} == {".svg"}
    before = files[0].read_bytes()
    assert main(["plot", "first", "--format", "svg"]) == 2
    assert "--force" in capsys.readouterr().err
    assert files[0].read_bytes() == before
    assert main(["plot", "first", "mine.plan"]) == 2


def test_a_run_is_called_after_its_directory_also_from_inside(tmp_path, monkeypatch):
    (tmp_path / "first").mkdir()
    monkeypatch.chdir(tmp_path / "first")
    assert [run_name(Path(run)) for run in (".", "../first", "run.npz")] == ["first", "first", "first"]


def test_a_plan_whose_own_certificate_is_broken_is_said_to_be_one_before_it_is_simulated(home, monkeypatch, capsys):
    plan = mc.load_plan("mine.plan.yaml")
    q = plan.stances[1].q.copy()
    q[0] += 0.01
    first, second, *rest = plan.stances
    mc.save_plan(replace(plan, stances=(first, replace(second, q=q), *rest)), "broken.plan.yaml")
    told = []
    monkeypatch.setattr("mcplan.sim.simulate.simulate", lambda *a, **k: told.append(capsys.readouterr().err) or 1 / 0)
    main(["simulate", "broken.plan"])
    assert "the plan's own certificate does not hold" in told[0]
    assert "plan: " in told[0]


def test_both_names_of_a_contact_are_looked_at(tmp_path):
    file = tmp_path / "two.yaml"
    file.write_text(
        "mcplan: 1\nname: two\nrobot: hrp2\nenvironment: {surfaces: [{name: floor, size: [4, 4]}]}\n"
        "start: {contacts: [{patch: left_sol, surface: flor}]}\n"
        "goal: {contacts: [{patch: left_sole, surface: floor}]}\n"
    )
    said = [(problem.key, problem.message.partition(";")[0]) for problem in check_file(file)]
    assert said == [
        ("start.contacts[0].patch", "unknown patch `left_sol`"),
        ("start.contacts[0].surface", "unknown surface or bar `flor`"),
    ]
