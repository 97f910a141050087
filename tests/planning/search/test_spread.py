"""Steps of even length, where the places that there are allow it."""

from types import SimpleNamespace

import numpy as np
import pytest

from mcplan.planning.feasibility import CallBudget
from mcplan.planning.search.improve import MIN_STEP_GAIN_M, equal_progress, equalize_step_lengths
from mcplan.planning.search.node import ContactProgress, Move

PATCHES = {"left": SimpleNamespace(limb="left leg"), "right": SimpleNamespace(limb="right leg"),
           "hand": SimpleNamespace(limb="arm")}  # fmt: skip
GRID = np.arange(0.0, 2.01, 0.1)


def test_contacts_lie_evenly_between_those_of_the_goal():
    steps = equal_progress(0.0, [0.6, 0.9, 1.3, 2.0, 2.0], [False, False, False, True, True])
    assert steps == pytest.approx([0.5, 1.0, 1.5, 2.0, 2.0])
    assert equal_progress(0.1, [0.3, 0.4], [False, False]) == pytest.approx([0.3, 0.4])  # nothing says where to
    assert equal_progress(0.0, [0.9, 1.0, 1.2, 3.0], [False, True, False, True]) == pytest.approx([0.5, 1.0, 2.0, 3.0])


class Search:
    """A search on one line of floor: places every 0.1 m, one of the goal at 2 m; it proves what it is told to."""

    def __init__(self, fails=(), support="floor", aside=0.0, yaw=0.0):
        self.fails, self.asked = fails, []
        specs = [{"surface": support, "yaw": yaw} for _ in GRID]
        goal = np.isclose(GRID, 2.0)
        sampled = SimpleNamespace(
            specs=[*specs, {"surface": "floor", "yaw": 0.0}], goal=np.array([*goal, False]),
            guide_distance=np.array([*(aside * np.ones(len(GRID))), 0.0]), progress=lambda i: float([*GRID, 0.6][i]),
        )  # fmt: skip
        self.space = SimpleNamespace(
            candidates=dict.fromkeys(PATCHES, sampled),
            robot=SimpleNamespace(patches=PATCHES, scale=SimpleNamespace(leg=1.0)),
            goal=SimpleNamespace(specs={"left": None, "right": None}),
            limbs={patch.limb: SimpleNamespace(patches=(name,)) for name, patch in PATCHES.items()},
            feasibility=SimpleNamespace(budget=CallBudget()),
        )

    @property
    def checker(self):
        return self

    def child(self, parent, move):
        ((patch, i),) = move.added
        self.asked.append((patch, i))
        if i in self.fails:
            return None
        return node(patch, self.space.candidates[patch].progress(i), move)

    def reaches_goal(self, node):
        return True


def node(patch, s, move, hit=False):
    return SimpleNamespace(
        move=move, limb=move and move.limb, progress={patch: ContactProgress(s, 0.0, hit)}, touching={patch: None}
    )


def path(*steps, start=0.0):
    """Return nodes: (patch, index of the place, progress)."""
    found = [SimpleNamespace(move=None, limb=None, progress={"left": ContactProgress(start, 0.0, False)}, touching={})]
    for patch, i, s in steps:
        move = Move(PATCHES[patch].limb, (), ((patch, i),))
        found.append(node(patch, s, move, bool(np.isclose(s, 2.0))))
    return found


LAST = len(GRID)
UNEVEN = (("right", 6, 0.6), ("left", 9, 0.9), ("right", 13, 1.3), ("left", 20, 2.0), ("right", 20, 2.0))


def test_uneven_steps_are_taken_evenly():
    search = Search()
    found = equalize_step_lengths(search, path(*UNEVEN))
    assert [i for _, i in search.asked] == [5, 10, 15, 20, 20]
    assert [at.s for each in found[1:4] for at in each.progress.values()] == pytest.approx([0.5, 1.0, 1.5])


def test_what_cannot_be_proven_stays_as_it_was():
    given = path(*UNEVEN)
    search = Search(fails=(10,))
    assert equalize_step_lengths(search, given) is given
    assert search.asked == [("right", 5), ("left", 10)]


def test_even_steps_ask_for_nothing():
    search = Search()
    given = path(("right", 5, 0.5 + 0.9 * MIN_STEP_GAIN_M), ("left", 10, 1.0), ("right", 15, 1.5), ("left", 20, 2.0))
    assert equalize_step_lengths(search, given) is given
    assert search.asked == []


@pytest.mark.parametrize("other", [{"support": "step"}, {"aside": 0.4}, {"yaw": 0.5}])
def test_a_contact_keeps_its_support_its_line_and_its_heading(other):
    search, steps = Search(**other), [(patch, LAST, s) for patch, _, s in UNEVEN[:3]]
    given = path(*steps, *UNEVEN[3:])
    assert equalize_step_lengths(search, given) is given
    assert search.asked == []


def test_hands_that_the_goal_does_not_ask_for_are_left_alone():
    search = Search()
    found = equalize_step_lengths(search, path(UNEVEN[0], ("hand", 1, 0.1), *UNEVEN[1:]))
    assert search.asked[:3] == [("right", 5), ("hand", 1), ("left", 10)]
    assert len(found) == 7
