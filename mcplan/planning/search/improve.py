"""Improvement of a path of moves: fewer moves, steps of equal length, collision-free motions, and refined postures.

Shortening drops or joins moves as long as the rest is still feasible:

    limbs   all moves of a limb that the goal does not ask for
    joins   two moves of a limb become one: it goes at once to where the second one takes it
    drops   one move: its limb stays where it was, until it moves again

Equal steps, since a search finds long and short ones, and bows deeply for the long:

    s_k = s_a + (k - a) / (b - a) (s_b - s_a)      progress of the k-th contact between two of the goal's, a and b

in the order in which they are made. Every contact stays on its support, and the path is checked again.

Refinement optimises postures along a fixed sequence: with more room to every limit, and nearer to their neighbours.

    sweep over k    q_k := posture of the same contacts near   (1 - REFERENCE_SHARE) midpoint(q_k-1, q_k+1)
                           + REFERENCE_SHARE reference

feasible with wider margins than the search asks for, or else with narrower ones, and connected with both neighbours on
the contacts that stay; a posture for which there is none stays. The search stops at the first feasible posture, which
is often at the edge of a constraint; refinement gives a plan the room that executing it needs. Midpoint and mixture
are taken on the manifold of the configurations.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from mcplan.planning.chain import is_retracted
from mcplan.planning.feasibility import Feasibility, OutOfCalls, with_com_inset
from mcplan.planning.posture.continuity import shared_contacts
from mcplan.planning.posture.generator import PostureGenerator
from mcplan.planning.posture.result import Violation
from mcplan.planning.posture.task import PostureSettings
from mcplan.planning.search.node import ContactStep, Move, StanceNode, shifts_to, swing_to
from mcplan.planning.search.stance_search import StanceSearch
from mcplan.planning.transition.segments import ProvenMotion, Retraction
from mcplan.scene.contact import Contact
from mcplan.util.progress import report_progress

MAX_SHORTENING_CALLS, MAX_EQUALIZING_CALLS = 400, 150
"""Calls of the posture generator."""

MAX_YAW_DIFFERENCE_RAD = 0.3
"""A place that replaces another is turned by no more against it."""

MIN_STEP_GAIN_M = 0.04
"""A place that is not nearer to the equal step by this is no improvement; for a robot of the size of HRP-2."""

SWEEPS = 2

REFERENCE_SHARE = 0.3
"""Share of the reference posture in a guide; the rest is the midpoint of the neighbours."""

REFINED = (
    PostureSettings(
        joint_margin=0.08, bent=0.3, com_inset=0.035, comfort=0.06, torque_share=0.7, clearance=0.01, steps=20
    ),
    PostureSettings(
        joint_margin=0.05, bent=0.2, com_inset=0.028, comfort=0.05, torque_share=0.8, clearance=0.006, steps=20
    ),
    # contacts alone may take a joint near its limit: the ankle of a shank that lies on its knee and its toes
    PostureSettings(bent=0.15, com_inset=0.028, comfort=0.05, torque_share=0.8, clearance=0.006, steps=20),
)
"""Settings of refined postures, the most comfortable first."""


# -- fewer moves --------------------------------------------------------------------------------------------------


def shorten(search: StanceSearch, path: list[StanceNode]) -> list[StanceNode]:
    """Return the path without the moves that turned out useless.

    What comes after a change is checked again as far as it rests on other contacts.
    """
    budget = search.space.feasibility.budget
    budget.limit = budget.calls + MAX_SHORTENING_CALLS
    try:
        shorter: list[StanceNode] | None = path
        while shorter is not None:
            path = shorter
            tries = (replay_moves(search, path[0], moves) for moves in _shorter(search, [move_of(n) for n in path[1:]]))
            shorter = next((nodes for nodes in tries if nodes is not None), None)
    except OutOfCalls:
        pass
    return path


def move_of(node: StanceNode) -> Move:
    """Return the move that leads to a node."""
    assert node.move is not None
    return node.move


def _shorter(search: StanceSearch, moves: list[Move]) -> Iterator[list[Move]]:
    """Yield the sequences to try in place of this one."""
    wanted = {search.space.robot.patches[patch].limb for patch in search.space.goal.specs}
    for limb in dict.fromkeys(move.limb for move in moves):
        if limb not in wanted:
            yield [move for move in moves if move.limb != limb]
    for k, move in enumerate(moves):
        again = next((j for j in range(k + 1, len(moves)) if moves[j].limb == move.limb), None)
        if again is not None and moves[again].added and move.added and not (move.rolling or moves[again].rolling):
            yield [*moves[:k], moves[again], *moves[k + 1 : again], *moves[again + 1 :]]
    for k in range(len(moves)):
        yield moves[:k] + moves[k + 1 :]


def replay_moves(search: StanceSearch, node: StanceNode, moves: list[Move]) -> list[StanceNode] | None:
    """Return the nodes of these moves, or None when one is infeasible or they end elsewhere."""
    path = [node]
    for old in moves:
        move = _adapted_move(search, old, node)
        if move is None:
            continue
        if move.limb == node.limb:
            return None
        after = search.checker.child(node, move)
        if after is None:
            return None
        node = after
        path.append(node)
    return path if search.reaches_goal(node) else None


def _adapted_move(search: StanceSearch, move: Move, node: StanceNode) -> Move | None:
    """Return the move as it is from another stance, or None where nothing is left of it."""
    own = tuple(patch for patch in search.space.limbs[move.limb].patches if patch in node.touching)
    if not move.added:
        left = tuple(patch for patch in move.removed if patch in own)
        return Move(move.limb, left, ()) if left else None
    if move.rolling:
        return move if own == move.removed else None
    if not move.removed:
        return move if set(own).isdisjoint(patch for patch, _ in move.added) else None
    return Move(move.limb, own, move.added)


# -- equal steps --------------------------------------------------------------------------------------------------


def shorten_and_equalize(search: StanceSearch, path: list[StanceNode]) -> list[StanceNode]:
    """Return the path without useless moves, its steps of equal length."""
    return equalize_step_lengths(search, shorten(search, path))


def equalize_step_lengths(search: StanceSearch, path: list[StanceNode]) -> list[StanceNode]:
    """Return the path with contacts at equal distances along the guide, or the same one where that is infeasible."""
    equal = _equalized_moves(search, path)
    if equal == [move_of(node) for node in path[1:]]:
        return path
    budget = search.space.feasibility.budget
    budget.limit = budget.calls + MAX_EQUALIZING_CALLS
    try:
        found = replay_moves(search, path[0], equal)
    except OutOfCalls:
        found = None
    return path if found is None or len(found) != len(path) else found


def _equalized_moves(search: StanceSearch, path: list[StanceNode]) -> list[Move]:
    """Return the moves with places of the limbs that the goal asks for as equal as their supports allow."""
    space, moves = search.space, [move_of(node) for node in path[1:]]
    wanted = {space.robot.patches[patch].limb for patch in space.goal.specs}
    first = [at.s for patch, at in path[0].standing.items() if space.robot.patches[patch].limb in wanted]
    steps = [k for k, move in enumerate(moves) if len(move.added) == 1 and not move.rolling and move.limb in wanted]
    if not first or not steps:
        return moves
    patches = [moves[k].added[0][0] for k in steps]
    stands = [path[k + 1].standing[patch] for k, patch in zip(steps, patches, strict=True)]
    s = equal_progress(float(np.mean(first)), [at.s for at in stands], [at.hit for at in stands])
    for k, patch, at, target in zip(steps, patches, stands, s, strict=True):
        i = moves[k].added[0][1]
        j = _nearest_place(search, patch, i, at.s, target)  # i where the goal has it: no place is nearer to that
        if j != i:
            moves[k] = Move(moves[k].limb, moves[k].removed, ((patch, j),))
    return moves


def equal_progress(start: float, s: Sequence[float], fixed: Sequence[bool]) -> list[float]:
    """Return progress (m) that goes in equal steps from one fixed contact to the next; behind the last one it stays."""
    known = [0, *(k for k, stays in enumerate(fixed, start=1) if stays)]
    all_s = np.array([start, *s])
    inside = np.arange(1, known[-1] + 1)
    all_s[inside] = np.interp(inside, known, all_s[known])
    return [float(value) for value in all_s[1:]]


def _nearest_place(search: StanceSearch, patch: str, i: int, s: float, target: float) -> int:
    """Return the place on the support of place i that lies nearest to a progress, as far aside, and turned alike."""
    space = search.space
    sampled = space.candidates[patch]
    support, yaw = sampled.specs[i]["surface"], sampled.specs[i].get("yaw", 0.0)
    like = [
        spec["surface"] == support and abs(spec.get("yaw", 0.0) - yaw) < MAX_YAW_DIFFERENCE_RAD
        for spec in sampled.specs
    ]
    progress = np.array([sampled.progress(j) for j in range(len(sampled.specs))])
    off = np.abs(progress - target) + np.abs(sampled.aside - sampled.aside[i])
    off[~np.array(like) | sampled.goal] = np.inf
    j = int(np.argmin(off))
    return j if off[j] < abs(s - target) - space.robot.scale.leg * MIN_STEP_GAIN_M else i


# -- motions ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class BlockedMotion:
    """A motion that is blocked: the node that it leads to, and what blocks it."""

    node: StanceNode
    motion: ProvenMotion
    violations: tuple[Violation, ...]


@dataclass(frozen=True, eq=False)
class BlockedPath:
    """A path with blocked motions, in order."""

    path: list[StanceNode]
    motions: list[BlockedMotion]

    @property
    def rank(self) -> tuple[int, float]:
        """How bad it is: the number of blocked motions, and the most that is missing (m)."""
        return len(self.motions), max(one.violations[0].amount for one in self.motions)


def blocked_motions(feasibility: Feasibility, path: Sequence[StanceNode]) -> Iterator[BlockedMotion]:
    """Yield the motions of a path that are blocked anywhere, in order."""
    for k, node, motion in _motions(feasibility, path):
        report_progress("checking the motion of move", k, len(path) - 1)
        if violations := feasibility.motions.violations(motion):
            yield BlockedMotion(node, motion, violations)


def _motions(feasibility: Feasibility, path: Sequence[StanceNode]) -> Iterator[tuple[int, StanceNode, ProvenMotion]]:
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
        if first and last + 1 < len(steps) and is_retracted(feasibility.robot, steps, last):
            step = steps[last]
            assert step.moved is not None
            retraction = Retraction(step.contacts, parent.touching[step.moved], step.q)
            yield k, node, retraction
            let_go, clear = step.q, retraction.segment(feasibility.motions.segments).q[-1]
        if (swing := swing_to(parent, node)) is not None:
            off = clear is not let_go and np.array_equal(swing.q0, let_go)
            yield k, node, replace(swing, q0=clear, before=None) if off else swing
        number += len(node.steps)


# -- postures -----------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class _Knot:
    """A posture of the sequence, which steps share that change contacts of one limb without a motion in between.

    Attributes
    ----------
    contacts : in place; ``loaded`` names those that carry, ``leaving`` those that are lifted next.
    q : (nq,) now; ``first`` as the search found it.
    """

    contacts: tuple[Contact, ...]
    loaded: tuple[str, ...]
    leaving: tuple[str, ...]
    q: np.ndarray
    first: np.ndarray


def refine_postures(feasibility: Feasibility, paths: list[list[StanceNode]]) -> list[list[StanceNode]] | None:
    """Return the same paths with better postures, as far as no motion between them is blocked.

    Those around a blocked motion are taken back; None where it is blocked with the postures of the search too.

    Parameters
    ----------
    paths : nodes of each goal item, the first of which is where it begins.
    """
    knots: dict[int, _Knot] = {}
    for step in (step for path in paths for node in path[1:] for step in node.steps):
        idle = tuple(contact.patch for contact in step.touching if contact.patch not in step.loaded)
        leaving = idle if step.change == "remove" else ()
        knots.setdefault(id(step.q), _Knot(step.touching, step.loaded, leaving, step.q, step.q))
    if not knots:
        return paths
    chain = list(knots.values())
    generators = [feasibility.generator(settings) for settings in REFINED]
    for sweep in range(SWEEPS):
        before = _Knot(paths[0][0].contacts, (), (), paths[0][0].q, paths[0][0].q)
        for k, (knot, after) in enumerate(zip(chain, [*chain[1:], chain[-1]], strict=True), start=1):
            report_progress("giving room to posture", sweep * len(chain) + k, SWEEPS * len(chain))
            knot.q = _refined_posture(feasibility, generators, knot, before, after)
            before = knot
    while True:
        better = [[_replaced(node, knots) for node in path] for path in paths]
        pairs = zip(paths, better, strict=True)
        blocked = ((path, new.index(one.node)) for path, new in pairs for one in blocked_motions(feasibility, new))
        first = next(blocked, None)
        if first is None:
            return better
        path, k = first
        steps = (*path[k - 1].steps[-1:], *path[k].steps)
        around = [knots[id(step.q)] for step in steps if id(step.q) in knots]  # not where the first path begins
        if all(knot.q is knot.first for knot in around):
            return None
        for knot in around:
            knot.q = knot.first


def _refined_posture(
    feasibility: Feasibility, generators: list[PostureGenerator], knot: _Knot, before: _Knot, after: _Knot
) -> np.ndarray:
    robot, reaches = feasibility.robot, feasibility.postures.continuity.reaches
    middle = robot.integrate(before.q, robot.difference(before.q, after.q), 0.5)
    reference = feasibility.references.guide(knot.contacts, knot.q)
    guide = robot.integrate(middle, robot.difference(middle, reference), REFERENCE_SHARE)
    for generator in generators:
        feasibility.budget.calls += 1
        found = generator.generate(knot.contacts, knot.loaded, guide, [knot.q], leaving=knot.leaving)
        result = with_com_inset(found, robot.scale)
        if (
            result.found
            and reaches(shared_contacts(before.contacts, knot.contacts), before.q, result.q)
            and (after is knot or reaches(shared_contacts(knot.contacts, after.contacts), result.q, after.q))
        ):
            return result.q
    return knot.q


def _replaced(node: StanceNode, knots: dict[int, _Knot]) -> StanceNode:
    steps: list[ContactStep] = [replace(step, q=knots[id(step.q)].q) for step in node.steps]
    return replace(node, steps=tuple(steps), q=steps[-1].q if steps else node.q)
