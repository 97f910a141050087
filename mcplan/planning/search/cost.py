"""Cost of the stance search: potential of a stance from its contacts alone, weights, revisited supports, and noise.

    h = sum_i w_i term_i      in moves to the goal; known before any posture, so that only the best are proven
    f = g + w h               g moves so far, w the weight of the search pass; greedy: h + 0.001 g

The terms, with their weights (`CostWeights`) in brackets:

    goal limb      (|s_goal - s| + aside) / stride  + [other_place | other_patch | no_contact],  aside alone in the goal
                   the largest over its patches, and [further_patch] of the others
                   + [edge_alone] where it touches with one edge,  + [forbidden_patch] per patch the goal forbids
    other limb     max(0, mean s of goal limbs - s) / stride + [aside] aside;  [free_limb] if it touches nothing;
                   [forbidden_limb] where the goal forbids it
    goal patches   sum of |s - mean s| / stride, where a posture is asked for on them
                   + [lead] (max - min of |s_goal - s|, 0 in the goal) / stride
    requirements   [requirement] per one without a contact, [unloaded_requirement] per one that waits for load
    queue          [revisit] per visit to the same supports without progress,  [noise] (seeds other than 0)
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from mcplan.planning.goal.item import Goal
from mcplan.planning.posture.limbs import Limb
from mcplan.planning.search.candidates import Candidates
from mcplan.planning.search.node import ContactProgress, Move, StanceNode, mean_of

STRIDE_M = 0.6
"""Progress of one move of a foot, for a robot of the size of HRP-2."""

ASIDE_PER_M = 0.2
"""Cost of the distance from the guide if places are equal otherwise (1/m), for a robot of the size of HRP-2."""

HELPING_LIMB = 0.5
"""Cost of a free limb in later passes, after the other limbs alone have not reached the goal (moves)."""

LEAD = 1.5
"""Cost of the lead of the first limb over the last one, for goals with many limbs. From 1 on a lead gains nothing: a
robot on four legs whose front feet climb ahead is stretched, and cannot lift a hind foot."""

MAX_LATTICE_SHIFT = 0.25
"""Largest shift of a lattice, as a share of its spacing, in both directions."""

MIN_PROGRESS = 0.05
"""Decrease of h (moves) below earlier stances on the same supports that counts as progress."""


@dataclass(frozen=True)
class CostWeights:
    """Weights of the cost, in moves unless stated.

    Attributes
    ----------
    stride : progress of one move (m).
    aside : distance from the guide, if places are equal otherwise (1/m).
    other_place : a goal patch is in contact at another place: less than a move, since it has to move anyway.
    other_patch : another patch of the limb is in contact instead: one move more.
    no_contact : the limb has no contact: as `other_patch`, plus a surcharge for the uncertainty.
    further_patch : share of the terms of a limb's other goal patches, which mostly move with the first.
    edge_alone : a limb in contact with one edge only, from which moves are difficult.
    forbidden_patch, forbidden_limb : contacts that an ``only`` goal forbids; goal limbs remove them by their moves.
    free_limb : a limb without contact that the goal does not mention.
    lead : lead of the first limb over the last one, per stride.
    requirement, unloaded_requirement : one move for the contact, half of one until it carries load.
    revisit : each visit to the same supports without progress. A dead end has many neighbours with a similar h; the
        path leads over other supports, with a higher h at first.
    noise : largest random increase of a candidate's cost: less than the gain of a step, more than the difference of
        neighbouring places.
    deprioritized : in units of f, for candidates of low priority, which are checked after all others.
    """

    stride: float = STRIDE_M
    aside: float = ASIDE_PER_M
    other_place: float = 0.2
    other_patch: float = 1.2
    no_contact: float = 1.7
    further_patch: float = 0.1
    edge_alone: float = 0.5
    forbidden_patch: float = 0.3
    forbidden_limb: float = 0.5
    free_limb: float = HELPING_LIMB
    lead: float = 0.0
    requirement: float = 1.0
    unloaded_requirement: float = 0.5
    revisit: float = 0.1
    noise: float = 0.1
    deprioritized: float = 3.0

    @classmethod
    def of(cls, size: float, effort: "SearchPass") -> "CostWeights":
        """Return the weights of one pass for a robot of a size, 1 for HRP-2."""
        return cls(size * STRIDE_M, ASIDE_PER_M / size, free_limb=effort.free_limb, lead=effort.lead)


class SearchPass(NamedTuple):
    """One pass of the search.

    Attributes
    ----------
    weight : of h against moves; inf is greedy.
    calls : budget of posture generator calls.
    window : largest distance of a contact from the mean progress of the others (m).
    grid : distance of the candidates for contacts (m).
    free_limb, lead : see `CostWeights`.
    """

    weight: float
    calls: int
    window: float
    grid: float = 0.0
    free_limb: float = 0.0
    lead: float = 0.0

    def f(self, g: float, h: float) -> float:
        """Return the priority of a node in the queue."""
        return h + 1e-3 * g if np.isinf(self.weight) else g + self.weight * h


def search_passes(step: float, size: float, helping: bool, many: bool = False) -> list[SearchPass]:
    """Return the passes of a search, one after the other until one reaches the goal: coarse and greedy first.

    Limbs that the goal does not mention stay free at first, except those that the scenario requires. In later passes
    their contacts count as progress, for scenes in which a hand must hold before a foot can move. On `stairs_rail` the
    first passes need 16 to 18 stances, the later ones up to 68, in which a hand moves along with each foot.

    Parameters
    ----------
    step : window of progress of the scenario (m).
    size : of the robot, 1 for HRP-2.
    helping : whether limbs that the goal does not mention may help.
    many : whether the goal has more than two limbs, which may get ahead of each other.
    """
    coarse, fine, free = 0.10 * size, 0.05 * size, HELPING_LIMB if helping else 0.0
    alone = SearchPass(np.inf, 300, step, coarse)
    return [
        alone,
        *([alone._replace(free_limb=free)] if helping else []),
        SearchPass(4.0, 700, step, coarse, free),
        *([SearchPass(4.0, 700, step, coarse, free, LEAD)] if many else []),
        SearchPass(np.inf, 700, step + 0.1 * size, fine, free),
        SearchPass(2.0, 2000, step + 0.2 * size, fine, free),
    ]


@dataclass(frozen=True, eq=False)
class Potential:
    """The potential h of one goal.

    Attributes
    ----------
    goal : item to reach.
    limbs : by name.
    target : progress of each goal patch (m).
    weights : of its terms.
    posed : whether nominal places are those of the goal posture: contacts have to fit together.
    """

    goal: Goal
    limbs: dict[str, Limb]
    target: dict[str, float]
    weights: CostWeights = field(default_factory=CostWeights)
    posed: bool = False

    def __call__(self, touching: Mapping[str, ContactProgress], missing: float = 0.0) -> float:
        """Return h.

        Parameters
        ----------
        touching : the contacts by patch.
        missing : number of moves for the open requirements.
        """
        w = self.weights
        everything = [at.s for at in touching.values()]
        mean = mean_of(everything) if everything else 0.0
        h, goal_s, distances = missing, list[float](), list[float]()
        free: list[list[ContactProgress]] = []
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
                    s, aside, extra = at.s, at.aside, 0.0 if at.hit else w.other_place
                elif own:
                    s, aside, extra = mean_of([x.s for x in own]), own[0].aside, w.other_patch
                else:
                    s, aside, extra = mean, 0.0, w.no_contact
                if at is not None and at.hit:
                    terms.append(w.aside * aside)
                else:
                    terms.append((abs(self.target[patch] - s) + aside) / w.stride + extra)
                goal_s.append(s)
                distances.append(0.0 if at is not None and at.hit else abs(self.target[patch] - s))
            h += max(terms) + w.further_patch * (sum(terms) - max(terms))
            if self.goal.item.only:
                h += w.forbidden_patch * sum(patch in touching and patch not in wanted for patch in limb.patches)
            elif len(own) == 1 and own[0].line:
                h += w.edge_alone
        front = mean_of(goal_s) if goal_s else mean
        if w.lead and distances:
            h += w.lead * (max(distances) - min(distances)) / w.stride
        if self.posed:
            h += float(np.abs(np.array(goal_s) - front).sum()) / w.stride
        for places in free:
            if self.goal.item.only:
                h += w.forbidden_limb * bool(places)
            elif places:
                ahead = max(places, key=lambda at: at.s)
                h += max(0.0, front - ahead.s) / w.stride + w.aside * ahead.aside
            else:
                h += w.free_limb
        return h


Supports = frozenset[tuple[str, str]]


class SupportVisitCounter:
    """Visits of one search pass to the same supports without progress, which leads it out of traps.

    Parameters
    ----------
    sampled : candidates by patch, which moves lead to.
    """

    def __init__(self, sampled: Mapping[str, Candidates]):
        self.sampled = sampled
        self._visits: dict[Supports, tuple[float, int]] = {}

    def add(self, node: StanceNode) -> None:
        """Count a stance."""
        supports = _supports(node)
        least, visits = self._visits.get(supports, (np.inf, 0))
        self._visits[supports] = (node.h, 0) if node.h < least - MIN_PROGRESS else (least, visits + 1)

    def add_failure(self, node: StanceNode, move: Move) -> None:
        """Count a move of ``node`` to other supports that is infeasible."""
        supports = self._after(node, move)
        if supports != _supports(node):
            least, visits = self._visits.get(supports, (np.inf, 0))
            self._visits[supports] = (least, visits + 1)

    def visits(self, node: StanceNode, move: Move) -> int:
        """Return the number of visits since the last progress to the supports after a move of ``node``."""
        return self._visits.get(self._after(node, move), (np.inf, 0))[1]

    def _after(self, node: StanceNode, move: Move) -> Supports:
        added = ((patch, str(self.sampled[patch].specs[i]["surface"])) for patch, i in move.added)
        return _supports(node, move.removed).union(added)


def _supports(node: StanceNode, removed: Iterable[str] = ()) -> Supports:
    return frozenset((contact.patch, contact.support) for contact in node.contacts if contact.patch not in removed)


class SeededPerturbation:
    """Random perturbation of one planning: order of candidates of nearly equal cost, and shifts of lattices.

    Parameters
    ----------
    seed : 0 draws nothing: no noise, no shift. The same seed gives the same plan; another one may find another plan, or
        one where the first found none.
    """

    def __init__(self, seed: int = 0):
        self._rng = np.random.default_rng(seed) if seed else None

    def noise(self) -> float:
        """Return the next draw from [0, 1)."""
        return 0.0 if self._rng is None else float(self._rng.random())

    def shift(self) -> np.ndarray:
        """Return the shift (2,) of the next lattice, as a share of its spacing, along both axes of its support."""
        return np.zeros(2) if self._rng is None else self._rng.uniform(-MAX_LATTICE_SHIFT, MAX_LATTICE_SHIFT, 2)
