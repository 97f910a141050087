"""JSON Schemas of files: those in the repository are what `mcplan schema` prints, and judge as the program does."""

import copy
import json
import re
from functools import cache

import jsonschema
import pytest

from mcplan.cli.main import main
from mcplan.cli.schema import FORMATS
from mcplan.document.build import Builder
from mcplan.document.document import read_document
from mcplan.util.bundled import ROBOTS
from tests.pages import ROOT

PLACES = {"scenario": ROOT / "stances", "robot": ROBOTS, "experiment": ROOT / "experiments"}
FILES = [(name, file) for name, place in PLACES.items() for file in sorted(place.rglob("*.yaml"))]


@cache
def stored(name):
    return json.loads((PLACES[name] / f"{name}.schema.json").read_text(encoding="utf-8"))


@cache
def validator(name):
    return jsonschema.Draft202012Validator(stored(name))


def refusals(name, data):
    """Return where a schema refuses data."""
    return [list(error.absolute_path) for error in validator(name).iter_errors(data)]


@pytest.mark.parametrize("name", FORMATS)
def test_stored_schemas_are_those_of_the_command(name, capsys):
    assert main(["schema", name]) == 0
    printed = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator.check_schema(printed)
    assert printed == stored(name), f"mcplan schema {name} -o {PLACES[name]}/{name}.schema.json --force"


@pytest.mark.parametrize(("name", "file"), FILES, ids=lambda value: getattr(value, "stem", None))
def test_bundled_files_name_their_schema_which_accepts_them(name, file):
    line = file.read_text(encoding="utf-8").splitlines()[0]
    there = re.fullmatch(r"# yaml-language-server: \$schema=(\S+)", line)
    assert there
    assert (file.parent / there[1]).resolve() == PLACES[name] / f"{name}.schema.json"
    assert refusals(name, read_document(file).data) == []


SECTIONS = (), ("environment",), ("environment", "surfaces", 0), ("start",), ("start", "contacts", 0), ("control",)


def misspelt(data):
    """Yield data with one key misspelt, for each key of these sections."""
    for path in SECTIONS:
        inner = data
        try:
            for step in path:
                inner = inner[step]
        except (KeyError, IndexError):
            continue
        for key in inner:
            wrong = copy.deepcopy(data)
            part = wrong
            for step in path:
                part = part[step]
            part[key + "x"] = part.pop(key)
            yield path, key, wrong


@pytest.mark.parametrize(("name", "file"), FILES, ids=lambda value: getattr(value, "stem", None))
def test_a_misspelt_key_is_refused(name, file):
    for path, key, wrong in misspelt(read_document(file).data):
        assert not validator(name).is_valid(wrong), (path, key)


@pytest.mark.parametrize(
    ("line", "holds"),
    [
        ("control: {gains: {com_kp: 50}}", True),
        ("control: {gains: {com_kp: =2*riser}}", True),
        ("control: {com_kp: 2*riser}", False),
        ("control: {com_kp: -1}", False),
        ("control: {pace: slow}", True),
        ("control: {pace: slower}", False),
        ("control: {pace: {friction: 0.5}}", True),
        ("control: {pace: {frictions: 0.5}}", False),
        ("parameters: {riser: 0.15, tread: =2*riser}", True),
        ("parameters: {riser: high}", False),
        ("variants: {riser: 15%, tread: 0.02, friction: [0.5, =0.9], start: {xy: 0.03, yaw: =pi/36}}", True),
        ("variants: {start: {x: 0.03}}", False),
        ("planner: {max_nodes: 0}", False),
        ("goal: {base: {xyz: [1, 0, =robot.leg]}}", True),
        ("goal: [{base: {xyz: [1, 0]}}]", False),
    ],
)
def test_values_and_expressions_of_a_scenario(line, holds):
    text = f"mcplan: 1\nname: trial\nrobot: hrp2\n{line}\n"
    assert validator("scenario").is_valid(Builder(text).data) == holds


def test_the_command_writes_a_file_once(tmp_path, capsys):
    file = tmp_path / "robot.schema.json"
    assert main(["schema", "robot", "-o", str(file)]) == 0
    assert json.loads(file.read_text(encoding="utf-8")) == stored("robot")
    assert main(["schema", "robot", "-o", str(file)]) == 2
    assert "--force" in capsys.readouterr().err
    assert main(["schema", "robot", "-o", str(file), "--force"]) == 0
