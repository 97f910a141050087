"""Motions of a path that something bars on their way: such a path is not a plan."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from mcplan.doing import doing
from mcplan.planning.chain import is_retracted
from mcplan.planning.posture.violation import Violation
from mcplan.planning.prover import Prover
from mcplan.planning.search.node import Node, shifts_to, swing_to
from mcplan.planning.transition.swing import ProvenMotion, Retraction


@dataclass(frozen=True, eq=False)
class BarredMotion:
    """A motion that is barred: the node that it leads to, and what is in its way."""

    node: Node
    motion: ProvenMotion
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


def barred_motions(prover: Prover, path: Sequence[Node]) -> Iterator[BarredMotion]:
    """Yield the motions of a path that are barred somewhere on their way, in order."""
    for k, node, motion in _motions(prover, path):
        doing("checking the motion of move", k, len(path) - 1)
        if violations := prover.barred(motion):
            yield BarredMotion(node, motion, violations)


def _motions(prover: Prover, path: Sequence[Node]) -> Iterator[tuple[int, Node, ProvenMotion]]:
    """Yield the motions of a path as the plan will have them, with the nodes that they lead to.

    Where a patch has been let go and lifted clear, the next motion begins in the posture in which that has ended.
    """
    steps = [step for node in path[1:] for step in node.steps]
    number, let_go, clear = 0, path[0].q, path[0].q
    for k, (parent, node) in enumerate(pairwise(path), start=1):
        for shift in shifts_to(parent, node):
            yield k, node, replace(shift, q0=clear) if np.array_equal(shift.q0, let_go) else shift
        first = node.move.removed if node.move and not node.move.rolling else ()
        last = number + len(first) - 1
        if first and last + 1 < len(steps) and is_retracted(prover.robot, steps, last):
            step = steps[last]
            retraction = Retraction(step.contacts, parent.touching[step.moved], step.q)
            yield k, node, retraction
            let_go, clear = step.q, retraction.segment(prover.segments).q[-1]
        if (swing := swing_to(parent, node)) is not None:
            off = clear is not let_go and np.array_equal(swing.q0, let_go)
            yield k, node, replace(swing, q0=clear, before=None) if off else swing
        number += len(node.steps)
