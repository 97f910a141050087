"""What is made of the rows: rates and intervals, tables, files, the page, before and after, thresholds."""

import csv
import json
import re
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy.stats import binom

from mcplan.errors import InputError
from mcplan.sweep import case as identity, figures, report
from mcplan.sweep.case import code_version
from mcplan.sweep.columns import with_flags
from mcplan.sweep.compare import REGRESSION, compare, earlier_results
from mcplan.sweep.condition import judge, parse_threshold
from mcplan.sweep.experiment import load_experiment
from mcplan.sweep.report import write_report
from mcplan.sweep.results import collect_results, groups
from mcplan.sweep.store import DONE, FAILED, CaseOutcome, Store
from mcplan.sweep.tables import aggregate, mean_interval, tables_of, wilson
from mcplan.version import __version__

TEXT = """\
scenarios: [sway, step]
grid: {environment.friction: [0.4, 0.6], simulation.physics: [qp, contact]}
seeds: {count: 5}
collect: [success, plan_torque, stage]
figures:
  - {x: environment.friction, y: success, by: scenario}
  - {x: scenario, y: plan_torque, by: simulation.physics}
  - {x: environment.friction, y: scenario, value: success}
tables:
  - {rows: [scenario], values: [plan_torque], by: simulation.physics, each: [success], title: over friction}
"""


def outcome(case):
    """A result by design: slippery steps fail in `contact`."""
    friction, physics = case.fields["environment.friction"], case.fields["simulation.physics"]
    good = not (case.scenario == "step" and physics == "contact" and friction < 0.5)
    row = {"success": good, "planned": True, "plan_torque": friction + 0.01 * case.seed, "plan_time": 0.1}
    row |= {"stage": "" if good else "simulation", "failure": "" if good else "fell | <b>here</b>"}
    return CaseOutcome(DONE, row)


def fill(experiment, directory, change=lambda case, outcome: outcome):
    with Store(directory) as store:
        for case in experiment.cases:
            store.put(case, change(case, outcome(case)), code_version())
        return collect_results(experiment, store)


@pytest.fixture
def results(experiment_file, tmp_path):
    return fill(load_experiment(experiment_file(TEXT)), tmp_path / "out")


@pytest.mark.parametrize("count", [1, 7, 40])
def test_the_wilson_interval_is_where_the_score_test_turns(count):
    z = 1.959963984540054
    for successes in range(count + 1):
        interval = wilson(successes, count)
        assert 0 <= interval.low <= interval.value <= interval.high <= 1
        for end in (interval.low, interval.high):
            if 1e-12 < end < 1 - 1e-12:  # at no or only successes one end is 0 or 1
                assert abs(interval.value - end) == pytest.approx(z * np.sqrt(end * (1 - end) / count), rel=1e-9)


def test_the_wilson_interval_covers_the_rate_about_as_often_as_it_says():
    count, covered = 50, []
    for rate in np.linspace(0.02, 0.98, 49):
        inside = [wilson(k, count).low <= rate <= wilson(k, count).high for k in range(count + 1)]
        covered.append(float(binom.pmf(range(count + 1), count, rate) @ inside))
    assert np.mean(covered) == pytest.approx(0.95, abs=0.01)


def test_the_interval_of_a_mean_covers_it_as_often_as_it_says():
    rng = np.random.default_rng(2)
    inside = [i.low <= 3 <= i.high for i in (mean_interval(rng.normal(3, 2, 6)) for _ in range(2000))]
    assert np.mean(inside) == pytest.approx(0.95, abs=3 * np.sqrt(0.95 * 0.05 / 2000))


def test_cells_say_rates_the_worst_and_medians():
    assert aggregate("success", [True, True, False]) == "2/3 (21–94 %)"
    assert aggregate("worst_friction_margin", [3.0, 1.5, 2.0]) == "1.5"
    assert aggregate("worst_torque_ratio", [0.3, 0.8, None]) == "0.8"
    assert aggregate("stances", [3, 9, 4]) == "4"
    assert aggregate("stage", ["plan", "plan", "simulation", ""]) == "2 × plan; 1 × simulation"
    assert aggregate("stage", [*"abcde", "b"]) == "2 × b; 1 × a; 1 × c; 2 others"
    assert aggregate("stage", ["", ""]) == "none"
    assert aggregate("success", [None]) == "–"


def test_the_table_has_a_row_per_scenario_and_a_column_per_back_end(results):
    (table,) = tables_of(results)
    assert table.header == ("scenario", "plan_torque", "qp", "contact")
    assert table.rows == (
        ("sway", "0.64", "10/10 (72–100 %)", "10/10 (72–100 %)"),
        ("step", "0.64", "10/10 (72–100 %)", "5/10 (24–76 %)"),
    )
    assert table.markdown().splitlines()[2:4] == ["| scenario | plan_torque | qp | contact |", "|---|---|---|---|"]


