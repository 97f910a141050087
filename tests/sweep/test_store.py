"""The store keeps every row; of a configuration the newest counts, and what became worse is told by its sense."""

from types import SimpleNamespace

import pytest

from mcplan.errors import InputError
from mcplan.sweep import store as module
from mcplan.sweep.columns import COLUMNS
from mcplan.sweep.command import estimate
from mcplan.sweep.compare import MIN_RELATIVE_CHANGE, compare, earlier_results
from mcplan.sweep.results import Results
from mcplan.sweep.store import DONE, FAILED, CaseOutcome, Store


def case(identity, configuration, **fields):
    return SimpleNamespace(id=identity, configuration=configuration, fields={"scenario": "walk", **fields})


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test sets, s since 1970."""
    now = SimpleNamespace(value=100.0)
    monkeypatch.setattr(module, "time", SimpleNamespace(time=lambda: now.value))
    return now


def test_of_a_configuration_the_newest_row_counts_whatever_the_hashes(tmp_path, clock):
    with Store(tmp_path) as store:
        for finished, identity in ((300.0, "a"), (100.0, "z"), (200.0, "m")):
            clock.value = finished
            store.put(case(identity, "one", seed=3), CaseOutcome(DONE, {"nodes": int(finished)}), "code")
        clock.value = 50.0
        store.put(case("b", "two"), CaseOutcome(FAILED, {"failure": "killed"}), "code")
        newest = dict(store.latest())
        assert newest["one"] == {"scenario": "walk", "seed": 3, "nodes": 300, "status": DONE}
        assert newest["two"] == {"scenario": "walk", "failure": "killed", "status": FAILED}
        assert store.statuses() == {"a": DONE, "z": DONE, "m": DONE, "b": FAILED}
        assert store.configurations() == {"one", "two"}
        # the same case again takes the place of its row
        clock.value = 400.0
        store.put(case("z", "one", seed=3), CaseOutcome(DONE, {"nodes": 7}), "code")
        assert dict(store.latest())["one"]["nodes"] == 7
        assert store.results(["z", "b", "unknown"]) == {
            "z": {"nodes": 7, "status": DONE},
            "b": {"failure": "killed", "status": FAILED},
        }


def test_a_code_may_be_left_out_and_the_newest_of_the_others_counts(tmp_path, clock):
    with Store(tmp_path) as store:
        for finished, code in ((100.0, "oldest"), (200.0, "older"), (300.0, "now")):
            clock.value = finished
            store.put(case(code, "one"), CaseOutcome(DONE, {"nodes": int(finished)}), code)
        store.put(case("b", "new"), CaseOutcome(DONE, {}), "now")
        assert {key: row["nodes"] for key, row in store.latest(excluded_code="now")} == {"one": 200}
        assert set(dict(store.latest())) == {"one", "new"}


def test_the_mean_time_is_over_all_cases_and_tells_how_long_the_rest_takes(tmp_path):
    with Store(tmp_path) as store:
        assert store.mean_seconds() == (0.0, 0)
        for k, seconds in enumerate((10.0, 20.0, 60.0)):
            store.put(case(str(k), str(k)), CaseOutcome(DONE, {}, seconds), "code")
        mean, count = store.mean_seconds()
    assert (mean, count) == (30.0, 3)
    todo = [SimpleNamespace(physics=physics) for physics in ("qp", "contact", "mujoco", "qp")]
    experiment = SimpleNamespace(spec=SimpleNamespace(steps="plan"))
    assert "about 60 s on 2 workers (from finished cases)" in estimate(
        experiment, SimpleNamespace(seconds=mean, todo=todo), 2
    )
    assert estimate(experiment, SimpleNamespace(seconds=None, todo=todo), 1).startswith(
        "about 8 s on 1 worker (a guess"
    )
    experiment.spec.steps = "verify"  # and simulation: 10, 40, 20 and 10 s more
    assert estimate(experiment, SimpleNamespace(seconds=None, todo=todo), 1).startswith("about 88 s on 1 worker")


WORSE = {"margin": -1.0, "ratio": 1.0, "clock": 1.0}
"""Which way a column of a kind gets worse."""


@pytest.mark.parametrize(
    ("name", "kind"), [("plan_friction", "margin"), ("worst_slip", "ratio"), ("plan_time", "clock"), ("nodes", "count")]
)
def test_a_mean_is_marked_when_it_got_worse_by_more_than_is_noticed(tmp_path, name, kind):
    assert COLUMNS[name].kind == kind
    with Store(tmp_path) as store:
        store.put(case("old", "one"), CaseOutcome(DONE, {name: -4.0 if kind == "margin" else 4.0}), "code")
    before = -4.0 if kind == "margin" else 4.0  # a margin below zero gets worse downwards too
    noticed = MIN_RELATIVE_CHANGE.get(kind, 0.5) * abs(before)
    for change, marked in ((1.1, True), (0.9, False), (-1.1, False)):
        after = before + change * noticed * WORSE.get(kind, 1.0)
        experiment = SimpleNamespace(
            cases=[case("new", "one")], fields=("scenario",), spec=SimpleNamespace(collect=(name,), steps="plan")
        )
        row = {"case": "new", "scenario": "walk", "status": DONE, name: after}
        before_it = earlier_results(tmp_path, tmp_path / "now")
        ((_, column, old, new, mark),) = compare(before_it, Results(experiment, (row,))).table.rows
        assert (column, old, new) == (name, f"{before:.4g}", f"{after:.4g}")
        assert mark == ("worse" if marked and kind != "count" else "")


def test_a_directory_that_cannot_be_written_to_is_bad_input_and_not_said_to_be_taken(tmp_path):
    (tmp_path / "lock.sqlite").mkdir()  # as good as no permission, which an administrator always has
    with pytest.raises(InputError, match="cannot be written to") as caught:
        Store(tmp_path)
    assert str(tmp_path) in str(caught.value)
    assert "another sweep" not in str(caught.value)
