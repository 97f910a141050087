"""Motions of a path that something bars on their way: such a path is not a plan."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from mcplan.doing import doing
from mcplan.planning.posture.violation import Violation
from mcplan.planning.prover import Prover
from mcplan.planning.search.node import Node, shifts_to, swing_to
from mcplan.planning.transition.swing import BodyShift, Swing


@dataclass(frozen=True, eq=False)
class BarredMotion:
    """A motion that is barred: the node that it leads to, and what is in its way."""

    node: Node
    motion: Swing | BodyShift
    violations: tuple[Violation, ...]


@dataclass(frozen=True, eq=False)
class Barred:
    """A path with motions that are barred.

    Attributes
    ----------
    path : its nodes.
    motions : those that are barred, in order.
    """

    path: list[Node]
    motions: list[BarredMotion]

    @property
    def rank(self) -> tuple[int, float]:
        """How bad it is: the number of barred motions, and the most that is missing (m)."""
        return len(self.motions), max(one.violations[0].amount for one in self.motions)


def barred_motions(prover: Prover, path: Sequence[Node]) -> list[BarredMotion]:
    """Return the motions of a path that are barred somewhere on their way."""
    found = []
    for k, (parent, node) in enumerate(pairwise(path), start=1):
        doing("checking the motion of move", k, len(path) - 1)
        for motion in _motions(parent, node):
            if violations := prover.barred(motion):
                found.append(BarredMotion(node, motion, violations))
    return found


def _motions(parent: Node, node: Node) -> Iterator[Swing | BodyShift]:
    yield from shifts_to(parent, node)
    if (swing := swing_to(parent, node)) is not None:
        yield swing
