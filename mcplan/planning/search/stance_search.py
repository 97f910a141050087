"""Best-first search over stances, contact before motion.

A node is a stance with a posture, an edge the move of one limb: its patches leave and touch elsewhere, only leave, or
only touch. Every candidate is queued by the potential of its contacts alone and proven when its turn comes:

    filters     window of progress, reach of the limb, feet beside each other, links against the scene
    lift        all contacts in place, those of the limb carry nothing
    place       the new contacts in place, carrying nothing; its posture becomes the node's
    swing       a few postures between, before the node itself is expanded
    way         postures all along the swings of a path that was found, see `search.barred`

    f = moves + w h          greedy: h alone

A seed other than 0 raises each h by a little noise as it is queued, see `reroll`.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np

from mcplan.planning.feasibility import OutOfCalls
from mcplan.planning.posture.result import PostureResult, Violation
from mcplan.planning.search.moves import MoveMaker
from mcplan.planning.search.node import Move, Node, Step
from mcplan.planning.search.ordering import (
    Crowds,
    Reroll,
    away,
    beyond_failure,
    cell_of,
    covered,
    crossed,
    overlap,
    place_cell,
)
from mcplan.planning.search.potential import Standing
from mcplan.planning.search.space import Pass, SearchSpace
from mcplan.planning.search.tree import SearchTree
from mcplan.planning.transition.segments import BodyShift, SwingMotion
from mcplan.scene.contact import Contact
from mcplan.util.progress import ProgressCallback

SHUFFLE = 0.05
"""m: of a patch that moves less on its support the search looks at no swing; its motion is looked at with the path."""

BEHIND = 3.0
"""What an unlikely candidate costs: beyond one that was out of reach, often barred, or as `search.unlikely` says."""

AWAY = 1e-3
"""m: by so much more than is missing a patch is put aside whose link is in the way."""

OFTEN = 3
"""Swings from one support to another that are barred before others are looked at first."""

ROOM = 0.2
"""Moves that a candidate may cost more than when it was queued, for its supports became crowded, before it waits."""


class StanceSearch:
    """Searches from one node to one goal.

    Parameters
    ----------
    space : what it moves in.
    tree : record.
    progress : called with (nodes, calls, least h) now and then.
    accept : says what is wrong with a node that has the goal's contacts; empty if nothing.
    reroll : noise in the order of the queue; None for none.
    """

    def __init__(
        self,
        space: SearchSpace,
        tree: SearchTree,
        progress: ProgressCallback | None = None,
        accept: Callable[[Node], str] | None = None,
        reroll: Reroll | None = None,
    ):
        self.reroll = reroll or Reroll()
        self.space, self.tree, self.progress, self.accept = space, tree, progress, accept
        self.maker = MoveMaker(space)
        self.closest: Node | None = None
        self._barred: Counter[tuple] = Counter()
        self._queue: list[tuple[float, int, Node, Move | None, bool]] = []
        self._effort = Pass(np.inf, 0, 0.0)
        self._count = 0
        self._closed: dict[tuple, Node] = {}
        self._passed: dict[tuple, list[tuple[float, Node, Move | None, bool]]] = {}
        self._crowds = Crowds({})
        self._heights: dict[tuple[Node, Move], float] = {}
        self._cells: dict[Node, dict[str, tuple]] = {}

    def start(self, contacts: tuple[Contact, ...], q: np.ndarray, met: frozenset[int], last: Node | None) -> Node:
        """Return the root of a search."""
        contacts = tuple(sorted(contacts, key=lambda contact: contact.patch))
        standing = {contact.patch: self.space.stand(contact) for contact in contacts}
        h = self.space.potential(standing, self._missing(met, standing))
        parent = None if last is None else last.index
        index = self.tree.node(parent, "start" if last is None else "next goal", contacts, q, 0.0, h)
        return Node(contacts, standing, q, None, None, (), 0.0, h, None, met, index)

    def paths(self, root: Node, effort: Pass, max_nodes: int) -> Iterator[Node]:
        """Yield nodes that reach the goal, until the queue or a budget is empty.

        When a motion on the way to one turns out to be barred, `bar` the node that it leads to: the search goes on with
        all else that it knows.
        """
        prover = self.space.prover
        limit = prover.limit = prover.calls + effort.calls
        self._effort = effort
        self._queue, self._closed, self._passed, self._crowds = [], {}, {}, Crowds(self.space.candidates)
        self._push(0.0, root, None)
        expanded = 0
        self.closest = root if self.closest is None or root.h < self.closest.h else self.closest
        try:
            while self._queue:
                f, _, parent, move, late = heapq.heappop(self._queue)
                if parent.lost:
                    continue
                if move is None:
                    node = parent
                else:
                    key = self._key(parent, move)
                    if key in self._closed:
                        self._passed.setdefault(key, []).append((f, parent, move, late))
                        continue
                    if not late and self._unlikely(parent, move):
                        self._push(self._seems(parent, move) + BEHIND, parent, move, True)
                        continue
                    crowded = self._seems(parent, move, self._crowds.cost(parent, move))
                    if crowded > f + ROOM:
                        self._push(crowded, parent, move, late)
                        continue
                    calls = prover.calls
                    proven = self.prove(parent, move)
                    if proven is None:
                        if prover.calls > calls:  # not refused by numbers alone
                            self._crowds.failed(parent, move)
                        continue
                    if proven.way in parent.barred:  # what is known of it makes for no other posture
                        self.tree.skipped["a motion to it is barred"] += 1
                        continue
                    node = proven
                key = tuple(sorted(self._cells_of(node).values()))
                if key in self._closed:
                    self._passed.setdefault(key, []).append((f, node, None, late))
                    continue
                self._closed[key] = node
                self._crowds.reached(node)
                if self.closest is None or node.h < self.closest.h:
                    self.closest = node
                if self.done(node):
                    before = prover.calls
                    yield node
                    limit += prover.calls - before
                    prover.limit = limit
                    continue
                expanded += 1
                self.tree.expand(node.index)
                if self.progress is not None:
                    self.progress(len(self.tree.nodes), prover.calls, self.closest.h)
                if expanded > max_nodes:
                    return
                for move in self.maker.moves(node, effort.window):
                    self._push(self._seems(node, move, self.reroll.noise()), node, move)
        except OutOfCalls:
            pass

    def bar(self, nodes: Iterable[Node]) -> None:
        """Give up nodes, and all that was reached through them; what came second to any of that is tried again."""
        for node in nodes:
            node.dead = True
            if node.parent is not None:  # another posture may do
                node.parent.barred.add(node.way)
                self._push(self._f(self._effort, node.g, node.h), node.parent, node.move)
        for key in [key for key, node in self._closed.items() if node.lost]:
            del self._closed[key]
            for f, parent, move, late in self._passed.pop(key, ()):
                self._push(f, parent, move, late)
        if self.closest is not None and self.closest.lost:
            self.closest = min(self._closed.values(), key=lambda node: node.h, default=None)

    def _push(self, f: float, node: Node, move: Move | None, late: bool = False) -> None:
        self._count += 1
        heapq.heappush(self._queue, (f, self._count, node, move, late))

    def done(self, node: Node) -> bool:
        """Whether a node has what the goal and the requirements ask for, the end of the goal included."""
        if not self.space.goal.reached(node.contacts) or self._missing(node.met, ()):
            return False
        wrong = self.accept(node) if self.accept is not None else ""
        if wrong:
            self.tree.skipped[f"the end that the goal asks for: {wrong}"] += 1
        return not wrong

    # -- order ----------------------------------------------------------------------------------------------------

    def _f(self, effort: Pass, g: float, h: float) -> float:
        return h + 1e-3 * g if np.isinf(effort.weight) else g + effort.weight * h

    def _seems(self, node: Node, move: Move, farther: float = 0.0) -> float:
        """Return f of what a move leads to, its potential raised by ``farther``."""
        if (node, move) not in self._heights:
            self._heights[node, move] = self._h(node, move)
        return self._f(self._effort, node.g + 1.0, self._heights[node, move] + farther)

    def _h(self, node: Node, move: Move) -> float:
        standing = {patch: at for patch, at in node.standing.items() if patch not in move.removed}
        met = node.met
        for patch, i in move.added:
            sampled = self.space.candidates[patch]
            standing[patch] = Standing(
                sampled.progress(i), float(sampled.aside[i]), bool(sampled.goal[i]), self.space.is_line(patch)
            )
        return self.space.potential(standing, self._missing(met, standing))

    def _missing(self, met: frozenset[int], touching: Collection[str]) -> float:
        """Return how many moves the requirements still take: one to touch, half of one to carry."""
        left = [patches for i, patches in enumerate(self.space.require) if self.space.due and i not in met]
        return sum(0.5 if any(patch in touching for patch in patches) else 1.0 for patches in left)

    def _key(self, node: Node, move: Move) -> tuple:
        size = self.space.robot.scale.leg
        contacts = [cell for patch, cell in self._cells_of(node).items() if patch not in move.removed]
        for patch, i in move.added:
            sampled = self.space.candidates[patch]
            contacts.append(place_cell(patch, sampled.specs[i], bool(sampled.goal[i]), size))
        return tuple(sorted(contacts))

    def _cells_of(self, node: Node) -> dict[str, tuple]:
        if node not in self._cells:
            size, goal = self.space.robot.scale.leg, self.space.goal
            self._cells[node] = {contact.patch: cell_of(contact, goal.hit(contact), size) for contact in node.contacts}
        return self._cells[node]

    def _unlikely(self, node: Node, move: Move) -> bool:
        if beyond_failure(self.space, node, move) or self._often_barred(node, move):
            return True
        return crossed(self.space, node, move) or covered(self.space, move)

    def _often_barred(self, node: Node, move: Move) -> bool:
        """Whether swings of this patch from its support to that one were barred again and again."""
        if not move.added or move.rolling:
            return False
        patch, i = move.added[0]
        before = node.touching.get(patch)
        after = str(self.space.candidates[patch].specs[i]["surface"])
        return self._barred[patch, None if before is None else before.support, after] >= OFTEN

    # -- proof ----------------------------------------------------------------------------------------------------

    def prove(self, parent: Node, move: Move) -> Node | None:
        """Return the node that a move leads to, or None with the reason in the record."""
        prover, tree = self.space.prover, self.tree
        common = tuple(contact for contact in parent.contacts if contact.patch not in move.removed)
        added, free = [], {}
        for patch, i in move.added:
            contact = self.space.candidates[patch].contact(i)
            if contact is None:
                tree.skipped["the patch does not fit on its support"] += 1
                return None
            if any(overlap(contact, other, self.space.robot.scale) for other in common):
                tree.skipped["too close to another contact"] += 1
                return None
            exact = bool(self.space.candidates[patch].goal[i])
            clearance = 0.0 if exact else prover.generator.settings.clearance
            hit = prover.blocked(contact, clearance)
            if hit is not None and not exact:
                for other in self.space.candidates[patch].beside(i, hit[1] + AWAY):
                    if prover.blocked(other, clearance) is None:
                        contact, hit = other, None
                        break
            if hit is not None:
                tree.reject(parent.index, str(move), "link", (Violation("collision", *hit),), (contact,))
                return None
            added.append(contact)
            if (freedom := self.space.candidates[patch].freedom[i]) is not None:
                free[patch] = freedom
        carrying = tuple(contact.patch for contact in common)
        wrenches: dict[str, np.ndarray] = {}
        steps, q = list[Step](), parent.q
        if move.rolling:
            return self._roll(parent, move, common, added[0])
        if move.removed:
            lifted = prover.prove(parent.contacts, move.removed, q, held=parent.contacts)
            if not lifted.found and move.removed in parent.stuck:
                tree.skipped["its limb could not be lifted"] += 1
                return None
            if not lifted.found:
                parent.stuck.add(move.removed)
                tree.reject(parent.index, str(move), f"lift, {lifted.stage}", lifted.violations, added)
                return None
            leaving = tuple(contact for contact in parent.contacts if contact.patch in move.removed)
            shifted = prover.shift(BodyShift(parent.contacts, leaving, q, lifted.q))
            if shifted:
                near = prover.prove(parent.contacts, move.removed, q, held=parent.contacts, near=True)
                if near.found and not prover.shift(BodyShift(parent.contacts, leaving, q, near.q)):
                    lifted, shifted = near, ()
            if shifted:
                tree.reject(parent.index, str(move), "shift", shifted, added)
                return None
            q, wrenches = lifted.q, lifted.wrenches
            left, touching = list(parent.contacts), parent.contacts
            for patch in move.removed:
                before = tuple(left)
                if steps and (parted := self._parted(before, patch, move.removed, q)) is not None:
                    q, touching = parted, before
                left = [contact for contact in left if contact.patch != patch]
                steps.append(Step(tuple(left), "remove", patch, before, carrying, q, touching))
        if added:
            placed = prover.prove((*common, *added), [contact.patch for contact in added], q, free, common)
            if not placed.found:
                tree.reject(parent.index, str(move), f"place, {placed.stage}", placed.violations, added)
                if placed.stage in ("reach", "balance"):
                    parent.failed.setdefault(move.limb, []).append(away(self.space, parent, move))
                return None
            swung = self._swung(parent, common, added, q, placed)
            if swung:
                unloaded = [contact.patch for contact in added]
                near = prover.prove((*common, *added), unloaded, q, free, common, near=True)
                if near.found and not self._swung(parent, common, added, q, near):
                    placed, swung = near, ()
            added = [placed.contact(contact.patch) for contact in added]
            if swung:
                tree.reject(parent.index, str(move), "swing", swung, added)
                swing = SwingMotion(common, parent.touching.get(added[0].patch), tuple(added), q, placed.q)
                if swung[0].kind == "passage" and np.isinf(swing.length):  # on one support there are many ways
                    self._barred[swing.kind] += 1
                return None
            q = placed.q
            wrenches = _larger(wrenches, placed.wrenches)
            here = list(common)
            for contact in added:
                here.append(contact)
                now = tuple(sorted(here, key=lambda c: c.patch))
                steps.append(Step(now, "add", contact.patch, now, carrying, q, (*common, *added)))
        return self._node(parent, move, (*common, *added), wrenches, steps, q)

    def _parted(
        self, contacts: tuple[Contact, ...], patch: str, unloaded: tuple[str, ...], q: np.ndarray
    ) -> np.ndarray | None:
        """Return a posture (nq,) in which what has opened is off its support, though its limb still rests on ``patch``.

        There it would touch again with every error of a millimetre. None where an ankle at its limit keeps it down.
        """
        prover, opens = self.space.prover, tuple(contact for contact in contacts if contact.patch == patch)
        tries = (prover.prove(contacts, unloaded, q, held=contacts, near=near) for near in (True, False))
        ways = (BodyShift(contacts, opens, q, result.q) for result in tries if result.found)
        return next((way.q1 for way in ways if not prover.shift(way)), None)

    def _swung(
        self, parent: Node, common: tuple[Contact, ...], added: list[Contact], q: np.ndarray, placed: PostureResult
    ) -> tuple[Violation, ...]:
        """Return what bars the swing to a posture that was found; nothing where the patch moves by little."""
        there = tuple(placed.contact(contact.patch) for contact in added)
        swing = SwingMotion(common, parent.touching.get(added[0].patch), there, q, placed.q)
        return self.space.prover.swing(swing) if swing.length >= SHUFFLE * self.space.robot.scale.leg else ()

    def _roll(self, parent: Node, move: Move, common: tuple[Contact, ...], added: Contact) -> Node | None:
        """Prove that the load goes from one patch of a link to another, both in place."""
        both = tuple(sorted((*parent.contacts, added), key=lambda contact: contact.patch))
        steps, q, wrenches = [], parent.q, dict[str, np.ndarray]()
        for change, idle, after in (("add", added.patch, both), ("remove", move.removed[0], (*common, added))):
            result = self.space.prover.prove(both, [idle], q, held=parent.contacts)
            if not result.found:
                self.tree.reject(parent.index, str(move), f"roll, {result.stage}", result.violations, (added,))
                return None
            q = result.q
            wrenches = _larger(wrenches, result.wrenches)
            loaded = tuple(contact.patch for contact in both if contact.patch != idle)
            steps.append(Step(tuple(sorted(after, key=lambda c: c.patch)), change, idle, both, loaded, q, both))
        return self._node(parent, move, (*common, added), wrenches, steps, q)

    def _node(self, parent: Node, move: Move, contacts, wrenches, steps: list[Step], q) -> Node:
        contacts = tuple(sorted(contacts, key=lambda contact: contact.patch))
        standing = {contact.patch: self.space.stand(contact) for contact in contacts}
        met = parent.met | requirements_met(self.space.require, wrenches, self.space.prover.carries)
        h = self.space.potential(standing, self._missing(met, standing))
        index = self.tree.node(parent.index, str(move), contacts, q, parent.g + 1.0, h)
        return Node(contacts, standing, q, parent, move, tuple(steps), parent.g + 1.0, h, move.limb, met, index)


def requirements_met(
    require: Sequence[frozenset[str]], wrenches: Mapping[str, np.ndarray], least: float
) -> frozenset[int]:
    """Return which requirements a stance meets: one of the patches carries more than ``least`` (N)."""
    carrying = {patch for patch, wrench in wrenches.items() if np.linalg.norm(wrench[:3]) > least}
    return frozenset(i for i, patches in enumerate(require) if patches & carrying)


def _larger(one: Mapping[str, np.ndarray], other: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return for each patch the wrench of greater force."""
    both = [*one.items(), *other.items()]
    return dict(sorted(both, key=lambda item: float(np.linalg.norm(item[1][:3]))))
