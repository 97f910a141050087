"""Cost of the stance search: potential of a stance from its contacts alone, weights, revisited supports, and noise.

    h = sum_i w_i term_i      estimated number of moves to the goal, without a posture; only promising moves get one
    f = g + w h               g number of moves so far, w weight of the search pass; in a greedy pass f = h + 0.001 g

The terms, with their weights (`CostWeights`) in brackets. s is the progress of a contact on the guide, d its distance
from the guide, stride the progress of one move:

    goal limb      the largest cost of its goal patches, and [further_patch] times the other costs. Cost of a patch:
                   [guide_distance] d in the goal, else (|s_goal - s| + d) / stride
                   + [other_place | other_patch | no_contact].
                   [edge_alone] if its only contact is an edge,  [forbidden_patch] per patch that the goal forbids
    other limb     max(0, mean s of goal patches - s) / stride + [guide_distance] d;  [free_limb] without a contact;
                   [forbidden_limb] if the goal forbids its contacts
    goal patches   sum of |s - mean s| / stride, if they have to suit a posture
                   + [lead] (max - min of |s_goal - s|, which counts as 0 in the goal) / stride
    requirements   [requirement] per one without a contact, [unloaded_requirement] per one with a contact without load
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

GUIDE_DISTANCE_COST_PER_M = 0.2
"""Cost of the distance from the guide (1/m), for a robot of the size of HRP-2."""

FREE_LIMB_COST = 0.5
"""Cost of a free limb in later passes, after the other limbs alone have not reached the goal (moves)."""

LEAD_COST = 1.5
"""Cost of the lead of the first limb over the last one, for goals with many limbs. From 1 on a lead gains nothing: a
robot on four legs whose front feet climb ahead is stretched, and cannot lift a hind foot."""

MAX_LATTICE_SHIFT = 0.25
"""Largest shift of a lattice along each of its axes, as a share of its spacing."""

MIN_PROGRESS = 0.05
"""Decrease of h (moves) below earlier stances on the same supports that counts as progress."""


@dataclass(frozen=True)
class CostWeights:
    """Weights of the cost, in moves unless stated.

    Attributes
    ----------
    stride : progress of one move (m).
    guide_distance : per metre of distance from the guide (1/m), to choose between contacts with the same progress.
    other_place : for a goal patch in contact elsewhere: less than a move, since it has to move anyway.
    other_patch : for a limb in contact with another patch than that of the goal: one move more.
    no_contact : for a goal limb without contact: as `other_patch`, plus a surcharge for the uncertainty.
    further_patch : share of the costs of a limb's other goal patches, which mostly move with the first.
    edge_alone : for a limb in contact with one edge only, from which moves are difficult.
    forbidden_patch, forbidden_limb : per contact that an ``only`` goal forbids; goal limbs remove them by their moves.
    free_limb : for a limb without contact that the goal does not mention.
    lead : per stride by which the first limb is ahead of the last one.
    requirement, unloaded_requirement : one move for the contact, half of one until it carries load.
    revisit : per visit to the same supports without progress. A dead end has many neighbours with a similar h; the path
        leads over other supports, with a higher h at first.
    noise : largest random increase of a candidate's cost: less than the gain of a step, more than the difference
        between neighbouring candidates.
    deprioritized : increase of f for candidates of low priority, which are checked after all others.
    """

    stride: float = STRIDE_M
    guide_distance: float = GUIDE_DISTANCE_COST_PER_M
    other_place: float = 0.2
    other_patch: float = 1.2
    no_contact: float = 1.7
    further_patch: float = 0.1
    edge_alone: float = 0.5
    forbidden_patch: float = 0.3
    forbidden_limb: float = 0.5
    free_limb: float = FREE_LIMB_COST
    lead: float = 0.0
    requirement: float = 1.0
    unloaded_requirement: float = 0.5
    revisit: float = 0.1
    noise: float = 0.1
    deprioritized: float = 3.0

    @classmethod
    def of(cls, size: float, search_pass: "SearchPass") -> "CostWeights":
        """Return the weights of one pass for a robot of a size, 1 for HRP-2."""
        return cls(
            size * STRIDE_M, GUIDE_DISTANCE_COST_PER_M / size, free_limb=search_pass.free_limb, lead=search_pass.lead
        )


class SearchPass(NamedTuple):
    """One pass of the search.

    Attributes
    ----------
    weight : weight of h relative to the number of moves; inf for a greedy pass.
    calls : budget of posture generator calls.
    window : largest distance of a new contact from the mean progress of the contacts of other limbs (m).
    grid : spacing of the candidate contacts (m).
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


def search_passes(step: float, size: float, others_may_help: bool, many_limbs: bool = False) -> list[SearchPass]:
    """Return the passes of a search, tried in turn until one reaches the goal: coarse and greedy ones first.

    Limbs that the goal does not mention stay free at first, except those that the scenario requires. In later passes a
    free limb has a cost, for scenes in which a hand must hold before a foot can move. On `stairs_rail` the first passes
    need 16 to 18 stances, the later ones up to 68, in which a hand moves along with each foot.

    Parameters
    ----------
    step : window of the scenario (m), see `SearchPass`.
    size : size of the robot, 1 for HRP-2.
    others_may_help : whether limbs that the goal does not mention may make contact to help.
    many_limbs : whether the goal has more than two limbs, some of which may get far ahead of others.
    """
    coarse, fine, free = 0.10 * size, 0.05 * size, FREE_LIMB_COST if others_may_help else 0.0
    alone = SearchPass(np.inf, 300, step, coarse)
    return [
        alone,
        *([alone._replace(free_limb=free)] if others_may_help else []),
        SearchPass(4.0, 700, step, coarse, free),
        *([SearchPass(4.0, 700, step, coarse, free, LEAD_COST)] if many_limbs else []),
        SearchPass(np.inf, 700, step + 0.1 * size, fine, free),
        SearchPass(2.0, 2000, step + 0.2 * size, fine, free),
    ]


