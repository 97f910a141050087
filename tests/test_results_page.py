"""The page of results is made from finished measurements: each figure from its source, with commit and day."""

import json
from types import SimpleNamespace

import pytest

from mcplan.errors import InputError
from mcplan.sweep.experiment import load_experiment
from mcplan.sweep.store import DONE, FAILED, CaseOutcome, Store
from tests.pages import ROOT
from tests.test_documentation import extension

PAGE = ROOT / "docs" / "results.md"
GOOD = {"success": True, "planned": True, "certified": True, "stances": 12, "plan_clearance": 0.003, "plan_time": 2.0}


@pytest.fixture(scope="module")
def maker():
    return extension("results_page")


def filled(directory, cases, code="new", commit="abc123"):
    """Put cases into a store: (scenario, physics, seed, result)."""
    with Store(directory) as store:
        store.note_code(code, commit)
        for number, (scenario, physics, seed, result) in enumerate(cases):
            fields = {"scenario": scenario, "simulation.physics": physics, "seed": seed}
            case = SimpleNamespace(id=f"{code}{number}", configuration=f"{number}", fields=fields)
            store.put(case, CaseOutcome(DONE, {**GOOD, **result}, 1.0), code)
    return directory


def put(experiment, directory, seeds, code="new", outcome=None):
    """Put all cases of an experiment, a dictionary, into a store, on these seeds."""
    with Store(directory) as store:
        for case in load_experiment({**experiment, "seeds": seeds}).cases:
            asked = case.configuration
            row = SimpleNamespace(id=f"{code}{asked}", configuration=asked, fields=case.fields)
            store.put(row, outcome or CaseOutcome(DONE, GOOD, 1.0), code)
    return directory


def test_a_sweep_becomes_its_tables_and_the_rest_of_the_page_stays(maker, tmp_path):
    """Cases of an older code do not count; scenarios stand in the order of the experiment."""
    filled(tmp_path, [("walk", "qp", 1, {"success": False, "cause": "of before"})] * 3, code="old", commit="0ld")
    broken = {"success": False, "cause": "fell in lift left_sole", "plan_clearance": 0.001}
    cases = [("table", "qp", 6, {}), ("walk", "mujoco", 5, broken), ("walk", "qp", 6, {}), ("walk", "qp", 5, broken)]
    filled(tmp_path, [*cases, ("walk", "qp", 7, {})])
    before = PAGE.read_text(encoding="utf-8")
    after = maker.rewritten(before, {"table": tmp_path})
    start, end = before.index("<!-- table"), before.index("<!-- end -->")
    assert after.startswith(before[:start])
    assert after.endswith(before[end:])
    made = after[start : after.index("<!-- end -->")]
    assert "| `walk` | 2/3 (21–94 %) | no |" in made.replace("  ", " ")
    assert made.index("| `walk`") < made.index("| `table`")
    assert "plan clearance (m)" in made
    assert "| `walk` | 3/3 (44–100 %) | 3/3 (44–100 %) | 12 |" in made
    assert "| 0.001 |" in made  # the worst of the plans that were carried out in qp
    assert "fell in lift left_sole" in made
    assert "of before" not in made
    assert "3 of 4 in `qp`" in made
    assert "5 cases, seeds 5 to 7; commit abc123, 20" in made
    assert maker.rewritten(after, {"table": tmp_path}) == after


def test_a_campaign_of_faults_becomes_a_table_of_the_tree_that_was_looked_at_last(maker, tmp_path):
    def row(tree, id, area, outcome):
        return json.dumps({"tree": tree, "commit": f"of {tree}", "id": id, "area": area, "outcome": outcome})

    rows = [row("old", "a", "qp", "survived"), json.dumps({"tree": "new", "clean": "tests/x.py"})]
    rows += [row("new", "b", "goals", "survived"), row("new", "c", "qp", "caught"), row("new", "d", "goals", "timeout")]
    rows += [row("new", "e", "goals", "not judged"), row("new", "e", "goals", "survived")]
    (tmp_path / "faults.jsonl").write_text("\n".join(rows) + "\n")
    page = maker.rewritten("<!-- faults -->\n<!-- end -->", {"faults": tmp_path / "faults.jsonl"})
    assert [line for line in page.splitlines() if line.startswith(("| g", "| q", "| a"))] == [
        "| goals | 1 | 3 |", "| qp | 1 | 1 |", "| all | 2 | 4 |",
    ]  # fmt: skip
    assert "commit of new, 20" in page
    (tmp_path / "none.jsonl").write_text("")
    with pytest.raises(InputError, match="no fault has been judged"):
        maker.rewritten("<!-- faults -->\n<!-- end -->", {"faults": tmp_path / "none.jsonl"})


