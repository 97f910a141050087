"""Broken files give status 2, one clear message with file and line, and leave everything as it was."""

import re
from pathlib import Path

import pytest

from mcplan.cli.main import main
from mcplan.robot.robot_file import load_robot
from mcplan.scenario.load import find_scenario

HRP2 = Path(load_robot("hrp2").urdf_path)
INERTIA = '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
LINK = '<link name="{}"><inertial><mass value="{}"/>' + INERTIA + "</inertial></link>"
JOINT = (
    '<joint name="{}" type="revolute"><parent link="{}"/><child link="{}"/><axis xyz="{}"/>'
    '<limit lower="-1" upper="1" effort="1" velocity="1"/></joint>'
)


def robot(*parts):
    return '<?xml version="1.0"?>\n<robot name="r">\n' + "\n".join(parts) + "\n</robot>\n"


URDFS = {
    "NaN mass": robot(LINK.format("a", "nan")),
    "zero axis": robot(LINK.format("a", 1), LINK.format("b", 1), JOINT.format("j", "a", "b", "0 0 0")),
    "cycle": robot(
        LINK.format("a", 1),
        LINK.format("b", 1),
        JOINT.format("j", "a", "b", "0 0 1"),
        JOINT.format("k", "b", "a", "0 0 1"),
    ),
    "duplicate name": robot(LINK.format("a", 1), LINK.format("a", 1)),
    "missing link": robot(LINK.format("a", 1), JOINT.format("j", "a", "ghost", "0 0 1")),
    "document type": '<?xml version="1.0"?>\n<!DOCTYPE robot [<!ENTITY a "b">]>\n<robot name="r"/>\n',
    "not XML": "robot: yes\n",
    "empty": "",
}

SCENARIO = find_scenario("table_hand").read_text(encoding="utf-8")
TABLE_POSE = "pose: {xyz: [0.35, 0, 0.73]"
CHANGES = {
    "typo in a key": ("thickness: 0.04", "thicknes: 0.04", "thickness"),
    "bad quaternion": (TABLE_POSE, TABLE_POSE + ", quat_wxyz: [1, 1, 0, 0]", "quat_wxyz"),
    "unknown patch": ("remove: right_hand", "remove: right_hnd", "right_hand"),
    "unknown surface": ("surface: table,", "surface: tabel,", "table"),
    "unknown posture": ("posture: half_sitting\n  contacts", "posture: half_siting\n  contacts", "half_sitting"),
    "unknown robot": ("robot: hrp2", "robot: hrp3", "hrp2"),
    "text for a number": ("friction: 0.6", "friction: rough", "friction"),
    "broken YAML": ("size: [4, 2]", "size: [4, 2", ""),
    "duplicate key": ("name: table_hand", "name: table_hand\nname: again", "name"),
}
"""By what is wrong: what the scenario has, what it has instead, what the message must say."""


def refuse(arguments, file, capsys):
    """Run a command that must be refused; return its message, which must name the file and a line."""
    before = file.read_bytes()
    assert main(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "Traceback" not in said.err
    assert re.search(rf"{re.escape(str(file))}(:\d+)?: ", said.err), said.err
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir()] == [file.name]
    return said.err


def test_each_of_200_prefixes_of_a_robot_is_refused(tmp_path, capsys):
    whole = HRP2.read_bytes()
    end = whole.rindex(b"</robot>")
    for number in range(200):
        file = tmp_path / "cut.urdf"
        file.write_bytes(whole[: end * number // 199])
        assert ":" in refuse(["info", str(file)], file, capsys)


@pytest.mark.parametrize("name", URDFS)
def test_a_broken_urdf_is_refused(name, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "robot.urdf"
    file.write_text(URDFS[name])
    for command in ("info", "check"):
        refuse([command, str(file)], file, capsys)


@pytest.mark.parametrize("name", CHANGES)
def test_a_broken_scenario_is_refused(name, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    good, bad, hint = CHANGES[name]
    assert good in SCENARIO
    file = tmp_path / "scenario.yaml"
    file.write_text(SCENARIO.replace(good, bad))
    for command in ("check", "run", "plan", "simulate"):
        message = refuse([command, str(file)], file, capsys)
        assert hint in message
        assert re.search(r"scenario.yaml:\d+: ", message)
