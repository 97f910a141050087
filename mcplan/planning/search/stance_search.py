"""Best-first search over stances, contact before motion (Escande, Kheddar, Miossec 2013).

A node is a stance with a posture. An edge is the move of one limb: its contacts open and new ones close, or it only
opens or only closes contacts. Every candidate is queued by the potential of its contacts alone (`cost`), and checked
when it is popped from the queue (`move_checks`). Whole motions are checked once a path is found
(`improve.blocked_motions`).
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
    beyond_unreachable_position,
    feet_crossed,
    landing_obstructed,
)
from mcplan.planning.search.node import ContactProgress, Move, StanceNode, cell_of_coordinates, contact_cell
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
    rejection_reason : returns the reason to reject a node that has the goal's contacts, or an empty text.
    perturbation : noise in the order of the queue; None for none.

    Attributes
    ----------
    closest : the node with the smallest potential so far.
    """

    def __init__(
        self,
        space: SearchSpace,
        tree: SearchTree,
        progress: ProgressCallback | None = None,
        rejection_reason: Callable[[StanceNode], str] | None = None,
        perturbation: SeededPerturbation | None = None,
    ):
        self.perturbation, self.weights = perturbation or SeededPerturbation(), space.potential.weights
        self.space, self.tree, self.progress, self.rejection_reason = space, tree, progress, rejection_reason
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

    def root_node(
        self,
        contacts: tuple[Contact, ...],
        q: np.ndarray,
        requirements_met: frozenset[int],
        previous: StanceNode | None,
    ) -> StanceNode:
        """Return the root of a search; ``previous`` is the final node of the search for the previous goal, or None."""
        title, index = ("start", None) if previous is None else ("next goal", previous.index)
        return self.checker.node(None, None, contacts, q, (), requirements_met, title, index)

    def paths(self, root: StanceNode, search_pass: SearchPass, max_nodes: int) -> Iterator[StanceNode]:
        """Yield nodes that reach the goal, until the queue is empty or the budget is spent.

        If a motion to such a node is blocked, call `block` with the node at the end of the motion: the search continues
        without it.

        Parameters
        ----------
        search_pass : weight, budget and window of this pass.
        max_nodes : maximum number of expanded nodes.
        """
        budget = self.space.feasibility.budget
        limit = budget.limit = budget.calls + search_pass.calls
        self._pass = search_pass
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
                    calls = budget.calls
                    yield node
                    # calls of the caller do not count against the budget of the search
                    limit += budget.calls - calls
                    budget.limit = limit
                    continue
                expanded += 1
                self.tree.expand(node.index)
                if self.progress is not None:
                    self.progress(len(self.tree.nodes), budget.calls, self.closest.h)
                if expanded > max_nodes:
                    return
                for move in self.generator.moves(node, search_pass.window):
                    self._push(self._f(node, move, self.weights.noise * self.perturbation.noise()), node, move)
        except OutOfCalls:
            pass

    def _next_node(self) -> StanceNode | None:
        """Return the node of the queue's first entry; None if it is infeasible, a duplicate, or queued again."""
        f, _, parent, move, deprioritized = heapq.heappop(self._queue)
        if parent.on_blocked_path:
            return None
        node: StanceNode | None = parent
        if move is not None:
            key = self._cells_after(parent, move)
            if key in self._closed:
                self._duplicates.setdefault(key, []).append((f, parent, move, deprioritized))
                return None
            # costs that rise while a candidate is queued are added when it is popped
            if not deprioritized and self._is_deprioritized(parent, move):
                self._push(self._f(parent, move) + self.weights.deprioritized, parent, move, True)
                return None
            raised_f = self._f(parent, move, self.weights.revisit * self._visits.visits(parent, move))
            if raised_f > f + MAX_COST_RISE:
                self._push(raised_f, parent, move, deprioritized)
                return None
            node = self._child(parent, move)
        if node is None:
            return None
        key = tuple(sorted(self._cells_of(node).values()))
        if key in self._closed:
            self._duplicates.setdefault(key, []).append((f, node, None, deprioritized))
            return None
        self._closed[key] = node
        self._visits.add(node)
        return node

    def _child(self, parent: StanceNode, move: Move) -> StanceNode | None:
        budget = self.space.feasibility.budget
        calls = budget.calls
        node = self.checker.child(parent, move)
        if node is None and budget.calls > calls:  # rejected by a posture or a motion
            self._visits.add_failure(parent, move)
        if node is not None and node.edge in parent.blocked_edges:  # the same posture as before
            self.tree.skipped["a motion to it is blocked"] += 1
            return None
        return node

    def block(self, nodes: Iterable[StanceNode]) -> None:
        """Drop nodes and their descendants; their duplicates are queued again."""
        for node in nodes:
            node.motion_blocked = True
            if node.parent is not None:  # another posture may be feasible
                node.parent.blocked_edges.add(node.edge)
                self._push(self._pass.f(node.g, node.h), node.parent, node.move)
        for key in [key for key, node in self._closed.items() if node.on_blocked_path]:
            del self._closed[key]
            for f, parent, move, deprioritized in self._duplicates.pop(key, ()):
                self._push(f, parent, move, deprioritized)
        if self.closest is not None and self.closest.on_blocked_path:
            self.closest = min(self._closed.values(), key=lambda node: node.h, default=None)

    def reaches_goal(self, node: StanceNode) -> bool:
        """Whether a node meets the goal, including its posture, and the requirements."""
        if not self.space.goal.reached(node.contacts) or self.space.moves_for_requirements(node.requirements_met, ()):
            return False
        reason = self.rejection_reason(node) if self.rejection_reason is not None else ""
        if reason:
            self.tree.skipped[f"the end that the goal asks for: {reason}"] += 1
        return not reason

    # -- order ----------------------------------------------------------------------------------------------------

    def _push(self, f: float, node: StanceNode, move: Move | None, deprioritized: bool = False) -> None:
        self._count += 1
        heapq.heappush(self._queue, (f, self._count, node, move, deprioritized))

    def _f(self, node: StanceNode, move: Move, extra: float = 0.0) -> float:
        """Return the priority f of the stance that a move leads to, with its potential raised by ``extra``."""
        if (node, move) not in self._h:
            progress = {patch: at for patch, at in node.progress.items() if patch not in move.removed}
            for patch, i in move.added:
                sampled = self.space.candidates[patch]
                progress[patch] = ContactProgress(
                    sampled.progress(i),
                    float(sampled.guide_distance[i]),
                    bool(sampled.goal[i]),
                    self.space.is_edge(patch),
                )
            self._h[node, move] = self.space.h(progress, node.requirements_met)
        return self._pass.f(node.g + 1.0, self._h[node, move] + extra)

    def _is_deprioritized(self, node: StanceNode, move: Move) -> bool:
        return (
            beyond_unreachable_position(self.space, node, move)
            or self._often_blocked(node, move)
            or feet_crossed(self.space, node, move)
            or landing_obstructed(self.space, move)
        )

    def _often_blocked(self, node: StanceNode, move: Move) -> bool:
        """Whether swings of this patch from its support to that one were blocked several times."""
        if not move.added or move.rolling:
            return False
        patch, i = move.added[0]
        contact = node.touching.get(patch)
        support = str(self.space.candidates[patch].specs[i]["surface"])
        swings = self.checker.blocked_swings
        return swings[patch, None if contact is None else contact.support, support] >= MAX_BLOCKED_SWINGS

    def _cells_after(self, node: StanceNode, move: Move) -> tuple:
        size = self.space.robot.scale.leg
        cells = [cell for patch, cell in self._cells_of(node).items() if patch not in move.removed]
        for patch, i in move.added:
            sampled = self.space.candidates[patch]
            cells.append(cell_of_coordinates(patch, sampled.specs[i], bool(sampled.goal[i]), size))
        return tuple(sorted(cells))

    def _cells_of(self, node: StanceNode) -> dict[str, tuple]:
        if node not in self._cells:
            size, goal = self.space.robot.scale.leg, self.space.goal
            self._cells[node] = {one.patch: contact_cell(one, goal.is_met_by(one), size) for one in node.contacts}
        return self._cells[node]
