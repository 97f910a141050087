"""What a path of moves could do without: moves are dropped as long as the rest can still be proven."""

from mcplan.planning.prover import OutOfCalls
from mcplan.planning.search import StanceSearch
from mcplan.planning.search_node import Move, Node

CALLS = 200
"""Calls of the posture generator that shortening may take."""


def shorten(search: StanceSearch, path: list[Node]) -> list[Node]:
    """Return the path without the moves that turned out useless.

    Without a move its limb stays where it was, until it moves again. What comes after is proven once more as far as it
    rests on other contacts.
    """
    search.prover.limit = search.prover.calls + CALLS
    k = 1
    try:
        while k < len(path):
            shorter = _without(search, path, k)
            if shorter is None:
                k += 1
            else:
                path = shorter
    except OutOfCalls:
        pass
    return path


def _without(search: StanceSearch, path: list[Node], k: int) -> list[Node] | None:
    """Return the path without its move ``k``, or None when the rest cannot be proven or ends elsewhere."""
    shorter = path[:k]
    node = path[k - 1]
    for old in path[k + 1 :]:
        assert old.move is not None
        move = _from(search, old.move, node)
        if move is None or move.limb == node.limb:
            return None
        after = search.prove(node, move)
        if after is None:
            return None
        node = after
        shorter.append(node)
    return shorter if search.done(node) else None


def _from(search: StanceSearch, move: Move, node: Node) -> Move | None:
    """Return the move as it is from another stance, or None where it makes no sense."""
    new = {patch for patch, _ in move.added}
    own = [patch for patch in search.limbs[move.limb].patches if patch in node.touching]
    if move.removed and not move.added:
        return move if set(own) >= set(move.removed) else None
    if not move.removed:
        return move if not new & set(own) else None
    return Move(move.limb, tuple(own), move.added)
