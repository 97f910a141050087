"""Every demo runs as a script, without arguments and without a display, and its last line is its answer."""

import functools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DEMOS = sorted((ROOT / "demos").glob("*.py"))


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """What a demo prints; each runs once."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "MPLBACKEND": "Agg", "OPENBLAS_NUM_THREADS": "1"}
    environment.pop("DISPLAY", None)

    @functools.cache
    def run(path: Path) -> str:
        done = subprocess.run(
            [sys.executable, str(path)],
            cwd=tmp_path_factory.mktemp(path.stem),
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.mark.parametrize("path", DEMOS, ids=[path.stem for path in DEMOS])
def test_demo_runs_and_prints_its_answer(path, printed):
    assert re.search(r"\d|True|False", printed(path).strip().splitlines()[-1])


def test_custom_controller_holds_the_force_that_it_was_asked_for(printed):
    found = re.search(r"left hand (\S+) to (\S+) N of 20 N", printed(ROOT / "demos" / "custom_controller.py"))
    assert found
    assert all(abs(float(force) - 20.0) < 0.2 for force in found.groups())


def test_there_are_demos():
    assert len(DEMOS) >= 4


@pytest.mark.parametrize("path", DEMOS, ids=[path.stem for path in DEMOS])
def test_demo_says_its_idea_first_and_stays_short(path):
    lines = path.read_text().splitlines()
    assert re.match(r'"""[A-Z].*[.?]$', lines[0]), lines[0]
    assert 25 <= len(lines) <= 100


def test_own_states_leaves_its_state_when_the_foot_is_light_and_holds(printed):
    found = printed(ROOT / "demos" / "own_states.py")
    force = re.search(r"lean +ended by light: .* right foot carries (\d+) N", found)
    assert force
    assert 130 <= int(force[1]) <= 150
    assert "certificate holds: True" in found


ANSWERS = {
    "arm_on_a_wall": (r"(\S+) N in the mean", lambda newton: abs(newton - 20.0) < 1.0),
    "own_torques": (r"measured within (\S+)%", lambda percent: percent < 1.0),
    "own_controller": (r"stays within (\S+) mm", lambda mm: mm < 10.0),
    "virtual_model": (r"yields by (\S+) mm and stands: True", lambda mm: 2.0 < mm < 30.0),
    "priorities": (r"agree to (\S+) of", lambda share: share < 1e-8),
    "impact": (r"both soles move at (\S+) m/s", lambda speed: speed < 1e-9),
    "internal_forces": (r"^(\d+) directions of torque", lambda count: count == 6),
    "room_to_move": (r"right_hand on table: (\d+) faces", lambda faces: faces > 10),
    "feet_stay": (r"the hand reaches (\S+) m", lambda metres: 0.3 < metres < 0.9),
    "look_and_press": (r"past its target by (\S+) degrees", lambda degrees: degrees < 1.0),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_the_answer_is_the_one_that_mechanics_gives(name, printed):
    pattern, right = ANSWERS[name]
    found = re.search(pattern, printed(ROOT / "demos" / f"{name}.py"), re.MULTILINE)
    assert found
    assert right(float(found[1]))
