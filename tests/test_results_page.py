"""The page of results is made from finished measurements: each figure from its source, with commit and day."""

import json
from types import SimpleNamespace

import pytest

from mcplan.errors import InputError
from mcplan.sweep.store import DONE, Outcome, Store
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
            store.put(case, Outcome(DONE, {**GOOD, **result}, 1.0), code)
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


def test_pushes_and_a_benchmark_become_a_sentence_and_a_table(maker, tmp_path):
    rows = [{"stopped": None, "qp_failures": 0}] * 3 + [{"stopped": "fell", "qp_failures": 2}, {"exception": "x"}]
    (tmp_path / "pushes.jsonl").write_text("\n".join(map(json.dumps, rows)))
    row = {"group": "tick", "name": "compiled", "value": 77.12, "unit": "µs", "peer": 166.0, "ratio": 0.4645}
    machine = {"cores": 2, "load_at_start": 0.1, "load_at_end": 1.26, "python": "3.11"}
    (tmp_path / "bench.json").write_text(json.dumps({"rows": [row], "machine": machine}))
    sources = {"pushes": tmp_path / "pushes.jsonl", "bench": tmp_path / "bench.json"}
    made = maker.rewritten(PAGE.read_text(encoding="utf-8"), sources)
    assert "Of 5 pushes 3 are recovered (23.1–88.2 %), without a step; 1 fall, 1 end in an exception, and in 1 " in made
    assert "| tick | compiled | 77.1 µs | 166 | 0.46 |" in made
    assert "2 cores, load 0.1 to 1.3, Python 3.11; commit " in made


def test_what_cannot_be_shown_is_said(maker, tmp_path):
    page = PAGE.read_text(encoding="utf-8")
    with pytest.raises(InputError, match="no place for tabel; it has: table, plans, pushes, bench"):
        maker.rewritten(page, {"tabel": tmp_path})
    with pytest.raises(InputError, match="no such store"):
        maker.rewritten(page, {"table": tmp_path})
    with pytest.raises(InputError, match="the store has a_scenario, which table does not"):
        maker.rewritten(page, {"table": filled(tmp_path, [("a_scenario", "qp", 1, {})])})


def test_every_figure_of_the_page_says_commit_and_day(maker):
    blocks = [found[4] for found in maker.BLOCK.finditer(PAGE.read_text(encoding="utf-8"))]
    assert len(blocks) == 4
    for block in blocks:
        assert len(maker.re.findall(r"commit [0-9a-f]{7,}\+?, \d{4}-\d\d-\d\d", block)) == 1, block
