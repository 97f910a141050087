"""Improvement of a path of moves: fewer moves, steps of equal length, collision-free motions, and refined postures.

Shortening tries the following, as long as the remaining path is feasible:

    limbs   drop all moves of a limb that the goal does not mention
    joins   replace two moves of a limb by one, to the contacts of the second move
    drops   drop one move: the limb keeps its contacts until its next move

Step lengths are equalised, since a search finds long and short steps, and long ones need a deeply bent posture:

    s_k = s_a + (k - a) / (b - a) (s_b - s_a)

with the progress s_k of the k-th contact in the order of the moves, between contacts a and b of start or goal. Every
contact stays on its support, and the path is checked again.

Refinement optimises the postures of a fixed sequence: farther from limits, and closer to the neighbouring postures.

    sweep over k    q_k := posture of the same contacts near   (1 - REFERENCE_SHARE) midpoint(q_k-1, q_k+1)
                           + REFERENCE_SHARE reference

It must be feasible with wider margins than those of the search, and reachable from both neighbours on the contacts that
stay closed; otherwise q_k is kept. The search stops at the first feasible posture, which is often at the edge of a
constraint; refinement gives a plan the margins that its execution needs. Midpoint and weighted mean are taken on the
configuration manifold.
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
from mcplan.planning.search.candidates import Candidates
from mcplan.planning.search.node import ContactStep, Move, StanceNode, shifts_to, swing_to
from mcplan.planning.search.stance_search import StanceSearch
from mcplan.planning.transition.segments import CheckedMotion, Retraction
from mcplan.scene.contact import Contact
from mcplan.util.progress import report_progress

MAX_SHORTENING_CALLS, MAX_EQUALIZING_CALLS = 400, 150
"""Budgets of posture generator calls, for shortening and for equal step lengths."""

MAX_YAW_DIFFERENCE_RAD = 0.3
"""Largest difference in yaw between a contact and the one that replaces it for equal step lengths."""

MIN_STEP_GAIN_M = 0.04
"""Smallest reduction of the distance to an equal step that justifies another contact, for a robot of HRP-2's size."""

SWEEPS = 2
"""Number of refinement sweeps over the sequence."""

REFERENCE_SHARE = 0.3
"""Share of the reference posture in a guide; the rest is the midpoint of the neighbours."""

REFINEMENT_SETTINGS = (
    PostureSettings(
        joint_margin=0.08, bent=0.3, com_inset=0.035, comfort=0.06, torque_share=0.7, clearance=0.01, steps=20
    ),
    PostureSettings(
        joint_margin=0.05, bent=0.2, com_inset=0.028, comfort=0.05, torque_share=0.8, clearance=0.006, steps=20
    ),
    # without a joint margin: contacts may bring a joint near its limit, such as the ankle of a shank on knee and toes
    PostureSettings(bent=0.15, com_inset=0.028, comfort=0.05, torque_share=0.8, clearance=0.006, steps=20),
)
"""Settings of refined postures, the most comfortable first."""


# -- fewer moves --------------------------------------------------------------------------------------------------


def shorten(search: StanceSearch, path: list[StanceNode]) -> list[StanceNode]:
    """Return the path without unnecessary moves.

    After a change, the moves that follow are checked again if they start from other contacts.
    """
    budget = search.space.feasibility.budget
    budget.limit = budget.calls + MAX_SHORTENING_CALLS
    known: dict[tuple, StanceNode] = {}
    try:
        shorter: list[StanceNode] | None = path
        while shorter is not None:
            path = shorter
            tries = (
                replay_moves(search, path[0], moves, known)
                for moves in _shorter_moves(search, [move_of(n) for n in path[1:]])
            )
            shorter = next((nodes for nodes in tries if nodes is not None), None)
    except OutOfCalls:
        pass
    return path


def move_of(node: StanceNode) -> Move:
    """Return the move that leads to a node."""
    assert node.move is not None
    return node.move


