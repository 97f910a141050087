"""What is hardly meant is asked about, with its line; bundled scenarios raise no doubt."""

import pytest

from mcplan.cli.main import main
from mcplan.scenario.load import lint_file
from mcplan.util.bundled import bundled_scenarios

SCENARIO = """\
mcplan: 1
name: doubtful
robot: hrp2
environment:
  surfaces:
    - {name: floor, size: [4, 4], friction: FRICTION}
    - {name: ramp, size: [1, 1], pose: {xyz: [2, 0, 0.1], rpy: [0, PITCH, 0]}}
  objects:
    - {name: crate, box: {size: [0.5, 0.5, SIZE]}, mass: MASS, pose: {xyz: [1.5, 1.5, 0.25]}}
start: {contacts: [{patch: left_sole, surface: floor, x: 0, "y": 0.095}, {patch: right_sole, surface: floor}]}
goal: {contacts: [{patch: left_sole, surface: floor, x: 0.3}]}
"""
SOUND = {"FRICTION": "0.7", "PITCH": "0.2", "SIZE": "0.5", "MASS": "20"}


def written(tmp_path, **changes):
    text = SCENARIO
    for name, value in {**SOUND, **changes}.items():
        text = text.replace(name, value)
    path = tmp_path / "doubtful.yaml"
    path.write_text(text)
    return path


def test_sound_values_raise_no_doubt(tmp_path):
    assert lint_file(written(tmp_path)) == []
    for path in bundled_scenarios().values():
        assert lint_file(path) == [], path


@pytest.mark.parametrize(
    ("changes", "line", "key", "text"),
    [
        ({"PITCH": "20"}, 7, "environment.surfaces[1].pose.rpy[1]", "20 deg = 0.3491"),
        ({"PITCH": "-6.4"}, 7, "environment.surfaces[1].pose.rpy[1]", "radians"),
        ({"FRICTION": "7"}, 6, "environment.surfaces[0].friction", "coefficient of 7"),
        ({"SIZE": "500"}, 9, "environment.objects[0].box.size[2]", "500 mm = 0.5"),
        ({"MASS": "20000"}, 9, "environment.objects[0].mass", "20000 g = 20"),
        ({"MASS": "1e-4"}, 9, "environment.objects[0].mass", "kilograms"),
    ],
)
def test_a_doubt_names_line_key_and_what_was_meant(tmp_path, changes, line, key, text):
    (doubt,) = lint_file(written(tmp_path, **changes))
    assert (doubt.line, doubt.key) == (line, key)
    assert text in doubt.message


def test_check_says_the_doubt_and_that_the_file_is_sound(tmp_path, capsys):
    path = written(tmp_path, PITCH="20")
    assert main(["check", str(path)]) == 0
    said = capsys.readouterr()
    assert f"{path}:7" in said.err
    assert "radians" in said.err
    assert "ok" in said.out
