"""How often the search came to the same supports in vain: what leads it out of a trap.

    cost = CROWDED * [stances reached and moves not proven on these supports, since one came nearer to the goal]

A stance that nothing leads on from has neighbours beyond number, all about as near to the goal: a hand's breadth along
the step, a toe turned. The way on leads over other supports, which look worse at first.
"""

from collections.abc import Iterable, Mapping

import numpy as np

from mcplan.planning.search.candidates import Candidates
from mcplan.planning.search.node import Move, Node

NEARER = 0.05
"""Moves by which a stance has to be nearer to the goal than those before it on its supports, or it was in vain."""

CROWDED = 0.1
"""Moves that a candidate seems farther from the goal for each time that its supports were come to in vain."""

Supports = frozenset[tuple[str, str]]


class Crowds:
    """What one run of a search came to, by supports.

    Parameters
    ----------
    sampled : candidates by patch, which moves lead to.
    """

    def __init__(self, sampled: Mapping[str, Candidates]):
        self.sampled = sampled
        self._of: dict[Supports, tuple[float, int]] = {}

    def reached(self, node: Node) -> None:
        """Count a stance."""
        on = _supports(node)
        least, vain = self._of.get(on, (np.inf, 0))
        self._of[on] = (node.h, 0) if node.h < least - NEARER else (least, vain + 1)

    def failed(self, node: Node, move: Move) -> None:
        """Count a move of ``node`` to other supports that could not be proven."""
        on = self._after(node, move)
        if on != _supports(node):
            least, vain = self._of.get(on, (np.inf, 0))
            self._of[on] = (least, vain + 1)

    def cost(self, node: Node, move: Move) -> float:
        """Return by how many moves what a move of ``node`` leads to seems farther away."""
        return CROWDED * self._of.get(self._after(node, move), (np.inf, 0))[1]

    def _after(self, node: Node, move: Move) -> Supports:
        added = ((patch, str(self.sampled[patch].specs[i]["surface"])) for patch, i in move.added)
        return _supports(node, move.removed).union(added)


def _supports(node: Node, removed: Iterable[str] = ()) -> Supports:
    return frozenset((contact.patch, contact.support) for contact in node.contacts if contact.patch not in removed)