def test_back_ends_stand_in_their_order_whichever_fails_first(experiment_file, tmp_path):
    def change(case, found):
        good = (case.scenario, case.fields["simulation.physics"]) not in {("sway", "contact"), ("step", "qp")}
        return replace(found, result=found.result | {"success": good})

    text = TEXT.replace("title: over friction", "title: what broke, where: not success")
    (table,) = tables_of(fill(load_experiment(experiment_file(text)), tmp_path / "out", change))
    assert table.header == ("scenario", "plan_torque", "qp", "contact")
    assert [row[0] for row in table.rows] == ["sway", "step"]


def test_ratios_are_of_a_case_to_the_same_case_and_their_median_counts(experiment_file, tmp_path):
    paces = "[slow, {force: 0.5, torque: 0.8}]"
    text = f"""\
scenarios: [sway]
grid: {{control.pace: {paces}}}
seeds: {{count: 3}}
tables:
  - {{rows: [scenario], by: control.pace, each: [duration], against: slow, where: success}}
"""

    def lasting(case):
        slow = case.fields["control.pace"] == "slow"
        row = {"success": slow or case.seed != 2, "duration": (10.0, 20.0, 40.0)[case.seed]}
        return CaseOutcome(DONE, row if slow else row | {"duration": row["duration"] * (0.5, 0.25, 0.1)[case.seed]})

    experiment = load_experiment(experiment_file(text))
    with Store(tmp_path / "out") as store:
        for case in experiment.cases:
            store.put(case, lasting(case), code_version())
        (table,) = tables_of(collect_results(experiment, store))
    assert table.header == ("scenario", "slow", "force 0.5, torque 0.8")
    assert table.rows == (("sway", "1", "0.375"),)  # what has not succeeded at both paces does not count


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ("by: simulation.physics, each: [duration], against: qq", "no value of `simulation.physics`; there are: qp"),
        ("by: scenario, each: [duration], against: walk", "walk: no value of `scenario`; there are: sway, step"),
        ("by: scenario, each: [success], against: sway", "`success` is not a number"),
        ("values: [duration], against: sway", "`against` is one of the values of `by`, which is not given"),
    ],
)
def test_ratios_are_to_what_there_is_and_of_numbers(experiment_file, table, problem):
    text = f"{TEXT}  - {{rows: [seed], {table}}}\n"
    with pytest.raises(InputError, match=re.escape(problem)):
        load_experiment(experiment_file(text))


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.sources, self.open, self.tags = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.sources += [value for name, value in attributes if name in ("src", "href")]


def test_the_files_hold_every_row_and_the_page_needs_nothing_else(results, tmp_path):
    paths = {path.name: path for path in write_report(results, [], None, tmp_path / "out")}
    rows = list(csv.DictReader(paths["results.csv"].read_text().splitlines()))
    assert len(rows) == len(results) == 40
    columns = pq.read_table(paths["results.parquet"]).to_pydict()
    for k, row in enumerate(results.rows):
        for name, value in row.items():
            assert columns[name][k] == value
            assert rows[k][name] == value if isinstance(value, str) else json.loads(rows[k][name]) == value
    page = Page(paths["report.html"].read_text())
    assert page.tags.count("img") == 3
    assert all(source.startswith("data:image/png;base64,") for source in page.sources)
    assert "b" not in page.tags  # the text of a failure is text
    assert paths["tables.md"].read_text().startswith("**over friction**")
    assert len([name for name in paths if name.endswith(".png")]) == 3


def test_what_no_longer_holds_is_a_regression(results, tmp_path):
    def worse(case, good):
        if case.scenario == "sway" and case.seed == 4 and case.fields["simulation.physics"] == "qp":
            return CaseOutcome(DONE, good.result | {"success": False})
        return CaseOutcome(DONE, good.result | {"plan_torque": 1.2 * good.result["plan_torque"]})

    now = fill(results.experiment, tmp_path / "now", worse)
    old = earlier_results(tmp_path / "out", tmp_path / "now")
    same = compare(old, results)
    assert (same.matched, same.new, same.gone, same.regressions) == (40, 0, 0, ())
    assert {row[-1] for row in same.table.rows} == {""}
    comparison = compare(old, now)
    assert len(comparison.regressions) == 2
    assert all("scenario sway" in text and "seed 4" in text for text in comparison.regressions)
    marks = {row[:2]: row[-1] for row in comparison.table.rows}
    assert marks["sway", "success"] == REGRESSION
    assert marks["step", "success"] == ""
    assert marks["step", "plan_torque"] == "worse"
    back = compare(earlier_results(tmp_path / "now", tmp_path / "out"), results)
    assert back.regressions == ()
    assert ("sway", "success", "18/20", "20/20", "better") in back.table.rows


