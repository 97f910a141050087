"""mcplan bench from end to end, with tiny settings: what is in its table and its JSON. No word about speed."""

import json
import subprocess
import sys
from dataclasses import replace
from io import StringIO
from types import SimpleNamespace

import pytest

from mcplan.bench import closed_loop, kernels, report as table, waiting
from mcplan.bench.kernels import BATCHES, STATICS
from mcplan.bench.measure import measure, medians
from mcplan.bench.peers import Agreement
from mcplan.bench.report import KERNEL_RATIOS, BenchReport, Row
from mcplan.bench.settings import BenchSettings
from mcplan.cli import main as cli
from mcplan.robot.robot_file import load_robot

TINY = BenchSettings(
    rounds=2, ticks=12, plain_ticks=4, skipped=2, calls=3, repeats=2, batch=6, batch_repeats=1, bodies=(3, 6),
    points=(4, 8), growth_ticks=5, scenario="sway", steps=5, plans=("sway",), plan_ticks=5, walks=(), commands=False,
)  # fmt: skip


class Told:
    """A peer whose answers are known: TSID's are those of the compiled tick, moved by ``offset``."""

    def __init__(self, offset=0.0):
        self.offset, self.jobs = offset, []

    def reference_tick(self, job):
        from mcplan.bench.reference_tick import ReferenceTick, without_armature
        from mcplan.robot.robot_file import load_robot

        self.jobs.append(job)
        robot = without_armature(load_robot("hrp2"))
        vd, tau, _, _ = ReferenceTick(robot)(0.0)
        first = {
            "base_local": vd[:6].tolist(),
            "joints": dict(zip(robot.joint_names, (vd[6:] + self.offset).tolist(), strict=True)),
            "tau": dict(zip(robot.joint_names, tau.tolist(), strict=True)),
        }
        return {"peer": "tsid", "tick_us": 100.0, "tick_p99_us": 120.0, "first": first}

    def kernels(self, job):
        return {
            "peer": "pinocchio",
            "kernels_us": dict.fromkeys(KERNEL_RATIOS, 1.0),
            "batch_us": dict.fromkeys(job["batches"], 1.0),
            "growth_us": dict.fromkeys(job["chains"], 1.0),
        }

    def others_us(self, job):
        return {"dynibo": {"kernels_us": {"all_terms": 2.0}, "batch_us": dict.fromkeys(job["batches"][:1], 3.0)}}


@pytest.fixture(scope="module")
def plan():
    return closed_loop.prepare("sway", 20)


@pytest.fixture
def planned(monkeypatch, plan):
    monkeypatch.setattr(closed_loop, "prepare", lambda scenario, steps: plan)


@pytest.fixture
def report(planned):
    return measure(TINY, Told())


def text_of(report):
    from rich.console import Console

    console = Console(width=table.WIDTH, file=StringIO())
    console.print(table.render(report))
    return console.file.getvalue()


def test_json_has_the_promised_keys_and_table_every_row(report):
    document = json.loads(json.dumps(report.to_json()))
    assert document["tick_compiled_us"] > 0
    assert document["tick_plain_us"] > document["tick_compiled_us"]
    assert set(document["kernels_us"]) == set(KERNEL_RATIOS)
    assert set(document["batch_us"]) == set(BATCHES)
    assert all({"1"} <= set(found) <= {"1", "2"} for found in document["batch_us"].values())
    assert set(document["statics_us"]) == set(STATICS)
    assert document["closed_loop_real_time_factor"] > 0
    for loop in (document["closed_loop"], document["contact_loop"]):
        assert loop["tick_p999_us"] > loop["parts_us"]["control"]
    assert set(document["peers"]) == {"tsid", "pinocchio", "dynibo"}
    peers = {row["name"]: row["peer"] for row in document["rows"]}
    assert (peers["all_terms, dynibo"], peers["mass_matrix, dynibo"]) == (2.0, 3.0)
    assert set(document["growth"]["bodies_us"]) == {"3", "6"}
    assert set(document["growth"]["contact_points_us"]) == {"4", "8"}
    assert document["planning_s"]["sway"] > 1e-6 * document["plan_ticks_us"]["sway"] > 0.0
    assert document["failures"] == []
    text = text_of(report)
    assert max(map(len, text.splitlines())) <= 80
    for row in report.rows:
        assert row.name in text
    tick = report.rows[0]
    assert tick.ratio == pytest.approx(document["tick_compiled_us"] / 100.0)


def test_another_answer_than_the_peers_is_a_failure(planned):
    report = measure(TINY, Told(offset=0.01))
    assert len(report.failures) == 3
    assert "FAILED: first tick, compiled: accelerations differ" in text_of(report)


