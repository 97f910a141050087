"""The structure of the package: no import circles, few layers.

Imports count wherever they stand, in functions and under ``TYPE_CHECKING`` too; `lint-imports` sees them per layer.
"""

import ast
import tomllib
from collections import defaultdict
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MAX_LAYERS = 12


def parsed():
    """Parse each module of the package; return its tree by its dotted name."""
    files = {f: f.relative_to(ROOT).with_suffix("").parts for f in sorted((ROOT / "mcplan").rglob("*.py"))}
    return {".".join(parts).removesuffix(".__init__"): ast.parse(f.read_text()) for f, parts in files.items()}


@pytest.fixture(scope="module")
def modules():
    return parsed()


@pytest.fixture(scope="module")
def imports(modules):
    """Return the modules that each module imports, by a statement anywhere in it; lazy tables of names are left out."""
    found = defaultdict(set)
    for name, tree in modules.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module in modules:
                found[name] |= {t for a in node.names if (t := f"{node.module}.{a.name}") in modules} or {node.module}
            elif isinstance(node, ast.Import):
                found[name] |= {a.name for a in node.names if a.name in modules}
    return found


def circle(graph):
    """Return a circle of a graph, or nothing."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def test_no_modules_import_each_other(modules, imports):
    assert circle({name: imports[name] - {name, "mcplan"} for name in modules if name != "mcplan"}) == []


def test_no_packages_import_each_other(imports):
    graph = defaultdict(set)
    for name, targets in imports.items():
        if name != "mcplan":
            package = name.split(".")[1]
            graph[package] |= {t.split(".")[1] for t in targets if t != "mcplan"} - {package}
    assert circle(graph) == []


def test_the_layers_are_few():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    assert len(contracts[0]["layers"]) <= MAX_LAYERS


def test_no_two_classes_have_one_name(modules):
    homes = defaultdict(list)
    for name, tree in modules.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(name)
    assert {name: where for name, where in homes.items() if len(where) > 1} == {}


def test_the_files_of_the_quick_tests_exist():
    names = (ROOT / "tests" / "quick.txt").read_text().split()
    assert names
    assert [name for name in names if not (ROOT / name).exists()] == []
