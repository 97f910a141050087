"""Best-first search over stances, contact before motion (Escande, Kheddar, Miossec 2013).

A node is a stance with a posture, an edge the move of one limb: its patches leave and touch elsewhere, only leave, or
only touch. Every candidate is queued by the potential of its contacts alone (`cost`) and checked when its turn comes
(`move_checks`). Whole motions are checked once a path is found, see `improve.blocked_motions`.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from mcplan.planning.feasibility import OutOfCalls
from mcplan.planning.search.cost import SearchPass, SeededPerturbation, SupportVisitCounter
from mcplan.planning.search.move_checks import MoveChecker
from mcplan.planning.search.moves import (
    MoveGenerator,
    SearchSpace,
    beyond_unreachable_place,
    feet_crossed,
    landing_obstructed,
)
from mcplan.planning.search.node import ContactProgress, Move, StanceNode, contact_cell, place_cell
from mcplan.planning.search.tree import SearchTree
from mcplan.scene.contact import Contact
from mcplan.util.progress import ProgressCallback

MAX_BLOCKED_SWINGS = 3
"""Number of blocked swings from one support to another after which further ones are deprioritized."""

MAX_COST_RISE = 0.2
"""A candidate is queued again if visits to its supports have raised its cost by more than this (moves)."""


class StanceSearch:
    """Search from one node to one goal.

    Parameters
    ----------
    space : candidates, limbs and potential.
    tree : record.
    progress : called with (nodes, calls, smallest h) at each expansion.
    accept : returns the reason to reject a node that has the goal's contacts; empty if none.
    perturbation : noise in the order of the queue; None for none.
    """

    def __init__(
        self,
        space: SearchSpace,
        tree: SearchTree,
        progress: ProgressCallback | None = None,
        accept: Callable[[StanceNode], str] | None = None,
        perturbation: SeededPerturbation | None = None,
    ):
        self.perturbation, self.weights = perturbation or SeededPerturbation(), space.potential.weights
        self.space, self.tree, self.progress, self.accept = space, tree, progress, accept
        self.generator, self.checker = MoveGenerator(space), MoveChecker(space, tree)
        self.closest: StanceNode | None = None
        self._queue: list[tuple[float, int, StanceNode, Move | None, bool]] = []
        self._pass = SearchPass(np.inf, 0, 0.0)
        self._count = 0
        self._closed: dict[tuple, StanceNode] = {}
        self._duplicates: dict[tuple, list[tuple[float, StanceNode, Move | None, bool]]] = {}
        self._visits = SupportVisitCounter({})
        self._h: dict[tuple[StanceNode, Move], float] = {}
        self._cells: dict[StanceNode, dict[str, tuple]] = {}

    def start(
        self, contacts: tuple[Contact, ...], q: np.ndarray, met: frozenset[int], last: StanceNode | None
    ) -> StanceNode:
        """Return the root of a search; ``last`` is the final node of the search for the goal before."""
        title, index = ("start", None) if last is None else ("next goal", last.index)
        return self.checker.node(None, None, contacts, q, (), met, title, index)

    def paths(self, root: StanceNode, effort: SearchPass, max_nodes: int) -> Iterator[StanceNode]:
        """Yield nodes that reach the goal, until the queue or a budget is empty.

        If a motion to such a node is blocked, call `block` with the node at the end of the motion: the search continues
        without it.
        """
        budget = self.space.feasibility.budget
        limit = budget.limit = budget.calls + effort.calls
        self._pass = effort
        self._queue, self._closed, self._duplicates = [], {}, {}
        self._visits = SupportVisitCounter(self.space.candidates)
        self._push(0.0, root, None)
        expanded = 0
        self.closest = root if self.closest is None or root.h < self.closest.h else self.closest
        try:
            while self._queue:
                if (node := self._next_node()) is None:
                    continue
                if self.closest is None or node.h < self.closest.h:
                    self.closest = node
                if self.reaches_goal(node):
                    before = budget.calls
                    yield node
                    # calls of the caller do not count against the budget of the search
                    limit += budget.calls - before
                    budget.limit = limit
                    continue
                expanded += 1
                self.tree.expand(node.index)
                if self.progress is not None:
                    self.progress(len(self.tree.nodes), budget.calls, self.closest.h)
                if expanded > max_nodes:
                    return
                for move in self.generator.moves(node, effort.window):
                    self._push(self._f(node, move, self.weights.noise * self.perturbation.noise()), node, move)
        except OutOfCalls:
            pass

    def _next_node(self) -> StanceNode | None:
        """Return the node of the queue's first entry; None if it is infeasible, a duplicate, or queued again."""
        f, _, parent, move, late = heapq.heappop(self._queue)
        if parent.lost:
            return None
        node: StanceNode | None = parent
        if move is not None:
            key = self._cells_after(parent, move)
            if key in self._closed:
                self._duplicates.setdefault(key, []).append((f, parent, move, late))
                return None
            # costs that rise in the queue are added when the candidate is popped
            if not late and self._is_deprioritized(parent, move):
                self._push(self._f(parent, move) + self.weights.deprioritized, parent, move, True)
                return None
            raised_f = self._f(parent, move, self.weights.revisit * self._visits.visits(parent, move))
            if raised_f > f + MAX_COST_RISE:
                self._push(raised_f, parent, move, late)
                return None
            node = self._child(parent, move)
        if node is None:
            return None
        key = tuple(sorted(self._cells_of(node).values()))
        if key in self._closed:
            self._duplicates.setdefault(key, []).append((f, node, None, late))
            return None
        self._closed[key] = node
        self._visits.add(node)
        return node

    def _child(self, parent: StanceNode, move: Move) -> StanceNode | None:
        budget = self.space.feasibility.budget
        calls = budget.calls
        node = self.checker.child(parent, move)
        if node is None and budget.calls > calls:  # not rejected by numbers alone
            self._visits.add_failure(parent, move)
        if node is not None and node.edge in parent.blocked:  # another attempt would give the same posture
            self.tree.skipped["a motion to it is blocked"] += 1
            return None
        return node

    def block(self, nodes: Iterable[StanceNode]) -> None:
        """Drop nodes and their descendants; duplicates of these are queued again."""
        for node in nodes:
            node.dead = True
            if node.parent is not None:  # another posture may be feasible
                node.parent.blocked.add(node.edge)
                self._push(self._pass.f(node.g, node.h), node.parent, node.move)
        for key in [key for key, node in self._closed.items() if node.lost]:
            del self._closed[key]
            for f, parent, move, late in self._duplicates.pop(key, ()):
                self._push(f, parent, move, late)
        if self.closest is not None and self.closest.lost:
            self.closest = min(self._closed.values(), key=lambda node: node.h, default=None)

    def reaches_goal(self, node: StanceNode) -> bool:
        """Whether a node meets the goal, its posture included, and the requirements."""
        if not self.space.goal.reached(node.contacts) or self.space.remaining(node.met, ()):
            return False
        wrong = self.accept(node) if self.accept is not None else ""
        if wrong:
            self.tree.skipped[f"the end that the goal asks for: {wrong}"] += 1
        return not wrong

    # -- order ----------------------------------------------------------------------------------------------------

    def _push(self, f: float, node: StanceNode, move: Move | None, late: bool = False) -> None:
        self._count += 1
        heapq.heappush(self._queue, (f, self._count, node, move, late))

    def _f(self, node: StanceNode, move: Move, extra: float = 0.0) -> float:
        """Return f of the stance that a move leads to, its potential raised by ``extra``."""
        if (node, move) not in self._h:
            standing = {patch: at for patch, at in node.standing.items() if patch not in move.removed}
            for patch, i in move.added:
                sampled = self.space.candidates[patch]
                standing[patch] = ContactProgress(
                    sampled.progress(i), float(sampled.aside[i]), bool(sampled.goal[i]), self.space.is_line(patch)
                )
            self._h[node, move] = self.space.h(standing, node.met)
        return self._pass.f(node.g + 1.0, self._h[node, move] + extra)

    def _is_deprioritized(self, node: StanceNode, move: Move) -> bool:
        return (
            beyond_unreachable_place(self.space, node, move)
            or self._often_blocked(node, move)
            or feet_crossed(self.space, node, move)
            or landing_obstructed(self.space, move)
        )

    def _often_blocked(self, node: StanceNode, move: Move) -> bool:
        """Whether swings of this patch from its support to that one were blocked several times."""
        if not move.added or move.rolling:
            return False
        patch, i = move.added[0]
        before = node.touching.get(patch)
        after = str(self.space.candidates[patch].specs[i]["surface"])
        swings = self.checker.blocked_swings
        return swings[patch, None if before is None else before.support, after] >= MAX_BLOCKED_SWINGS

    def _cells_after(self, node: StanceNode, move: Move) -> tuple:
        size = self.space.robot.scale.leg
        cells = [cell for patch, cell in self._cells_of(node).items() if patch not in move.removed]
        for patch, i in move.added:
            sampled = self.space.candidates[patch]
            cells.append(place_cell(patch, sampled.specs[i], bool(sampled.goal[i]), size))
        return tuple(sorted(cells))

    def _cells_of(self, node: StanceNode) -> dict[str, tuple]:
        if node not in self._cells:
            size, goal = self.space.robot.scale.leg, self.space.goal
            self._cells[node] = {one.patch: contact_cell(one, goal.hit(one), size) for one in node.contacts}
        return self._cells[node]
