"""``mcplan sweep`` and ``mcplan check EXPERIMENT``."""

import re
from dataclasses import dataclass, replace

import pytest

from mcplan.cli.main import main
from mcplan.sweep import command
from mcplan.sweep.case import code_version
from mcplan.sweep.experiment import load_experiment
from mcplan.sweep.results import collect_results
from mcplan.sweep.store import DONE, CaseOutcome, Store
from mcplan.sweep.sweep import work_of
from mcplan.util.bars import be_quiet

TEXT = "scenarios: [sway]\nsteps: plan\ngrid: {environment.friction: [0.5, 0.7]}\nexpect: {success: '%s'}\n"


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_check_says_how_many_cases_and_how_long(experiment_file, capsys):
    file = experiment_file(TEXT % ">= 1" + "seeds: {count: 10}\n")
    assert main(["check", str(file), "sway"]) == 0
    out = capsys.readouterr().out
    assert f"{file}: ok, 20 cases; 20 to run; about " in out
    assert "a guess" in out


def test_a_sweep_takes_the_time_of_its_cases_shared_by_its_workers(experiment_file, tmp_path):
    def duration(count, workers, seconds):
        experiment = load_experiment(experiment_file(f"scenarios: [sway]\nsteps: plan\nseeds: {{count: {count}}}\n"))
        work = replace(work_of(experiment, tmp_path / "out"), seconds=seconds)
        found = re.match(r"about (\d+) s on (\d+) worker", command.estimate(experiment, work, workers))
        assert int(found[2]) == workers
        return int(found[1])

    assert duration(10, 1, 4.0) == duration(20, 2, 4.0) == duration(10, 2, 8.0) == 40
    assert duration(20, 8, 4.0) == 10
    assert duration(40, 2, None) == duration(20, 1, None) == 2 * duration(20, 2, None)  # a guess


def test_check_takes_packages_that_only_the_workers_have(experiment_file, capsys, monkeypatch):
    monkeypatch.setattr("mcplan.sim.simulate.find_spec", lambda name: None)
    file = experiment_file("scenarios: [sway]\nset: {simulation.physics: mujoco}\n")
    assert main(["check", str(file)]) == 0
    assert "ok, 1 cases" in capsys.readouterr().out
    assert main(["sweep", str(file), "--dry-run"]) == 2, "here it cannot be run"


