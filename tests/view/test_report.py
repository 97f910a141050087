"""The report says what happened, what came close, and what is broken; of a failed search, why."""

import json
import re
from dataclasses import replace
from html import escape

import numpy as np
import pytest

import mcplan as mc
from mcplan.analysis.closest_calls import LABELS, closest_calls, share_of, split_time
from mcplan.analysis.readings import Readings
from mcplan.analysis.slowest_tick import slowest_ticks
from mcplan.certificate.report import Check, Report
from mcplan.certificate.verify import verify
from mcplan.cli.main import main
from mcplan.planning.search.tree import SearchTree
from mcplan.scenario.load import load_scenario
from mcplan.view.readings import run_charts
from mcplan.view.report_page import _clock_time, _with_time, failure_page, report_page, result_sentence
from tests import shared
from tests.sim.waving_box import waving_run


@pytest.fixture(scope="module")
def run():
    return shared.swaying()


@pytest.fixture(scope="module")
def report(run):
    return verify(run)


@pytest.fixture(scope="module")
def page(run, report):
    return report_page(run, report)


def broken(report, name="torque"):
    """The certificate with one check broken."""
    checks = tuple(
        replace(c, passed=False, value=1.25, failure=f"{name} of J is too much at t = 1.250 s") if c.name == name else c
        for c in report.checks
    )
    return Report(report.title, checks, report.values)


def test_the_answer_is_one_sentence_that_says_whether_it_counts(run, report):
    good = result_sentence(run, report)
    assert good == (
        f"hrp2 executed sway, {len(run.plan.stances)} stances in {len(run) * run.dt:.1f} s, reached its goal, "
        f"and all {sum(1 for c in report.checks if c.bound)} checks of the certificate hold."
    )
    assert "reached its goal in sway" in result_sentence(run, broken(report))
    assert "1 of" in result_sentence(run, broken(report))
    record = run.record.model_copy(update={"stopped": "no contact"})
    assert "stopped after" in result_sentence(replace(run, record=record), broken(report))
    fell = replace(broken(report), values=report.values | {"fell": True})
    assert result_sentence(run, fell).startswith("hrp2 fell while executing sway")


def test_the_page_holds_every_check_green_or_red_and_the_replay(page, run, report):
    for check in report.checks:
        assert f' data-head="check">{escape(check.name)}</td>' in page
    assert page.count('<tr class="pass">') == sum(1 for c in report.checks if c.bound)
    assert '<tr class="fail">' not in page
    assert '<iframe title="replay" srcdoc="' in page
    assert not re.search(r"""<[^>]*\s(src|href)\s*=\s*["']?(https?:)?//""", page)
    red = report_page(run, broken(report), "<p>replay</p>")
    assert red.count('<tr class="fail">') == 1
    # what is broken is said first, and its time leads into the replay
    assert red.index("is too much at") < red.index("Closest calls")
    assert '<a class="time" data-t="1.2500">t = 1.250 s</a>' in red


def test_numbers_stay_with_their_units_and_every_cell_says_its_column(page):
    cells = re.findall(r"<td([^>]*)>(.*?)</td>", page)
    assert {text for attributes, text in cells if "data-head" not in attributes} == {""}
    numbers = {text for attributes, text in cells if 'class="number"' in attributes}
    assert any(text.endswith(" s") for text in numbers)
    assert any(text.endswith("%") or text.endswith(" N") for text in numbers)
    assert not any(text.startswith("point ") or "of the limit" in text for text in numbers)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(4.34e-6, "4.34 µs"), (9.996e-4, "1 ms"), (0.4881, "488 ms"), (55.7, "55.7 s"), (5570.0, "5570 s")],
)
def test_clock_times_have_the_unit_that_suits_them(seconds, text):
    assert _clock_time(seconds) == text


def test_closest_calls_are_those_of_the_certificate_the_worst_first(run, report):
    calls = {call.quantity: call for call in closest_calls(run, report)}
    torque = next(check for check in report.checks if check.name == "torque")
    assert calls["joint torque"].share == pytest.approx(torque.value)
    assert calls["joint torque"].where in run.record.joints
    position = next(check for check in report.checks if check.name == "position")
    joint = run.record.joints.index(calls["joint position"].where)
    lower, upper = (run.record.robot.limit(name)[joint] for name in ("lower", "upper"))
    assert calls["joint position"].share == pytest.approx(1 - 2 * position.value / (upper - lower))
    push = min(stance.margins["equilibrium"] for stance in run.plan.stances)
    assert calls["push that a stance resists"].value == f"{push:.0f} N"
    shares = [call.share for call in closest_calls(run, report) if call.share is not None]
    assert shares == sorted(shares, reverse=True)
    assert closest_calls(run, broken(report))[0].quantity == "joint torque"


def test_grips_are_among_the_closest_calls_and_every_kind_is_a_line_that_there_is():
    gripped = waving_run(tip="grasp")
    certificate = verify(gripped)
    force = next(check for check in certificate.checks if check.name == "grasp force")
    calls = {call.quantity: call for call in closest_calls(gripped, certificate)}
    assert calls["force on a grasp"].share == pytest.approx(force.value)
    lines = {check.name for check in (*certificate.checks, *verify(waving_run()).checks)}
    assert LABELS.keys() - {"normal force"} <= lines  # that is of contacts with a limit


def test_what_is_beyond_a_limit_by_no_more_than_the_tolerance_is_not_drawn_as_broken(run, report):
    for passed in (True, False):
        checks = tuple(
            replace(check, value=-1e-3, passed=passed) if check.name == "position" else check for check in report.checks
        )
        calls = {call.quantity: call for call in closest_calls(run, replace(report, checks=checks))}
        share = calls["joint position"].share
        assert share == 1.0 if passed else share > 1.0


