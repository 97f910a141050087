"""What docs/sources.md says is where it says: names, scenarios, settings, commands, tests and demos exist."""

import ast
import functools
import re
from pathlib import Path
from typing import get_args

import pytest

import mcplan as mc
from mcplan.cli.main import main

ROOT = Path(__file__).parents[1]
ROWS = [f"S0.{i}" for i in range(1, 12)] + ["S1.1", "S1.1b"] + [f"S1.{i}" for i in range(2, 13)]
ROWS += [f"S2.{i}" for i in range(1, 5)] + [f"S3.{i}" for i in range(1, 4)] + ["S4.1", "S4.2"]


def read_page():
    """Rows of the tables: id, what, state, and the entries of where, test and demo."""
    found = []
    for line in (ROOT / "docs" / "sources.md").read_text().splitlines():
        if re.match(r"\| S\d", line):
            row, what, state, *columns = (cell.strip() for cell in line.strip().strip("|").split("|"))
            assert len(columns) == 3, line
            found.append((row, what, state, *(re.findall(r"`([^`]+)`", column) for column in columns)))
    return found


PAGE = read_page()
IDS = [entry[0] for entry in PAGE]


@functools.cache
def functions_of(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def require_place(name: str, capsys) -> None:
    """A public name, a scenario, a setting (with its value), or a command."""
    if name.startswith("mc."):
        functools.reduce(getattr, name.split(".")[1:], mc)
    elif name.startswith("stances/"):
        assert (ROOT / name).is_file(), name
    elif name.startswith("mcplan "):
        with pytest.raises(SystemExit) as left:
            main([*name.split()[1:], "--help"])
        assert left.value.code == 0
        capsys.readouterr()
    else:
        key, _, value = name.partition(": ")
        section, field = key.split(".")
        settings = {"control": mc.ControlSettings, "simulation": mc.SimulationSettings}[section]
        known = settings.model_fields[field]
        assert not value or value in get_args(known.annotation), name


def test_the_page_has_every_row_of_the_documents_once():
    assert IDS == ROWS
    assert len(ROWS) == 33


@pytest.mark.parametrize("entry", PAGE, ids=IDS)
def test_a_row_is_where_the_page_says(entry, capsys):
    row, what, state, where, tests, demos = entry
    assert len(what) > 20, row
    assert re.fullmatch(r"works|in part: .{10,}|missing: .{10,}", state), state
    for name in where:
        require_place(name, capsys)
    for test in tests:
        path, _, function = test.partition("::")
        assert function in functions_of(path), test
        assert function.startswith("test_")
    for demo in demos:
        assert (ROOT / demo).is_file(), demo
        assert demo.startswith("demos/")
    if state == "works":
        assert where, row
        assert tests, row
        assert demos, row
    if state.startswith("in part"):
        assert where, row
        assert tests, row


def test_names_that_are_gone_are_noticed(capsys):
    for name in ("mc.coordinates.no_such", "stances/no_such.yaml", "control.form: round", "control.no_such"):
        with pytest.raises((AttributeError, AssertionError, KeyError)):
            require_place(name, capsys)
    with pytest.raises(AssertionError):
        require_place("mcplan no_such_command", capsys)
    capsys.readouterr()
