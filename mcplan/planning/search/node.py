"""Nodes and edges of the stance search: a stance with its posture, and the move of one limb that leads to it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from mcplan.planning.plan import Change
from mcplan.planning.transition.segments import BodyShift, SwingMotion
from mcplan.scene.contact import Contact

CELL_WIDTH_M, CELL_TURN_RAD = 0.05, 0.1
"""Cell size of the grid for contacts, in position and in heading, for a robot of the size of HRP-2.

Stances whose contacts are in the same cells are duplicates.
"""


class ContactProgress(NamedTuple):
    """Position of a contact relative to the guide.

    Attributes
    ----------
    s : progress (m), see `guide.path`.
    guide_distance : distance from the track of its patch (m).
    meets_goal : whether the contact meets the goal.
    is_edge : whether the patch is an edge.
    """

    s: float
    guide_distance: float
    meets_goal: bool
    is_edge: bool = False


@dataclass(frozen=True, eq=False)
class ContactStep(Change):
    """A change of one contact in a move of the search, as listed in the plan.

    Attributes
    ----------
    in_place : contacts of the larger of the two stances that the step connects.
    loaded : names of the patches that carry load at ``q``.
    q : (nq,) linking posture.
    touching : contacts that are geometrically closed at ``q``. These are more than ``in_place`` if the limb moves
        several patches, since one posture serves all of their steps.
    """

    in_place: tuple[Contact, ...]
    loaded: tuple[str, ...]
    q: np.ndarray
    touching: tuple[Contact, ...]


@dataclass(frozen=True, eq=False)
class Move:
    """A candidate move of one limb.

    Attributes
    ----------
    limb : name of the limb.
    removed : patches whose contacts open.
    added : (patch, index of its candidate), in the order of touchdown.
    rolling : the new contact closes before the old one opens (sole to toe, in place).
    """

    limb: str
    removed: tuple[str, ...]
    added: tuple[tuple[str, int], ...]
    rolling: bool = False

    def __str__(self) -> str:
        if not self.added:
            return "remove " + " and ".join(self.removed)
        return ("move " if self.removed else "add ") + " and ".join(patch for patch, _ in self.added)


@dataclass(eq=False)
class StanceNode:
    """A feasible stance.

    Attributes
    ----------
    contacts : sorted by patch.
    progress : progress of each contact, by patch.
    q : (nq,) posture.
    move, steps : from the parent to this node.
    g : number of moves from the start.
    h : potential, an estimate of the number of moves to the goal.
    limb : the limb that moved last; None at the start.
    requirements_met : indices of the requirements already satisfied on the path to this node.
    index : index in the record.
    motion_blocked : whether the motion to this node is blocked.
    unreachable : {limb: [(direction from the nominal position, distance)]} of candidates out of reach from here.
    unliftable : sets of patches that cannot be lifted from here.
    blocked_edges : edges from this node with a blocked motion.
    """

    contacts: tuple[Contact, ...]
    progress: dict[str, ContactProgress]
    q: np.ndarray
    parent: "StanceNode | None"
    move: Move | None
    steps: tuple[ContactStep, ...]
    g: float
    h: float
    limb: str | None
    requirements_met: frozenset[int]
    index: int
    motion_blocked: bool = False
    unreachable: dict[str, list[tuple[np.ndarray, float]]] = field(default_factory=dict)
    unliftable: set[tuple[str, ...]] = field(default_factory=set)
    blocked_edges: set[tuple[Move | None, tuple[bytes, ...]]] = field(default_factory=set)

    @property
    def touching(self) -> dict[str, Contact]:
        """The contacts by patch."""
        return {contact.patch: contact for contact in self.contacts}

    @property
    def edge(self) -> tuple[Move | None, tuple[bytes, ...]]:
        """The move to this node, with its postures."""
        return self.move, tuple(step.q.tobytes() for step in self.steps)

    @property
    def on_blocked_path(self) -> bool:
        """Whether the motion to this node or to one of its ancestors is blocked."""
        return any(node.motion_blocked for node in self._ancestors())

    def path(self) -> list["StanceNode"]:
        """Return the nodes from the start to this one."""
        return list(self._ancestors())[::-1]

    def _ancestors(self) -> Iterator["StanceNode"]:
        node: StanceNode | None = self
        while node is not None:
            yield node
            node = node.parent


def swing_to(parent: StanceNode, node: StanceNode) -> SwingMotion | None:
    """Return the swing from one node to the next, or None without a swing."""
    assert node.move is not None
    if not node.move.added or node.move.rolling:
        return None
    common = tuple(contact for contact in parent.contacts if contact.patch not in node.move.removed)
    added = tuple(node.touching[patch] for patch, _ in node.move.added)
    q0 = node.steps[len(node.move.removed) - 1].q if node.move.removed else parent.q
    return SwingMotion(common, parent.touching.get(added[0].patch), added, q0, node.q)


def shifts_to(parent: StanceNode, node: StanceNode) -> Iterator[BodyShift]:
    """Yield the body motions before a limb lifts: one to the posture of each opening contact."""
    assert node.move is not None
    if not node.move.removed or node.move.rolling:
        return
    leaving = tuple(contact for contact in parent.contacts if contact.patch in node.move.removed)
    yield BodyShift(parent.contacts, leaving, parent.q, node.steps[0].q)
    for before, step in pairwise(node.steps[: len(leaving)]):
        if step.q is not before.q:
            opens = tuple(contact for contact in leaving if contact.patch == step.moved)
            yield BodyShift(before.contacts, opens, before.q, step.q)


def contact_cell(contact: Contact, meets_goal: bool, size: float = 1.0) -> tuple:
    """Return the cell of a contact; ``meets_goal``: whether it meets the goal."""
    return cell_of_coordinates(contact.patch, {"surface": contact.support, **contact.coordinates}, meets_goal, size)


def cell_of_coordinates(patch: str, spec: Mapping, meets_goal: bool, size: float = 1.0) -> tuple:
    """Return the cell of a contact by its coordinates ``spec``; contacts of the goal have separate cells."""
    width = size * CELL_WIDTH_M
    if "along" in spec:
        return (patch, spec["surface"], meets_goal, round(float(spec["along"]) / width), 0, 0)
    x, y = (round(float(spec[name]) / width) for name in ("x", "y"))
    return (patch, spec["surface"], meets_goal, x, y, round(float(spec.get("yaw", 0.0)) / CELL_TURN_RAD))


def mean_of(values: list[float]) -> float:
    """Return the mean of a few numbers, ten times faster than NumPy."""
    return sum(values) / len(values)
