"""Every public name is documented, has an example that runs, and passes a type checker with all its rules."""

import doctest
import inspect
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import mcplan as mc

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "docs" / "reference.md"


def test_the_examples_of_the_reference_run():
    failed, tried = doctest.testfile(str(REFERENCE), module_relative=False, verbose=False)
    assert tried > 50
    assert failed == 0


@pytest.mark.parametrize("name", mc.__all__)
def test_a_public_name_is_documented_and_has_an_example(name):
    said = inspect.getdoc(getattr(mc, name)) or ""
    assert len(said) > 30 or name == "__version__", said
    examples = "\n".join(line[4:] for line in REFERENCE.read_text().splitlines() if line[:3] in (">>>", "..."))
    assert re.search(rf"\bmc\.{name}\b", examples)


FUNCTIONS = {name: getattr(import_module(module), inside) for name, (module, inside) in mc._NAMES.items()}
"""Public names by what they are; ``mc.sweep`` is the package of that name as soon as this has been imported."""


@pytest.mark.parametrize("name", [name for name, thing in FUNCTIONS.items() if inspect.isfunction(thing)])
def test_a_function_says_what_it_takes_and_raises(name):
    function = FUNCTIONS[name]
    said = inspect.getdoc(function)
    missing = [p for p in inspect.signature(function).parameters if not re.search(rf"\b{p}\b", said)]
    assert not missing
    for parameter in inspect.signature(function).parameters.values():
        assert parameter.annotation is not inspect.Parameter.empty


def test_the_public_surface_passes_a_strict_type_checker_and_wrong_uses_do_not(tmp_path):
    """Wrong uses show that the checker sees types, not `Any`."""
    wrong = tmp_path / "wrong.py"
    wrong.write_text('import mcplan as mc\nx: int = mc.load_robot("hrp2")\nmc.simulate(3)\nmc.Surface(3)\n')
    options = ["--strict", "--config-file=", "--follow-imports=silent", "--ignore-missing-imports"]
    command = [sys.executable, "-m", "mypy", *options, "tests/public_api.py", str(wrong)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    errors = [line for line in done.stdout.splitlines() if "error:" in line]
    assert [re.search(r"wrong.py:(\d)", line)[1] for line in errors if "wrong.py" in line] == ["2", "3", "4"], errors
    assert len(errors) == 3, errors


def test_what_is_offered_is_what_there_is():
    assert set(mc.__all__) <= set(dir(mc))
    with pytest.raises(AttributeError, match="did you mean 'Scenario'"):
        _ = mc.Scenaro