def test_pushes_and_a_benchmark_become_a_sentence_and_a_table(maker, tmp_path):
    stood = [{"stopped": None, "qp_failures": 0, "steps": steps} for steps in (0, 0, 2)]
    rows = [*stood, {"stopped": "fell", "qp_failures": 2, "steps": 1}, {"exception": "x"}]
    (tmp_path / "pushes.jsonl").write_text("\n".join(map(json.dumps, rows)))
    row = {"group": "tick", "name": "compiled", "value": 77.12, "unit": "µs", "peer": 166.0, "ratio": 0.4645}
    plain = row | {"name": "plain", "value": 1611.4, "peer": None, "ratio": None}
    machine = {"cores": 2, "load_at_start": 0.1, "load_at_end": 1.26, "python": "3.11"}
    (tmp_path / "bench.json").write_text(json.dumps({"rows": [row, plain], "machine": machine}))
    sources = {"pushes": tmp_path / "pushes.jsonl", "bench": tmp_path / "bench.json"}
    made = maker.rewritten(PAGE.read_text(encoding="utf-8"), sources)
    assert "Of 5 pushes 3 are recovered (23.1–88.2 %), 1 of them by a step; 1 fall, 1 end in an exc" in made
    assert "| tick | compiled | 77.1 µs | 166 | 0.46 |" in made
    assert "| tick | plain | 1.61 ms |  |  |" in made
    assert "2 cores, load 0.1 to 1.3, Python 3.11; commit " in made


def test_pushes_on_a_robot_that_walks_are_told_by_back_end(maker, tmp_path):
    ways = [("contact", None), ("contact", "fell"), ("mujoco", None), ("contact", None)]
    rows = [{"physics": name, "stopped": why, "pace": "fast", "commit": "abc1234"} for name, why in ways]
    rows.append({"physics": "mujoco", "pace": "fast", "commit": "abc1234", "exception": "x"})
    (tmp_path / "walking.jsonl").write_text("\n".join(map(json.dumps, rows)))
    made = maker.rewritten(PAGE.read_text(encoding="utf-8"), {"walking": tmp_path / "walking.jsonl"})
    assert "At `fast` are recovered 2 of 3 in `contact` (20.8–93.9 %) and 1 of 2 in `mujoco`" in made
    assert "; commit abc1234, " in made


def test_jumps_become_a_row_for_each_run(maker, tmp_path):
    row = {"scenario": "walk", "pace": "fast", "physics": "qp", "torque": 1.5, "phase": "shift", "t": 2.345}
    row |= {"force": 12.4, "holds": True, "commit": "abc1234"}
    (tmp_path / "jumps.jsonl").write_text(f"{json.dumps(row)}\n{json.dumps(row | {'holds': False})}\n")
    made = maker.rewritten(PAGE.read_text(encoding="utf-8"), {"jumps": tmp_path / "jumps.jsonl"})
    assert "| `walk` | `fast` | qp | 1.50 | shift, t = 2.35 s | 12 | yes |" in made
    assert made.count("| 12 | no |") == 1
    assert "\ncommit abc1234, " in made
    (tmp_path / "none.jsonl").write_text("")
    with pytest.raises(InputError, match="no run has been looked at"):
        maker.rewritten("<!-- jumps -->\n<!-- end -->", {"jumps": tmp_path / "none.jsonl"})


