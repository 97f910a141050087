"""Swings of a path that something bars on their way: such a path is not a plan."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from mcplan.planning.posture.violation import Violation
from mcplan.planning.prover import Prover
from mcplan.planning.search.node import Node, swing_to
from mcplan.planning.transition.swing import Swing

SHUFFLE = 0.05
"""m: a patch that moves less on its support needs no swing."""

BarredSwing = tuple[Swing, tuple[Violation, ...]]


@dataclass(frozen=True, eq=False)
class Barred:
    """A path with swings that are barred.

    Attributes
    ----------
    path : its nodes.
    swings : those that are barred, with what is in the way, in order.
    """

    path: list[Node]
    swings: list[BarredSwing]

    @property
    def rank(self) -> tuple[int, float]:
        """How bad it is: the number of barred swings, and the most that is missing (m)."""
        return len(self.swings), max(violations[0].amount for _, violations in self.swings)


def barred_swings(prover: Prover, path: Sequence[Node]) -> list[BarredSwing]:
    """Return the swings of a path that are barred somewhere on their way."""
    found = []
    for parent, node in pairwise(path):
        swing = swing_to(parent, node)
        if swing is not None and swing.length >= SHUFFLE and (violations := prover.barred(swing)):
            found.append((swing, violations))
    return found
