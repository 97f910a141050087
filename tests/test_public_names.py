"""Every public name is documented, has an example that runs, and passes a type checker with all its rules."""

import inspect
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import mcplan as mc

ROOT = Path(__file__).parents[1]
NAMES = {name: getattr(import_module(module), inside) for name, (module, inside) in mc._NAMES.items()}
"""Public names by what they are; ``mc.sweep`` is the package of that name as soon as this has been imported."""

PACKAGES = {name: import_module(f"mcplan.{name}") for name in mc._PACKAGES}
INSIDE = {f"{name}.{inside}": getattr(thing, inside) for name, thing in PACKAGES.items() for inside in thing.__all__}
EVERYTHING = {**NAMES, **PACKAGES, **INSIDE}
FUNCTIONS = {name: thing for name, thing in EVERYTHING.items() if inspect.isfunction(thing)}


def examples(page):
    """What is run of a page: `tests/test_pages.py` runs it."""
    return "\n".join(line[4:] for line in (ROOT / "docs" / page).read_text().splitlines() if line[:3] in (">>>", "..."))


EXAMPLES = {False: examples("reference.md"), True: examples("coordinates.md")}


@pytest.mark.parametrize("name", EVERYTHING)
def test_a_public_name_is_documented_and_has_an_example(name):
    said = inspect.getdoc(EVERYTHING[name]) or ""
    assert len(said) > 30, said
    used = rf"\b{re.escape(name)}\b" if name in INSIDE else rf"\bmc\.{name}\b"
    if name in PACKAGES:
        used = rf"\b{name}\.\w"
    assert re.search(used, EXAMPLES[name in INSIDE or name in PACKAGES])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_says_what_it_takes_and_raises(name):
    """Every parameter is named and typed, arrays have their shape, and what the function itself raises is said."""
    said, parameters = inspect.getdoc(FUNCTIONS[name]), inspect.signature(FUNCTIONS[name]).parameters
    assert not [p for p in parameters if not re.search(rf"\b{p}\b", said)]
    assert all(p.annotation is not inspect.Parameter.empty for p in parameters.values())
    if any("ArrayLike" in str(p) or p.annotation is np.ndarray for p in parameters.values()):
        assert re.search(r"\(\w[^()]*,[^()]*\)", said), "no shape"
    for raised in set(re.findall(r"raise (\w+)\(", inspect.getsource(FUNCTIONS[name]))):
        assert re.search(rf"Raises\n-+\n(.*\n)*?.*{raised}", said), f"{raised} is not said"


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