def _shorter_moves(search: StanceSearch, moves: list[Move]) -> Iterator[list[Move]]:
    """Yield the shorter sequences to try in place of this one."""
    goal_limbs = {search.space.robot.patches[patch].limb for patch in search.space.goal.specs}
    for limb in dict.fromkeys(move.limb for move in moves):
        if limb not in goal_limbs:
            yield [move for move in moves if move.limb != limb]
    for k, move in enumerate(moves):
        next_k = next((j for j in range(k + 1, len(moves)) if moves[j].limb == move.limb), None)
        if next_k is not None and moves[next_k].added and move.added and not (move.rolling or moves[next_k].rolling):
            yield [*moves[:k], moves[next_k], *moves[k + 1 : next_k], *moves[next_k + 1 :]]
    for k in range(len(moves)):
        yield moves[:k] + moves[k + 1 :]


def replay_moves(
    search: StanceSearch, node: StanceNode, moves: list[Move], known: dict[tuple, StanceNode] | None = None
) -> list[StanceNode] | None:
    """Return the nodes of these moves, or None if one is infeasible or the last one does not reach the goal.

    ``known`` has the nodes of earlier replays, by the id of the node before and the move; new ones are added.
    """
    path, known = [node], {} if known is None else known
    for old in moves:
        move = _adapted_move(search, old, node)
        if move is None:
            continue
        if move.limb == node.limb:
            return None
        key = id(node), move.limb, move.removed, move.added, move.rolling
        after = known.get(key) or search.checker.child(node, move)
        if after is None:
            return None
        known[key] = node = after
        path.append(node)
    return path if search.reaches_goal(node) else None


def _adapted_move(search: StanceSearch, move: Move, node: StanceNode) -> Move | None:
    """Return the same move from another stance, or None if it changes no contact there."""
    closed = tuple(patch for patch in search.space.limbs[move.limb].patches if patch in node.touching)
    if not move.added:
        remaining = tuple(patch for patch in move.removed if patch in closed)
        return Move(move.limb, remaining, ()) if remaining else None
    if move.rolling:
        return move if closed == move.removed else None
    if not move.removed:
        return move if set(closed).isdisjoint(patch for patch, _ in move.added) else None
    return Move(move.limb, closed, move.added)


# -- equal steps --------------------------------------------------------------------------------------------------


def shorten_and_equalize(search: StanceSearch, path: list[StanceNode]) -> list[StanceNode]:
    """Return the path without unnecessary moves and with steps of equal length."""
    return equalize_step_lengths(search, shorten(search, path))


def equalize_step_lengths(search: StanceSearch, path: list[StanceNode]) -> list[StanceNode]:
    """Return the path with contacts at equal distances along the guide, or the same path if that is infeasible."""
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
    """Return the moves with the steps of the goal limbs as equal as the candidates on their supports allow."""
    space, moves = search.space, [move_of(node) for node in path[1:]]
    goal_limbs = {space.robot.patches[patch].limb for patch in space.goal.specs}
    start_s = [at.s for patch, at in path[0].progress.items() if space.robot.patches[patch].limb in goal_limbs]
    steps = [k for k, move in enumerate(moves) if len(move.added) == 1 and not move.rolling and move.limb in goal_limbs]
    if not start_s or not steps:
        return moves
    patches = [moves[k].added[0][0] for k in steps]
    contacts = [path[k + 1].progress[patch] for k, patch in zip(steps, patches, strict=True)]
    s = equal_progress(float(np.mean(start_s)), [at.s for at in contacts], [at.meets_goal for at in contacts])
    min_gain = space.robot.scale.leg * MIN_STEP_GAIN_M
    lattices = {patch: _Lattice(space.candidates[patch]) for patch in set(patches)}
    for k, patch, at, target in zip(steps, patches, contacts, s, strict=True):
        i = moves[k].added[0][1]
        # a contact of the goal stays, since its target is its own progress
        j = lattices[patch].nearest(i, target, abs(at.s - target) - min_gain)
        if j != i:
            moves[k] = Move(moves[k].limb, moves[k].removed, ((patch, j),))
    return moves


