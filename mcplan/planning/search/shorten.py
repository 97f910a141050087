"""What a path of moves could do without: moves are dropped or joined as long as the rest can still be proven.

limbs   all moves of a limb that the goal does not ask for
joins   two moves of a limb become one: it goes at once to where the second one takes it
drops   one move: its limb stays where it was, until it moves again
"""

from collections.abc import Iterator

from mcplan.planning.prover import OutOfCalls
from mcplan.planning.search.node import Move, Node
from mcplan.planning.search.stance_search import StanceSearch

CALLS = 400
"""Calls of the posture generator that shortening may take."""


def shorten(search: StanceSearch, path: list[Node]) -> list[Node]:
    """Return the path without the moves that turned out useless.

    What comes after a change is proven once more as far as it rests on other contacts.
    """
    search.space.prover.limit = search.space.prover.calls + CALLS
    try:
        shorter: list[Node] | None = path
        while shorter is not None:
            path = shorter
            tries = (proven(search, path[0], moves) for moves in _shorter(search, [move_of(n) for n in path[1:]]))
            shorter = next((nodes for nodes in tries if nodes is not None), None)
    except OutOfCalls:
        pass
    return path


def move_of(node: Node) -> Move:
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


def proven(search: StanceSearch, node: Node, moves: list[Move]) -> list[Node] | None:
    """Return the nodes of these moves, or None when they cannot be proven or end elsewhere."""
    path = [node]
    for old in moves:
        move = _from(search, old, node)
        if move is None:
            continue
        if move.limb == node.limb:
            return None
        after = search.prove(node, move)
        if after is None:
            return None
        node = after
        path.append(node)
    return path if search.done(node) else None


def _from(search: StanceSearch, move: Move, node: Node) -> Move | None:
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
