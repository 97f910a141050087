"""Search tree panel of a page: nodes with state and posture, rejected moves with reasons."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from mcplan.errors import InputError
from mcplan.planning.plan import PlannedStance
from mcplan.planning.search.tree import SearchTree
from mcplan.scenario.scenario import Scenario
from mcplan.scene.contact import Contact
from mcplan.view.drawing import node_name
from mcplan.view.plan_film import ContactCache

MAX_DRAWN_NODES = 1500
"""Maximum number of nodes with a posture in the page; nodes of the plan and their ancestors have priority."""

MATCH_TOLERANCE_M = 0.1
"""Tolerance (m) in the comparison of the contacts of a node with those of a stance."""


def drawn_nodes(tree: SearchTree) -> list[int]:
    """Return the indices of the nodes whose postures are drawn, in order."""
    priority: dict[int, None] = {}
    for index in [*tree.path, *([nearest_to_goal(tree)] if tree.nodes else [])]:
        current: int | None = index
        while current is not None and current not in priority:
            priority[current] = None
            current = tree.nodes[current]["parent"]
    others = [index for index in range(len(tree.nodes)) if index not in priority]
    return sorted([*priority, *others][:MAX_DRAWN_NODES])


def nearest_to_goal(tree: SearchTree) -> int:
    """Return the node nearest to the goal."""
    return min(range(len(tree.nodes)), key=lambda index: (tree.nodes[index]["h"], index))


def tree_panel(
    scenario: Scenario,
    tree: SearchTree,
    indices: Sequence[int],
    begin: float,
    failure: str,
    stances: Sequence[PlannedStance] = (),
) -> dict[str, Any]:
    """Return the data of the panel.

    Parameters
    ----------
    indices : nodes with a frame, at the times ``begin``, ``begin + 1``, ...
    failure : reason why there is no plan; empty if there is one.
    stances : stances of the plan, which are matched with the nodes on its path.

    Raises
    ------
    InputError
        The scenario lacks the support of a contact.
    """
    times = {index: begin + k for k, index in enumerate(indices)}
    contact_of = ContactCache(scenario)
    matched = _match_stances(tree, stances, contact_of)
    return {
        "calls": tree.calls,
        "failure": failure,
        "first": tree.path[-1] if tree.path else nearest_to_goal(tree),
        "nodes": [
            {
                "parent": node["parent"],
                "move": _move_text(node["move"], _new_contacts(tree, node)),
                "contacts": [
                    [f"{c['patch']} on {c['surface']}", _position(c), "moved" if c in _new_contacts(tree, node) else ""]
                    for c in node["contacts"]
                ],
                "state": _node_state(tree, node),
                "g": node["g"],
                "h": node["h"],
                "time": times.get(node["index"]),
                "stance": matched.get(node["index"]),
            }
            for node in tree.nodes
        ],
        "rejected": [
            {
                "parent": move["parent"],
                "move": _move_text(move["move"], move["contacts"]),
                "stage": move["stage"],
                "kind": move["kind"],
                "reason": move["reason"],
                "tried": [_contact_pose(contact_of, contact) for contact in move["contacts"]],
            }
            for move in tree.rejected
        ],
        "kinds": Counter(move["kind"] for move in tree.rejected).most_common(),
        "skipped": sorted(tree.skipped.items(), key=lambda item: (-item[1], item[0])),
    }


def _match_stances(tree: SearchTree, stances: Sequence[PlannedStance], contact_of: ContactCache) -> dict[int, int]:
    """Return the stance of the plan for each node on its path: the first later one with the same contacts."""
    matches, k = {}, 0
    for index in tree.path:
        contacts = [contact_of(data) for data in tree.nodes[index]["contacts"]]
        for later in range(k, len(stances)):
            if _same_contacts(contacts, stances[later].contacts):
                matches[index], k = later, later + 1
                break
    return matches


def _same_contacts(a: Sequence[Contact], b: Sequence[Contact]) -> bool:
    """Whether contacts have the same patches and supports, and positions up to the refinement after the search."""
    other = {contact.patch: contact for contact in b}
    return {contact.patch for contact in a} == set(other) and all(
        contact.support == other[contact.patch].support
        and np.abs(contact.p - other[contact.patch].p).max() < MATCH_TOLERANCE_M
        for contact in a
    )


def rejected_patches(tree: SearchTree, scenario: Scenario) -> list[str]:
    """Return the patches of rejected moves.

    Raises
    ------
    InputError
        The robot lacks a patch.
    """
    names = sorted({contact["patch"] for move in tree.rejected for contact in move["contacts"]})
    unknown = [name for name in names if name not in scenario.robot.patches]
    if unknown:
        raise InputError(f"search tree: {scenario.robot.name} has no patch {unknown[0]}")
    return names


def _new_contacts(tree: SearchTree, node: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the contacts of a node that its parent does not have."""
    if node["parent"] is None:
        return []
    old = tree.nodes[node["parent"]]["contacts"]
    return [contact for contact in node["contacts"] if contact not in old]


def _node_state(tree: SearchTree, node: dict[str, Any]) -> str:
    """Return ``path``, ``expanded`` or ``open``."""
    if node["index"] in tree.path:
        return "path"
    return "expanded" if node["expanded"] else "open"


def _move_text(move: str, new: Sequence[dict[str, Any]]) -> str:
    """Return a move with the supports of its new contacts."""
    supports = list(dict.fromkeys(contact["surface"] for contact in new))
    return f"{move} → {' and '.join(supports)}" if supports else move


def _position(contact: dict[str, Any]) -> str:
    """Return the coordinates of a contact on its support as text."""
    names = ("x", "y", "along")
    return ", ".join(f"{name} {contact[name]:.2f}" for name in names if name in contact)


def _contact_pose(contact_of: ContactCache, data: dict[str, Any]) -> dict[str, Any]:
    """Return the patch of a contact, its node in the drawing, and its pose."""
    contact = contact_of(data)
    xyzw = Rotation.from_matrix(contact.R).as_quat()
    return {
        "patch": contact.patch, "node": f"tried/{node_name(contact.patch)}",
        "p": np.round(contact.p, 5).tolist(), "xyzw": np.round(xyzw, 6).tolist(),
    }  # fmt: skip
