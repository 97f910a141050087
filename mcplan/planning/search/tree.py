"""Record of a search: every feasible stance, every rejected move, and the reasons.

The file of a search tree is JSON beside the plan; it contains the scenario, so that no plan is needed to view it.
"""

import json
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mcplan.document.build import Mark
from mcplan.document.document import Document
from mcplan.document.file_kind import TREE_SUFFIX
from mcplan.errors import InputError, Problem
from mcplan.planning.posture.result import Violation
from mcplan.scenario.scenario import Scenario
from mcplan.util.files import write_text


@dataclass
class SearchTree:
    """The record of a search.

    Attributes
    ----------
    nodes : feasible stances, in order: index, parent, move, contacts, posture, g, h, and whether expanded.
    rejected : infeasible moves: parent, move, its new contacts, stage, kind, thing and amount.
    skipped : number of rejected candidates that are only counted, by reason.
    calls : number of posture generator calls.
    path : indices of the nodes of the plan, from the start to the goal; empty without a plan.
    """

    nodes: list[dict[str, Any]] = field(default_factory=list)
    rejected: list[dict[str, Any]] = field(default_factory=list)
    skipped: Counter = field(default_factory=Counter)
    calls: int = 0
    path: list[int] = field(default_factory=list)

    def add_node(self, parent: int | None, move: str, contacts, q: np.ndarray, g: float, h: float) -> int:
        """Add a stance and return its index."""
        self.nodes.append(
            {
                "index": len(self.nodes),
                "parent": parent,
                "move": move,
                "contacts": [contact.to_data() for contact in contacts],
                "q": q.tolist(),
                "g": float(g),
                "h": float(h),
                "expanded": False,
            }
        )
        return len(self.nodes) - 1

    def expand(self, index: int) -> None:
        """Mark a stance as expanded."""
        self.nodes[index]["expanded"] = True

    def reject(self, parent: int, move: str, stage: str, violations: tuple[Violation, ...], added=()) -> None:
        """Add a rejected move, with its worst violation and its new contacts."""
        first = violations[0] if violations else Violation("reach", move, 0.0)
        self.rejected.append(
            {
                "parent": parent,
                "move": move,
                "contacts": [contact.to_data() for contact in added],
                "stage": stage,
                "kind": first.kind,
                "thing": first.thing,
                "amount": float(first.amount),
                "reason": "; ".join(str(violation) for violation in violations),
            }
        )

    def summary(self) -> list[str]:
        """Return the reasons of rejections with their counts, the most frequent first."""
        counts = Counter((r["stage"], r["kind"], r["thing"]) for r in self.rejected)
        least: dict[tuple, float] = {}
        for r in self.rejected:
            key = (r["stage"], r["kind"], r["thing"])
            least[key] = min(least.get(key, np.inf), r["amount"])
        lines = [
            f"{count} x {stage}: {Violation(kind, thing, least[stage, kind, thing])} (at least)"
            for (stage, kind, thing), count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        ]
        return lines + [f"{count} x {reason}" for reason, count in sorted(self.skipped.items())]

    def to_data(self) -> dict[str, Any]:
        """Return the record as plain values."""
        return {
            "calls": self.calls,
            "nodes": self.nodes,
            "rejected": self.rejected,
            "skipped": dict(sorted(self.skipped.items())),
            "path": self.path,
        }


MAX_FILE_BYTES = 200_000_000
"""Largest size of a file that is read."""


def tree_path(plan: str | os.PathLike[str]) -> Path:
    """Return the path of the search tree of a plan file: ``stairs.plan.yaml`` has ``stairs.plan.tree.json``."""
    return Path(plan).with_suffix(TREE_SUFFIX)


def write_tree(tree: SearchTree, scenario: Scenario, path: str | os.PathLike[str], failure: str = "") -> None:
    """Write a search tree; an existing file is replaced.

    Parameters
    ----------
    failure : message of the planner if there is no plan; else empty.
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
        if Path(name).stat().st_size > MAX_FILE_BYTES:
            raise InputError(Problem(name, None, "", f"more than {MAX_FILE_BYTES} bytes; not read"))
        data = json.loads(Path(name).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(Problem(name, None, "", f"cannot be read: {error.strerror}")) from error
    except (ValueError, RecursionError) as error:
        raise InputError(Problem(name, None, "", f"not a search tree, or damaged: {error}")) from error
    if not isinstance(data, dict) or data.get("mcplan_tree") != 1:
        raise InputError(Problem(name, None, "mcplan_tree", "expected 1: not a search tree that this version reads"))
    return data


def _problems(data: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each problem of the data as (key, message)."""
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