@pytest.mark.parametrize("colour", ["", "1"])
def test_a_log_has_a_line_a_minute_that_says_how_far_a_sweep_is(colour, capsys, monkeypatch):
    """A log that is asked to be in colour has no bar either."""
    monkeypatch.setenv("FORCE_COLOR", colour)
    now = 1000.0
    monkeypatch.setattr(command.time, "monotonic", lambda: now)
    with command.SweepProgress() as progress:
        for done, now in ((0, 1000.0), (1, 1030.0), (2, 1070.0), (3, 1100.0), (4, 1140.0), (40, 1200.0)):  # noqa: B007
            progress.update(done, 40, failed=done // 4)
    assert capsys.readouterr().err.splitlines() == [
        "2 of 40 done, about 22 min left",
        "4 of 40 done, 1 failed, about 21 min left",
    ]


def test_a_broken_experiment_is_refused_before_anything_is_made(experiment_file, home, capsys):
    file = experiment_file("scenarios: [sway]\ngrid: {control.gains.com_kq: [1]}\n")
    for arguments in (["check", str(file)], ["sweep", str(file)]):
        assert main(arguments) == 2
        message = capsys.readouterr().err
        assert f"{file}:4: " in message
        assert "did you mean `com_kp`" in message
    assert [path.name for path in home.iterdir()] == ["trial.yaml"]


def test_a_condition_on_what_no_case_has_is_bad_input(experiment_file, home, capsys):
    assert main(["sweep", str(experiment_file(TEXT % ">= 1")), "--only", "sed == 3"]) == 2
    assert "did you mean `seed`" in capsys.readouterr().err
    assert not (home / "runs").exists()


def test_a_dry_run_lists_the_cases_and_runs_none(experiment_file, home, capsys):
    file = experiment_file(TEXT % ">= 1")
    assert main(["sweep", str(file), "--dry-run", "--only", "environment.friction > 0.6"]) == 0
    captured = capsys.readouterr()
    assert captured.out == "scenario=sway, environment.friction=0.7, seed=0\n"
    assert "2 cases; 1 left out; 1 to run" in captured.err
    assert not (home / "runs").exists()


def test_a_quiet_sweep_says_nothing_of_what_it_will_do_and_shows_no_bar(experiment_file, capsys, monkeypatch):
    assert main(["sweep", str(experiment_file(TEXT % ">= 1")), "--dry-run", "--quiet"]) == 0
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    for quiet in (True, False):
        be_quiet(quiet)
        assert command.SweepProgress()._bar.disable is quiet


def test_the_first_seed_can_be_drawn_when_measuring(experiment_file, capsys):
    file = experiment_file("scenarios: [sway]\nsteps: plan\nseeds: {count: 20}\n")
    assert main(["sweep", str(file), "--dry-run", "--seeds", "4711:2"]) == 0
    assert capsys.readouterr().out == "scenario=sway, seed=4711\nscenario=sway, seed=4712\n"
    assert main(["sweep", str(file), "--dry-run", "--seeds", "4711:"]) == 2


def test_a_sweep_writes_its_results_and_its_status_is_the_verdict(experiment_file, home, capsys):
    assert main(["sweep", str(experiment_file(TEXT % ">= 1")), "--workers", "1"]) == 0
    captured = capsys.readouterr()
    assert "pass  success: mean 1 of 2 of 2 cases, expected mean >= 1" in captured.out
    out = home / "runs" / "sweeps" / "trial"
    assert {path.name for path in out.iterdir()} >= {
        "results.sqlite", "results.csv", "results.parquet", "tables.md", "report.html", "artefacts",
    }  # fmt: skip
    # nothing is left to do, and a threshold that is not met is status 1
    assert main(["sweep", str(experiment_file(TEXT % "> 1")), "--against", str(out)]) == 1
    captured = capsys.readouterr()
    assert "2 finished; 0 to run" in captured.err
    assert "FAIL" in captured.out
    assert "0 cases as before, 2 new, 0 gone; 0 regressions" in captured.out, "they are not compared with themselves"


@dataclass
class Old:
    """A case as another code has run it."""

    id: str
    configuration: str
    fields: dict


def test_a_sweep_is_compared_with_what_an_older_code_has_left_in_its_directory(
    experiment_file, home, capsys, monkeypatch
):
    file, out = experiment_file(TEXT % ">= 0"), home / "runs" / "sweeps" / "trial"

    def put(experiment, code, success):
        with Store(out) as store:
            for case in experiment.cases:
                name = case.id if code == code_version() else f"{code}{case.id}"
                store.put(Old(name, case.configuration, case.fields), CaseOutcome(DONE, {"success": success}), code)
            return collect_results(experiment, store)

    put(load_experiment(file), "older", True)
    monkeypatch.setattr(command, "sweep", lambda experiment, *_: put(experiment, code_version(), False))
    for _ in range(2):  # the second time its results are there before it begins
        assert main(["sweep", str(file), "--against", "runs/sweeps/trial"]) == 1
        said = " ".join(capsys.readouterr().out.split())
        assert "2 cases as before, 0 new, 0 gone; 2 regressions" in said


def test_what_is_compared_with_has_to_be_there_before_anything_runs(experiment_file, home, capsys, monkeypatch):
    monkeypatch.setattr(command, "sweep", lambda *_: pytest.fail("it sweeps already"))
    for place in ("nowhere", "runs/sweeps/trial"):
        assert main(["sweep", str(experiment_file(TEXT % ">= 0")), "--against", place]) == 2
        assert "there is no store of an experiment" in capsys.readouterr().err
    assert not (home / "runs").exists()


@pytest.mark.slow
def test_one_plan_is_carried_out_in_every_back_end_and_not_kept(experiment_file, home):
    text = "scenarios: [sway]\nset: {simulation.dt: 0.004}\ngrid: {simulation.physics: [qp, contact]}\n"
    assert main(["sweep", str(experiment_file(text)), "--workers", "1"]) == 0
    out = home / "runs" / "sweeps" / "trial"
    assert not (out / "plans").exists()
    rows = [line.split(",") for line in (out / "results.csv").read_text().splitlines()]
    times = [row[rows[0].index("plan_time")] for row in rows[1:]]
    assert len(times) == 2
    assert times[0] == times[1]
