"""How many stances on the same supports have been reached in vain: what leads a search out of a trap.

    cost = CROWDED * [stances on these supports since the one of them that came nearest to the goal]

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
"""Moves that a candidate seems farther from the goal for each stance on its supports that was in vain."""


class Crowds:
    """The stances of one run of a search, by their supports."""

    def __init__(self) -> None:
        self._of: dict[frozenset[tuple[str, str]], tuple[float, int]] = {}

    def count(self, node: Node) -> None:
        """Count a stance that was reached."""
        on = _supports(node)
        least, vain = self._of.get(on, (np.inf, 0))
        self._of[on] = (node.h, 0) if node.h < least - NEARER else (least, vain + 1)

    def cost(self, node: Node, move: Move, sampled: Mapping[str, Candidates]) -> float:
        """Return by how many moves what a move of ``node`` leads to seems farther away."""
        on = _supports(node, move.removed) | {
            (patch, str(sampled[patch].specs[i]["surface"])) for patch, i in move.added
        }
        return CROWDED * self._of.get(on, (0.0, 0))[1]


def _supports(node: Node, removed: Iterable[str] = ()) -> frozenset[tuple[str, str]]:
    return frozenset((contact.patch, contact.support) for contact in node.contacts if contact.patch not in removed)
