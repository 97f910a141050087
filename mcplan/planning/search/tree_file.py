"""The file of a search tree: JSON beside the plan, with the scenario, so that it can be looked at without a plan."""

import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mcplan.document.build import Mark
from mcplan.document.document import Document
from mcplan.errors import InputError, Problem
from mcplan.planning.search.tree import SearchTree
from mcplan.scene.scenario import Scenario
from mcplan.whole_file import write_text

SUFFIX = ".tree.json"

LARGEST = 200_000_000
"""Bytes of a file that are read."""


def tree_path(plan: str | os.PathLike[str]) -> Path:
    """Return where the tree of a plan file is: ``stairs.plan.yaml`` has ``stairs.plan.tree.json``."""
    return Path(plan).with_suffix(SUFFIX)


def is_tree_file(path: str | os.PathLike[str]) -> bool:
    """Whether a name is that of a search tree."""
    return os.fspath(path).endswith(SUFFIX)


def write_tree(tree: SearchTree, scenario: Scenario, path: str | os.PathLike[str], failure: str = "") -> None:
    """Write a search tree; an existing file is replaced as a whole.

    Parameters
    ----------
    failure : why there is no plan, in the planner's words; empty where there is one.
    """
    target = Path(path)
    data = {"mcplan_tree": 1, "failure": failure, "scenario": scenario.data(target.parent), **tree.to_data()}
    write_text(target, json.dumps(data, allow_nan=False))


def read_tree(path: str | os.PathLike[str]) -> tuple[Scenario, SearchTree, str]:
    """Return scenario, tree and failure of a file.

    Raises
    ------
    InputError
        When it is no search tree, or is damaged.
    """
    name = os.fspath(path)
    data = _read(name)
    problems = list(_problems(data))
    if problems:
        raise InputError(*(Problem(name, None, key, message) for key, message in problems))
    scenario = Scenario.of(Document(name, data["scenario"], Mark(1)))
    skipped, calls = Counter(data["skipped"]), int(data.get("calls", 0))
    tree = SearchTree(data["nodes"], data["rejected"], skipped, calls, data["path"])
    return scenario, tree, str(data.get("failure", ""))


def _read(name: str) -> dict[str, Any]:
    try:
        if Path(name).stat().st_size > LARGEST:
            raise InputError(Problem(name, None, "", f"more than {LARGEST} bytes; not read"))
        data = json.loads(Path(name).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(Problem(name, None, "", f"cannot be read: {error.strerror}")) from error
    except (ValueError, RecursionError) as error:
        raise InputError(Problem(name, None, "", f"not a search tree, or damaged: {error}")) from error
    if not isinstance(data, dict) or data.get("mcplan_tree") != 1:
        raise InputError(Problem(name, None, "mcplan_tree", "expected 1: not a search tree that this version reads"))
    return data


def _problems(data: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (key, what is wrong with it)."""
    if not isinstance(data.get("scenario"), dict):
        yield "scenario", "missing"
    for key, kind in (("nodes", list), ("rejected", list), ("skipped", dict), ("path", list)):
        if not isinstance(data.get(key), kind):
            yield key, f"missing, or no {kind.__name__}"
            return
    count = len(data["nodes"])
    known = {"index", "parent", "move", "contacts", "q", "g", "h", "expanded"}
    for k, node in enumerate(data["nodes"]):
        if not isinstance(node, dict) or set(node) != known:
            yield f"nodes[{k}]", f"expected {', '.join(sorted(known))}"
        elif node["index"] != k or not (node["parent"] is None or node["parent"] in range(k)):
            yield f"nodes[{k}]", f"index {node['index']}, parent {node['parent']}: parents come before children"
    known = {"parent", "move", "contacts", "stage", "kind", "thing", "amount", "reason"}
    for k, move in enumerate(data["rejected"]):
        if not isinstance(move, dict) or set(move) != known:
            yield f"rejected[{k}]", f"expected {', '.join(sorted(known))}"
        elif move["parent"] not in range(count):
            yield f"rejected[{k}].parent", f"{move['parent']} is none of the {count} nodes"
    wrong = [index for index in data["path"] if index not in range(count)]
    if wrong:
        yield "path", f"{wrong[0]} is none of the {count} nodes"
