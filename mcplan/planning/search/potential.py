"""How far a stance is from the goal, from its contacts alone.

    h  = sum over goal limbs: (|s_goal - s| + aside) / stride + 0.2 [not yet the goal contact] + [patches that change]
       + sum over other limbs: free_limb if it touches nothing,
                               else max(0, mean s of goal limbs - s) / stride + 0.2 aside
       + sum over goal patches: |s - mean s| / stride, where a posture is asked for on them
       + lead (max - min of |s_goal - s|, 0 in the goal) / stride, over the goal patches
       + 1 per requirement that is not met yet,  + 0.5 per contact that the goal forbids,  + 0.5 per limb on one edge

In moves; known before any posture, which is what lets the search prove a stance only when its turn comes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mcplan.planning.goal.item import Goal
from mcplan.robot.anatomy import Limb


class Standing(NamedTuple):
    """A contact on the guide: progress, distance from the guide (m), whether it is the goal's, and an edge."""

    s: float
    aside: float
    hit: bool
    line: bool = False


FREE_LIMB = 0.5
"""Moves that a limb which touches nothing is from where it may help, once the others alone have not got there."""

TIE = 0.2
"""1/m: price of a place beside the guide where nothing else tells places apart."""


@dataclass(frozen=True, eq=False)
class Potential:
    """The potential of one goal.

    Attributes
    ----------
    goal : item to reach.
    limbs : by name.
    target : progress of each goal patch (m).
    stride : progress of one move (m).
    free_limb : price of a limb that touches nothing, of those the goal says nothing about.
    posed : whether nominal places are those of a posture that is asked for: contacts have to fit together.
    tie : price of a place beside the guide where nothing else tells places apart, 1/m.
    lead : price of the limb farthest ahead over the one farthest behind; 1 and more: the last one goes first.
    """

    goal: Goal
    limbs: dict[str, Limb]
    target: dict[str, float]
    stride: float
    free_limb: float = FREE_LIMB
    posed: bool = False
    tie: float = TIE
    lead: float = 0.0

    def __call__(self, touching: Mapping[str, Standing], missing: float = 0.0) -> float:
        """Return h.

        Parameters
        ----------
        touching : the contacts by patch.
        missing : moves that the requirements take that no stance so far has met.
        """
        everything = [standing.s for standing in touching.values()]
        mean = mean_of(everything) if everything else 0.0
        h, own_s, left = missing, list[float](), list[float]()
        free: list[list[Standing]] = []
        for limb in self.limbs.values():
            wanted = [patch for patch in limb.patches if patch in self.target]
            own = [touching[patch] for patch in limb.patches if patch in touching]
            if not wanted:
                free.append(own)
                continue
            terms = []
            for patch in wanted:
                at = touching.get(patch)
                if at is not None:
                    s, aside, extra = at.s, at.aside, 0.0 if at.hit else 0.2
                elif own:
                    s, aside, extra = mean_of([x.s for x in own]), own[0].aside, 1.2
                else:
                    s, aside, extra = mean, 0.0, 1.7
                if at is not None and at.hit:
                    terms.append(self.tie * aside)
                else:
                    terms.append((abs(self.target[patch] - s) + aside) / self.stride + extra)
                own_s.append(s)
                left.append(0.0 if at is not None and at.hit else abs(self.target[patch] - s))
            h += max(terms) + 0.1 * (sum(terms) - max(terms))
            if self.goal.item.only:
                h += 0.3 * sum(1 for patch in limb.patches if patch in touching and patch not in wanted)
            elif len(own) == 1 and own[0].line:
                h += 0.5
        front = mean_of(own_s) if own_s else mean
        if self.lead and left:
            h += self.lead * (max(left) - min(left)) / self.stride
        if self.posed:
            h += float(np.abs(np.array(own_s) - front).sum()) / self.stride
        for places in free:
            if self.goal.item.only:
                h += 0.5 * bool(places)
            elif places:
                ahead = max(places, key=lambda standing: standing.s)
                h += max(0.0, front - ahead.s) / self.stride + self.tie * ahead.aside
            else:
                h += self.free_limb
        return h


def mean_of(values: Sequence[float]) -> float:
    """Return the mean of a few numbers; NumPy takes ten times as long for them."""
    return sum(values) / len(values)