def test_exit_status_says_whether_the_answers_are_right(monkeypatch, planned, capsys, tmp_path):
    for offset, status in ((0.0, 0), (0.01, 1)):
        monkeypatch.setattr("mcplan.bench.peers.Peers.find", lambda directory, offset=offset: Told(offset))
        monkeypatch.setattr("mcplan.bench.settings.QUICK", replace(TINY, rounds=1))
        assert cli.main(["bench", "--quick", "--json", "--peers", str(tmp_path)]) == status
        out, error = capsys.readouterr()
        assert json.loads(out)["mcplan"] == 1
        assert "round 1 of 1" in error
        assert ("differ from TSID's" in error) is bool(status)


def test_missing_peers_are_bad_input(capsys, tmp_path):
    assert cli.main(["bench", "--peers", str(tmp_path)]) == 2
    assert "does not exist" in capsys.readouterr().err


def test_without_peers_the_only_ratio_is_that_to_mujoco_which_is_no_program_of_its_own(planned):
    report = measure(replace(TINY, rounds=1), None)
    assert report.to_json()["peers"] == {}
    assert {row.group for row in report.rows if row.ratio is not None} == {"physics alone"}
    assert "no peers" in text_of(report)


def test_two_cores_are_measured_where_there_are_two(monkeypatch):
    monkeypatch.setattr(kernels, "BATCHES", ("mass_matrix",))
    robot = load_robot("hrp2")
    for threads, cores in ((1, ["1"]), (2, ["1", "2"])):
        monkeypatch.setattr(kernels, "config", SimpleNamespace(NUMBA_NUM_THREADS=threads))
        found = kernels.batch_us(robot, "BODY", 4, 1)
        assert list(found["mass_matrix"]) == cores
        rows = list(BenchReport._batches(SimpleNamespace(pinocchio=None, others={}, settings=TINY, batch_us=found)))
        assert len(rows) == len(cores)


@pytest.mark.parametrize("quiet", [True, False])
def test_a_quiet_benchmark_says_nothing_of_how_far_it_is(monkeypatch, capsys, quiet):
    def told(settings, peers, say):
        say("round 1 of 1")
        return SimpleNamespace(failures=[], to_json=dict)

    monkeypatch.setattr("mcplan.bench.measure.measure", told)
    assert cli.main(["bench", "--json", *(["-q"] if quiet else [])]) == 0
    assert capsys.readouterr() == ("{}\n", "" if quiet else "round 1 of 1\n")


def test_medians_go_number_by_number():
    rounds = [{"a": {"b": 1.0}, "c": "x", "d": [1]}, {"a": {"b": 5.0}, "c": "x", "d": [2]}, {"a": {"b": 2.0}, "c": "y"}]
    rounds[2]["d"] = [3]
    assert medians(rounds) == {"a": {"b": 2.0}, "c": "x", "d": [1]}


def test_verdicts():
    assert Row("g", "n", 40.0, peer=100.0, required=1.0, aim=0.5).verdict == "aim"
    assert Row("g", "n", 90.0, peer=100.0, required=1.0, aim=0.5).verdict == "ok"
    assert Row("g", "n", 101.0, peer=100.0, required=1.0, aim=0.5).verdict == "short"
    assert Row("g", "n", 40.0, required=1.0, aim=0.5).verdict == ""
    assert Row("g", "n", 6.0, judged="value", required=5.0, aim=8.0, larger_is_better=True).verdict == "ok"
    assert Row("g", "n", 4.0, judged="value", required=5.0, aim=8.0, larger_is_better=True).verdict == "short"
    assert Agreement(1e-5, 1.0).holds


def test_the_real_time_factor_is_how_often_the_simulated_time_holds_that_of_the_clock():
    for simulated, taken, factor in ((3.0, 1.5, 2.0), (1.5, 3.0, 0.5)):
        assert closed_loop.ClosedLoop(simulated, taken, 3000, 900.0, {}).real_time_factor == factor


def test_commands_are_measured_in_processes_of_their_own(monkeypatch):
    loop = "import sys, time\nwhile time.process_time() < 0.3: pass\nsys.exit(len(sys.argv) > 1)"
    monkeypatch.setattr(waiting, "COMMANDS", {"loop": (sys.executable, "-c", loop)})
    assert waiting.commands_s(False, lambda name: None)["loop"] >= 0.28  # the system counts hundredths of a second
    monkeypatch.setattr(waiting, "COMMANDS", {"fails": (sys.executable, "-c", loop, "wrong")})
    with pytest.raises(subprocess.CalledProcessError):
        waiting.commands_s(False, lambda name: None)


def test_long_walks_stay_on_their_floor():
    times, plans = waiting.planning_s((), (4.5,))
    assert list(times) == ["walk, 4.5 m"]
    assert plans["walk, 4.5 m"].stances[-1].q[0] > 4.3