def equal_progress(start: float, s: Sequence[float], fixed: Sequence[bool]) -> list[float]:
    """Return progress (m) in equal steps between fixed contacts; after the last fixed one it is unchanged.

    Parameters
    ----------
    start : progress at the start, which is fixed.
    s : progress of the contacts, in order.
    fixed : whether each contact is fixed.
    """
    fixed_indices = [0, *(k for k, stays in enumerate(fixed, start=1) if stays)]
    all_s = np.array([start, *s])
    inside = np.arange(1, fixed_indices[-1] + 1)
    all_s[inside] = np.interp(inside, fixed_indices, all_s[fixed_indices])
    return [float(value) for value in all_s[1:]]


class _Lattice:
    """Supports, yaw angles and progress of the candidates of a patch, as arrays."""

    def __init__(self, sampled: Candidates):
        self.sampled = sampled
        self.supports = np.array([spec["surface"] for spec in sampled.specs])
        self.yaw = np.array([spec.get("yaw", 0.0) for spec in sampled.specs])
        self.progress = np.array([sampled.progress(j) for j in range(len(sampled.specs))])

    def nearest(self, i: int, target: float, max_distance: float) -> int:
        """Return the candidate nearest to a target progress (m), on the support of candidate ``i``, with similar yaw.

        Its distance from the guide should be that of ``i``. If none is nearer than ``max_distance`` (m) the result is
        ``i``.
        """
        similar = (self.supports == self.supports[i]) & (np.abs(self.yaw - self.yaw[i]) < MAX_YAW_DIFFERENCE_RAD)
        guide_distance = self.sampled.guide_distance
        distance = np.abs(self.progress - target) + np.abs(guide_distance - guide_distance[i])
        distance[~similar | self.sampled.goal] = np.inf
        j = int(np.argmin(distance))
        return j if distance[j] < max_distance else i


# -- motions ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class BlockedMotion:
    """A blocked motion, the node that it leads to, and the violations along it."""

    node: StanceNode
    motion: CheckedMotion
    violations: tuple[Violation, ...]


@dataclass(frozen=True, eq=False)
class BlockedPath:
    """A path with blocked motions, in order."""

    path: list[StanceNode]
    motions: list[BlockedMotion]

    @property
    def rank(self) -> tuple[int, float]:
        """Number of blocked motions, and the largest violation (m); paths with a smaller rank are better."""
        return len(self.motions), max(one.violations[0].amount for one in self.motions)


def blocked_motions(feasibility: Feasibility, path: Sequence[StanceNode]) -> Iterator[BlockedMotion]:
    """Yield the blocked motions of a path, in order."""
    for k, node, motion in _motions(feasibility, path):
        report_progress("checking the motion of move", k, len(path) - 1)
        if violations := feasibility.motions.violations(motion):
            yield BlockedMotion(node, motion, violations)


def _motions(feasibility: Feasibility, path: Sequence[StanceNode]) -> Iterator[tuple[int, StanceNode, CheckedMotion]]:
    """Yield (index, node, motion) for each motion of a path as in the plan; the motion leads to the node.

    If a patch was lifted clear of its support, the next motion begins in the posture at the end of that lift.
    """
    steps = [step for node in path[1:] for step in node.steps]
    step_count, unloaded_q, clear_q = 0, path[0].q, path[0].q
    for k, (parent, node) in enumerate(pairwise(path), start=1):
        for shift in shifts_to(parent, node):
            yield k, node, replace(shift, q0=clear_q) if np.array_equal(shift.q0, unloaded_q) else shift
        first = node.move.removed if node.move and not node.move.rolling else ()
        last = step_count + len(first) - 1
        if first and last + 1 < len(steps) and is_retracted(feasibility.robot, steps, last):
            step = steps[last]
            assert step.moved is not None
            retraction = Retraction(step.contacts, parent.touching[step.moved], step.q)
            yield k, node, retraction
            unloaded_q, clear_q = step.q, retraction.segment(feasibility.motions.segments).q[-1]
        if (swing := swing_to(parent, node)) is not None:
            starts_clear = clear_q is not unloaded_q and np.array_equal(swing.q0, unloaded_q)
            yield k, node, replace(swing, q0=clear_q, before=None) if starts_clear else swing
        step_count += len(node.steps)


