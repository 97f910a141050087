"""Every notebook runs from its first cell to its last and comes to its answer; none is kept with outputs."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOKS = {
    "first_motion": r"certificate holds: True; the hand bears [345]\d N at the end",
    "own_torques": r"asked for 150 N m/rad, measured within 0\.\d\d %",
    "own_controller": r"certificate holds: True; the tip stays within [0-9]\.\d mm of its target",
    "dataset": r"3 of 3 motions, \d{3} frames, 0\.[12]\d to 0\.[23]\d m, feet down [78]\d %",
    "live_view": r"the same motion: True; centre of pressure up to 1\d\d mm",
    "tables": r"\d{4} samples; \w+ works hardest, at \d\d % of its limit; the hand bears up to 1\d\d N",
}
"""By name, what the answer has to be."""

FEWER = {"dataset": ["COUNT=3"]}
"""What is changed to save time: twenty variants are twenty times the same."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the notebooks have run, in one process, and what they have said."""
    folder = tmp_path_factory.mktemp("notebooks")
    command = [sys.executable, str(ROOT / "tests" / "notebook.py"), str(folder)]
    for name in NOTEBOOKS:
        command += [str(ROOT / "demos" / "notebooks" / f"{name}.ipynb"), *FEWER.get(name, [])]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=600
    )
    (folder / "answers.txt").write_text(done.stdout, encoding="utf-8")
    (folder / "errors.txt").write_text(done.stderr, encoding="utf-8")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_comes_to_its_answer(name, folder):
    said = (folder / "answers.txt").read_text(encoding="utf-8")
    answer = re.search(rf"^{name}: (.*)$", said, re.MULTILINE)
    assert answer, (folder / "errors.txt").read_text(encoding="utf-8")
    assert re.fullmatch(NOTEBOOKS[name] + ".*", answer[1])
    shown = (folder / name / "page.html").read_text(encoding="utf-8")
    if name == "first_motion":
        assert shown.count("<iframe srcdoc=") == 2
        assert "<svg" in shown
        assert "certificate holds" in shown
        assert re.search(r"simulating \d+ s t \d+\.\d\d s", shown)


def test_all_notebooks_are_tried_and_none_holds_outputs():
    files = sorted((ROOT / "demos" / "notebooks").glob("*.ipynb"))
    assert [file.stem for file in files] == sorted(NOTEBOOKS)
    for file in files:
        cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
        assert cells[0]["cell_type"] == "markdown"
        assert all(not cell.get("outputs") and cell.get("execution_count") is None for cell in cells)