@dataclass(frozen=True, eq=False)
class Potential:
    """The potential h of one goal.

    Attributes
    ----------
    goal : goal to reach.
    limbs : by name.
    target : progress of each goal patch at the goal (m).
    weights : weights of the terms.
    suits_posture : whether the contacts have to suit the posture of the goal, so that the patches keep together.
    """

    goal: Goal
    limbs: dict[str, Limb]
    target: dict[str, float]
    weights: CostWeights = field(default_factory=CostWeights)
    suits_posture: bool = False

    def __call__(self, touching: Mapping[str, ContactProgress], requirement_moves: float = 0.0) -> float:
        """Return h.

        Parameters
        ----------
        touching : the contacts by patch.
        requirement_moves : number of moves for the unmet requirements.
        """
        w = self.weights
        all_s = [at.s for at in touching.values()]
        mean = mean_of(all_s) if all_s else 0.0
        h, goal_s, distances = requirement_moves, list[float](), list[float]()
        free: list[list[ContactProgress]] = []
        for limb in self.limbs.values():
            goal_patches = [patch for patch in limb.patches if patch in self.target]
            limb_contacts = [touching[patch] for patch in limb.patches if patch in touching]
            if not goal_patches:
                free.append(limb_contacts)
                continue
            costs = []
            for patch in goal_patches:
                at = touching.get(patch)
                if at is not None:
                    s, d, extra = at.s, at.guide_distance, 0.0 if at.meets_goal else w.other_place
                elif limb_contacts:
                    s, d = mean_of([x.s for x in limb_contacts]), limb_contacts[0].guide_distance
                    extra = w.other_patch
                else:
                    s, d, extra = mean, 0.0, w.no_contact
                if at is not None and at.meets_goal:
                    costs.append(w.guide_distance * d)
                else:
                    costs.append((abs(self.target[patch] - s) + d) / w.stride + extra)
                goal_s.append(s)
                distances.append(0.0 if at is not None and at.meets_goal else abs(self.target[patch] - s))
            h += max(costs) + w.further_patch * (sum(costs) - max(costs))
            if self.goal.item.only:
                h += w.forbidden_patch * sum(patch in touching and patch not in goal_patches for patch in limb.patches)
            elif len(limb_contacts) == 1 and limb_contacts[0].is_edge:
                h += w.edge_alone
        front = mean_of(goal_s) if goal_s else mean
        if w.lead and distances:
            h += w.lead * (max(distances) - min(distances)) / w.stride
        if self.suits_posture:
            h += float(np.abs(np.array(goal_s) - front).sum()) / w.stride
        for limb_contacts in free:
            if self.goal.item.only:
                h += w.forbidden_limb * bool(limb_contacts)
            elif limb_contacts:
                foremost = max(limb_contacts, key=lambda at: at.s)
                h += max(0.0, front - foremost.s) / w.stride + w.guide_distance * foremost.guide_distance
            else:
                h += w.free_limb
        return h


Supports = frozenset[tuple[str, str]]
"""Pairs of a patch and its support."""


class SupportVisitCounter:
    """Counter of visits to the same supports without progress, whose cost leads a search pass out of dead ends.

    Parameters
    ----------
    candidates : candidate contacts by patch.
    """

    def __init__(self, candidates: Mapping[str, Candidates]):
        self.candidates = candidates
        self._visits: dict[Supports, tuple[float, int]] = {}

    def add(self, node: StanceNode) -> None:
        """Count a stance."""
        supports = _supports(node)
        least, visits = self._visits.get(supports, (np.inf, 0))
        self._visits[supports] = (node.h, 0) if node.h < least - MIN_PROGRESS else (least, visits + 1)

    def add_failure(self, node: StanceNode, move: Move) -> None:
        """Count a move of ``node`` to other supports that is infeasible."""
        supports = self._supports_after(node, move)
        if supports != _supports(node):
            least, visits = self._visits.get(supports, (np.inf, 0))
            self._visits[supports] = (least, visits + 1)

    def visits(self, node: StanceNode, move: Move) -> int:
        """Return the number of visits since the last progress to the supports after a move of ``node``."""
        return self._visits.get(self._supports_after(node, move), (np.inf, 0))[1]

    def _supports_after(self, node: StanceNode, move: Move) -> Supports:
        added = ((patch, str(self.candidates[patch].specs[i]["surface"])) for patch, i in move.added)
        return _supports(node, move.removed).union(added)


def _supports(node: StanceNode, removed: Iterable[str] = ()) -> Supports:
    return frozenset((contact.patch, contact.support) for contact in node.contacts if contact.patch not in removed)


class SeededPerturbation:
    """Random perturbation of one planner call: order of candidates of nearly equal cost, and shifts of lattices.

    Parameters
    ----------
    seed : 0 for neither noise nor shift. The same seed gives the same plan; another seed may find another plan, also
        where the first seed finds none.
    """

    def __init__(self, seed: int = 0):
        self._rng = np.random.default_rng(seed) if seed else None

    def noise(self) -> float:
        """Return the next draw from [0, 1)."""
        return 0.0 if self._rng is None else float(self._rng.random())

    def shift(self) -> np.ndarray:
        """Return the shift (2,) of the next lattice, as a share of its spacing, along both axes of its support."""
        return np.zeros(2) if self._rng is None else self._rng.uniform(-MAX_LATTICE_SHIFT, MAX_LATTICE_SHIFT, 2)