# -- postures -----------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class _SequencePosture:
    """A posture of the sequence, shared by steps that change contacts of one limb without a motion in between.

    Attributes
    ----------
    contacts : contacts in place.
    loaded : names of the patches that carry load.
    leaving : names of the patches that are lifted next.
    q : (nq,) refined posture so far.
    q_search : (nq,) posture that the search found.
    """

    contacts: tuple[Contact, ...]
    loaded: tuple[str, ...]
    leaving: tuple[str, ...]
    q: np.ndarray
    q_search: np.ndarray


def refine_postures(feasibility: Feasibility, paths: list[list[StanceNode]]) -> list[list[StanceNode]] | None:
    """Return the same paths with refined postures, such that no motion between them is blocked; None if impossible.

    At a blocked motion the postures of the search are used again. If it is blocked with these too, there is no result.

    Parameters
    ----------
    paths : nodes of each goal item; the first node is where its path begins.
    """
    postures: dict[int, _SequencePosture] = {}
    for step in (step for path in paths for node in path[1:] for step in node.steps):
        idle = tuple(contact.patch for contact in step.touching if contact.patch not in step.loaded)
        leaving = idle if step.change == "remove" else ()
        postures.setdefault(id(step.q), _SequencePosture(step.touching, step.loaded, leaving, step.q, step.q))
    if not postures:
        return paths
    sequence = list(postures.values())
    generators = [feasibility.generator(settings) for settings in REFINEMENT_SETTINGS]
    for sweep in range(SWEEPS):
        before = _SequencePosture(paths[0][0].contacts, (), (), paths[0][0].q, paths[0][0].q)
        for k, (posture, after) in enumerate(zip(sequence, [*sequence[1:], sequence[-1]], strict=True), start=1):
            report_progress("giving room to posture", sweep * len(sequence) + k, SWEEPS * len(sequence))
            posture.q = _refined_posture(feasibility, generators, posture, before, after)
            before = posture
    while True:
        refined_paths = [[_with_postures(node, postures) for node in path] for path in paths]
        pairs = zip(paths, refined_paths, strict=True)
        blocked = ((path, new.index(one.node)) for path, new in pairs for one in blocked_motions(feasibility, new))
        first_blocked = next(blocked, None)
        if first_blocked is None:
            return refined_paths
        path, k = first_blocked
        steps = (*path[k - 1].steps[-1:], *path[k].steps)
        neighbours = [
            postures[id(step.q)] for step in steps if id(step.q) in postures
        ]  # the start posture is not refined
        if all(posture.q is posture.q_search for posture in neighbours):
            return None
        for posture in neighbours:
            posture.q = posture.q_search


def _refined_posture(
    feasibility: Feasibility,
    generators: list[PostureGenerator],
    posture: _SequencePosture,
    before: _SequencePosture,
    after: _SequencePosture,
) -> np.ndarray:
    robot, reaches = feasibility.robot, feasibility.postures.continuity.reaches
    middle = robot.integrate(before.q, robot.difference(before.q, after.q), 0.5)
    reference = feasibility.references.guide(posture.contacts, posture.q)
    guide = robot.integrate(middle, robot.difference(middle, reference), REFERENCE_SHARE)
    for generator in generators:
        feasibility.budget.calls += 1
        found = generator.generate(posture.contacts, posture.loaded, guide, [posture.q], leaving=posture.leaving)
        result = with_com_inset(found, robot.scale)
        if (
            result.found
            and reaches(shared_contacts(before.contacts, posture.contacts), before.q, result.q)
            and (after is posture or reaches(shared_contacts(posture.contacts, after.contacts), result.q, after.q))
        ):
            return result.q
    return posture.q


def _with_postures(node: StanceNode, postures: dict[int, _SequencePosture]) -> StanceNode:
    steps: list[ContactStep] = [replace(step, q=postures[id(step.q)].q) for step in node.steps]
    return replace(node, steps=tuple(steps), q=steps[-1].q if steps else node.q)
