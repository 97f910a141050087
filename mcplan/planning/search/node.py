"""Nodes and edges of the search: a stance with its posture, and the move of one limb that leads to it."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from mcplan.planning.plan import Change
from mcplan.planning.search.potential import Standing
from mcplan.planning.transition.segments import BodyShift, SwingMotion
from mcplan.scene.contact import Contact


@dataclass(frozen=True, eq=False)
class Step(Change):
    """A change of one contact in a move of the search, as the plan will list it.

    Attributes
    ----------
    in_place : those of the larger stance; ``loaded`` names those that carry.
    q : (nq,) linking posture.
    touching : all contacts in place there: several when a limb moves more than one patch.
    """

    in_place: tuple[Contact, ...]
    loaded: tuple[str, ...]
    q: np.ndarray
    touching: tuple[Contact, ...]


@dataclass(frozen=True, eq=False)
class Move:
    """A move of one limb that is not proven yet.

    Attributes
    ----------
    limb : its name.
    removed : patches that leave.
    added : (patch, index of its candidate), in the order of touching.
    rolling : the new contact touches before the old one leaves (sole to toe, in place).
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
class Node:
    """A stance that is proven.

    Attributes
    ----------
    contacts : sorted by patch.
    standing : the same on the guide.
    q : (nq,) posture at which it was reached.
    move, steps : from the parent to here.
    g : moves so far; ``h`` the potential.
    limb : that moved last; None at the start.
    met : requirements that were met on the way, by index: a patch carried what was asked for.
    index : in the record.
    dead : whether the motion that leads here was found to be barred.
    failed : {limb: [(direction from the nominal place, distance)]} of places that were out of reach.
    stuck : sets of patches that cannot be lifted.
    barred : moves from here with the postures on the way of each, between which a motion was found to be barred.
    """

    contacts: tuple[Contact, ...]
    standing: dict[str, Standing]
    q: np.ndarray
    parent: "Node | None"
    move: Move | None
    steps: tuple[Step, ...]
    g: float
    h: float
    limb: str | None
    met: frozenset[int]
    index: int
    dead: bool = False
    failed: dict[str, list[tuple[np.ndarray, float]]] = field(default_factory=dict)
    stuck: set[tuple[str, ...]] = field(default_factory=set)
    barred: set[tuple[Move | None, tuple[bytes, ...]]] = field(default_factory=set)

    @property
    def touching(self) -> dict[str, Contact]:
        """The contacts by patch."""
        return {contact.patch: contact for contact in self.contacts}

    @property
    def way(self) -> tuple[Move | None, tuple[bytes, ...]]:
        """The move that leads here, with its postures."""
        return self.move, tuple(step.q.tobytes() for step in self.steps)

    @property
    def lost(self) -> bool:
        """Whether it, or a node that leads to it, is dead."""
        node: Node | None = self
        while node is not None and not node.dead:
            node = node.parent
        return node is not None

    def path(self) -> list["Node"]:
        """Return the nodes from the start to here."""
        nodes, node = [], self
        while node is not None:
            nodes.append(node)
            node = node.parent  # type: ignore[assignment]
        return nodes[::-1]


def swing_to(parent: Node, node: Node) -> SwingMotion | None:
    """Return the swing that leads from one node to the next, None where nothing swings."""
    assert node.move is not None
    if not node.move.added or node.move.rolling:
        return None
    common = tuple(contact for contact in parent.contacts if contact.patch not in node.move.removed)
    added = tuple(node.touching[patch] for patch, _ in node.move.added)
    q0 = node.steps[len(node.move.removed) - 1].q if node.move.removed else parent.q
    return SwingMotion(common, parent.touching.get(added[0].patch), added, q0, node.q)


def shifts_to(parent: Node, node: Node) -> Iterator[BodyShift]:
    """Yield the motions of the body before the limb of a move lifts: to where it opens, and on to where more opens."""
    assert node.move is not None
    if not node.move.removed or node.move.rolling:
        return
    leaving = tuple(contact for contact in parent.contacts if contact.patch in node.move.removed)
    yield BodyShift(parent.contacts, leaving, parent.q, node.steps[0].q)
    for before, step in pairwise(node.steps[: len(leaving)]):
        if step.q is not before.q:
            opens = tuple(contact for contact in leaving if contact.patch == step.moved)
            yield BodyShift(before.contacts, opens, before.q, step.q)