def test_what_laws_of_time_cost_becomes_a_table(maker, tmp_path):
    row = {"scenario": "walk", "pace": "fast", "transitions": 11, "segments": 12, "laws": 10, "commit": "abc1234"}
    row |= {"median": 6.23, "most": 7.77, "part": 0.0712, "difference": 8.83e-8}
    none = {"scenario": "ladder", "pace": "fast", "transitions": 0, "laws": 0, "commit": "abc1234"}
    rows = [row, none, row | {"scenario": "stairs"}]
    (tmp_path / "laws.jsonl").write_text("\n".join(map(json.dumps, rows)))
    made = maker.rewritten("<!-- laws -->\n<!-- end -->", {"laws": tmp_path / "laws.jsonl"})
    assert "| `walk` | `fast` | 11 | 6.2 | 7.8 | 7.1 % | 9e-08 |" in made
    assert "| `ladder` | `fast` | no plan | – | – | – | – |" in made
    assert "\n20 laws; commit abc1234, 20" in made


def asking(tmp_path):
    """Return an experiment, whose file is made, and a page with a place for it."""
    asked = {"mcplan": 1, "name": "trial", "scenarios": ["sway"], "set": {"control.pace": "fast"}, "seeds": [0]}
    asked["grid"] = {"simulation.physics": ["qp", "contact"]}
    asked["tables"] = [{"rows": ["scenario"], "values": ["planned"]}]
    (tmp_path / "trial.yaml").write_text(json.dumps(asked))
    return asked, "<!-- trial: trial.yaml -->\n<!-- end -->"


def test_a_page_takes_the_rows_of_its_experiment_from_a_store_that_has_others_too(maker, tmp_path, capsys):
    asked, page = asking(tmp_path)
    store = put(asked, tmp_path / "out", [5, 6])
    put({**asked, "set": {"control.pace": "fastest"}}, store, [5, 7, 8])
    made = maker.rewritten(page, {"trial": store}, tmp_path)
    assert "4 cases, seeds 5, 6;" in made
    assert f"{store}: left out, as trial has no such configuration: 6 of sway" in capsys.readouterr().err


def test_a_store_of_what_has_changed_since_is_taken_as_it_is_unless_it_mixes(maker, tmp_path, capsys):
    asked, page = asking(tmp_path)
    store = put({**asked, "set": {"control.pace": "slow"}}, tmp_path / "out", [5, 6])
    assert "4 cases, seeds 5, 6;" in maker.rewritten(page, {"trial": store}, tmp_path)
    assert "made of other scenarios, robots or settings than trial has" in capsys.readouterr().err
    put({**asked, "set": {"control.pace": "fastest"}}, store, [6])
    with pytest.raises(InputError, match=r'mixes several configurations of .*"sway", "(qp|contact)", 6'):
        maker.rewritten(page, {"trial": store}, tmp_path)


def test_a_scenario_that_has_changed_since_stays_on_the_page_beside_one_that_has_not(maker, tmp_path, capsys):
    asked, page = asking(tmp_path)
    both = {**asked, "scenarios": ["sway", "step"]}
    (tmp_path / "trial.yaml").write_text(json.dumps(both))
    store = put(asked, tmp_path / "out", [5])
    put({**both, "set": {"control.pace": "slow"}}, store, [5])
    made = maker.rewritten(page, {"trial": store}, tmp_path)
    assert "| `step` | 2/2 " in made
    assert "| `sway` | 2/2 " in made
    assert capsys.readouterr().err.splitlines() == [
        f"{store}: made of other scenarios, robots or settings than trial has: step",
        f"{store}: left out, as trial has no such configuration: 2 of sway",
    ]
    put({**both, "scenarios": ["step"], "set": {"control.pace": "fastest"}}, store, [5])
    with pytest.raises(InputError, match=r'mixes several configurations of .*"step", .*, 5'):
        maker.rewritten(page, {"trial": store}, tmp_path)


def test_a_killed_case_counts_in_the_rates_of_a_page(maker, tmp_path):
    asked, page = asking(tmp_path)
    store = put(asked, tmp_path / "out", [5])
    put(asked, store, [6], outcome=CaseOutcome(FAILED, {"success": False, "stage": "case"}, 1.0))
    assert "| `sway` | 2/4 " in maker.rewritten(page, {"trial": store}, tmp_path)


