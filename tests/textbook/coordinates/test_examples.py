"""The examples in the docstrings of coordinates and kinematics run and hold what they assert."""

import ast
import re
import textwrap
from pathlib import Path

import pytest

import mcplan

PACKAGES = ("coordinates", "kinematics")
ROOT = Path(mcplan.__file__).parent / "textbook"


def example_of(path: Path) -> str:
    """The indented block after a double colon in a module's docstring."""
    doc = ast.get_docstring(ast.parse(path.read_text())) or ""
    found = re.search(r"::\n\n((?:    .*\n?|\n)+)", doc + "\n")
    return textwrap.dedent(found[1]) if found else ""


EXAMPLES = {
    f"{path.parent.name}/{path.name}": example_of(path)
    for package in PACKAGES
    for path in sorted((ROOT / package).glob("*.py"))
    if example_of(path)
}


def test_there_are_examples():
    assert len(EXAMPLES) >= 7


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_runs(name):
    code = EXAMPLES[name]
    assert "assert " in code
    exec(compile(code, name, "exec"), {})