def test_a_margin_of_zero_is_the_worst_and_an_amount_of_zero_is_none(run, report):
    margins = [stance.margins | {"equilibrium": float(k)} for k, stance in enumerate(run.plan.stances)]
    stances = tuple(replace(s, margins=m) for s, m in zip(run.plan.stances, margins, strict=True))
    checks = (
        Check("clearance", 0.0, "m", ">= -0.0001", True, "LEG and ARM at t = 1.000 s"),
        Check("unplanned contact", 0.0, "s", "<= 0", True),
    )
    found = closest_calls(replace(run, live_plan=replace(run.plan, stances=stances)), replace(report, checks=checks))
    calls = {call.quantity: call for call in found}
    assert calls.keys() == {"clearance", "push that a stance resists"}
    assert calls["clearance"].value == "0 mm"
    assert (calls["push that a stance resists"].value, calls["push that a stance resists"].where) == (
        "0 N", "stance 0 of the plan, at rest",
    )  # fmt: skip


def test_a_joint_that_slides_comes_within_millimetres_of_its_limit(run, report):
    check = Check("position", 0.012, "m from the limit", ">= 0", True, "rail, t = 0.100 s")
    (call,) = (c for c in closest_calls(run, replace(report, checks=(check,))) if c.quantity == "joint position")
    assert (call.value, call.where, call.t) == ("12 mm from the limit", "rail", 0.1)


def test_the_time_of_a_line_is_the_link_and_nothing_else_of_it():
    text = "left_knee_joint = 2.9 rad at t = 5.000 s, outside"
    assert _with_time(text) == 'left_knee_joint = 2.9 rad at <a class="time" data-t="5.0000">t = 5.000 s</a>, outside'
    assert _with_time("joint = 5.000 s") == "joint = 5.000 s"


def test_times_and_shares_are_read_from_the_lines():
    assert split_time("left_sole at t = 14.613 s") == ("left_sole", 14.613)
    assert split_time("RLEG_JOINT3, t = 14.097 s") == ("RLEG_JOINT3", 14.097)
    assert split_time("left_sole on floor") == ("left_sole on floor", None)
    line = Check("slip", 0.0005, "m", "<= 0.001", True)
    assert share_of(line) == pytest.approx(0.5)
    assert share_of(replace(line, bound=">= 0")) is None
    assert share_of(replace(line, bound="<= 0")) is None


def test_readings_are_the_worst_of_their_interval(run):
    readings = Readings(run)
    data = run_charts(readings)
    assert json.dumps(data, allow_nan=False)
    torque = np.abs(run.tau) / run.record.robot.limit("torque")
    curve = data["charts"][1]["curves"][0]
    assert max(curve["values"]) == pytest.approx(100 * torque.max(), abs=0.06)
    worst = int(np.argmax(curve["values"]))
    assert curve["whose"][worst] == run.record.joints[int(torque.max(axis=0).argmax())]
    total = next(c for c in data["charts"][0]["curves"] if c["name"] == "all")["values"]
    assert total == pytest.approx(
        np.linalg.norm(run.wrench[readings.sample_indices, :, :3].sum(axis=1), axis=1), abs=0.06
    )
    assert len(data["t"]) == len(total) <= 600


def test_the_slowest_ticks_are_named_once_each(run):
    ticks = slowest_ticks(run)
    assert ticks[0].time == run.timing["control"].max()
    assert [tick.time for tick in ticks] == sorted((tick.time for tick in ticks), reverse=True)
    times = [tick.t for tick in ticks]
    assert all(abs(a - b) > 0.02 for i, a in enumerate(times) for b in times[:i])
    assert slowest_ticks(replace(run, timing={})) == []


def test_a_failed_search_is_reported_with_its_reasons():
    scenario = load_scenario("sway")
    start = scenario.start
    tree = SearchTree()
    tree.add_node(None, "start", start.contacts, start.q, 0.0, 3.0)
    tree.reject(0, "move <left_sole>", "reach", ())
    page = failure_page(scenario, "no plan within the budget\n<b>step6</b> is too high", tree)
    assert "No plan was found for sway" in page
    assert "<li>&lt;b&gt;step6&lt;/b&gt; is too high</li>" in page
    assert '<iframe title="replay"' in page
    assert "<iframe" not in failure_page(scenario, "no posture", None)


def test_the_command_and_the_function_write_it_for_a_run_that_is_there(run, tmp_path, capsys):
    run.save(tmp_path / "run.npz")
    assert main(["report", str(tmp_path)]) == 0
    first = (tmp_path / "report.html").read_text()
    assert "hrp2 executed sway" in first
    assert main(["report", str(tmp_path)]) == 2  # it is kept
    assert "exists and is kept" in capsys.readouterr().err
    assert mc.save_report(run, tmp_path / "new" / "mine.html").read_text().count("<iframe") == 1
    with pytest.raises(mc.InputError, match="save_report"):
        mc.save_report(run.plan, tmp_path / "plan.html")


def test_run_writes_a_report_when_there_is_no_plan(tmp_path, capsys):
    status = main(["run", "stairs", "--set", "planner.max_nodes=1", "-o", str(tmp_path / "out"), "-q"])
    assert status == 1
    assert "report.html" in capsys.readouterr().err
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "plan.tree.json", "report.html", "scenario.yaml",
    ]  # fmt: skip
    assert "No plan was found for stairs" in (tmp_path / "out" / "report.html").read_text()
