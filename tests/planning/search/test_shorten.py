from types import SimpleNamespace

from mcplan.planning.search.improve import _adapted_move, _shorter_moves
from mcplan.planning.search.node import Move

LIMBS = {"foot": SimpleNamespace(patches=("foot_sole",)), "hand": SimpleNamespace(patches=("hand_palm",))}
PATCHES = {"foot_sole": SimpleNamespace(limb="foot"), "hand_palm": SimpleNamespace(limb="hand")}
SPACE = SimpleNamespace(
    robot=SimpleNamespace(patches=PATCHES), goal=SimpleNamespace(specs={"foot_sole": None}), limbs=LIMBS
)
SEARCH = SimpleNamespace(space=SPACE)
"""As much of a search as sequences of moves need."""


def step(limb, patch, place, removed=True):
    return Move(limb, (patch,) if removed else (), ((patch, place),))


def test_what_is_tried_is_shorter_and_begins_with_whole_limbs():
    moves = [
        step("foot", "foot_sole", 1), step("hand", "hand_palm", 1, False), step("foot", "foot_sole", 2),
        step("hand", "hand_palm", 2), step("foot", "foot_sole", 3),
    ]  # fmt: skip
    tries = list(_shorter_moves(SEARCH, moves))
    assert [move.limb for move in tries[0]] == ["foot"] * 3
    assert all(len(found) < len(moves) for found in tries)
    # the first joined pair: the foot goes at once where its second move takes it
    assert [m.added[0] for m in tries[1] if m.limb == "foot"] == [("foot_sole", 2), ("foot_sole", 3)]


def test_a_move_is_fitted_to_another_stance_or_left_out():
    node = SimpleNamespace(touching={"foot_sole": None})
    assert _adapted_move(SEARCH, Move("hand", ("hand_palm",), ()), node) is None
    assert _adapted_move(SEARCH, step("foot", "foot_sole", 1, False), node) is None
    moved = _adapted_move(SEARCH, step("hand", "hand_palm", 4), node)
    assert (moved.removed, moved.added) == ((), (("hand_palm", 4),))