@pytest.mark.parametrize(
    ("expect", "passed"),
    [
        ({"success": ">= 0.87"}, [True]),
        ({"success": ">= 0.88"}, [False]),
        ({"plan_torque": "max < 0.65"}, [True]),
        ({"plan_torque": "min > 0.4"}, [False]),
        ({"plan_torque": "median == 0.52"}, [True]),
        ({"worst_slip": "<= 1"}, [False]),  # nothing was measured
    ],
)
def test_thresholds_hold_or_not(expect, passed, results):
    spec = results.experiment.spec.model_copy(update={"expect": expect})
    assert [verdict.passed for verdict in judge(spec, results.rows, results.experiment.known)] == passed


def test_a_flag_counts_as_false_where_a_case_has_not_got_so_far(results):
    rows = [{"success": False, "plan_torque": None}] * 9 + [{"success": True, "goal_reached": True, "plan_torque": 0.5}]
    spec = results.experiment.spec.model_copy(update={"expect": {"goal_reached": ">= 0.9", "plan_torque": "max < 0.6"}})
    flag, margin = judge(spec, [with_flags(row, spec.steps) for row in rows], results.experiment.known)
    assert not flag.passed
    assert flag.text.startswith("goal_reached: mean 0.1 of 10 of 10 cases")
    assert margin.passed
    assert "of 1 of 10 cases" in margin.text


KILLED = CaseOutcome(FAILED, {"success": False, "stage": "case", "cause": "its process died"})


def test_a_killed_case_counts_in_every_rate_and_as_a_regression(experiment_file, tmp_path, monkeypatch):
    """It has no flag but ``success``, which is compared though the table does not show it."""
    text = """\
scenarios: [sway]
grid: {environment.friction: [0.4, 0.6]}
seeds: {count: 2}
collect: [planned]
figures: [{x: environment.friction, y: planned}, {x: environment.friction, y: seed, value: planned}]
tables: [{rows: [scenario], values: [planned, goal_reached]}, {rows: [environment.friction], values: [planned]}]
"""
    good = CaseOutcome(DONE, {"success": True, "planned": True, "goal_reached": True})
    killed = {(0.4, 0), (0.4, 1), (0.6, 1)}

    def some(case, _):
        return KILLED if (case.fields["environment.friction"], case.seed) in killed else good

    experiment = load_experiment(experiment_file(text))
    monkeypatch.setattr("tests.sweep.test_results.outcome", lambda case: good)
    fill(experiment, tmp_path / "old")
    results = fill(experiment, tmp_path / "now", some)
    whole, split = tables_of(results)
    assert [cell.partition(" ")[0] for cell in whole.rows[0]] == ["sway", "1/4", "1/4"]
    assert [row[1].partition(" ")[0] for row in split.rows] == ["0/2", "1/2"]
    drawn = []
    monkeypatch.setattr(figures, "curve_chart", lambda curves, *_, **__: drawn.append(curves[0].value.tolist()))
    monkeypatch.setattr(figures, "heat_chart", lambda values, *_, **__: drawn.append(values.tolist()))
    figures.figures_of(results)
    assert drawn == [[0.0, 0.5], [[0.0, 1.0], [0.0, 0.0]]]
    comparison = compare(earlier_results(tmp_path / "old", tmp_path / "now"), results)
    assert [row[1:] for row in comparison.table.rows] == [
        ("success", "4/4", "1/4", REGRESSION), ("planned", "4/4", "1/4", REGRESSION),
    ]  # fmt: skip
    assert len(comparison.regressions) == 2 * 3


def test_flags_of_a_run_are_missing_by_design_where_plans_alone_are_made(experiment_file, tmp_path, monkeypatch):
    text = "scenarios: [sway]\nsteps: plan\ncollect: [certified, goal_reached]\nseeds: {count: 2}\n"
    monkeypatch.setattr("tests.sweep.test_results.outcome", lambda case: KILLED)
    (table,) = tables_of(fill(load_experiment(experiment_file(text)), tmp_path / "out"))
    assert table.header == ("scenario", "certified", "goal_reached")
    assert [cell.partition(" ")[0] for cell in table.rows[0]] == ["sway", "0/2", "–"]


def test_rows_of_a_number_and_of_a_truth_are_two_groups():
    found = groups([{"a": value} for value in (1, True, 1.0, [1], None, True)], ["a"])
    assert [(key, len(rows)) for key, rows in found.items()] == [
        ((1,), 2), (("yes",), 2), (("[1]",), 1), ((None,), 1),
    ]  # fmt: skip


