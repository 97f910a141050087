"""A sweep from file to table: every case once, nothing twice, whatever the cases do."""

import sqlite3
import time
from pathlib import Path

import pytest

from mcplan.errors import InputError
from mcplan.sweep.engine import Runner
from mcplan.sweep.experiment import load_experiment
from mcplan.sweep.store import FAILED, Store
from mcplan.sweep.sweep import sweep, work_of
from mcplan.sweep.worker import connect

TEXT = "scenarios: [sway]\nsteps: plan\ngrid: {environment.friction: %s}\nseeds: {count: %d}\n"


@pytest.fixture(scope="module")
def scheduler():
    """Two workers for all tests of this file, whose processes find the stand-ins beside it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parent))
        with connect(2) as client:
            yield client.scheduler.address


def stand_in(name):
    return Runner(f"runners:{name}", None)


def test_only_what_is_missing_is_run(experiment_file, tmp_path, scheduler):
    experiment = load_experiment(experiment_file(TEXT % ("[0.4, 0.6]", 6)))
    told = []
    first = sweep(
        experiment, tmp_path / "out", scheduler=scheduler, only="seed < 3", runner=stand_in("quick"),
        progress=lambda *n: told.append(n),
    )  # fmt: skip
    assert len(first) == 6
    assert told[-1] == (6, 6, 0)
    finished = sqlite3.connect(tmp_path / "out" / "results.sqlite").execute("select id, finished from cases").fetchall()

    work = work_of(experiment, tmp_path / "out")
    assert (len(work.todo), work.finished, work.failed) == (6, 6, 0)
    # one value is another one now: what has it not is not run again
    changed = load_experiment(experiment_file(TEXT % ("[0.4, 0.7]", 6)))
    assert {case.fields["environment.friction"] for case in work_of(changed, tmp_path / "out").todo} == {0.4, 0.7}
    assert len(work_of(changed, tmp_path / "out").todo) == 3 + 6
    table = sweep(changed, tmp_path / "out", scheduler=scheduler, runner=stand_in("quick"))
    assert len(table) == 12
    rows = sqlite3.connect(tmp_path / "out" / "results.sqlite").execute("select id, finished from cases").fetchall()
    assert len(rows) == 6 + 9
    assert set(finished) < set(rows)
    for row in table.rows:
        assert row["plan_torque"] == row["environment.friction"]
        assert row["stances"] == row["seed"]
        with Store(tmp_path / "out", read_only=True) as store:
            assert store.artefact(row["case"], "plan.yaml").read_text() == f"seed: {row['seed']}\n"


def test_whatever_a_case_does_the_others_are_done_and_its_row_says_why(experiment_file, tmp_path, scheduler):
    text = TEXT % ("[0.4]", 6) + "limits: {time: 8, memory_gb: 0.7}\n"
    experiment = load_experiment(experiment_file(text))
    began = time.monotonic()
    table = sweep(experiment, tmp_path / "out", scheduler=scheduler, runner=stand_in("awkward"))
    assert time.monotonic() - began < 500  # what hangs would sleep for 1000 s
    assert len(table) == 6
    assert table.failed == 4
    why = [row.get("failure", "") for row in table.rows]
    assert "SIGKILL, twice" in why[0]
    assert "over its time limit of 8 s" in why[1]
    assert "over its memory limit" in why[2]
    assert "RuntimeError: by design (runners.py:" in why[3]
    assert [row.get("cause") for row in table.rows[:4]] == [line.partition("\n")[0] for line in why[:4]]
    assert [row["success"] for row in table.rows] == [False] * 4 + [True] * 2
    assert work_of(experiment, tmp_path / "out").failed == 4
    # failed cases are left alone until they are asked for
    assert work_of(experiment, tmp_path / "out").todo == ()
    assert len(work_of(experiment, tmp_path / "out", retry_failed=True).todo) == 4
    again = sweep(experiment, tmp_path / "out", scheduler=scheduler, retry_failed=True, runner=stand_in("quick"))
    assert all(row["status"] != FAILED for row in again.rows)


def test_two_sweeps_do_not_write_to_one_store(experiment_file, tmp_path):
    with Store(tmp_path), pytest.raises(InputError, match="another sweep"):
        Store(tmp_path)
    Store(tmp_path).close()


def test_what_is_no_store_is_said_to_be_none(tmp_path):
    with pytest.raises(InputError, match="there is no store"):
        Store(tmp_path, read_only=True)
    (tmp_path / "results.sqlite").write_bytes(b"something else " * 100)
    with pytest.raises(InputError, match="not a store"):
        Store(tmp_path)


@pytest.mark.slow
def test_a_wrong_address_is_bad_input(experiment_file, tmp_path):
    experiment = load_experiment(experiment_file(TEXT % ("[0.4]", 1)))
    with pytest.raises(InputError, match="no Dask scheduler answers"):
        sweep(experiment, tmp_path, scheduler="tcp://127.0.0.1:9")
    with pytest.raises(InputError, match="--workers 0"):
        sweep(experiment, tmp_path, workers=0)
