"""Every demo runs without arguments, says its answer, and needs no display: one is run as a script without any."""

import contextlib
import functools
import io
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
DEMOS = sorted((ROOT / "demos").glob("*.py"))


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """What a demo prints as a script; each runs once, in this process: the library and its kernels are loaded."""

    @functools.cache
    def run(path: Path) -> str:
        said = io.StringIO()
        with contextlib.chdir(tmp_path_factory.mktemp(path.stem)), contextlib.redirect_stdout(said):
            runpy.run_path(str(path), run_name="__main__")
        return said.getvalue()

    return run


def test_a_demo_runs_as_a_script_without_a_display(tmp_path):
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    environment.pop("DISPLAY", None)
    command = [sys.executable, str(ROOT / "demos" / "internal_forces.py")]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "directions of torque move nothing" in done.stdout


def test_custom_controller_holds_the_force_that_it_was_asked_for(printed):
    found = re.search(r"left hand (\S+) to (\S+) N of 20 N", printed(ROOT / "demos" / "custom_controller.py"))
    assert found
    assert all(abs(float(force) - 20.0) < 0.2 for force in found.groups())


@pytest.mark.parametrize("path", DEMOS, ids=[path.stem for path in DEMOS])
def test_demo_says_its_idea_first_and_stays_short(path):
    lines = path.read_text().splitlines()
    assert re.match(r'"""[A-Z].*[.?]$', lines[0]), lines[0]
    assert 25 <= len(lines) <= 100


def test_first_motion_is_certified_and_can_be_replayed(printed):
    said = printed(ROOT / "demos" / "first_motion.py")
    assert re.search(r"certificate holds: True; replay: first_motion.html$", said.strip())


@pytest.mark.slow
def test_own_states_leaves_its_state_when_the_foot_is_light_and_holds(printed):
    found = printed(ROOT / "demos" / "own_states.py")
    force = re.search(r"lean +ended by light: .* right foot carries (\d+) N", found)
    assert force
    assert 130 <= int(force[1]) <= 150
    assert "certificate holds: True" in found


def close(number, tolerance):
    return lambda found: abs(found - number) <= tolerance


ANSWERS = {
    "arm_on_a_wall": (r"holds: True\n.* (\S+) N in the mean", close(20.0, 1.0)),
    "average_velocity": (r"(\S+) from the average", close(0.0, 1e-12)),
    "ball_joint": (r"the four are (\S+) rad or m apart", close(0.0, 1e-8)),
    "bodies_apart": (r"a force shared among the bodies: (\S+)", close(0.0, 1e-12)),
    "charts_of_a_rotation": (r"these rates is right to (\S+) rad/s", close(0.0, 1e-13)),
    "feet_stay": (r"the hand reaches (\S+) m", close(0.6, 0.3)),
    "follow_a_circle": (r"= (\S+) in 0.1 s", close(np.exp(-2.0), 0.005)),
    "frames_in_motion": (r"is the inertial one to (\S+)", close(0.0, 1e-12)),
    "impact": (r"both soles move at (\S+) m/s", close(0.0, 1e-9)),
    "internal_forces": (r"^(\d+) directions of torque", close(6, 0)),
    "jacobians_of_a_point": (r"azimuth, polar angle .*\n\[(\S+) ", close(-0.028, 1e-3)),
    "lift_a_box": (r"of the box differ by (\S+) N at most", close(0.0, 1e-9)),
    "look_and_press": (r"past its target by (\S+) degrees", close(0.0, 1.0)),
    "one_motion_in_three_charts": (r"the three are (\S+) rad or m apart", close(0.0, 1e-8)),
    "one_program_in_five_forms": (r"accelerations differ by (\S+) rad", close(0.0, 1e-9)),
    "own_controller": (r"holds: True\n(?:.*\n)*the tip stays within (\S+) mm", close(5.0, 5.0)),
    "own_torques": (r"measured within (\S+)%", close(0.0, 1.0)),
    "pendulum_in_flight": (r"momentum has changed by (\S+) of its size", close(0.0, 1e-3)),
    "priorities": (r"agree to (\S+) of", close(0.0, 1e-8)),
    "reach_with_both_feet_down": (r"even then the feet are (\S+) mm and mrad", close(0.0, 1.0)),
    "room_to_move": (r"at rest: (\d+) cm²;.*\n.*\n +0.0 m/s² +\1 +\1 +\1 (?:.*\n)*.*missing: True", close(1407, 1)),
    "stand_on_another_base": (r"the ground carries (\S+) N of 549.725 N", close(549.725, 1e-3)),
    "support_on_a_slope": (r"friction 0.5 holds one foot up to (\S+)°", close(np.degrees(np.arctan(0.5)), 0.05)),
    "tasks_in_order": (r"first the tip +(\S+) ", close(-0.169, 1e-3)),
    "virtual_model": (r"yields by (\S+) mm and stands: True", close(16.0, 14.0)),
    "paths_of_a_turn": (r"all end within (\S+) degrees of the goal: True", close(0.0, 1.0)),
}


def test_every_demo_is_asked_for_its_answer():
    assert {*ANSWERS, "custom_controller", "first_motion", "own_states"} == {path.stem for path in DEMOS}


@pytest.mark.parametrize("name", ANSWERS)
def test_the_answer_is_the_one_that_mechanics_gives(name, printed):
    pattern, right = ANSWERS[name]
    said = printed(ROOT / "demos" / f"{name}.py")
    found = re.search(pattern, said, re.MULTILINE)
    assert found, said
    assert right(float(found[1])), said