def test_ratios_are_to_what_differs_along_the_axis_alone(experiment_file, tmp_path):
    """Of fields in parallel the others differ with the one that the columns are for."""
    text = """\
scenarios: [sway]
zip: {control.gains.com_kp: [10, 20], control.timing.com_speed: [1, 2]}
seeds: {count: 2}
tables: [{rows: [scenario], by: control.gains.com_kp, each: [duration], against: 10}]
"""
    experiment = load_experiment(experiment_file(text))
    with Store(tmp_path / "out") as store:
        for case in experiment.cases:
            row = {"success": True, "duration": case.fields["control.gains.com_kp"] * (1.0 + case.seed)}
            store.put(case, CaseOutcome(DONE, row), code_version())
        (table,) = tables_of(collect_results(experiment, store))
    assert table.rows == (("sway", "1", "2"),)


def test_the_axis_of_a_figure_is_of_numbers_for_all_its_curves_or_for_none(monkeypatch):
    drawn = []
    monkeypatch.setattr(figures, "curve_chart", lambda curves, *_, **__: drawn.extend(curves))
    rows = [{"x": x, "by": by, "y": 1.0} for x, by in ((1, "a"), (2, "a"), (2, "b"), ("none", "b"))]
    spec = SimpleNamespace(x="x", y="y", by="by", value=None, title="")
    figures._curves(spec, rows)
    assert [curve.x for curve in drawn] == [["1", "2"], ["2", "none"]]
    drawn.clear()
    figures._curves(spec, rows[:3])
    assert [curve.x for curve in drawn] == [[1, 2], [2]]


@pytest.mark.parametrize("text", ["", "0.9", ">= x", "=> 0.9", "best > 1", ">= 0.9 mean"])
def test_what_is_no_threshold_is_refused(text):
    with pytest.raises(InputError):
        parse_threshold(text)


def test_a_condition_chooses_the_cases_of_a_threshold(experiment_file, tmp_path):
    text = TEXT + "expect:\n  - {where: environment.friction > 0.5, columns: {success: '>= 1'}}\n"
    results = fill(load_experiment(experiment_file(text)), tmp_path / "out")
    (verdict,) = judge(results.experiment.spec, results.rows, results.experiment.known)
    assert verdict.passed
    assert re.search("of 20 of 20 cases where environment.friction > 0.5", verdict.text)


def test_a_table_says_of_what_version_and_which_seeds_it_is(results, tmp_path, monkeypatch):
    monkeypatch.setattr(report, "commit", lambda: "0123456789+")
    assert report.origin(results) == f"mcplan {__version__}, commit 0123456789+, seeds 0 to 4"
    write_report(results, [], None, tmp_path)
    for name in ("tables.md", "report.html"):
        assert report.origin(results) in (tmp_path / name).read_text()
    monkeypatch.setattr(report, "commit", lambda: "")
    assert f"code {code_version()}" in report.origin(results)


def test_the_commit_is_that_of_the_checkout_of_the_package_and_of_no_other(tmp_path, monkeypatch):
    def git(*arguments):
        identity_of_somebody = ["-c", "user.name=a", "-c", "user.email=a@b"]
        command = ["git", "-C", str(tmp_path), *identity_of_somebody, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    package = tmp_path / "mcplan"
    (package / "sweep").mkdir(parents=True)
    monkeypatch.setattr(identity, "__file__", str(package / "sweep" / "identity.py"))
    commit = identity.commit.__wrapped__
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert commit() == ""
    git("init", "-q")
    (package / "version.py").write_text("1")
    assert commit() == ""  # an installed copy in a checkout of something else
    git("add", ".")
    git("commit", "-q", "-m", "first")
    assert commit() == git("rev-parse", "HEAD")[:10]
    (package / "version.py").write_text("2")
    assert commit() == git("rev-parse", "HEAD")[:10] + "+"


def test_each_field_of_a_heat_map_is_the_value_of_its_row_and_column(monkeypatch):
    drawn = []
    monkeypatch.setattr(figures, "heat_chart", lambda *arguments, **options: drawn.append(arguments))
    rows = [{"a": a, "b": b, "c": 10.0 * a + b} for b in (3, 1, 2) for a in (2, 1) if (a, b) != (2, 3)]
    figures._heat(SimpleNamespace(x="a", y="b", value="c", title=""), rows)
    ((values, x, y, *_),) = drawn
    assert (x, y) == (["1", "2"], ["1", "2", "3"])
    np.testing.assert_array_equal(values, [[11.0, 21.0], [12.0, 22.0], [13.0, np.nan]])