def test_what_cannot_be_shown_is_said(maker, tmp_path):
    page = PAGE.read_text(encoding="utf-8")
    with pytest.raises(InputError, match="there is no store"):
        maker.rewritten(page, {"table": tmp_path})
    with pytest.raises(InputError, match="the store has a_scenario, which table does not"):
        maker.rewritten(page, {"table": filled(tmp_path, [("a_scenario", "qp", 1, {})])})


def test_a_page_takes_some_tables_or_a_sentence(maker, tmp_path):
    store = filled(tmp_path, [("walk", "qp", 1, {}), ("walk", "qp", 2, {"success": False, "cause": "fell"})])
    place = "Before.\n<!-- table: experiments/table.yaml, {} -->\n<!-- end -->\nAfter.\n"
    made = maker.rewritten(place.format("Plans, What broke"), {"table": store})
    assert made.index("posture calls") < made.index("| `walk` | fell |")
    assert "**" not in made
    made = maker.rewritten(place.format("in a sentence"), {"table": store})
    assert "|" not in made
    assert "1 of 2 in `qp` (9–91 %).\n2 cases, seeds 1, 2; commit abc123" in made.replace("\n\n", "\n")
    made = maker.rewritten(place.format("in a sentence by seed"), {"table": store})
    assert "All scenarios together: at `1` 1 of 1 in `qp` (21–100 %); at `2` 0 of 1 in `qp` (0–79 %)." in made
    later = [("walk", "qp", 1, {}), ("table", "qp", 1, {}), ("lean", "qp", 1, {"success": False})]
    filled(tmp_path, later, code="last")
    made = maker.rewritten(place.format("Runs that hold in each back end"), {"table": store})
    assert "| `walk`, `table` | yes |" in made
    assert "| `lean` | no |" in made
    with pytest.raises(
        InputError, match="no table is called Pllans; there are: Runs that hold in each back end, Plans"
    ):
        maker.rewritten(place.format("Pllans"), {"table": store})


def test_plans_alone_are_counted_as_found_and_as_certified(maker, tmp_path):
    with Store(tmp_path) as store:
        store.note_code("new", "abc123")
        for number, certified in enumerate((True, False)):
            fields = {"scenario": "walk", "seed": number}
            case = SimpleNamespace(id=f"{number}", configuration=f"{number}", fields=fields)
            store.put(case, CaseOutcome(DONE, {**GOOD, "certified": certified}, 1.0), "new")
    place = "<!-- plans: experiments/plans.yaml, in a sentence -->\n<!-- end -->\n"
    made = maker.rewritten(place, {"plans": tmp_path})
    assert "All scenarios together: 2 of 2 planned (34–100 %), 1 of 2 certified (9–91 %)." in made


def test_one_command_writes_all_pages_or_none(maker, tmp_path, capsys):
    (tmp_path / "pushes.jsonl").write_text(json.dumps({"stopped": None, "qp_failures": 0, "steps": 0}))
    first, second = tmp_path / "first.md", tmp_path / "second.md"
    first.write_text("<!-- pushes -->\n<!-- end -->\n")
    second.write_text("<!-- pushes -->\nold\n<!-- end -->\n<!-- bench -->\n<!-- end -->\n")
    pages = [str(first), str(second)]
    assert maker.main([*pages, "tabel=x"]) == 2
    assert "no page has a place for tabel; there are: pushes, pushes, bench" in capsys.readouterr().err
    assert maker.main([*pages, f"pushes={tmp_path / 'pushes.jsonl'}", "bench=missing.json"]) == 2
    assert "1 pushes" not in first.read_text()
    assert maker.main([*pages, f"pushes={tmp_path / 'pushes.jsonl'}"]) == 0
    assert "Of 1 pushes 1 are recovered" in first.read_text()
    assert "old" not in second.read_text()


def test_every_figure_says_commit_and_day_and_the_pages_say_the_same(maker):
    origins = {}
    for page, count in ((PAGE, 12), (ROOT / "README.md", 2)):
        blocks = list(maker.BLOCK.finditer(page.read_text(encoding="utf-8")))
        assert len(blocks) == count
        for block in blocks:
            found = maker.re.findall(r"commit [0-9a-f]{7,}\+?, \d{4}-\d\d-\d\d", block["figures"])
            assert len(found) == 1, block[0]
            assert origins.setdefault(block[2], found[0]) == found[0], block[0]
